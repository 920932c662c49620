//! [`Failure`]: the error of a node for its handler, the same before and after a stop.

use std::any::type_name;
use std::error::Error as StdError;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::causes::{Cause, texts_of_causes};
use crate::error::{Code, Error, caused_by};

/// The failure of a node. As an extractor it is for the handling node: see
/// [`IntoNode::on_error`](crate::IntoNode::on_error). [`Error::failures`](crate::Error::failures) lists the
/// failures of a run, and [`Checkpoint::failures`](crate::Checkpoint::failures) those of a thread.
///
/// It is stored before the handler runs, so a handler that continues in another process gets the same one.
/// [`IntoNode::keeps_error`](crate::IntoNode::keeps_error) names the error types that are stored whole.
///
/// ```
/// # use agentgraph::prelude::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(State, Clone, Debug, Default)]
/// # struct Order { note: String }
/// use agentgraph::Failure;
///
/// #[derive(Serialize, Deserialize, Debug, thiserror::Error)]
/// #[error("the card was refused: {reason}")]
/// struct Refused {
///     reason: String,
/// }
///
/// async fn pay() -> Result<OrderUpdate> {
///     Err(Refused { reason: "expired".into() }.into())
/// }
///
/// async fn ask_for_another(failure: Failure) -> OrderUpdate {
///     Order::update().note(match failure.get::<Refused>() {
///         Some(refused) => format!("another card, please: {} was {}", failure.node(), refused.reason),
///         None => failure.message().to_owned(),
///     })
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let graph = StateGraph::new()
///     .node("pay", pay.keeps_error::<Refused>().on_error("ask_for_another"))
///     .node("ask_for_another", ask_for_another)
///     .edge(START, "pay")
///     .compile()?;
/// let order = graph.invoke(Order::update()).finish().await?;
/// assert_eq!(order.note, "another card, please: pay was expired");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    node: String,
    code: String,
    message: String,
    #[serde(default)]
    causes: Vec<String>,
    /// The attempt that failed, from 1; 1 in records without this field.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    attempt: u32,
    /// The namespace of the node's subgraph.
    #[serde(skip)]
    namespace: String,
    /// Type name and value of errors whose types the node keeps.
    #[serde(default)]
    kept: Vec<(String, Value)>,
}

impl Failure {
    pub(crate) fn of(node: &str, error: &Error, keeps: &[KeptError]) -> Self {
        let mut kept = Vec::new();
        if let Some(source) = error.source() {
            kept.extend(keeps.iter().filter_map(|kept| Some((kept.name.to_owned(), (kept.find)(source)?))));
            if let Some(far) = source.downcast_ref::<FarError>() {
                kept.clone_from(&far.kept);
            }
        }
        let causes = error.source().map(texts_of_causes).unwrap_or_default();
        let code = error.code().as_str().to_owned();
        let message = error.message().to_owned();
        let attempt = error.attempt();
        let namespace = String::new();
        Failure { node: node.to_owned(), code, message, causes, attempt, namespace, kept }
    }

    /// The same failure, in a node of this subgraph.
    pub(crate) fn within(mut self, namespace: &str) -> Self {
        namespace.clone_into(&mut self.namespace);
        self
    }

    /// The node that failed.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// The kind of failure: [`Code::NodeFailed`], [`Code::NodeTimeout`], [`Code::NodePanicked`], ...
    pub fn code(&self) -> Code {
        Code::of(&self.code).unwrap_or(Code::NodeFailed)
    }

    /// The error's text.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The texts of its causes, the nearest first; at most 16.
    pub fn causes(&self) -> &[String] {
        &self.causes
    }

    /// The attempt that failed, counted by the node's policies from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The node's subgraph, by its namespace in checkpoints; empty for the root graph.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The error itself, or the first of its causes with this type. `None` if there is none, or if the node
    /// does not [keep](crate::IntoNode::keeps_error) the type.
    pub fn get<E: DeserializeOwned>(&self) -> Option<E> {
        let (_, value) = self.kept.iter().find(|(name, _)| name == type_name::<E>())?;
        E::deserialize(value).ok()
    }
}

/// The error of a node that failed in another process: its text, its causes, and the errors that it keeps.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct FarError {
    message: String,
    #[source]
    cause: Option<Box<Cause>>,
    kept: Vec<(String, Value)>,
}

impl FarError {
    pub(crate) fn of(failure: Failure) -> Self {
        let Failure { message, causes, kept, .. } = failure;
        FarError { message, cause: Cause::of(causes), kept }
    }
}

fn first() -> u32 {
    1
}

fn is_first(attempt: &u32) -> bool {
    *attempt == 1
}

/// A type of error that is stored whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptError {
    name: &'static str,
    find: fn(&(dyn StdError + 'static)) -> Option<Value>,
}

impl KeptError {
    pub(crate) fn of<E: StdError + Serialize + 'static>() -> Self {
        let find = |error: &(dyn StdError + 'static)| serde_json::to_value(caused_by::<E>(error)?).ok();
        KeptError { name: type_name::<E>(), find }
    }
}

/// The error of a node that needs a [`Failure`] and was reached by an edge. A node that is reached both
/// ways takes an `Option<Failure>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the node asks for a `Failure` and was reached without one: take an `Option<Failure>`, or reach it by `.on_error(..)` only"
)]
pub struct NoFailure;
