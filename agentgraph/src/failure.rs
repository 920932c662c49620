//! [`Failure`]: the error of a node as its handler gets it, the same before and after a stop.

use std::any::type_name;
use std::error::Error as StdError;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Code, Error, caused_by};

/// What a node failed with. As an extractor it is for the node that handles it: see
/// [`IntoNode::on_error`](crate::IntoNode::on_error). [`Error::failures`](crate::Error::failures) lists those
/// of a run, and [`Checkpoint::failures`](crate::Checkpoint::failures) those of a thread.
///
/// It is stored before the handler runs, so a handler that goes on in another process gets the same one.
/// Error types that are to be had back whole are named with
/// [`IntoNode::keeps_error`](crate::IntoNode::keeps_error).
///
/// ```
/// # use agentgraph::prelude::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
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
/// let order = graph.invoke(Order::update()).await?.into_finished()?;
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
    /// How often the task was tried, this one included; 1 in records that do not say it.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    attempt: u32,
    /// The subgraph that the node is in.
    #[serde(skip)]
    namespace: String,
    /// Type name and value of errors that the node said are to be kept.
    #[serde(default)]
    kept: Vec<(String, Value)>,
}

impl Failure {
    pub(crate) fn of(node: &str, error: &Error, keeps: &[KeptError]) -> Self {
        let mut causes = Vec::new();
        let mut kept = Vec::new();
        if let Some(source) = error.source() {
            kept.extend(keeps.iter().filter_map(|kept| Some((kept.name.to_owned(), (kept.find)(source)?))));
            let mut cause = source.source();
            while let Some(error) = cause.filter(|_| causes.len() < MOST_CAUSES) {
                causes.push(error.to_string());
                cause = error.source();
            }
        }
        let (code, message) = (error.code().as_str().to_owned(), error.message().to_owned());
        let (attempt, namespace) = (error.attempt(), String::new());
        Failure { node: node.to_owned(), code, message, causes, attempt, namespace, kept }
    }

    /// The same failure, of a node in that subgraph.
    pub(crate) fn within(mut self, namespace: &str) -> Self {
        namespace.clone_into(&mut self.namespace);
        self
    }

    /// The node that failed.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// What kind of failure it is: [`Code::NodeFailed`], [`Code::NodeTimeout`], [`Code::NodePanicked`], ...
    pub fn code(&self) -> Code {
        Code::ALL.iter().copied().find(|code| code.as_str() == self.code).unwrap_or(Code::NodeFailed)
    }

    /// The error's text.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The texts of what caused it, the nearest first; at most 16.
    pub fn causes(&self) -> &[String] {
        &self.causes
    }

    /// The attempt that failed: how often the node's policies have let it be tried, from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The subgraph that the node is in, as checkpoints call it; empty for the graph that was run.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The error itself, or the first of that type among its causes. `None` if it is another one, or if the
    /// node did not say that it [keeps](crate::IntoNode::keeps_error) the type.
    pub fn get<E: DeserializeOwned>(&self) -> Option<E> {
        let (_, value) = self.kept.iter().find(|(name, _)| name == type_name::<E>())?;
        E::deserialize(value).ok()
    }
}

const MOST_CAUSES: usize = 16;

fn first() -> u32 {
    1
}

fn is_first(attempt: &u32) -> bool {
    *attempt == 1
}

/// A type of error that is to be had back whole.
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

/// A node asks for a [`Failure`] and was reached by an edge. Take an `Option<Failure>` in a node that is
/// both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the node asks for a `Failure` and was reached without one: take an `Option<Failure>`, or reach it by `.on_error(..)` only"
)]
pub struct NoFailure;
