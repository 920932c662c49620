//! What failed is done again: requests to the model, and calls of tools.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::attempts::{Attempts, Next, first_success};
use super::{Hooks, Middleware, ModelRequest, NextModel, NextTool};
use crate::error::{Error, Result};
use crate::http::{Clock, SystemClock};
use crate::message::Message;
use crate::model::{ChatResponse, ChatStream, StopReason};
use crate::retry::Backoff;
use crate::tool::{ToolCall, ToolError, ToolOutput};

/// Makes a failed request again: at most 2 times, after 1 s, then twice as long each time up to 60 s, minus
/// up to 25 % jitter.
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
pub type ModelRetry = Retry<Error>;

/// Makes a failed tool call again: at most 2 times, after 1 s, then twice as long each time up to 60 s, minus
/// up to 25 % jitter. A tool may have taken effect before it failed: name the tools that may run
/// again, or give them keys with [`IdempotencyKeys`](super::IdempotencyKeys).
///
/// Questions to a person and invalid arguments are not failures, and are never retried.
///
/// ```
/// use agentgraph_llm::middleware::{Middleware, NextTool, ToolRetry};
/// use agentgraph_llm::prelude::*;
/// use agentgraph_llm::{ToolCall, retry::Backoff};
/// use std::{
///     sync::atomic::{AtomicU32, Ordering},
///     time::Duration,
/// };
///
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # struct Nothing {}
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agentgraph_llm::Result<()> {
/// static CALLS: AtomicU32 = AtomicU32::new(0);
/// let flaky =
///     FnTool::new("flaky", "Fails once.", async |_: Nothing| match CALLS.fetch_add(1, Ordering::Relaxed) {
///         0 => Err(ToolError::failed("try again")),
///         _ => Ok("done"),
///     });
/// let backoff = Backoff { first: Duration::ZERO, longest: Duration::ZERO, jitter: 0.0 };
///
/// let call = ToolCall::detached("call-1", "flaky");
/// let output = ToolRetry::new().backoff(backoff).wrap_tool(&call, NextTool::of(flaky)?).await.unwrap();
/// assert_eq!(output, ToolOutput::text("done"));
/// # Ok(())
/// # }
/// ```
pub type ToolRetry = Retry<ToolError>;

/// What [`ModelRetry`] and [`ToolRetry`] have in common: when something that failed is done again, and after
/// which wait.
pub struct Retry<E> {
    rule: Rule,
    retry_on: Arc<dyn Fn(&E) -> bool + Send + Sync>,
}

#[derive(Clone)]
struct Rule {
    max_retries: u32,
    backoff: Backoff,
    clock: Arc<dyn Clock>,
    on_failure: OnFailure,
    /// The tools whose calls are retried, if not all are.
    tools: Option<BTreeSet<String>>,
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

/// A longer wait than this, asked for by a provider, is not kept: the call fails at once.
const LONGEST_ASKED_WAIT: Duration = Duration::from_secs(60);

impl<E> Retry<E> {
    fn of(retry_on: impl Fn(&E) -> bool + Send + Sync + 'static, on_failure: OnFailure) -> Self {
        let (first, longest) = (Duration::from_secs(1), Duration::from_secs(60));
        let backoff = Backoff { first, longest, jitter: 0.25 };
        let rule = Rule { max_retries: 2, backoff, clock: Arc::new(SystemClock), on_failure, tools: None };
        Retry { rule, retry_on: Arc::new(retry_on) }
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
    pub fn retry_on(mut self, retries: impl Fn(&E) -> bool + Send + Sync + 'static) -> Self {
        self.retry_on = Arc::new(retries);
        self
    }

    /// Sets what happens when the last attempt failed.
    pub fn on_failure(mut self, action: OnFailure) -> Self {
        self.rule.on_failure = action;
        self
    }

    /// Sets the source of time and randomness.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.rule.clock = clock;
        self
    }

    /// Waits before the retry after `retries` others; `false` to give up. A provider's wait is kept: never an
    /// earlier try.
    async fn waits(&self, error: &E, retries: u32, asked: Option<Duration>) -> bool {
        let Rule { max_retries, backoff, clock, .. } = &self.rule;
        let is_too_long = asked.is_some_and(|asked| asked > LONGEST_ASKED_WAIT);
        if retries >= *max_retries || is_too_long || !(self.retry_on)(error) {
            return false;
        }
        let own = backoff.wait(retries, clock.jitter());
        clock.sleep(asked.filter(|asked| !asked.is_zero()).unwrap_or(own)).await;
        true
    }
}

impl ModelRetry {
    /// Retries errors that [are retryable](Error::is_retryable), and fails with the last.
    pub fn new() -> Self {
        Retry::of(Error::is_retryable, OnFailure::Error)
    }
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
        // An interrupt of the engine is no failure.
        if failed.cause::<agentgraph::node::Interrupted>().is_some() {
            return Next::GiveUp(failed);
        }
        if !self.retry.waits(&failed, self.done, failed.retry_after()).await {
            return match self.retry.rule.on_failure {
                OnFailure::Continue => Next::Attempt(Ok(failure_as_answer(&failed))),
                OnFailure::Error => Next::GiveUp(failed),
            };
        }
        self.done += 1;
        Next::Attempt(self.next.clone().run(self.request.clone()).await)
    }
}

fn failure_as_answer(error: &Error) -> ChatStream {
    let message = Message::assistant(format!("The model could not be asked: {error}"));
    ChatStream::from_response(ChatResponse::new(message, StopReason::EndTurn))
}

impl ToolRetry {
    /// Retries failed calls of all tools. After the last attempt the error is the result that the model
    /// reads.
    pub fn new() -> Self {
        Retry::of(|_| true, OnFailure::Continue)
    }

    /// Retries these tools only.
    pub fn tools<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.rule.tools = Some(names.into_iter().map(Into::into).collect());
        self
    }
}

impl Default for ToolRetry {
    fn default() -> Self {
        ToolRetry::new()
    }
}

#[async_trait]
impl Middleware for ToolRetry {
    fn name(&self) -> &str {
        "tool_retry"
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE
    }

    async fn wrap_tool(&self, call: &ToolCall, next: NextTool<'_>) -> Result<ToolOutput, ToolError> {
        if self.rule.tools.as_ref().is_some_and(|tools| !tools.contains(call.name())) {
            return next.run(call).await;
        }
        let mut done = 0;
        loop {
            let error = match next.clone().run(call).await {
                Err(error) if !error.is_interrupt() && !matches!(error, ToolError::InvalidArguments(_)) => {
                    error
                }
                result => return result,
            };
            if !self.waits(&error, done, None).await {
                return Err(match (self.rule.on_failure, error) {
                    (OnFailure::Continue, error) => ToolError::Failed(error.to_string()),
                    (OnFailure::Error, ToolError::Failed(why)) => {
                        ToolError::fatal(format!("tool `{}` failed: {why}", call.name()))
                    }
                    (OnFailure::Error, error) => error,
                });
            }
            done += 1;
        }
    }
}

impl<E> Clone for Retry<E> {
    fn clone(&self) -> Self {
        Retry { rule: self.rule.clone(), retry_on: Arc::clone(&self.retry_on) }
    }
}

impl<E> fmt::Debug for Retry<E> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rule { max_retries, backoff, on_failure, tools, .. } = &self.rule;
        out.debug_struct("Retry")
            .field("max_retries", max_retries)
            .field("backoff", backoff)
            .field("on_failure", on_failure)
            .field("tools", tools)
            .finish_non_exhaustive()
    }
}
