//! Values that a tool gets from its call, and not from the model.

use std::sync::Arc;

use agentgraph::{CallContext, Ctx, Session, Snapshot, State, Store};

use crate::error::{Code, Error};
use crate::tool::{StateType, ToolCall, ToolError};

/// A value that a [`#[tool]`](macro@crate::tool) gets from its call. It is not in the schema, so no model can
/// give it.
///
/// `Ctx`, `ToolCall`, `Snapshot<S>`, `Arc<dyn Store>` and `CallContext<T>` are known by their names. A
/// `Session<T>` and a type of your own are marked with `#[inject]`:
///
/// ```
/// use agentgraph_llm::prelude::*;
/// use agentgraph_llm::FromToolCall;
///
/// /// The key under which a repeated call is recognised.
/// struct Key(String);
///
/// impl FromToolCall for Key {
///     fn from_tool_call(call: &ToolCall) -> Result<Self, ToolError> {
///         Ok(Key(format!("order-{}", call.id())))
///     }
/// }
///
/// /// Orders an article.
/// #[tool]
/// async fn order(#[inject] key: Key, article: String) -> String {
///     format!("{}: {article}", key.0)
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let input = RawJson::parse_text(r#"{"article": "tea"}"#)?;
/// let output = order().call(&input, &ToolCall::detached("7", "order")).await.unwrap();
/// assert_eq!(output, ToolOutput::text("order-7: tea"));
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "a tool cannot get a `{Self}` from its call",
    label = "not a value of the call",
    note = "a call has `Ctx`, `ToolCall`, `Snapshot<S>`, `Session<T>`, `Arc<dyn Store>`, `CallContext<T>`, or your own types that implement `FromToolCall`",
    note = "a value that the program owns goes into a `FnTool` with a closure, or into the `CallContext` of the run"
)]
pub trait FromToolCall: Sized + Send {
    /// Takes the value from the call.
    ///
    /// # Errors
    /// The error with which the call fails.
    fn from_tool_call(call: &ToolCall) -> Result<Self, ToolError>;

    /// The state that the value is taken from. Building a graph over another state then fails.
    fn state() -> Option<StateType> {
        None
    }
}

/// How a value of a type is taken from a call.
pub struct Injection<T> {
    /// [`FromToolCall::from_tool_call`]
    pub take: fn(&ToolCall) -> Result<T, ToolError>,
    /// [`FromToolCall::state`]
    pub state: fn() -> Option<StateType>,
}

/// How a value of a type is taken from a call.
pub fn injected<T: FromToolCall>() -> Injection<T> {
    Injection { take: T::from_tool_call, state: T::state }
}

impl FromToolCall for Ctx {
    fn from_tool_call(call: &ToolCall) -> Result<Self, ToolError> {
        call.ctx().cloned()
    }
}

impl FromToolCall for ToolCall {
    fn from_tool_call(call: &ToolCall) -> Result<Self, ToolError> {
        Ok(call.clone())
    }
}

impl<S: State> FromToolCall for Snapshot<S> {
    fn from_tool_call(call: &ToolCall) -> Result<Self, ToolError> {
        call.snapshot().ok_or_else(|| no_state::<S>(call))
    }

    fn state() -> Option<StateType> {
        Some(StateType::of::<S>())
    }
}

fn no_state<S>(call: &ToolCall) -> ToolError {
    let message = format!(
        "tool `{}` reads the state `{}`, which its call does not have: run it in a graph over that state",
        call.name(),
        std::any::type_name::<S>()
    );
    Error::new(Code::BadTool, message).into()
}

impl FromToolCall for Arc<dyn Store> {
    fn from_tool_call(call: &ToolCall) -> Result<Self, ToolError> {
        Ok(Arc::clone(call.ctx()?.store()?))
    }
}

impl<T: Send + Sync + 'static> FromToolCall for CallContext<T> {
    fn from_tool_call(call: &ToolCall) -> Result<Self, ToolError> {
        Ok(call.ctx()?.call_context()?)
    }
}

impl<T: Send + Sync + 'static> FromToolCall for Option<CallContext<T>> {
    fn from_tool_call(call: &ToolCall) -> Result<Self, ToolError> {
        Ok(call.ctx()?.call_context().ok())
    }
}

impl<T: Send + 'static> FromToolCall for Session<T> {
    fn from_tool_call(call: &ToolCall) -> Result<Self, ToolError> {
        Ok(call.ctx()?.session()?)
    }
}
