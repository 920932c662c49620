//! MCP: a client's view of servers, and a server's view of clients.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
#![cfg(unix)]

mod dead_servers_never_hang_a_call;
mod graphs_are_served_as_tools;
mod http_servers_answer_loopback_only;
mod lists_follow_the_server;
mod reference_servers;
mod results_become_blocks;
mod scripted_server;
mod served_tools_are_plain_tools;

use agentgraph_llm::mcp::McpTool;
use agentgraph_llm::prelude::*;

/// Calls a tool outside of a graph.
pub(crate) async fn call(tool: &McpTool, input: serde_json::Value) -> Result<ToolOutput, ToolError> {
    tool.call(&input.into(), &ToolCall::detached("call-1", "test")).await
}
