//! MCP: a client's view of servers, and a server's view of clients.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
#![cfg(unix)]

mod arguments_arrive_as_they_were_written;
mod calls_end_on_both_sides;
mod dead_servers_never_hang_a_call;
mod graphs_are_served_as_tools;
#[cfg(feature = "mcp-oauth")]
mod guarded_server;
mod http_servers_answer_loopback_only;
mod lists_follow_the_server;
mod reference_servers;
mod results_become_blocks;
mod scripted_server;
mod served_tools_are_plain_tools;
mod servers_ask_persons_and_offer_resources_and_prompts;
#[cfg(feature = "mcp-oauth")]
mod servers_with_oauth_are_reached_after_a_login;
#[cfg(feature = "mcp-oauth")]
mod tokens_are_never_shown;

use agentgraph_llm::mcp::{McpServer, McpTool};
use agentgraph_llm::prelude::*;
use tokio::net::TcpListener;

/// The address of a server that runs in this process.
pub(crate) async fn served(server: McpServer) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(server.serve_http_on(listener));
    format!("http://{address}/mcp")
}

/// Calls a tool outside of a graph.
pub(crate) async fn call(tool: &McpTool, input: serde_json::Value) -> Result<ToolOutput, ToolError> {
    tool.call(&input.into(), &ToolCall::detached("call-1", "test")).await
}
