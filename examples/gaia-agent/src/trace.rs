//! [`steps`]: every step of a question, as its thread has stored it.

use std::time::{Duration, SystemTime};

use agentgraph::CompiledGraph;
use agentgraph_llm::{Block, Message, Role, Usage};
use serde::Serialize;

use crate::agent::{GaiaAgent, SolveError};
use crate::solving::Solving;

/// A step that was stored.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// When it was stored, after the first one.
    pub after: Duration,
    /// Its content.
    pub events: Vec<StepEvent>,
}

/// The content of a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum StepEvent {
    /// The instructions.
    Instructions {
        /// The text.
        text: String,
    },
    /// The question.
    Question {
        /// The text.
        text: String,
    },
    /// The model's reasoning, where the provider shows it.
    Reasoning {
        /// The text.
        text: String,
    },
    /// A text of the model, of the cache or of a pattern.
    Text {
        /// The model that wrote it.
        by: String,
        /// The text.
        text: String,
    },
    /// A call of a tool.
    Call {
        /// The id.
        id: String,
        /// The tool.
        tool: String,
        /// The arguments.
        arguments: String,
    },
    /// The result of a call.
    Result {
        /// The id of the call.
        id: String,
        /// The text.
        text: String,
        /// Whether the call failed.
        failed: bool,
    },
    /// The tokens of an answer of the model.
    Tokens {
        /// The answer's number.
        round: u64,
        /// The tokens.
        usage: Usage,
    },
    /// A node that failed. The next run goes on with it.
    Failure {
        /// The node.
        node: String,
        /// The error.
        error: String,
    },
}

/// The steps of a thread, the first one first; empty if there is no such thread.
///
/// # Errors
/// If the thread cannot be read.
pub async fn steps(graph: &CompiledGraph<Solving>, thread: &str) -> Result<Vec<Step>, agentgraph::Error> {
    let mut history = graph.history(thread).await?;
    history.reverse();
    let last = graph.state(thread).await?;
    let mut steps: Vec<Step> = Vec::new();
    let mut begun: Option<SystemTime> = None;
    let (mut known, mut rounds) = (0, 0);
    for checkpoint in history {
        let begin = *begun.get_or_insert(checkpoint.created);
        let state = &checkpoint.values;
        let new = state.messages.get(known..).unwrap_or_default();
        let mut events: Vec<_> = new.iter().flat_map(events_of).collect();
        if state.run_record.rounds > rounds {
            rounds = state.run_record.rounds;
            events.push(StepEvent::Tokens { round: rounds, usage: state.run_record.last_usage });
        }
        known = state.messages.len();
        if !events.is_empty() {
            let after = checkpoint.created.duration_since(begin).unwrap_or_default();
            steps.push(Step { after, events });
        }
    }
    // Results that are stored beside the last checkpoint belong to a step that is not complete; failures do,
    // too.
    let failures = last.map(|last| last.failures).unwrap_or_default();
    if !failures.is_empty() {
        let after = steps.last().map(|step| step.after).unwrap_or_default();
        let failed = failures.iter().map(|failure| StepEvent::Failure {
            node: failure.node().to_owned(),
            error: failure.message().to_owned(),
        });
        steps.push(Step { after, events: failed.collect() });
    }
    Ok(steps)
}

/// The steps of a question: of its run, or of each of its runs and of their vote.
///
/// # Errors
/// If a thread cannot be read.
pub async fn steps_of(agent: &GaiaAgent, thread: &str) -> Result<Vec<Step>, SolveError> {
    let runs = agent.runs_of(thread).await?;
    if runs.is_empty() {
        return steps(agent.graph(), thread).await.map_err(SolveError::Engine);
    }
    let of_vote = |after, text| Step { after, events: vec![StepEvent::Text { by: "vote".to_owned(), text }] };
    let mut all = Vec::new();
    for (number, run) in (1..).zip(&runs) {
        all.push(of_vote(Duration::ZERO, format!("run {number} of {}", runs.len())));
        all.extend(steps(agent.graph(), run).await.map_err(SolveError::Engine)?);
    }
    if let Some(end) = agent.finished(thread).await? {
        all.push(of_vote(end.figures.time, format!("{} ({})", end.answer, end.in_words())));
    }
    Ok(all)
}

/// The most characters of a result in [`reasoning`].
const SHOWN: usize = 500;

/// What a model thought, said and called, as text: the trace that the leaderboard asks for.
///
/// ```
/// use gaia_agent::trace::{Step, StepEvent, reasoning};
///
/// let call = StepEvent::Call { id: "1".into(), tool: "calculator".into(), arguments: "{}".into() };
/// let said = StepEvent::Text { by: "m".into(), text: "FINAL ANSWER: 42".into() };
/// let steps = [Step { after: Default::default(), events: vec![call, said] }];
/// assert_eq!(reasoning(&steps), "calculator {}\nFINAL ANSWER: 42");
/// ```
pub fn reasoning(steps: &[Step]) -> String {
    let line = |event: &StepEvent| match event {
        StepEvent::Reasoning { text } | StepEvent::Text { text, .. } => Some(text.clone()),
        StepEvent::Call { tool, arguments, .. } => Some(format!("{tool} {arguments}")),
        StepEvent::Result { text, .. } => {
            Some(format!("-> {}", text.chars().take(SHOWN).collect::<String>()))
        }
        _ => None,
    };
    let lines: Vec<_> = steps.iter().flat_map(|step| &step.events).filter_map(line).collect();
    lines.join("\n")
}

fn events_of(message: &Message) -> Vec<StepEvent> {
    let by = message.origin.as_ref().map_or("agent", |origin| &origin.model);
    let event = |block: &Block| match (block, message.role) {
        (Block::Text(text), Role::System) => Some(StepEvent::Instructions { text: text.text.clone() }),
        (Block::Text(text), Role::User) => Some(StepEvent::Question { text: text.text.clone() }),
        (Block::Text(text), _) => Some(StepEvent::Text { by: by.to_owned(), text: text.text.clone() }),
        (Block::Thinking(thinking), _) => Some(StepEvent::Reasoning { text: thinking.thinking.clone() }),
        (Block::ToolUse(call), _) => Some(StepEvent::Call {
            id: call.id.clone(),
            tool: call.name.clone(),
            arguments: call.input.text().to_owned(),
        }),
        (Block::ToolResult(result), _) => Some(StepEvent::Result {
            id: result.tool_use_id.clone(),
            text: result.as_text(),
            failed: result.is_error,
        }),
        _ => None,
    };
    message.content.iter().filter_map(event).collect()
}
