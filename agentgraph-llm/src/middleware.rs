//! Code around the model and the tools of an [`Agent`](crate::Agent): hooks between its steps, and wraps of
//! its calls.
//!
//! | method | when | order |
//! |---|---|---|
//! | [`before_agent`](Middleware::before_agent) | once, at the start of a run | first to last |
//! | [`before_model`](Middleware::before_model) | before each request | first to last |
//! | [`wrap_model`](Middleware::wrap_model) | round each request | the first is the outermost |
//! | [`after_model`](Middleware::after_model) | after each response | last to first |
//! | [`wrap_tool`](Middleware::wrap_tool) | round each tool call | the first is the outermost |
//! | [`after_agent`](Middleware::after_agent) | once, at the end of a run | last to first |
//!
//! A hook is a node of its own, named `<middleware>.<hook>`. So it may ask a person: when the answer comes,
//! only the hook runs again, and the model is not paid twice. What a hook changes in its [`Turn`] is stored
//! with the node.
//!
//! A wrap runs inside the node that makes the call. Only the stream that the outermost wrap returns is heard
//! outside: a wrap may ask other models, or throw an answer away, in silence.

mod attempts;
mod bill;
mod budget;
mod context_editing;
mod fallback;
mod human;
mod idempotency;
mod limit_count;
mod model_call_limit;
mod next;
#[cfg(feature = "pii")]
mod pii;
mod prompt_caching;
mod rate_limit;
mod refused_settings;
mod request;
mod response_cache;
mod retry;
mod slot;
mod summarization;
mod todo_list;
mod tool_call_limit;
mod tool_selector;
mod turn;

use std::sync::Arc;

use async_trait::async_trait;

use crate::error::Result;
use crate::model::ChatStream;
use crate::tool::{Tool, ToolCall, ToolError, ToolOutput};

pub(crate) use bill::OpenBill;
pub use bill::{Bill, BilledModel};
pub use budget::{Budget, Money, Price, PriceTable};
pub use context_editing::ContextEditing;
pub use fallback::ModelFallback;
pub use human::{
    Answer, AskMode, AskedCall, Decision, HumanInTheLoop, Question, ToolPolicy, Verdict, VerdictKind,
};
pub use idempotency::{IdempotencyKeys, idempotency_key};
pub use model_call_limit::{AtLimit, ModelCallLimit};
pub(crate) use next::Chain;
pub use next::{NextModel, NextTool};
#[cfg(feature = "pii")]
pub use pii::{Pii, PiiKind, PiiPlace, PiiStrategy};
pub use prompt_caching::PromptCaching;
pub use rate_limit::{Permit, RateLimitedModel, RateLimiter};
pub use refused_settings::RefusedSettings;
pub use request::ModelRequest;
pub use response_cache::ResponseCache;
pub use retry::{ModelRetry, OnFailure, Retry, ToolRetry};
pub use slot::Slot;
pub(crate) use slot::Slots;
pub use summarization::{Extent, Summarization};
pub use todo_list::{Todo, TodoList, TodoStatus};
pub use tool_call_limit::{AboveLimit, ToolCallLimit};
pub use tool_selector::ToolSelector;
pub use turn::Turn;
pub(crate) use turn::{MessageEdits, TurnStart};

/// Code around the model and the tools of an agent. See the [module](crate::middleware) for the order.
///
/// ```
/// use agentgraph_llm::middleware::{Hooks, Jump, Middleware, Turn};
/// use agentgraph_llm::prelude::*;
///
/// /// Ends the run when the model says a word.
/// struct StopWord(&'static str);
///
/// #[async_trait::async_trait]
/// impl Middleware for StopWord {
///     fn name(&self) -> &str {
///         "stop_word"
///     }
///
///     fn hooks(&self) -> Hooks {
///         Hooks::NONE.after_model()
///     }
///
///     async fn after_model(&self, turn: &mut Turn) -> agentgraph_llm::Result<Jump> {
///         let said = turn.messages().last().map(Message::text).unwrap_or_default();
///         Ok(if said.contains(self.0) { Jump::End } else { Jump::Next })
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agentgraph_llm::Result<()> {
/// let mut turn = Turn::detached("stop_word", [Message::assistant("that is enough")]);
/// assert_eq!(StopWord("enough").after_model(&mut turn).await?, Jump::End);
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait Middleware: Send + Sync {
    /// The name, unique in an agent. Nodes and stored slots use it.
    fn name(&self) -> &str;

    /// The hooks that this middleware has. Each of them is a node and a checkpoint, so name only those that
    /// are implemented. A hook that is not named here is never called.
    fn hooks(&self) -> Hooks {
        Hooks::ALL
    }

    /// Tools that it adds to those of the agent.
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    /// Runs once, at the start of a run.
    ///
    /// # Errors
    /// They fail the run.
    async fn before_agent(&self, turn: &mut Turn) -> Result<Jump> {
        let _ = turn;
        Ok(Jump::Next)
    }

    /// Runs before each request to the model.
    ///
    /// # Errors
    /// They fail the run.
    async fn before_model(&self, turn: &mut Turn) -> Result<Jump> {
        let _ = turn;
        Ok(Jump::Next)
    }

    /// Runs after each response of the model, and before its calls. Calls that it
    /// [answers](Turn::answer) are not run.
    ///
    /// # Errors
    /// They fail the run.
    async fn after_model(&self, turn: &mut Turn) -> Result<Jump> {
        let _ = turn;
        Ok(Jump::Next)
    }

    /// Runs once, at the end of a run. Its jump is ignored.
    ///
    /// # Errors
    /// They fail the run.
    async fn after_agent(&self, turn: &mut Turn) -> Result<Jump> {
        let _ = turn;
        Ok(Jump::Next)
    }

    /// Runs round each request to the model. It may change the request, make it several times or not at all,
    /// and change the stream.
    ///
    /// # Errors
    /// They fail the run.
    async fn wrap_model(&self, request: ModelRequest, next: NextModel<'_>) -> Result<ChatStream> {
        next.run(request).await
    }

    /// Runs round each tool call, also round calls to unknown tools. Arguments that are no JSON object are
    /// answered before.
    ///
    /// # Errors
    /// As [`Tool::call`]. An error that [is an interrupt](ToolError::is_interrupt) must be returned as it is.
    async fn wrap_tool(&self, call: &ToolCall, next: NextTool<'_>) -> Result<ToolOutput, ToolError> {
        next.run(call).await
    }
}

macro_rules! forward {
    ($($pointer:ty),*) => {
        $(#[async_trait]
        impl<M: Middleware + ?Sized> Middleware for $pointer {
            fn name(&self) -> &str {
                (**self).name()
            }

            fn hooks(&self) -> Hooks {
                (**self).hooks()
            }

            fn tools(&self) -> Vec<Arc<dyn Tool>> {
                (**self).tools()
            }

            async fn before_agent(&self, turn: &mut Turn) -> Result<Jump> {
                (**self).before_agent(turn).await
            }

            async fn before_model(&self, turn: &mut Turn) -> Result<Jump> {
                (**self).before_model(turn).await
            }

            async fn after_model(&self, turn: &mut Turn) -> Result<Jump> {
                (**self).after_model(turn).await
            }

            async fn after_agent(&self, turn: &mut Turn) -> Result<Jump> {
                (**self).after_agent(turn).await
            }

            async fn wrap_model(&self, request: ModelRequest, next: NextModel<'_>) -> Result<ChatStream> {
                (**self).wrap_model(request, next).await
            }

            async fn wrap_tool(&self, call: &ToolCall, next: NextTool<'_>) -> Result<ToolOutput, ToolError> {
                (**self).wrap_tool(call, next).await
            }
        })*
    };
}

forward!(Box<M>, Arc<M>);

/// Where an agent goes after a hook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Jump {
    /// To the next step.
    #[default]
    Next,
    /// To the model, through the hooks before it.
    Model,
    /// To the tools: the open calls of the last answer are run.
    Tools,
    /// To the end of the run, through the hooks after the agent.
    End,
}

/// The hooks that a middleware has.
///
/// ```
/// use agentgraph_llm::middleware::Hooks;
///
/// let hooks = Hooks::NONE.before_model().after_model();
/// assert!(hooks.has_before_model() && !hooks.has_after_agent());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hooks(u8);

macro_rules! hooks {
    ($($bit:literal $hook:ident $has:ident;)*) => {
        impl Hooks {
            $(
                #[doc = concat!("These hooks and [`", stringify!($hook), "`](Middleware::", stringify!($hook), ").")]
                #[must_use]
                pub const fn $hook(self) -> Self {
                    Hooks(self.0 | $bit)
                }

                #[doc = concat!("Whether it has [`", stringify!($hook), "`](Middleware::", stringify!($hook), ").")]
                pub const fn $has(self) -> bool {
                    self.0 & $bit != 0
                }
            )*
        }
    };
}

impl Hooks {
    /// All four.
    pub const ALL: Hooks = Hooks(15);
    /// None: the middleware only wraps.
    pub const NONE: Hooks = Hooks(0);
}

hooks! {
    1 before_agent has_before_agent;
    2 before_model has_before_model;
    4 after_model has_after_model;
    8 after_agent has_after_agent;
}
