//! [`Given`]: the input of a pass.

use std::sync::Arc;

use super::outputs::{Output, Outputs, PassInput};
use crate::context::shares_its_value;
use crate::extract::{FromTask, Task};

/// The input of the pass, as passed to [`invoke`](crate::CompiledDependencyGraph::invoke), shared and not
/// copied. Dereferences to the input.
///
/// ```
/// use agentgraph::prelude::*;
///
/// async fn greet(name: Given<String>) -> String {
///     format!("Hello {}", *name)
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let graph = DependencyGraph::<String, String>::with_input().node("greet", greet).compile()?;
/// assert_eq!(graph.invoke("Ada".to_owned()).finish().await?["greet"], "Hello Ada");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Given<S>(Arc<S>);

shares_its_value!(Given);

impl<O: Output, S: PassInput> FromTask<Outputs<O, S>> for Given<S> {
    type Error = NoInput;

    fn from_task(task: &Task<'_, Outputs<O, S>>) -> Result<Self, NoInput> {
        task.state().input.clone().map(Given).ok_or(NoInput)
    }
}

/// A node takes the input of its pass, and the pass has none: its checkpoint was written by another graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the pass has no input")]
pub struct NoInput;
