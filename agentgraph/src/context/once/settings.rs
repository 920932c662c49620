//! [`StepSettings`]: a durable step with retries and a timeout of its own.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::running::StepReporter;
use super::{DurableStep, begin};
use crate::context::{Ctx, is_final};
use crate::error::BoxError;
use crate::policy::{RetryPolicy, in_time};
use crate::record::once::{OnceCall, OnceKey};
use crate::words::StepEvent;

impl Ctx {
    /// A durable step with settings: [`once`](Ctx::once) with a key, retries or a timeout.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// use std::time::Duration;
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Order { receipt: u32 }
    /// static CALLS: AtomicU32 = AtomicU32::new(0);
    ///
    /// /// The bank answers the third call.
    /// async fn charge() -> Result<u32> {
    ///     match CALLS.fetch_add(1, Ordering::Relaxed) {
    ///         calls @ 0..2 => Err(format!("call {calls}: the bank is busy").into()),
    ///         calls => Ok(calls),
    ///     }
    /// }
    ///
    /// async fn pay(ctx: Ctx) -> Result<OrderUpdate> {
    ///     let again = RetryPolicy::attempts(5).initial(Duration::from_millis(1));
    ///     let charged = ctx.durable("charge").retry(again).timeout(Duration::from_secs(10)).run(charge);
    ///     Ok(Order::update().receipt(charged.await?))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new().node("pay", pay).edge(START, "pay").compile()?.checkpointer(MemorySaver::new());
    /// assert_eq!(graph.invoke(Order::update()).thread("t-1").finish().await?.receipt, 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn durable(&self, name: impl AsRef<str>) -> StepSettings<'_> {
        StepSettings {
            ctx: self,
            name: name.as_ref().to_owned(),
            key: None,
            retry: Vec::new(),
            timeout: None,
        }
    }
}

/// The settings of a durable step: see [`Ctx::durable`].
#[must_use = "a durable step is called with `run`"]
pub struct StepSettings<'a> {
    ctx: &'a Ctx,
    name: String,
    key: Option<String>,
    retry: Vec<RetryPolicy>,
    timeout: Option<Duration>,
}

impl StepSettings<'_> {
    /// Tells the step apart from others of its name, as in [`Ctx::once_for`]: by the text of the key.
    pub fn key(mut self, key: impl fmt::Display) -> Self {
        self.key = Some(key.to_string());
        self
    }

    /// Retries the work when it fails. Of several policies, the first one that retries the error decides, as
    /// for [nodes](crate::IntoNode::retry). The node's own policy comes after these.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry.push(policy);
        self
    }

    /// Fails an attempt that takes longer than `limit` with a [`Timeout`](crate::Timeout).
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Does the work: `work` is called once for each attempt. A step without a key is counted when `run` is
    /// called.
    ///
    /// # Errors
    /// As [`Ctx::once`], with the error of the last attempt.
    pub fn run<'w, T, W, F>(self, work: W) -> DurableStep<T, BoxFuture<'w, Result<T, BoxError>>>
    where
        T: Serialize + DeserializeOwned + Send + 'w,
        W: FnMut() -> F + Send + 'w,
        F: Future<Output = Result<T, BoxError>> + Send + 'w,
    {
        let StepSettings { ctx, name, key, retry, timeout } = self;
        let begun = begin(ctx, |results| match key {
            Some(key) => OnceKey { name, call: OnceCall::Key(key) },
            None => OnceKey::next(results, name),
        });
        DurableStep::of(begun, |step| -> BoxFuture<'w, _> {
            match step {
                Some(step) => Box::pin(attempts(step.reporter(), retry, timeout, work)),
                None => Box::pin(std::future::pending()),
            }
        })
    }
}

/// Calls `work` until it succeeds or no policy retries its error.
async fn attempts<T, F: Future<Output = Result<T, BoxError>>>(
    reporter: StepReporter,
    policies: Vec<RetryPolicy>,
    timeout: Option<Duration>,
    mut work: impl FnMut() -> F,
) -> Result<T, BoxError> {
    let services = &*reporter.shared.services;
    loop {
        let result = match timeout {
            None => work().await,
            Some(limit) => in_time(limit, services, work()).await,
        };
        let Err(error) = result else { return result };
        let attempt = reporter.attempt();
        let waits = reporter.shared.control.is_closed(reporter.request.index);
        let mut retry = policies.iter().filter(|_| !waits);
        let Some(policy) = retry.find(|policy| policy.retries(attempt, &error) && !is_final(&error)) else {
            return Err(error);
        };
        reporter.report(StepEvent::Failed(error.to_string()));
        reporter.shared.beat(reporter.request);
        services.sleep(policy.wait(attempt, services.random())).await;
        reporter.begin_attempt();
    }
}
