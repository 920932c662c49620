//! Failed tool calls are made again.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use super::model_retry::OnFailure;
use super::retry_rule::RetryRule;
use super::{Hooks, Middleware, NextTool};
use crate::http::Clock;
use crate::retry::Backoff;
use crate::tool::{ToolCall, ToolError, ToolOutput};

type RetryOn = dyn Fn(&ToolError) -> bool + Send + Sync;

/// Makes a failed tool call again: at most 2 times, after 1 s, then twice as long each time up to 60 s, less
/// up to a quarter by chance. A tool may have taken effect before it failed: name the tools that may run
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
#[derive(Clone)]
pub struct ToolRetry {
    rule: RetryRule,
    tools: Option<BTreeSet<String>>,
    retry_on: Arc<RetryOn>,
    on_failure: OnFailure,
}

impl ToolRetry {
    /// Retries failed calls of all tools. After the last attempt the error is the result that the model
    /// reads.
    pub fn new() -> Self {
        ToolRetry {
            rule: RetryRule::default(),
            tools: None,
            retry_on: Arc::new(|_| true),
            on_failure: OnFailure::Continue,
        }
    }

    /// Retries these tools only.
    pub fn tools<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.tools = Some(names.into_iter().map(Into::into).collect());
        self
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
    pub fn retry_on(mut self, retries: impl Fn(&ToolError) -> bool + Send + Sync + 'static) -> Self {
        self.retry_on = Arc::new(retries);
        self
    }

    /// Sets what happens when the last attempt failed: the error is the call's result, or the run fails.
    pub fn on_failure(mut self, action: OnFailure) -> Self {
        self.on_failure = action;
        self
    }

    /// Sets the source of time and randomness.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.rule.clock = clock;
        self
    }

    fn is_failure(&self, error: &ToolError) -> bool {
        !error.is_interrupt() && !matches!(error, ToolError::InvalidArguments(_))
    }

    fn last(&self, call: &ToolCall, error: ToolError) -> ToolError {
        match (self.on_failure, error) {
            (_, error) if !self.is_failure(&error) => error,
            (OnFailure::Continue, error) => ToolError::Failed(error.to_string()),
            (OnFailure::Error, ToolError::Failed(why)) => {
                ToolError::fatal(format!("tool `{}` failed: {why}", call.name()))
            }
            (OnFailure::Error, error) => error,
        }
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
        if self.tools.as_ref().is_some_and(|tools| !tools.contains(call.name())) {
            return next.run(call).await;
        }
        let mut done = 0;
        loop {
            let error = match next.clone().run(call).await {
                Ok(output) => return Ok(output),
                Err(error) => error,
            };
            let retries = self.is_failure(&error) && (self.retry_on)(&error);
            let Some(wait) = self.rule.wait(done, None).filter(|_| retries) else {
                return Err(self.last(call, error));
            };
            self.rule.clock.sleep(wait).await;
            done += 1;
        }
    }
}

impl fmt::Debug for ToolRetry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = out.debug_struct("ToolRetry");
        parts.field("rule", &self.rule).field("tools", &self.tools).finish_non_exhaustive()
    }
}
