//! The bounded tool loop: ask the model, run the calls it asks for, give it the results, until it is done.
//!
//! It runs inside one node. The engine does not see its rounds: a node that is run again (after a retry, a kill, an
//! interrupt in a tool) runs its loop from the start, so tools must bear to be called twice.

use std::fmt;

use crate::error::Result;
use crate::message::{Message, MessageIds};
use crate::model::{ChatEvent, ChatModel, ChatRequest, ChatResponse, Usage};
use crate::tool::Tool;

/// How many times a loop asks the model, unless told otherwise.
pub const DEFAULT_MAX_ROUNDS: usize = 10;

/// A bounded tool loop. See the [module](crate::tool_loop) for what a round is.
pub struct ToolLoop<'a> {
    model: &'a dyn ChatModel,
    tools: Vec<Box<dyn Tool + 'a>>,
    max_rounds: usize,
    ids: MessageIds,
    see: Option<Box<dyn Fn(&ChatEvent) + Send + Sync + 'a>>,
}

/// What a loop ended with.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolLoopOutcome {
    /// The messages the loop added to the conversation, in order: assistant, results, assistant ... With these at its
    /// end, the conversation can be sent again however the loop ended: no call is without a result.
    pub messages: Vec<Message>,
    /// The last answer of the model.
    pub response: ChatResponse,
    /// The cost of all rounds.
    pub usage: Usage,
    /// How many times the model was asked.
    pub rounds: usize,
    /// Why the loop ended.
    pub ended: Ended,
}

/// Why a tool loop ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// The model gave its answer.
    Finished,
    /// The model's answer was cut by a token limit.
    Truncated,
    /// The model refused.
    Refused,
    /// The model still asked for calls, or paused, in the last allowed round. Those calls were not run.
    LimitReached,
    /// A tool's output is the answer.
    ReturnedDirectly,
}

impl<'a> ToolLoop<'a> {
    /// A loop over this model without tools.
    pub fn new(model: &'a dyn ChatModel) -> Self {
        ToolLoop { model, tools: Vec::new(), max_rounds: DEFAULT_MAX_ROUNDS, ids: MessageIds::default(), see: None }
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: impl Tool + 'a) -> Self {
        self.tools.push(Box::new(tool));
        self
    }

    /// Adds tools, such as a `&Vec<Arc<dyn Tool>>`.
    pub fn tools(mut self, tools: impl IntoIterator<Item = impl Tool + 'a>) -> Self {
        self.tools.extend(tools.into_iter().map(|tool| Box::new(tool) as Box<dyn Tool + 'a>));
        self
    }

    /// Asks the model at most this many times (10 if not set, at least once).
    pub fn max_rounds(mut self, rounds: usize) -> Self {
        self.max_rounds = rounds.max(1);
        self
    }

    /// Takes the ids of result messages from here.
    pub fn message_ids(mut self, ids: MessageIds) -> Self {
        self.ids = ids;
        self
    }

    /// Streams the model's answers and shows each event.
    pub fn on_event(mut self, see: impl Fn(&ChatEvent) + Send + Sync + 'a) -> Self {
        self.see = Some(Box::new(see));
        self
    }

    /// Runs the loop. The request's own tools are offered too, but a call of them is answered as unknown.
    ///
    /// # Errors
    /// `E_LLM_BAD_TOOL` before the first call when two tools have one name or a name cannot be sent;
    /// `E_LLM_TOOL_FAILED` with the tool's error as cause; what the model failed with.
    pub async fn run(self, request: ChatRequest) -> Result<ToolLoopOutcome> {
        let _ = (request, self.model, self.max_rounds, &self.see, self.ids, self.tools);
        todo!("in work")
    }
}

impl ToolLoopOutcome {
    /// The answer: the model's text, or the tool's after [`Ended::ReturnedDirectly`].
    pub fn text(&self) -> String {
        self.response.message.text()
    }
}

impl fmt::Debug for ToolLoop<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = out.debug_struct("ToolLoop");
        parts.field("model", &self.model.name()).field("tools", &self.tools.len());
        parts.field("max_rounds", &self.max_rounds).finish_non_exhaustive()
    }
}
