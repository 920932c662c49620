//! One call of a tool, as the tool and the middleware around it see it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use agentgraph::{Ctx, Snapshot, State};

use super::ToolError;
use crate::json::RawJson;
use crate::message::{Block, Message, ToolUse};

/// One call of a tool: its id, its arguments, and the node in which it runs. Cheap to clone.
///
/// The model chooses name and arguments. The rest comes from the graph, so a model cannot forge it.
///
/// ```
/// use agentgraph_llm::ToolCall;
/// use serde_json::json;
///
/// let call = ToolCall::detached("call-1", "weather").with_input(json!({"city": "Oslo"}));
/// assert_eq!((call.id(), call.name()), ("call-1", "weather"));
/// assert_eq!(call.input().get(), r#"{"city":"Oslo"}"#);
/// assert!(call.ctx().is_err(), "it runs in no graph");
/// ```
#[derive(Clone)]
pub struct ToolCall {
    source: Source,
    message_id: Option<Arc<str>>,
    input: RawJson,
    ctx: Option<Ctx>,
    state: Option<AnyState>,
}

/// The state of a graph.
pub(crate) type AnyState = Arc<dyn Any + Send + Sync>;

/// Where the id and the name of a call are.
#[derive(Clone)]
enum Source {
    Detached {
        id: Arc<str>,
        name: Arc<str>,
    },
    /// The block at this position of an answer, which shares its texts.
    Answer(Message, usize),
}

impl Source {
    fn asked(&self) -> Option<&ToolUse> {
        match self {
            Source::Detached { .. } => None,
            Source::Answer(answer, at) => answer.content.get(*at).and_then(Block::as_tool_use),
        }
    }
}

impl ToolCall {
    /// A call outside of a graph, with `{}` as its arguments. For tests and scripts.
    pub fn detached(id: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        let source = Source::Detached { id: id.into(), name: name.into() };
        ToolCall { source, message_id: None, input: RawJson::empty_object(), ctx: None, state: None }
    }

    /// The call of an answer of a model, with its arguments if they are JSON.
    pub(crate) fn of(call: &ToolUse, answer: &Message, ctx: Option<Ctx>, state: Option<AnyState>) -> Self {
        let is_asked = |block: &Block| block.as_tool_use().is_some_and(|known| known.id == call.id);
        let at = answer.content.iter().position(is_asked).unwrap_or_default();
        let input = call.input.json().cloned().unwrap_or_else(RawJson::empty_object);
        let source = Source::Answer(answer.clone(), at);
        ToolCall { source, message_id: None, input, ctx, state }
    }

    /// The same call in the message with this id.
    #[must_use]
    pub fn with_message_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.message_id = Some(id.into());
        self
    }

    /// The same call with other arguments.
    #[must_use]
    pub fn with_input(mut self, input: impl Into<RawJson>) -> Self {
        self.input = input.into();
        self
    }

    /// The same call in a node.
    #[must_use]
    pub fn with_ctx(mut self, ctx: Ctx) -> Self {
        self.ctx = Some(ctx);
        self
    }

    /// The same call with a state to read.
    #[must_use]
    pub fn with_state<S: State>(mut self, state: Snapshot<S>) -> Self {
        self.state = Some(Arc::<S>::from(state));
        self
    }

    /// The id of the call, which the result refers to. The provider chooses it, and some begin anew with each
    /// answer: only together with the [`message_id`](Self::message_id) it names one call of a thread.
    pub fn id(&self) -> &str {
        match &self.source {
            Source::Detached { id, .. } => id,
            answer @ Source::Answer(..) => answer.asked().map_or("", |call| &call.id),
        }
    }

    /// The [`id`](crate::MessageFields::id) of the model's message that has the call; empty for a detached
    /// call.
    pub fn message_id(&self) -> &str {
        match (&self.message_id, &self.source) {
            (Some(id), _) => id,
            (None, Source::Answer(answer, _)) => &answer.id,
            (None, Source::Detached { .. }) => "",
        }
    }

    /// The name of the tool, as the model wrote it.
    pub fn name(&self) -> &str {
        match &self.source {
            Source::Detached { name, .. } => name,
            answer @ Source::Answer(..) => answer.asked().map_or("", |call| &call.name),
        }
    }

    /// The arguments.
    pub fn input(&self) -> &RawJson {
        &self.input
    }

    /// The context of the node that runs the call: for questions, the store, durable steps and events.
    ///
    /// # Errors
    /// [`ToolError::Fatal`] with a [`NoContext`] if the call does not run in a node, or if the loop in the
    /// node was not given its context.
    pub fn ctx(&self) -> Result<&Ctx, ToolError> {
        self.ctx.as_ref().ok_or_else(|| NoContext { tool: self.name().to_owned() }.into())
    }

    /// The state of the graph at the start of the superstep, if it is an `S`. A tool that cannot work without
    /// it says so in [`Tool::state`](super::Tool::state), so that building the graph fails and not the call.
    pub fn state<S: State>(&self) -> Option<&S> {
        self.state.as_ref()?.downcast_ref()
    }

    /// The state as [`state`](ToolCall::state) returns it, shared, to be kept after the call.
    pub fn snapshot<S: State>(&self) -> Option<Snapshot<S>> {
        self.state.clone()?.downcast::<S>().ok().map(Snapshot::from)
    }
}

impl fmt::Debug for ToolCall {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = out.debug_struct("ToolCall");
        parts.field("id", &self.id()).field("name", &self.name()).field("input", &self.input);
        parts.field("in_node", &self.ctx.is_some()).finish_non_exhaustive()
    }
}

/// The error of [`ToolCall::ctx`] outside of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NoContext {
    /// The tool that asked for the context.
    pub tool: String,
}

impl fmt::Display for NoContext {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "tool `{}` needs the context of a node: run it in a `ToolNode` or an `Agent`, or give the loop its \
             context with `ToolLoop::ctx`",
            self.tool
        )
    }
}

impl std::error::Error for NoContext {}
