//! [`WorkflowFn`]: an ordinary async function as the one node of a workflow.

use std::future::Future;

use super::state::{WorkflowState, WorkflowUpdate, WorkflowValue};
use crate::erased::FnCall;
use crate::error::BoxError;
use crate::extract::{FromTask, Task};
use crate::node::{Node, for_prefixes};
use crate::step::Step;

/// The functions that can be a [`Workflow`](super::Workflow): up to seven extractors, then the input. The
/// parameter `M` only tells functions with different arguments apart.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a workflow",
    label = "not a workflow",
    note = "a workflow is an `async fn` whose arguments are extractors (`Ctx`, `Previous<O>`, `Dep<T>`, `CallContext<T>`) and at last its input, and that returns a `Result`",
    note = "its input and its result are `Serialize`, `DeserializeOwned`, `Clone`, `Send` and `Sync`",
    note = "its future must be `Send`: nothing that is not `Send`, such as an `Rc`, may be held over an `.await`"
)]
pub trait WorkflowFn<I: WorkflowValue, O: WorkflowValue, M>: Sized {
    /// The function as a node.
    #[doc(hidden)]
    fn into_node(self) -> Node<WorkflowState<I, O>>;
}

/// The error of a workflow that has no input: its thread was made by an edit of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the workflow was started without an input: start it with `invoke(input)`")]
pub struct NoInput;

macro_rules! workflow_functions {
    ($($argument:ident)*) => {
        impl<F, Fut, I, O, E, $($argument,)*> WorkflowFn<I, O, (E, $($argument,)*)> for F
        where
            F: Fn($($argument,)* I) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Result<O, E>> + Send + 'static,
            I: WorkflowValue,
            O: WorkflowValue,
            E: Into<BoxError> + 'static,
            $($argument: FromTask<WorkflowState<I, O>> + 'static,)*
        {
            #[allow(non_snake_case)]
            fn into_node(self) -> Node<WorkflowState<I, O>> {
                let requirements = &[$(<$argument as FromTask<WorkflowState<I, O>>>::requirement(),)*];
                let node = Node::of_function(requirements, move |task: &Task<'_, WorkflowState<I, O>>| {
                    $(let $argument = $argument::from_task(task).map_err(Into::into)?;)*
                    let input = task.state().input().cloned().ok_or(NoInput)?;
                    let ctx = task.ctx();
                    let work = self($($argument,)* input);
                    Ok(FnCall::boxed(async move {
                        let returned = work.await.map_err(Into::into)?;
                        Ok::<_, BoxError>(Step::Update(WorkflowUpdate::returned(returned, ctx.done_steps())))
                    }))
                });
                node.with(|settings| settings.durable_steps = true)
            }
        }
    };
}

for_prefixes!(workflow_functions! [] A1 A2 A3 A4 A5 A6 A7);
