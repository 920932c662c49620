//! Graphs behind HTTP, for the clients of LangGraph: the Python and JavaScript SDKs, `RemoteGraph`, the React
//! hooks, agent-chat-ui.
//!
//! ```
//! use agentgraph::prelude::*;
//! use agentgraph_server::Server;
//! use schemars::JsonSchema;
//!
//! #[derive(State, JsonSchema, Clone, Debug, Default)]
//! struct Triage {
//!     question: String,
//!     answer: String,
//! }
//!
//! async fn answer(state: Snapshot<Triage>) -> TriageUpdate {
//!     Triage::update().answer(format!("about {}: 42", state.question))
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
//! let graph = StateGraph::new().node("answer", answer).edge(START, "answer").compile()?;
//! let routes = Server::new().in_memory().graph("triage", graph).router().await?;
//! // In a program of one's own: `Server::new().graph("triage", graph).serve("127.0.0.1:2024").await?`
//!
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! let address = listener.local_addr()?;
//! tokio::spawn(async move { axum::serve(listener, routes.into_make_service()).await });
//! let body = serde_json::json!({ "assistant_id": "triage", "input": { "question": "life" } });
//! let client = agentgraph_llm::http_client_builder().build()?;
//! let answer = client.post(format!("http://{address}/runs/wait")).json(&body).send().await?;
//! assert_eq!(answer.json::<serde_json::Value>().await?["answer"], "about life: 42");
//! # Ok(())
//! # }
//! ```
//!
//! `docs/guide/server.md` says which clients work, and what is not there yet. The page of a server, at `/ui`,
//! shows its threads, runs and questions; [`ui`] serves one graph with it.
//!
//! # Rooms
//!
//! From top to bottom; a file imports from its own room and from those below it:
//!
//! - `server`: the builder, the stores, the socket, the end
//! - `routes`: requests, responses, events on the wire, the page
//! - `runs`: taking runs in, driving them, their events
//! - `app`: the graphs, the records and the runs of a server; records as clients see them
//! - `live`: the runs of this process
//! - `graph`: a graph by JSON
//! - `messages`: messages in LangChain's shape
//! - `meters`: what is counted for `/metrics`
//! - `records`: what is kept, and its stores
//! - `access`: who calls, and how that is known
//! - `ids`: ids and times on the wire
//! - `error`: errors

#![warn(clippy::too_many_lines)]

mod access;
mod app;
mod error;
mod graph;
mod ids;
mod live;
mod messages;
mod meters;
pub mod records;
mod routes;
mod runs;
mod server;

#[cfg(feature = "jwt")]
pub use access::Jwt;
pub use access::{Authenticate, Caller, Denied, LayeredCaller};
pub use app::OnRestart;
pub use error::{NamedError, RecordError, ServerError};
pub use graph::RunConfig;
pub use server::{RunningServer, Server, ui};
