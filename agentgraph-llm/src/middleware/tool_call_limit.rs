//! A limit of tool calls.

use async_trait::async_trait;

use super::limit_count::{Count, Limits};
use super::{Hooks, Jump, Middleware, Turn};
use crate::error::Result;
use crate::message::{Message, ToolResult, ToolUse};

/// What happens to calls above a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AboveLimit {
    /// Their results are errors, and the model goes on.
    #[default]
    Continue,
    /// The run fails.
    Error,
    /// All open calls get errors as their results, and the run ends; its last message says why.
    End,
}

/// Limits the calls of one tool, or of all tools, for a run, for a thread, or for both. Calls of one answer
/// count in their order. Only calls that are allowed count.
///
/// ```
/// use agentgraph_llm::middleware::{Jump, Middleware, ToolCallLimit, Turn};
/// use agentgraph_llm::{Message, Role, ToolUse};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agentgraph_llm::Result<()> {
/// let limit = ToolCallLimit::per_run(1)?.tool("search");
/// let calls = ["a", "b"].map(|id| ToolUse::new(id, "search", json!({})));
/// let mut turn = Turn::detached(limit.name(), [Message::new(Role::Assistant, calls)]);
/// assert_eq!(limit.after_model(&mut turn).await?, Jump::Next);
/// assert_eq!(turn.open_calls().len(), 1);                 // `b` has an error as its result
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ToolCallLimit {
    name: String,
    tool: Option<String>,
    limits: Limits,
    above: AboveLimit,
}

impl ToolCallLimit {
    /// Allows this many calls of all tools together in a run.
    ///
    /// # Errors
    /// `E_LLM_CONFIG` as [`new`](Self::new).
    pub fn per_run(calls: u64) -> Result<Self> {
        ToolCallLimit::new(None, Some(calls))
    }

    /// Allows this many calls in a thread and in each of its runs; `None` is no limit.
    ///
    /// # Errors
    /// `E_LLM_CONFIG` if there is neither, or if the limit of a run is above that of the thread.
    pub fn new(thread: Option<u64>, run: Option<u64>) -> Result<Self> {
        let limits = Limits { thread, run };
        limits.check()?;
        let name = "tool_call_limit".to_owned();
        Ok(ToolCallLimit { name, tool: None, limits, above: AboveLimit::default() })
    }

    /// Limits this tool only. An agent may have one limit for each tool, and one for all.
    pub fn tool(mut self, name: impl Into<String>) -> Self {
        let tool = name.into();
        self.name = format!("tool_call_limit_{tool}");
        self.tool = Some(tool);
        self
    }

    /// Sets what happens to calls above the limit.
    pub fn above_limit(mut self, action: AboveLimit) -> Self {
        self.above = action;
        self
    }

    fn what(&self) -> String {
        self.tool.as_ref().map_or("tool calls".to_owned(), |tool| format!("calls of `{tool}`"))
    }

    fn counts(&self, call: &ToolUse) -> bool {
        self.tool.as_ref().is_none_or(|tool| *tool == call.name)
    }
}

#[async_trait]
impl Middleware for ToolCallLimit {
    fn name(&self) -> &str {
        &self.name
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE.after_model()
    }

    async fn after_model(&self, turn: &mut Turn) -> Result<Jump> {
        let open: Vec<ToolUse> = turn.open_calls().into_iter().cloned().collect();
        let counted: Vec<&ToolUse> = open.iter().filter(|call| self.counts(call)).collect();
        if counted.is_empty() {
            return Ok(Jump::Next);
        }
        let mut count = Count {
            thread: turn.slot().get()?.unwrap_or_default(),
            run: turn.run_slot().get()?.unwrap_or_default(),
        };
        let room = usize::try_from(self.limits.room(count)).unwrap_or(usize::MAX);
        let (allowed, refused) = counted.split_at(counted.len().min(room));
        let ends = !refused.is_empty() && self.above == AboveLimit::End;
        count.add(if ends { 0 } else { allowed.len() as u64 });
        turn.slot().set(&count.thread)?;
        turn.run_slot().set(&count.run)?;
        if refused.is_empty() {
            return Ok(Jump::Next);
        }
        let error = self.limits.error(count, &self.what());
        match self.above {
            AboveLimit::Error => Err(error),
            AboveLimit::Continue => {
                refused.iter().for_each(|call| turn.answer(refusal(call, error.message())));
                Ok(Jump::Next)
            }
            AboveLimit::End => {
                open.iter().for_each(|call| turn.answer(refusal(call, error.message())));
                turn.push(Message::assistant(error.message()));
                Ok(Jump::End)
            }
        }
    }
}

fn refusal(call: &ToolUse, why: &str) -> ToolResult {
    ToolResult::error(&call.id, format!("The call did not run: {why}. Do not call it again."))
}
