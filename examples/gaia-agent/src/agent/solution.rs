//! [`Solution`]: the answer of a question, what kind of answer it is, and what it took. Made of the stored
//! state alone, so a question that is done has the same solution whenever it is looked at.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agentgraph_llm::agent::BestAnswer;
use agentgraph_llm::middleware::Bill;
use agentgraph_llm::{AgentAnswer, Message, Role, Usage};
use serde::{Deserialize, Serialize};

use super::form::{REFORMULATED, is_request};
use super::shortcuts::{CACHE, PATTERN};
use crate::answer::{UNKNOWN, clean, last_clean, marked};
use crate::solving::Solving;

/// The answer of a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Solution {
    /// The question.
    pub task_id: String,
    /// The answer; never empty.
    pub answer: String,
    /// The kind of the answer.
    pub kind: AnswerKind,
    /// The model that wrote it, if one did.
    pub answered_by: Option<String>,
    /// Whether the question has a file that is missing.
    pub lacks_file: bool,
    /// The version of the prompt.
    pub prompt: String,
    /// The effort.
    pub figures: Figures,
    /// Why the models failed, for [`AnswerKind`]s of a question that is not done.
    pub error: Option<String>,
    /// Whether the question is done. One that failed goes on with the next run.
    pub is_done: bool,
    /// The vote; `None` if the question was run once.
    pub votes: Option<Votes>,
}

/// The vote of several runs of a question: `2 of 3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Votes {
    /// The runs that have the answer.
    pub agree: u8,
    /// All runs.
    pub runs: u8,
}

/// The kind of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnswerKind {
    /// The model's own last word, marked as its answer.
    Final,
    /// From the cache: no model was asked.
    Cached,
    /// By a pattern: no model was asked.
    Pattern,
    /// The last text that the model wrote before the limit, a refusal, a cut or a failure; or one that marks
    /// no answer, though it was asked for twice.
    BestText,
    /// The result of the last tool that worked, since the model wrote no text.
    BestResult,
    /// There was neither, or the model said that it does not know: the text [`UNKNOWN`].
    Unknown,
}

impl AnswerKind {
    /// The kind in words, for people.
    pub fn in_words(self) -> &'static str {
        match self {
            AnswerKind::Final => "final answer",
            AnswerKind::Cached => "from the cache",
            AnswerKind::Pattern => "by a pattern, without a model",
            AnswerKind::BestText => "best so far: the model's last text",
            AnswerKind::BestResult => "best so far: the last result of a tool",
            AnswerKind::Unknown => "no answer was found",
        }
    }
}

/// The effort of a question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Figures {
    /// The answers of the model.
    pub rounds: u64,
    /// The calls of each tool.
    pub tools: BTreeMap<String, u64>,
    /// The calls that failed.
    pub failed_calls: u64,
    /// The tokens of each model, also of the one that sees and hears.
    pub bill: Bill,
    /// The time from the beginning to the last step that was stored, with pauses between processes.
    pub time: Duration,
}

impl Figures {
    pub(super) fn add(&mut self, other: &Figures) {
        self.rounds += other.rounds;
        self.failed_calls += other.failed_calls;
        self.bill.add_all(&other.bill);
        self.time += other.time;
        for (tool, calls) in &other.tools {
            *self.tools.entry(tool.clone()).or_default() += calls;
        }
    }
}

impl Solution {
    /// The solution of a question that is done, whose last step was stored at this time.
    pub(super) fn of(state: &Solving, last: SystemTime) -> Self {
        let best = AgentAnswer::<String, Solving>::from(state.clone()).best();
        let is_final = best.is_final();
        Solution::new(state, last, is_final, None)
    }

    /// The solution of a question whose models failed.
    pub(super) fn failed(state: &Solving, now: SystemTime, error: String) -> Self {
        Solution::new(state, now, false, Some(error))
    }

    fn new(state: &Solving, last: SystemTime, is_final: bool, error: Option<String>) -> Self {
        let (answer, kind) = answer(state, is_final);
        let writer = state.messages.iter().rev().find(|message| message.role == Role::Assistant);
        let origin = writer.and_then(|message| message.origin.as_ref());
        let answered_by = origin.map(|origin| format!("{}/{}", origin.provider, origin.model));
        let is_done = error.is_none();
        Solution {
            task_id: state.task_id.clone(),
            answer,
            kind,
            answered_by,
            lacks_file: matches!(state.attachment, super::Attachment::Missing { .. }),
            prompt: state.prompt.clone(),
            figures: figures(state, last),
            error,
            is_done,
            votes: None,
        }
    }

    /// The kind of the answer and the vote in words, for people.
    pub fn in_words(&self) -> String {
        let kind = self.kind.in_words();
        self.votes.map_or_else(
            || kind.to_owned(),
            |votes| format!("{kind}, {} of {} runs", votes.agree, votes.runs),
        )
    }

    /// Whether the answer may be kept for later runs: only one that the model finished, with its file, and
    /// that says something. Of a vote, no run failed.
    pub fn may_be_kept(&self) -> bool {
        self.is_done && self.error.is_none() && self.kind == AnswerKind::Final && !self.lacks_file
    }
}

/// The shortcut that gave the answer, if one did.
fn shortcut(state: &Solving) -> Option<AnswerKind> {
    match provider(state)? {
        CACHE => Some(AnswerKind::Cached),
        PATTERN => Some(AnswerKind::Pattern),
        _ => None,
    }
}

/// The provider of the last message, if that is an answer.
fn provider(state: &Solving) -> Option<&str> {
    let last = state.messages.last().filter(|message| message.role == Role::Assistant)?;
    Some(last.origin.as_ref()?.provider.as_str())
}

/// The marked answer of the last message; else the last marked text of the model, else its last text, else
/// the last result of a tool, else the fixed text: the first that has something when it is cleaned.
fn answer(state: &Solving, is_final: bool) -> (String, AnswerKind) {
    let texts: Vec<_> =
        state.messages.iter().filter(|message| message.role == Role::Assistant).map(Message::text).collect();
    let last = texts.last().map(String::as_str).unwrap_or_default();
    let (answer, kind) = match shortcut(state) {
        Some(kind) => (Some(clean(last)), kind),
        // A text that was only brought into the form is as good as it was before.
        None if is_final && provider(state) != Some(REFORMULATED) => (marked(last), AnswerKind::Final),
        None => (None, AnswerKind::Final),
    };
    let (answer, kind) = match answer {
        Some(answer) => (Some(answer), kind),
        None => (last_clean(texts.iter().map(String::as_str)), AnswerKind::BestText),
    };
    match answer {
        Some(answer) if says_nothing(&answer) => return (UNKNOWN.to_owned(), AnswerKind::Unknown),
        Some(answer) => return (answer, kind),
        None => {}
    }
    // Our own request is no message of a person, after which the search would begin.
    let said: Vec<_> = state.messages.iter().filter(|message| !is_request(message)).cloned().collect();
    match BestAnswer::of(&said) {
        BestAnswer::ToolResult { text, .. } if !clean(&text).is_empty() => {
            (clean(&text), AnswerKind::BestResult)
        }
        _ => (UNKNOWN.to_owned(), AnswerKind::Unknown),
    }
}

/// Whether an answer says that there is none.
fn says_nothing(answer: &str) -> bool {
    [UNKNOWN, "unable to determine", "i don't know", "i do not know"]
        .contains(&answer.to_lowercase().as_str())
}

fn figures(state: &Solving, last: SystemTime) -> Figures {
    let mut figures = Figures {
        rounds: state.run_record.rounds,
        bill: state.run_record.bill.clone(),
        ..Figures::default()
    };
    for call in state.messages.iter().flat_map(Message::tool_uses) {
        *figures.tools.entry(call.name.clone()).or_default() += 1;
    }
    for result in state.messages.iter().flat_map(Message::results) {
        figures.failed_calls += u64::from(result.is_error);
        if let Some(Paid { model, usage }) = result.artifact.as_ref().and_then(|paid| paid.parse().ok()) {
            figures.bill.add(model, usage);
        }
    }
    let began = UNIX_EPOCH + Duration::from_millis(state.began);
    figures.time = last.duration_since(began).unwrap_or_default();
    figures
}

/// The tokens that a tool used.
#[derive(Deserialize)]
struct Paid {
    model: String,
    usage: Usage,
}
