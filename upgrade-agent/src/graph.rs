//! The graph: five nodes and the routes between them, all on this page.
//!
//! Every turn is a run of its own and ends at END. Between two turns nothing runs: the channel `pending`
//! contains what the agent waits for, and [`turn_start`] chooses the first node of the next turn. Routes are
//! pure functions of the state.

use agentgraph::{CompileError, CompiledGraph, END, Route, START, StateGraph};

use crate::agent::Settings;
use crate::client::UpgradeClient;
use crate::nodes::{
    CONFIRMATION_HANDLER, CONVERSATION_ANALYZER, INFORMATION_GATHERER, RESPONSE_GENERATOR, TOOL_EXECUTOR,
    confirmation_handler, conversation_analyzer, information_gatherer, response_generator, tool_executor,
};
use crate::state::{ConversationState, Intent, Pending};

/// Builds the graph over these settings and this server.
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

/// The first node of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Route)]
pub enum TurnStart {
    /// A plan could not restore a status, which is tried again first.
    ToolExecutor,
    /// The message may answer a confirmation.
    ConfirmationHandler,
    /// The message may contain a missing parameter.
    InformationGatherer,
    /// The message starts something new.
    ConversationAnalyzer,
}

/// Starts a turn at the node that asked the open question.
pub fn turn_start(state: &ConversationState) -> TurnStart {
    match state.pending {
        _ if !state.restores.is_empty() && state.plan.is_none() => TurnStart::ToolExecutor,
        Pending::Confirm(_) => TurnStart::ConfirmationHandler,
        Pending::Missing(_) => TurnStart::InformationGatherer,
        Pending::Nothing => TurnStart::ConversationAnalyzer,
    }
}

/// The route after the analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Route)]
pub enum AfterAnalysis {
    /// A look-up or an action has to be prepared.
    InformationGatherer,
    /// The reply can be written, or a question has to be asked.
    ResponseGenerator,
    /// A plan is in progress.
    ToolExecutor,
}

/// A plan continues. Only a request with enough confidence goes to the gatherer; a confidence equal to the
/// limit is enough.
pub fn after_analysis(state: &ConversationState, confidence: f64) -> AfterAnalysis {
    match &state.analysis {
        _ if state.plan.is_some() => AfterAnalysis::ToolExecutor,
        Some(analysis) if analysis.intent == Intent::NeedsInfo && analysis.confidence >= confidence => {
            AfterAnalysis::InformationGatherer
        }
        _ => AfterAnalysis::ResponseGenerator,
    }
}

/// The route after the gathering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Route)]
pub enum AfterGathering {
    /// An action is complete and has to be confirmed.
    ConfirmationHandler,
    /// There is a reply to write: an answer, a question or an error.
    ResponseGenerator,
}

/// An error takes precedence over an action. An incomplete action leads to a question.
pub fn after_gathering(state: &ConversationState) -> AfterGathering {
    match state.proposal {
        Some(_) if state.errors.is_empty() => AfterGathering::ConfirmationHandler,
        _ => AfterGathering::ResponseGenerator,
    }
}

/// The route after a question was asked or answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Route)]
pub enum AfterConfirmation {
    /// The person said yes.
    ToolExecutor,
    /// The message is about something else.
    ConversationAnalyzer,
    /// The question or the refusal has to be written.
    ResponseGenerator,
}

/// An approval is executed, a message about something else is analyzed, and everything else is written.
pub fn after_confirmation(state: &ConversationState) -> AfterConfirmation {
    match (&state.approved, &state.preset) {
        (Some(_), _) => AfterConfirmation::ToolExecutor,
        // A question about a step of a plan was answered.
        (None, None) if state.plan.is_some() => AfterConfirmation::ToolExecutor,
        (None, Some(_)) => AfterConfirmation::ResponseGenerator,
        (None, None) => AfterConfirmation::ConversationAnalyzer,
    }
}

/// The route after an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Route)]
pub enum AfterExecution {
    /// The plan has steps left, or the message starts something new.
    ConversationAnalyzer,
    /// The next step of the plan needs a confirmation, or the message may answer one.
    ConfirmationHandler,
    /// The message may contain a missing parameter.
    InformationGatherer,
    /// The action is finished.
    ResponseGenerator,
}

/// A plan continues through the analyzer until it has ended, and stops at a step that needs a confirmation.
/// After a restore that was due, the turn goes on as it would have begun.
pub fn after_execution(state: &ConversationState) -> AfterExecution {
    match (&state.plan, &state.proposal, &state.pending) {
        (Some(_), Some(_), _) => AfterExecution::ConfirmationHandler,
        (Some(_), None, _) => AfterExecution::ConversationAnalyzer,
        _ if state.preset.is_some() => AfterExecution::ResponseGenerator,
        (None, _, Pending::Confirm(_)) => AfterExecution::ConfirmationHandler,
        (None, _, Pending::Missing(_)) => AfterExecution::InformationGatherer,
        (None, _, Pending::Nothing) => AfterExecution::ConversationAnalyzer,
    }
}
