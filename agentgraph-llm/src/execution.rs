//! The execution of calls, shared by [`ToolLoop`](crate::ToolLoop), [`ToolNode`](crate::ToolNode) and
//! [`Agent`](crate::Agent).
//!
//! A call that cannot be run is answered with an error, which the model reads: an unknown tool, arguments
//! that do not fit, a tool that fails or panics. Only a fatal error is returned to the caller.

mod arguments;

use std::any::type_name;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use agentgraph::State;
use futures_util::FutureExt;
use futures_util::future::{Either, ready};
use tracing::Instrument;

use self::arguments::SchemaCheck;
use crate::error::{Code, Error, Result};
use crate::message::{ToolResult, ToolUse};
use crate::telemetry::ToolTrace;
use crate::tool::{StateType, Tool, ToolCall, ToolError, ToolOutput, ToolSpec};

/// The result for the model, and the output if the call succeeded.
pub(crate) type CallOutcome = (ToolResult, Option<ToolOutput>);

/// Tools, found by name. Requests offer them in the order of their declaration.
pub(crate) struct Toolbox<'a> {
    tools: Vec<Entry<'a>>,
    by_name: BTreeMap<String, usize>,
}

struct Entry<'a> {
    tool: Arc<dyn Tool + 'a>,
    spec: ToolSpec,
    check: SchemaCheck,
}

impl<'a> Toolbox<'a> {
    /// Checks the tools: names, schemas, and that no two have one name.
    pub(crate) fn new(tools: impl IntoIterator<Item = Arc<dyn Tool + 'a>>) -> Result<Self> {
        let mut toolbox = Toolbox { tools: Vec::new(), by_name: BTreeMap::new() };
        for tool in tools {
            let spec = tool.spec();
            spec.check()?;
            if toolbox.by_name.insert(spec.name.clone(), toolbox.tools.len()).is_some() {
                return Err(same_name(&spec.name));
            }
            let check = SchemaCheck::new(&spec)?;
            toolbox.tools.push(Entry { tool, spec, check });
        }
        Ok(toolbox)
    }

    /// Checks that the tools can work on the state `S`.
    pub(crate) fn check_state<S: State>(&self) -> Result<()> {
        for (name, at) in &self.by_name {
            if let Some(state) = self.tools[*at].tool.state()
                && state != StateType::of::<S>()
            {
                let message = format!(
                    "tool `{name}` works on the state `{}`, and the graph has the state `{}`: use the tool in a graph \
                     over its own state",
                    state.name(),
                    type_name::<S>()
                );
                return Err(Error::new(Code::BadTool, message));
            }
        }
        Ok(())
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The descriptions of the tools, in the order of their declaration.
    pub(crate) fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools.iter().map(|entry| &entry.spec)
    }

    /// Runs one call with arguments that are an object. A panic ends the call and nothing else.
    pub(crate) async fn call(&self, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        let Some(entry) = self.by_name.get(call.name()).map(|at| &self.tools[*at]) else {
            return Err(ToolError::Failed(self.unknown(call.name())));
        };
        entry.check.check(call.input())?;
        // The closure of the call is dropped with the panic, so nothing sees it half done.
        let running = AssertUnwindSafe(async { (*entry.tool).call(call.input(), call).await });
        running.catch_unwind().await.unwrap_or_else(|_| Err(panicked(call.name())))
    }

    fn unknown(&self, name: &str) -> String {
        if self.tools.is_empty() {
            return format!("there is no tool `{name}`; there are no tools");
        }
        let names: Vec<_> = self.by_name.keys().map(|known| format!("`{known}`")).collect();
        format!("there is no tool `{name}`; there are {}", names.join(", "))
    }
}

/// The panic's own text stays in the log of the process: it is not meant for a model.
fn panicked(name: &str) -> ToolError {
    ToolError::Failed(format!("tool `{name}` panicked; the call failed and may have taken effect in part"))
}

pub(crate) fn same_name(name: &str) -> Error {
    let message = format!("two tools are named `{name}`: give one of them another name");
    Error::new(Code::BadTool, message)
}

/// Runs one call of a response in its span, if its arguments are an object.
///
/// No `async fn`, and `work` is pinned by the caller: each layer would have room for it, and move it.
pub(crate) fn run(
    asked: &ToolUse,
    work: Pin<&mut impl Future<Output = Result<ToolOutput, ToolError>>>,
) -> impl Future<Output = Result<ToolOutput, ToolError>> {
    let trace = ToolTrace::begin(asked);
    let work = match arguments::check_object(asked) {
        Ok(()) => Either::Left(work),
        Err(error) => Either::Right(ready(Err(error))),
    };
    work.instrument(trace.span().clone()).inspect(move |outcome| trace.end(outcome.as_ref()))
}

/// The outcome of a call as its result for the model.
///
/// # Errors
/// `E_LLM_TOOL_FAILED` for a fatal error, which is its cause.
pub(crate) fn outcome(asked: &ToolUse, done: Result<ToolOutput, ToolError>) -> Result<CallOutcome> {
    match done {
        Ok(output) => Ok((result(asked, output.clone()), Some(output))),
        Err(ToolError::Fatal(cause)) => {
            let message = format!("tool `{}` failed: {cause}", asked.name);
            Err(Error::new(Code::ToolFailed, message).with_source(cause))
        }
        Err(told) => Ok((ToolResult::error(&asked.id, told.to_string()), None)),
    }
}

pub(crate) fn result(asked: &ToolUse, output: ToolOutput) -> ToolResult {
    let mut result = ToolResult::new(&asked.id, output.content);
    result.artifact = output.artifact.map(Into::into);
    result
}
