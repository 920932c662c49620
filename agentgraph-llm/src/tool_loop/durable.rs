//! The durable steps of a tool loop: model calls and tool calls, whose results are stored.

use std::future::Future;

use agentgraph::Ctx;
use agentgraph::node::DurableStep;
use futures_util::future::Either;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{BoxError, Code, Error, Result};
use crate::model::ChatResponse;

/// The durable steps of one loop.
pub(super) struct DurableSteps {
    ctx: Ctx,
    /// Tells the loops of one node apart.
    name: String,
}

impl DurableSteps {
    pub(super) fn new(ctx: Ctx, name: String) -> Self {
        DurableSteps { ctx, name }
    }

    /// Calls the model, unless its response is stored.
    pub(super) fn model(
        steps: Option<&Self>,
        work: impl Future<Output = Result<ChatResponse>>,
    ) -> impl Future<Output = Result<ChatResponse>> {
        Self::step(steps, "model".to_owned(), work)
    }

    /// Runs a tool, unless its outcome is stored. Steps are counted when this is called, which is in the
    /// order of the calls.
    pub(super) fn tool<T: Serialize + DeserializeOwned>(
        steps: Option<&Self>,
        tool: &str,
        work: impl Future<Output = Result<T>>,
    ) -> impl Future<Output = Result<T>> {
        Self::step(steps, format!("tool {tool}"), work)
    }

    fn step<T: Serialize + DeserializeOwned>(
        steps: Option<&Self>,
        work_name: String,
        work: impl Future<Output = Result<T>>,
    ) -> impl Future<Output = Result<T>> {
        match steps {
            None => Either::Left(work),
            Some(steps) => {
                let work = async { work.await.map_err(BoxError::from) };
                let name = format!("{}: {work_name}", steps.name);
                let step: DurableStep<T, _> = steps.ctx.once(name, work);
                Either::Right(async { step.await.map_err(own_error) })
            }
        }
    }
}

/// The error of the work, or the reason why its result cannot be stored or read.
fn own_error(error: BoxError) -> Error {
    match error.downcast::<Error>() {
        Ok(own) => *own,
        Err(error) => Error::new(Code::DurableStep, error.to_string()).with_source(error),
    }
}
