//! The execution of the calls of one assistant message.

use std::collections::BTreeMap;

use futures_util::{StreamExt, stream};
use tracing::Instrument;

use crate::error::{Code, Error, Result};
use crate::json::RawJson;
use crate::message::{Block, ToolInput, ToolResult, ToolUse};
use crate::model::{ChatRequest, ChatResponse};
use crate::telemetry;
use crate::tool::{Tool, ToolError, ToolOutput};
use crate::tool_loop::durable::DurableSteps;

/// The tools of a loop, by name.
pub(super) struct Toolbox<'a> {
    tools: BTreeMap<String, &'a (dyn Tool + 'a)>,
}

/// The result for the model, and the output if the call succeeded.
type CallOutcome = (ToolResult, Option<ToolOutput>);

impl<'a> Toolbox<'a> {
    /// Checks the tools and adds them to the request.
    pub(super) fn new(list: &'a [Box<dyn Tool + 'a>], request: &mut ChatRequest) -> Result<Self> {
        let mut tools = BTreeMap::new();
        for tool in list {
            let spec = tool.spec();
            spec.check()?;
            let taken = request.tools.iter().any(|offered| offered.name == spec.name);
            if taken {
                let message = format!("two tools are named `{}`: give one of them another name", spec.name);
                return Err(Error::new(Code::BadTool, message));
            }
            tools.insert(spec.name.clone(), &**tool);
            request.tools.push(spec);
        }
        Ok(Toolbox { tools })
    }

    /// Runs all calls of a message, up to the limit at the same time. A fatal error is returned after every
    /// call has ended, so that no call is cut in the middle.
    pub(super) async fn run_all(
        &self,
        response: &ChatResponse,
        at_once: usize,
        steps: Option<&DurableSteps>,
    ) -> Result<Vec<CallOutcome>> {
        let cut = cut_call(response);
        let calls = response.message.tool_uses();
        let calls = calls.map(|call| {
            let work = self.run_one(call, cut.is_some_and(|cut| std::ptr::eq(cut, call)));
            DurableSteps::tool(steps, &call.name, work)
        });
        // Built before any of them runs: a stream that creates futures of borrowed calls is not provably
        // `Send`.
        let calls: Vec<_> = calls.collect();
        let done: Vec<Result<CallOutcome>> = stream::iter(calls).buffered(at_once).collect().await;
        done.into_iter().collect()
    }

    async fn run_one(&self, call: &ToolUse, cut: bool) -> Result<CallOutcome> {
        let span = telemetry::tool_span(call);
        let outcome = if cut { Err(cut_off()) } else { self.call(call).instrument(span.clone()).await };
        match outcome {
            Ok(output) => Ok((result(call, &output), Some(output))),
            Err(error) => {
                telemetry::record_tool_error(&span, &error);
                shown_to_model(call, error).map(|result| (result, None))
            }
        }
    }

    async fn call(&self, call: &ToolUse) -> Result<ToolOutput, ToolError> {
        let Some(tool) = self.tools.get(&call.name) else {
            return Err(ToolError::Failed(self.unknown(&call.name)));
        };
        tool.call(arguments(call)?).await
    }

    fn unknown(&self, name: &str) -> String {
        if self.tools.is_empty() {
            return format!("there is no tool `{name}`; there are no tools");
        }
        let names: Vec<_> = self.tools.keys().map(|known| format!("`{known}`")).collect();
        format!("there is no tool `{name}`; there are {}", names.join(", "))
    }
}

/// The call that a token limit cut: the last block of such a message, even if it is valid JSON.
fn cut_call(response: &ChatResponse) -> Option<&ToolUse> {
    response.message.content.last().filter(|_| response.stop.is_truncated()).and_then(Block::as_tool_use)
}

fn cut_off() -> ToolError {
    ToolError::Failed(
        "not run: the answer reached the token limit in the middle of this call; make the call again with shorter \
         arguments"
            .to_owned(),
    )
}

fn arguments(call: &ToolUse) -> Result<&RawJson, ToolError> {
    match &call.input {
        ToolInput::Json(json) if json.is_object() => Ok(json),
        ToolInput::Json(_) => Err(ToolError::invalid_arguments("they must be a JSON object")),
        ToolInput::Malformed(text) => {
            let why =
                RawJson::parse_text(text.as_str()).err().map(|error| error.to_string()).unwrap_or_default();
            Err(ToolError::invalid_arguments(format!("they are not JSON: {why}")))
        }
    }
}

fn result(call: &ToolUse, output: &ToolOutput) -> ToolResult {
    ToolResult::new(&call.id, output.content.iter().cloned())
}

fn shown_to_model(call: &ToolUse, error: ToolError) -> Result<ToolResult> {
    match error {
        ToolError::Fatal(cause) => {
            let message = format!("tool `{}` failed: {cause}", call.name);
            Err(Error::new(Code::ToolFailed, message).with_source(cause))
        }
        told => Ok(ToolResult::error(&call.id, told.to_string())),
    }
}
