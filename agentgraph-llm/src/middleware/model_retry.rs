//! Failed requests to the model are made again.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::attempts::{Attempts, Next, first_success};
use super::retry_rule::RetryRule;
use super::{Hooks, Middleware, ModelRequest, NextModel};
use crate::error::{Error, Result};
use crate::http::Clock;
use crate::message::Message;
use crate::model::{ChatResponse, ChatStream, StopReason};
use crate::retry::Backoff;

type RetryOn = dyn Fn(&Error) -> bool + Send + Sync;

/// Makes a failed request again: at most 2 times, after 1 s, then twice as long each time up to 60 s, less up
/// to a quarter by chance.
///
/// The model's own client retries, too, but only until the first piece of a stream. This one also begins a
/// broken stream again: a listener gets [`ChatEvent::Restarted`](crate::ChatEvent::Restarted), and the stored
/// message has nothing of the broken one. A wait that the provider asked for is kept if it is up to 60 s;
/// after a longer one the request fails at once.
///
/// ```
/// use agentgraph_llm::middleware::{Middleware, ModelRequest, ModelRetry, NextModel};
/// use agentgraph_llm::{Code, Error, retry::Backoff};
/// use agentgraph_llm::prelude::*;
/// use std::{sync::Arc, time::Duration};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agentgraph_llm::Result<()> {
/// let model = ScriptedModel::new([Reply::error(Error::new(Code::Overloaded, "busy")), Reply::text("hello")]);
/// let backoff = Backoff { first: Duration::ZERO, longest: Duration::ZERO, jitter: 0.0 };
///
/// let request = ModelRequest::new(Arc::new(model), ChatRequest::user("hi"));
/// let stream = ModelRetry::new().backoff(backoff).wrap_model(request, NextModel::direct()).await?;
/// assert_eq!(stream.into_response().await?.message.text(), "hello");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ModelRetry {
    rule: RetryRule,
    retry_on: Arc<RetryOn>,
    on_failure: OnFailure,
}

/// What happens when the last attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnFailure {
    /// The run fails with the error.
    Error,
    /// The run goes on: the failure of a tool is its result, that of a model is its answer.
    Continue,
}

impl ModelRetry {
    /// Retries errors that [are retryable](Error::is_retryable), and fails with the last.
    pub fn new() -> Self {
        ModelRetry {
            rule: RetryRule::default(),
            retry_on: Arc::new(Error::is_retryable),
            on_failure: OnFailure::Error,
        }
    }

    /// Sets the number of retries.
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.rule.max_retries = retries;
        self
    }

    /// Sets the waits.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.rule.backoff = backoff;
        self
    }

    /// Sets which errors are retried.
    pub fn retry_on(mut self, retries: impl Fn(&Error) -> bool + Send + Sync + 'static) -> Self {
        self.retry_on = Arc::new(retries);
        self
    }

    /// Sets what happens when the last attempt failed.
    pub fn on_failure(mut self, action: OnFailure) -> Self {
        self.on_failure = action;
        self
    }

    /// Sets the source of time and randomness.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.rule.clock = clock;
        self
    }

    fn wait(&self, error: &Error, retries: u32) -> Option<Duration> {
        if is_interrupt(error) || !(self.retry_on)(error) {
            return None;
        }
        self.rule.wait(retries, error.retry_after())
    }
}

/// An interrupt of the engine is no failure.
fn is_interrupt(error: &Error) -> bool {
    error.cause::<agentgraph::node::Interrupted>().is_some()
}

impl Default for ModelRetry {
    fn default() -> Self {
        ModelRetry::new()
    }
}

#[async_trait]
impl Middleware for ModelRetry {
    fn name(&self) -> &str {
        "model_retry"
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE
    }

    async fn wrap_model(&self, request: ModelRequest, next: NextModel<'_>) -> Result<ChatStream> {
        let next = next.into_owned();
        let first = next.clone().run(request.clone()).await;
        first_success(first, Retries { retry: self.clone(), done: 0, request, next }).await
    }
}

struct Retries {
    retry: ModelRetry,
    done: u32,
    request: ModelRequest,
    next: NextModel<'static>,
}

#[async_trait]
impl Attempts for Retries {
    async fn next(&mut self, failed: Error) -> Next {
        let Some(wait) = self.retry.wait(&failed, self.done) else {
            return match self.retry.on_failure {
                OnFailure::Continue if !is_interrupt(&failed) => {
                    Next::Attempt(Ok(failure_as_answer(&failed)))
                }
                _ => Next::GiveUp(failed),
            };
        };
        self.retry.rule.clock.sleep(wait).await;
        self.done += 1;
        Next::Attempt(self.next.clone().run(self.request.clone()).await)
    }
}

fn failure_as_answer(error: &Error) -> ChatStream {
    let message = Message::assistant(format!("The model could not be asked: {error}"));
    ChatStream::from_response(ChatResponse::new(message, StopReason::EndTurn))
}

impl fmt::Debug for ModelRetry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = out.debug_struct("ModelRetry");
        parts.field("rule", &self.rule).field("on_failure", &self.on_failure).finish_non_exhaustive()
    }
}
