//! Tools of MCP servers, and an MCP server for one's own tools.
//!
//! With the feature `mcp`, [`McpClient`] connects to a server: to a child process over its standard streams,
//! or to an address over streamable HTTP. The server's tools become plain [`Tool`](crate::Tool)s, and
//! its questions to a person interrupts. With the feature `mcp-server`, [`McpServer`] offers tools to others.
//!
//! The protocol itself is `rmcp`'s, in both of its eras: with the `initialize` handshake (up to 2025-11-25)
//! and without (2026-07-28). No type of `rmcp` is in this module's API.

#[cfg(feature = "mcp")]
mod access;
#[cfg(feature = "mcp")]
mod arguments;
#[cfg(feature = "mcp")]
mod client;
mod content;
#[cfg(feature = "mcp")]
mod elicitation;
#[cfg(feature = "mcp")]
mod failure;
#[cfg(feature = "mcp")]
mod names;
#[cfg(feature = "mcp-oauth")]
mod oauth;
#[cfg(feature = "mcp-server")]
mod server;
#[cfg(feature = "mcp")]
mod tool;

#[cfg(feature = "mcp")]
pub use client::{McpClient, McpClientBuilder, McpPrompt, McpProtocol, McpResource};
#[cfg(feature = "mcp")]
pub use elicitation::{Elicitation, ElicitationAnswer};
#[cfg(feature = "mcp-oauth")]
pub use oauth::{McpOAuth, McpTokenStore};
#[cfg(feature = "mcp-server")]
pub use server::McpServer;
#[cfg(feature = "mcp")]
pub use tool::McpTool;
