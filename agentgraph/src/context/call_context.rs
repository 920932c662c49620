//! [`CallContext<T>`]: a value that the caller passes to one call of the graph.
//!
//! It lives as long as the call: it is never stored, never part of an event, and not known to a later
//! `resume`. Values of the whole graph are dependencies.

use std::any::{TypeId, type_name};
use std::fmt;
use std::sync::Arc;

use super::values_by_type::shares_its_value;
use super::{Ctx, ValuesByType};
use agentgraph_checkpoint::TaskId;

/// The value of type `T` that the caller passed with [`context`](crate::RunBuilder::context): a user, a
/// tenant, an access token. Dereferences to the value, which is shared and not copied.
///
/// All nodes of the call read the same value, also those of subgraphs and handlers of failures. It is not
/// stored: pass it again with each `resume` and `proceed`. A call without a value that a node requires
/// fails with [`Code::MissingContext`](crate::Code::MissingContext) before anything runs; a node to which
/// the value is optional takes an `Option<CallContext<T>>`.
///
/// ```
/// # use agentgraph::prelude::*;
/// # #[derive(State, Clone, Debug, Default)]
/// # struct Mail { text: String }
/// struct User {
///     name: String,
/// }
///
/// async fn greet(user: CallContext<User>) -> MailUpdate {
///     Mail::update().text(format!("Dear {}", user.name))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let graph = StateGraph::new().node("greet", greet).edge(START, "greet").compile()?;
/// let mail = graph.invoke(Mail::update()).context(User { name: "Ada".to_owned() }).finish().await?;
/// assert_eq!(mail.text, "Dear Ada");
///
/// let error = graph.invoke(Mail::update()).await.unwrap_err();
/// assert_eq!(error.code(), agentgraph::Code::MissingContext);
/// # Ok(())
/// # }
/// ```
pub struct CallContext<T>(Arc<T>);

shares_its_value!(CallContext);

/// Shows the type and not the value, which may be an access token.
impl<T> fmt::Debug for CallContext<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "CallContext<{}>", type_name::<T>())
    }
}

/// The call was not passed a value that a node reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this call of `{method}` was passed no `{wanted}`: add `.context(..)` to the call")]
pub struct MissingContext {
    method: CallMethod,
    wanted: &'static str,
}

impl Ctx {
    /// The value of type `T` that the caller passed with [`context`](crate::RunBuilder::context). For code
    /// that has a `Ctx` and no extractors, such as layers and helper functions; nodes take a
    /// [`CallContext`], so that a call without the value fails before anything runs.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Mail { text: String }
    /// struct User {
    ///     name: String,
    /// }
    ///
    /// fn signature(ctx: &Ctx) -> String {
    ///     ctx.call_context::<User>().map_or("a guest".to_owned(), |user| user.name.clone())
    /// }
    ///
    /// async fn write(ctx: Ctx) -> MailUpdate {
    ///     Mail::update().text(format!("Hello from {}", signature(&ctx)))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new().node("write", write).edge(START, "write").compile()?;
    /// let mail = graph.invoke(Mail::update()).context(User { name: "Ada".to_owned() }).await?;
    /// assert_eq!(mail.output().text, "Hello from Ada");
    /// let mail = graph.invoke(Mail::update()).await?;
    /// assert_eq!(mail.output().text, "Hello from a guest");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the call was passed no such value.
    pub fn call_context<T: Send + Sync + 'static>(&self) -> Result<CallContext<T>, MissingContext> {
        self.shared.call.get()
    }
}

/// The method that the caller called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallMethod {
    Invoke,
    Resume,
    Proceed,
    UpdateState,
    /// A process runs this task for a host.
    RunTask(TaskId),
}

impl fmt::Display for CallMethod {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            CallMethod::Invoke => "invoke",
            CallMethod::Resume => "resume",
            CallMethod::Proceed => "proceed",
            CallMethod::UpdateState => "update_state",
            CallMethod::RunTask(_) => "run_task",
        })
    }
}

/// A call: how it was made, and the values that it was passed.
#[derive(Clone)]
pub(crate) struct Call {
    pub(super) method: CallMethod,
    /// `None` if it was passed none, as most calls.
    values: Option<Arc<ValuesByType>>,
}

/// A value that some node of a graph requires from its caller.
#[derive(Clone, Debug)]
pub(crate) struct RequiredContext {
    id: TypeId,
    name: &'static str,
    /// The node; that of a subgraph is prefixed with the node that is the subgraph.
    node: String,
}

impl RequiredContext {
    pub(crate) fn new(id: TypeId, name: &'static str, node: &str) -> Self {
        RequiredContext { id, name, node: node.to_owned() }
    }

    /// The same value, required by a graph that is the node `outer` of another graph.
    pub(crate) fn within(&self, outer: &str) -> Self {
        RequiredContext { node: format!("{outer}.{}", self.node), ..self.clone() }
    }
}

/// Checks that a call is passed all that its graph requires. The first value that is missing is the error.
pub(crate) fn check_contexts(
    method: CallMethod,
    values: Option<&ValuesByType>,
    required: &[RequiredContext],
) -> Result<(), String> {
    let has = |id| values.is_some_and(|values| values.contains(id));
    match required.iter().find(|required| !has(required.id)) {
        None => Ok(()),
        Some(RequiredContext { name, node, .. }) => Err(format!(
            "node `{node}` takes a `CallContext<{name}>`, and this call of `{method}` was passed no `{name}`: add `.context(..)` \
             to the call"
        )),
    }
}

impl Call {
    pub(crate) fn new(method: CallMethod, values: Option<Box<ValuesByType>>) -> Self {
        Call { method, values: values.map(Arc::from) }
    }

    pub(crate) fn get<T: Send + Sync + 'static>(&self) -> Result<CallContext<T>, MissingContext> {
        let found = self.values.as_ref().and_then(|values| values.get());
        found.map(CallContext).ok_or(MissingContext { method: self.method, wanted: type_name::<T>() })
    }
}
