//! A person decides about tool calls before they run.

mod question;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use super::{Hooks, Jump, Middleware, Turn};
use crate::error::Result;
use crate::message::{Block, Message, ToolUse};
use question::Settled;

pub use question::{Answer, AskedCall, Decision, Question, Verdict, VerdictKind};

/// Asks a person before tools run: approve, edit, reject, or respond in the place of the tool.
///
/// The calls of one answer of the model become one [`Question`], which is the value of the run's interrupt;
/// resume the run with an [`Answer`]. The question is asked in a hook of its own, so the model is not asked
/// again, and calls that were approved run exactly once. Calls that need no approval keep their place and run
/// with the others.
///
/// The answer is bound to the calls that were asked for: it names them, in the same order. Another answer
/// runs nothing: the question is open again, and its [`problem`](Question::problem) says why. To know before
/// you resume, call [`Question::check`].
///
/// ```
/// use agentgraph_llm::middleware::{HumanInTheLoop, Middleware, ToolPolicy, VerdictKind};
///
/// let human = HumanInTheLoop::new()
///     .tool("delete", ToolPolicy::new().allow([VerdictKind::Approve, VerdictKind::Reject]))
///     .tool("pay", ToolPolicy::new().when(|call| !call.input.text().contains("\"amount\":0")));
/// assert_eq!(human.name(), "human_in_the_loop");
/// ```
#[derive(Clone, Debug, Default)]
pub struct HumanInTheLoop {
    tools: BTreeMap<String, ToolPolicy>,
    mode: AskMode,
}

/// Whether the calls of one answer are asked for together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskMode {
    /// One interrupt for all of them.
    #[default]
    Batched,
    /// An interrupt for each, all open together. The key of an interrupt is the id of its call, and its
    /// answer has one decision.
    PerCall,
}

/// For each changed call, by its id, what the model is told.
type Notes = BTreeMap<String, String>;
type When = dyn Fn(&ToolUse) -> bool + Send + Sync;
type Describe = dyn Fn(&ToolUse) -> String + Send + Sync;

/// When calls of one tool are asked for, and what may be answered.
#[derive(Clone)]
pub struct ToolPolicy {
    allowed: Vec<VerdictKind>,
    when: Option<Arc<When>>,
    describe: Option<Arc<Describe>>,
}

impl HumanInTheLoop {
    /// Asks for no tool.
    pub fn new() -> Self {
        HumanInTheLoop::default()
    }

    /// Asks before each call of this tool, by this policy.
    pub fn tool(mut self, name: impl Into<String>, policy: ToolPolicy) -> Self {
        self.tools.insert(name.into(), policy);
        self
    }

    /// Sets whether the calls of one answer are asked for together.
    pub fn mode(mut self, mode: AskMode) -> Self {
        self.mode = mode;
        self
    }

    fn asked(&self, call: &ToolUse) -> Option<AskedCall> {
        // Arguments that are not JSON never run.
        call.input.json()?;
        self.tools.get(&call.name)?.asked(call)
    }

    fn ask(&self, turn: &Turn, question: &Question) -> Result<Answer> {
        match self.mode {
            AskMode::Batched => fitting_answer(question, |question, _| turn.interrupt(question)),
            AskMode::PerCall => ask_each(turn, question),
        }
    }
}

/// All questions are asked before the first missing answer ends the hook.
fn ask_each(turn: &Turn, question: &Question) -> Result<Answer> {
    let ask = |asked: &AskedCall| {
        fitting_answer(&Question::new([asked.clone()]), |question, refused| match refused {
            0 => turn.interrupt_as(&asked.call, question),
            refused => turn.interrupt_as(format!("{} (answer {})", asked.call, refused + 1), question),
        })
    };
    let answers: Vec<Result<Answer>> = question.calls.iter().map(ask).collect();
    let answers: Result<Vec<Answer>> = answers.into_iter().collect();
    Ok(Answer { decisions: answers?.into_iter().flat_map(|answer| answer.decisions).collect() })
}

/// Asks until an answer fits. A failed run would keep the answer, and could never get another one; so the
/// question is asked again, with the problem in it.
fn fitting_answer(question: &Question, ask: impl Fn(&Question, usize) -> Result<Answer>) -> Result<Answer> {
    let mut question = question.clone();
    let mut refused = 0;
    loop {
        let answer = ask(&question, refused)?;
        match question.check(&answer) {
            Ok(()) => return Ok(answer),
            Err(error) => question.problem = Some(error.to_string()),
        }
        refused += 1;
    }
}

#[async_trait]
impl Middleware for HumanInTheLoop {
    fn name(&self) -> &str {
        "human_in_the_loop"
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE.before_model().after_model()
    }

    /// Tells the model which of its calls were changed, with their results.
    async fn before_model(&self, turn: &mut Turn) -> Result<Jump> {
        let Some(mut notes) = turn.slot::<Notes>().get()?.filter(|notes| !notes.is_empty()) else {
            return Ok(Jump::Next);
        };
        // From the end, because providers may use the id of a call again in a later answer.
        let noted: Vec<_> =
            turn.messages().iter().rev().filter_map(|message| add_notes(message, &mut notes)).collect();
        noted.into_iter().for_each(|message| turn.put(message));
        turn.slot::<Notes>().set(&Notes::new())?;
        Ok(Jump::Next)
    }

    async fn after_model(&self, turn: &mut Turn) -> Result<Jump> {
        let calls: Vec<ToolUse> = turn.open_calls().into_iter().cloned().collect();
        let question = Question::new(calls.iter().filter_map(|call| self.asked(call)));
        if question.calls.is_empty() {
            return Ok(Jump::Next);
        }
        let answer = self.ask(turn, &question)?;
        let mut notes = Notes::new();
        for settled in question.settle(&calls, &answer)? {
            match settled {
                Settled::Run => {}
                Settled::Changed(call) => {
                    notes.insert(call.id.clone(), note(&call));
                    turn.edit_call(call);
                }
                Settled::Answered(result) => turn.answer(result),
            }
        }
        if !notes.is_empty() {
            turn.slot::<Notes>().set(&notes)?;
        }
        Ok(Jump::Next)
    }
}

/// The message with the notes of its results, if there are any.
fn add_notes(message: &Message, notes: &mut Notes) -> Option<Message> {
    message.results().find(|result| notes.contains_key(&result.tool_use_id))?;
    let mut message = message.clone();
    for block in &mut message.content {
        if let Block::ToolResult(result) = block
            && let Some(note) = notes.remove(&result.tool_use_id)
        {
            result.content.insert(0, Block::text(note));
        }
    }
    Some(message)
}

fn note(call: &ToolUse) -> String {
    format!("A person changed this call before it ran, to `{}` with {}.", call.name, call.input.text())
}

impl ToolPolicy {
    /// Asks for each call, and allows every verdict.
    pub fn new() -> Self {
        ToolPolicy { allowed: VerdictKind::ALL.to_vec(), when: None, describe: None }
    }

    /// Allows these verdicts only.
    pub fn allow(mut self, verdicts: impl IntoIterator<Item = VerdictKind>) -> Self {
        self.allowed = verdicts.into_iter().collect();
        self
    }

    /// Asks only for calls that a function chooses; the others run.
    pub fn when(mut self, asks: impl Fn(&ToolUse) -> bool + Send + Sync + 'static) -> Self {
        self.when = Some(Arc::new(asks));
        self
    }

    /// Sets the description of a call for the person.
    pub fn describe(mut self, describe: impl Fn(&ToolUse) -> String + Send + Sync + 'static) -> Self {
        self.describe = Some(Arc::new(describe));
        self
    }

    fn asked(&self, call: &ToolUse) -> Option<AskedCall> {
        if self.when.as_ref().is_some_and(|asks| !asks(call)) {
            return None;
        }
        let mut asked = AskedCall { allowed: self.allowed.clone(), ..AskedCall::new(call) };
        if let Some(describe) = &self.describe {
            asked.description = describe(call);
        }
        Some(asked)
    }
}

impl Default for ToolPolicy {
    fn default() -> Self {
        ToolPolicy::new()
    }
}

impl fmt::Debug for ToolPolicy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ToolPolicy").field("allowed", &self.allowed).finish_non_exhaustive()
    }
}
