//! The tools `execute_python_file` and `python_repl`.

use agentgraph::{CallContext, Snapshot};
use agentgraph_llm::{Message, ToolError, tool};

use super::desk::Desk;
use crate::python::Ran;
use crate::solving::Solving;

/// The longest file that is run.
const LONGEST: u64 = 1 << 20;

/// Runs a Python file and returns what it prints. It runs without a network, for a limited time, in a folder
/// of its own, in which the other files are under the paths that `list_files` shows, read-only.
#[tool]
pub(super) async fn execute_python_file(
    desk: CallContext<Desk>,
    /// The path of the file, as `list_files` shows it.
    path: String,
) -> Result<String, ToolError> {
    let (_, source) = desk.read(&path, LONGEST).await?;
    let name = path.rsplit('/').next().unwrap_or("main.py").to_owned();
    let ran = desk.python()?.run_file(&name, &source).await.map_err(ToolError::failed)?;
    report(ran, &desk).await
}

/// Runs Python code and returns what it prints and the value of its last expression. Names that it defines
/// stay for the next call. It runs without a network, for a limited time, in a folder of its own. The other
/// files are in it under the paths that `list_files` shows, read-only.
#[tool]
pub(super) async fn python_repl(
    desk: CallContext<Desk>,
    solving: Snapshot<Solving>,
    /// The code: one or more lines of Python.
    code: String,
) -> Result<String, ToolError> {
    let ran = desk.python()?.run(&code).await.map_err(ToolError::failed)?;
    let is_empty_again = ran.is_new_session && has_session(&solving.messages);
    let text = report(ran, &desk).await?;
    if is_empty_again {
        return Ok(format!("[a new session: names of earlier calls are not defined]\n{text}"));
    }
    Ok(text)
}

/// Whether an earlier call has run in this question.
fn has_session(messages: &[Message]) -> bool {
    let results: Vec<_> = messages.iter().flat_map(Message::results).collect();
    let calls = messages.iter().flat_map(Message::tool_uses).filter(|call| call.name == "python_repl");
    calls.into_iter().any(|call| results.iter().any(|result| result.tool_use_id == call.id))
}

async fn report(ran: Ran, desk: &Desk) -> Result<String, ToolError> {
    let mut text = ran.output;
    if ran.lost > 0 {
        text += &format!("\n[{} characters more were cut]", ran.lost);
    }
    if let Some(value) = ran.value {
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        text += &format!("{gap}{value}");
    }
    if !ran.left_out.is_empty() {
        text += &format!("\n[not in the folder, since it is too large: {}]", ran.left_out.join(", "));
    }
    if let Some(warning) = desk.python()?.warning().await {
        text += &format!("\n[{warning}]");
    }
    match ran.error {
        Some(error) => Err(ToolError::failed(format!("{text}\n{error}").trim())),
        None if text.trim().is_empty() => Ok("[no output]".to_owned()),
        None => Ok(text),
    }
}
