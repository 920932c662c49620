//! Failed tools are called again with growing waits; questions and invalid arguments are no failures.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use agentgraph_llm::middleware::{Middleware, NextTool, OnFailure, ToolRetry};
use agentgraph_llm::*;
use serde_json::json;

use crate::support::TestClock;

/// Fails a number of times, in some way.
struct Flaky {
    calls: Arc<AtomicU32>,
    failures: u32,
    error: fn() -> ToolError,
}

#[async_trait::async_trait]
impl Tool for Flaky {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("flaky", "Fails.", json!({"type": "object"}))
    }

    async fn call(&self, _: &RawJson, _: &ToolCall) -> Result<ToolOutput, ToolError> {
        match self.calls.fetch_add(1, Ordering::Relaxed) < self.failures {
            true => Err((self.error)()),
            false => Ok("done".into()),
        }
    }
}

async fn call(
    retry: ToolRetry,
    failures: u32,
    error: fn() -> ToolError,
) -> (Result<ToolOutput, ToolError>, u32, Vec<u64>) {
    let (clock, calls) = (TestClock::new(), Arc::new(AtomicU32::new(0)));
    let next = NextTool::of(Flaky { calls: calls.clone(), failures, error }).unwrap();
    let result = retry.clock(clock.clone()).wrap_tool(&ToolCall::detached("c", "flaky"), next).await;
    (result, calls.load(Ordering::Relaxed), clock.waits().iter().map(Duration::as_secs).collect())
}

#[tokio::test]
async fn two_retries_after_one_and_two_seconds() {
    let (result, calls, waits) = call(ToolRetry::new(), 2, || ToolError::failed("busy")).await;
    assert_eq!((result.unwrap(), calls, waits), (ToolOutput::text("done"), 3, vec![1, 2]));
}

#[tokio::test]
async fn the_last_error_is_for_the_model_unless_you_say_otherwise() {
    let (result, calls, _) = call(ToolRetry::new(), 9, || ToolError::fatal("disk full")).await;
    assert!(matches!(result, Err(ToolError::Failed(why)) if why == "disk full"));
    assert_eq!(calls, 3);
    let (result, ..) =
        call(ToolRetry::new().on_failure(OnFailure::Error), 9, || ToolError::failed("busy")).await;
    assert!(matches!(result, Err(ToolError::Fatal(_))));
}

#[tokio::test]
async fn invalid_arguments_are_not_retried() {
    let (result, calls, _) = call(ToolRetry::new(), 9, || ToolError::invalid_arguments("no city")).await;
    assert!(matches!(result, Err(ToolError::InvalidArguments(_))));
    assert_eq!(calls, 1);
}

#[tokio::test]
async fn only_the_named_tools_and_chosen_errors_are_retried() {
    let (_, calls, _) = call(ToolRetry::new().tools(["other"]), 9, || ToolError::failed("busy")).await;
    assert_eq!(calls, 1);
    let chosen = |error: &ToolError| matches!(error, ToolError::Failed(why) if why == "busy");
    let (_, calls, _) = call(ToolRetry::new().retry_on(chosen), 9, || ToolError::failed("gone")).await;
    assert_eq!(calls, 1);
    let (_, calls, _) =
        call(ToolRetry::new().retry_on(chosen).max_retries(5), 9, || ToolError::failed("busy")).await;
    assert_eq!(calls, 6);
}
