//! An MCP server for one's own tools.

mod graph;
mod handler;

use std::net::SocketAddr;
use std::sync::Arc;

use agentgraph::CancellationToken;
use rmcp::ServiceExt;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use crate::error::{BoxError, Code, Error, Result};
use crate::tool::Tool;
use crate::tool_macro::IntoTool;
use handler::Handler;

/// An MCP server that offers tools to other programs, over standard input and output or over streamable HTTP.
/// It speaks both eras of the protocol.
///
/// A tool runs outside of a graph: its [`ToolCall`](crate::ToolCall) has no context and no state. What a tool
/// fails with for a model, the client gets as the result of the call; a fatal error is logged here, and the
/// client gets only the name of the tool.
///
/// ```no_run
/// use agentgraph_llm::mcp::McpServer;
/// use agentgraph_llm::prelude::*;
///
/// /// Adds two numbers.
/// #[tool]
/// fn add(a: i64, b: i64) -> String {
///     a.saturating_add(b).to_string()
/// }
///
/// #[tokio::main(flavor = "current_thread")]
/// async fn main() -> agentgraph_llm::Result<()> {
///     McpServer::new("calculator", "1.0.0").tool(add).serve_stdio().await
/// }
/// ```
#[derive(Clone)]
pub struct McpServer {
    name: String,
    version: String,
    instructions: Option<String>,
    tools: Vec<Arc<dyn Tool>>,
    hosts: Vec<String>,
    origins: Vec<String>,
    stop: CancellationToken,
    /// The first mistake in what was added.
    mistake: Option<String>,
}

impl McpServer {
    /// A server without tools. Clients are told its name and version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        McpServer {
            name: name.into(),
            version: version.into(),
            instructions: None,
            tools: Vec::new(),
            hosts: Vec::new(),
            origins: Vec::new(),
            stop: CancellationToken::new(),
            mistake: None,
        }
    }

    /// Adds a tool.
    pub fn tool<Form>(mut self, tool: impl IntoTool<Form, Tool: 'static>) -> Self {
        self.tools.push(Arc::new(tool.into_tool()));
        self
    }

    /// Adds tools.
    pub fn tools(mut self, tools: impl IntoIterator<Item = impl Tool + 'static>) -> Self {
        self.tools.extend(tools.into_iter().map(|tool| Arc::new(tool) as Arc<dyn Tool>));
        self
    }

    /// Sets advice for the use of the tools, which clients put into their system prompt.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// Accepts HTTP requests to this host, such as `tools.example.com` or `tools.example.com:8080`, beside
    /// those to loopback names. Others are refused, so that a web page cannot reach a local server under a
    /// name of its own.
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into());
        self
    }

    /// Accepts HTTP requests of web pages from this origin, such as `https://app.example.com:443`. Others are
    /// refused; requests that come from no web page are accepted.
    pub fn allow_origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into());
        self
    }

    /// Ends the serving when the token is cancelled.
    pub fn stop(mut self, token: CancellationToken) -> Self {
        self.stop = token;
        self
    }

    /// Serves over standard input and output, until the input ends. Nothing else may write to the standard
    /// output.
    ///
    /// # Errors
    /// `E_LLM_BAD_TOOL` if two tools have the same name, `E_LLM_CONFIG` if a graph does not fit the way in
    /// which it was added, `E_LLM_CONNECTION` if the client does not speak MCP.
    pub async fn serve_stdio(self) -> Result<()> {
        self.serve_over(rmcp::transport::stdio()).await
    }

    /// Serves over any pair of streams, until the input ends.
    ///
    /// # Errors
    /// As [`serve_stdio`](McpServer::serve_stdio).
    pub async fn serve_over<R, W>(self, streams: (R, W)) -> Result<()>
    where
        R: tokio::io::AsyncRead + Send + Unpin + 'static,
        W: tokio::io::AsyncWrite + Send + Unpin + 'static,
    {
        let handler = Handler::new(&self)?;
        let started = handler.serve_with_ct(streams, self.stop.clone()).await;
        let running = started.map_err(|error| failed("the client did not begin as MCP asks", error))?;
        running.waiting().await.map_err(|error| failed("the server ended early", error))?;
        Ok(())
    }

    /// Serves over streamable HTTP at the path `/mcp` of a port of this machine, reachable only from it,
    /// until [`stop`](McpServer::stop) is cancelled.
    ///
    /// # Errors
    /// `E_LLM_BAD_TOOL` if two tools have the same name, `E_LLM_CONFIG` if a graph does not fit the way in
    /// which it was added, `E_LLM_CONNECTION` if the port is taken.
    pub async fn serve_http(self, port: u16) -> Result<()> {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let bound = TcpListener::bind(address).await;
        let listener = bound.map_err(|error| failed(&format!("cannot listen at {address}"), error))?;
        self.serve_http_on(listener).await
    }

    /// Serves over streamable HTTP at the path `/mcp` of any listener. A server that others can reach needs
    /// [`allow_host`](McpServer::allow_host), and something before it that checks who calls.
    ///
    /// # Errors
    /// As [`serve_http`](McpServer::serve_http).
    pub async fn serve_http_on(self, listener: TcpListener) -> Result<()> {
        let stop = self.stop.clone();
        let router = self.into_router()?;
        let serving = axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned());
        serving.await.map_err(|error| failed("the server ended early", error))
    }

    /// The server as an axum router with the path `/mcp`, to be part of another one, with layers for
    /// authentication.
    ///
    /// # Errors
    /// `E_LLM_BAD_TOOL` if two tools have the same name, `E_LLM_CONFIG` if a graph does not fit the way in
    /// which it was added.
    pub fn into_router(self) -> Result<axum::Router> {
        let handler = Handler::new(&self)?;
        let config = StreamableHttpServerConfig::default();
        let hosts: Vec<_> = config.allowed_hosts.iter().cloned().chain(self.hosts).collect();
        let config = config
            .with_allowed_hosts(hosts)
            .with_allowed_origins(self.origins)
            .enforce_origin_validation()
            .with_cancellation_token(self.stop);
        let sessions = Arc::new(LocalSessionManager::default());
        let service = StreamableHttpService::new(move || Ok(handler.clone()), sessions, config);
        Ok(axum::Router::new().route_service("/mcp", service))
    }
}

impl std::fmt::Debug for McpServer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tools: Vec<_> = self.tools.iter().map(|tool| tool.spec().name.clone()).collect();
        out.debug_struct("McpServer").field("name", &self.name).field("tools", &tools).finish_non_exhaustive()
    }
}

fn failed(what: &str, error: impl Into<BoxError>) -> Error {
    let error = error.into();
    Error::new(Code::Connection, format!("{what}: {error}")).with_source(error)
}
