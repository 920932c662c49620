//! An MCP server with one tool, over standard input and output. Put it into the settings of an MCP client, or
//! try it: `npx @modelcontextprotocol/inspector target/debug/examples/mcp_server`.

use agentgraph_llm::mcp::McpServer;
use agentgraph_llm::prelude::*;

/// Adds two numbers.
#[tool]
fn add(a: i64, b: i64) -> Result<String, ToolError> {
    let sum = a.checked_add(b).ok_or_else(|| ToolError::failed("the sum is too large"))?;
    Ok(sum.to_string())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> agentgraph_llm::Result<()> {
    McpServer::new("calculator", env!("CARGO_PKG_VERSION")).tool(add).serve_stdio().await
}
