//! The graph: five nodes, and who comes after whom. All of it is on this page.
//!
//! Every turn is a run of its own and ends in END. Between two turns nothing runs: what the agent waits for
//! is the channel `pending`, and where the next turn begins is [`turn_start`]. Routes are pure functions of
//! the state; which texts are shown and what is written is the nodes' business.

use agentgraph::{CompileError, CompiledGraph, END, Route, START, StateGraph};

use crate::agent::Settings;
use crate::client::UpgradeClient;
use crate::nodes::{
    CONFIRMATION_HANDLER, CONVERSATION_ANALYZER, INFORMATION_GATHERER, RESPONSE_GENERATOR, TOOL_EXECUTOR,
    confirmation_handler, conversation_analyzer, information_gatherer, response_generator, tool_executor,
};
use crate::state::{ConversationState, Intent, Pending};

/// The graph over these settings and this server.
pub(crate) fn graph(
    settings: Settings,
    client: UpgradeClient,
) -> Result<CompiledGraph<ConversationState>, CompileError> {
    let confidence = settings.confidence;
    StateGraph::new()
        .dep(settings)
        .dep(client)
        .node(CONVERSATION_ANALYZER, conversation_analyzer::run)
        .node(INFORMATION_GATHERER, information_gatherer::run)
        .node(CONFIRMATION_HANDLER, confirmation_handler::run)
        .node(TOOL_EXECUTOR, tool_executor::run)
        .node(RESPONSE_GENERATOR, response_generator::run)
        .route(START, turn_start)
        .route(CONVERSATION_ANALYZER, move |state: &ConversationState| after_analysis(state, confidence))
        .route(INFORMATION_GATHERER, after_gathering)
        .route(CONFIRMATION_HANDLER, after_confirmation)
        .route(TOOL_EXECUTOR, after_execution)
        .edge(RESPONSE_GENERATOR, END)
        .compile()
}

/// Where a turn begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Route)]
pub enum TurnStart {
    /// The message may be the answer to a confirmation.
    ConfirmationHandler,
    /// The message may bring a parameter that was asked for.
    InformationGatherer,
    /// The message begins something.
    ConversationAnalyzer,
}

/// Where a turn begins: with whoever asked.
pub fn turn_start(state: &ConversationState) -> TurnStart {
    match state.pending {
        Pending::Confirm(_) => TurnStart::ConfirmationHandler,
        Pending::Missing(_) => TurnStart::InformationGatherer,
        Pending::Nothing => TurnStart::ConversationAnalyzer,
    }
}

/// Where a turn goes once it is clear what is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Route)]
pub enum AfterAnalysis {
    /// Something has to be looked up or prepared.
    InformationGatherer,
    /// It can be answered, or has to be asked back.
    ResponseGenerator,
    /// A plan is under way.
    ToolExecutor,
}

/// A plan goes on. Only a clear wish for something goes to the gatherer. A confidence of exactly the limit is
/// clear.
pub fn after_analysis(state: &ConversationState, confidence: f64) -> AfterAnalysis {
    match &state.analysis {
        _ if state.plan.is_some() => AfterAnalysis::ToolExecutor,
        Some(analysis) if analysis.intent == Intent::NeedsInfo && analysis.confidence >= confidence => {
            AfterAnalysis::InformationGatherer
        }
        _ => AfterAnalysis::ResponseGenerator,
    }
}

/// Where a turn goes with what was gathered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Route)]
pub enum AfterGathering {
    /// An action is complete and has to be confirmed.
    ConfirmationHandler,
    /// There is something to say: an answer, a question, an error.
    ResponseGenerator,
}

/// An error wins over an action; an action that is not complete is a question.
pub fn after_gathering(state: &ConversationState) -> AfterGathering {
    match state.proposal {
        Some(_) if state.errors.is_empty() => AfterGathering::ConfirmationHandler,
        _ => AfterGathering::ResponseGenerator,
    }
}

/// Where a turn goes once a confirmation was asked for or settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Route)]
pub enum AfterConfirmation {
    /// The person said yes.
    ToolExecutor,
    /// The person spoke of something else.
    ConversationAnalyzer,
    /// The question is to be put, or its refusal to be told.
    ResponseGenerator,
}

/// An approval is run; a dropped question leaves a message to be read; anything else is said.
pub fn after_confirmation(state: &ConversationState) -> AfterConfirmation {
    match (&state.approved, &state.preset) {
        (Some(_), _) => AfterConfirmation::ToolExecutor,
        // A step of it was settled.
        (None, None) if state.plan.is_some() => AfterConfirmation::ToolExecutor,
        (None, Some(_)) => AfterConfirmation::ResponseGenerator,
        (None, None) => AfterConfirmation::ConversationAnalyzer,
    }
}

/// Where a turn goes once something was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Route)]
pub enum AfterExecution {
    /// A plan has steps left.
    ConversationAnalyzer,
    /// The next step of a plan has to be asked about.
    ConfirmationHandler,
    /// It is done.
    ResponseGenerator,
}

/// A plan goes on by way of the analyzer until it has ended, and stops where a step of it needs its own yes.
pub fn after_execution(state: &ConversationState) -> AfterExecution {
    match (&state.plan, &state.proposal) {
        (Some(_), Some(_)) => AfterExecution::ConfirmationHandler,
        (Some(_), None) => AfterExecution::ConversationAnalyzer,
        (None, _) => AfterExecution::ResponseGenerator,
    }
}
