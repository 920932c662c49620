//! The calls of one assistant message: all at once, up to a limit, each with a result.

use std::pin::pin;

use agentgraph::Ctx;
use futures_util::{StreamExt, stream};

use crate::error::{Code, Error, Result};
use crate::execution::{self, CallOutcome, Toolbox};
use crate::message::{Message, ToolResult, ToolUse};
use crate::model::ChatResponse;
use crate::tool::{ToolCall, ToolError, ToolOutput};
use crate::tool_loop::durable::DurableSteps;

/// The calls of one response.
pub(super) struct Calls<'a> {
    pub(super) toolbox: &'a Toolbox<'a>,
    pub(super) at_once: usize,
    pub(super) ctx: Option<&'a Ctx>,
    pub(super) steps: Option<&'a DurableSteps>,
}

/// The results in the order of the calls, and the first fatal error. A call with a fatal error has a result
/// too, so that the conversation can be sent again.
pub(super) struct CallsOutcome {
    pub(super) done: Vec<CallOutcome>,
    pub(super) fatal: Option<Error>,
}

impl Calls<'_> {
    /// Runs all calls of a message. Each call ends, so that none is cut in the middle.
    pub(super) async fn run(&self, response: &ChatResponse) -> CallsOutcome {
        let calls = response.message.tool_uses();
        let calls = calls.map(|call| {
            let work = self.run_one(&response.message, call);
            DurableSteps::tool(self.steps, &call.name, work)
        });
        // Built before any of them runs: a stream that creates futures of borrowed calls is not provably
        // `Send`.
        let calls: Vec<_> = calls.collect();
        let ended: Vec<Result<CallOutcome>> = stream::iter(calls).buffered(self.at_once).collect().await;
        let mut outcome = CallsOutcome { done: Vec::with_capacity(ended.len()), fatal: None };
        for (call, ended) in response.message.tool_uses().zip(ended) {
            outcome.done.push(ended.unwrap_or_else(|error| {
                outcome.fatal.get_or_insert(error);
                (ToolResult::error(&call.id, "the call failed and ended the run"), None)
            }));
        }
        outcome
    }

    async fn run_one(&self, answer: &Message, asked: &ToolUse) -> Result<CallOutcome> {
        let call = ToolCall::of(asked, answer, self.ctx.cloned(), None);
        let done = execution::run(asked, pin!(self.toolbox.call(&call))).await;
        execution::outcome(asked, done.and_then(without_command))
    }
}

/// A loop is no graph: it can neither change a state nor go to a node.
fn without_command(output: ToolOutput) -> Result<ToolOutput, ToolError> {
    if output.command.is_none() {
        return Ok(output);
    }
    let message = "a tool of a `ToolLoop` returned a command: use the tool in a `ToolNode` or an `Agent`";
    Err(ToolError::fatal(Error::new(Code::BadTool, message)))
}
