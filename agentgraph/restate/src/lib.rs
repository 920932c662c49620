//! The same compiled graph on more than one machine, on [Restate](https://restate.dev).
//!
//! [`RestateWorker`] serves graphs from each machine, and [`RestateClient`] calls them: with the words of a
//! local [`CompiledGraph`](agentgraph::CompiledGraph), the same outcomes and the same errors. The engine's
//! own loop runs over each thread; only who meets its needs differs. [`EventRelay`] passes events on.
//!
//! The page `docs/guide/restate.md` of the repository goes from one process to a cluster in five steps.
//!
//! ```no_run
//! use agentgraph::prelude::*;
//! use agentgraph_restate::{RestateClient, RestateWorker};
//!
//! #[derive(State, Clone, Debug, Default)]
//! struct Greeting {
//!     name: String,
//!     text: String,
//! }
//!
//! async fn greet(greeting: Snapshot<Greeting>) -> GreetingUpdate {
//!     Greeting::update().text(format!("Hello, {}!", greeting.name))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<()> {
//! // On each machine. A server runs at the addresses of its defaults.
//! let graph = StateGraph::new().node("greet", greet).edge(START, "greet").compile()?;
//! let worker = RestateWorker::new().graph("greeting", graph).register("http://127.0.0.1:9070");
//! let _serving = worker.start("127.0.0.1:9080".parse()?).await?;
//!
//! // Anywhere.
//! let graph = RestateClient::connect("http://127.0.0.1:8080")?.graph::<Greeting>("greeting");
//! let greeting = graph.invoke(Greeting::update().name("Ada")).thread("t-1").finish().await?;
//! assert_eq!(greeting.text, "Hello, Ada!");
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! - `opentelemetry`: a call is in the trace of the span in which it is made, over the server to the
//!   nodes, where the program has the layer of `tracing-opentelemetry` 0.34.
//!
//! # Limits
//!
//! - A call is one invocation of up to 500 supersteps, or several; a thread has one call at a time.
//! - Routes and reducers run again when an invocation is built again from its journal, so they must be pure.
//! - Without a checkpointer that all workers reach there is no history, there are no durable steps, and a
//!   thread has 16 MiB at most.
//! - Changed code needs an address of its own while invocations are under way on the old one.

#![warn(clippy::too_many_lines)]

// # Rooms
//
// The modules, from the top of the house to the bottom. A file imports from its own module and from modules
// further down; a test of `agentgraph` (`tests/sources`) checks it.
//
// - `relay`: the program that passes events on
// - `client`: calls, over HTTP
// - `worker`: the services of a graph
// - `events`: what a worker posts to a relay
// - `headers`: what a caller's request says about the caller
// - `wire`: everything that enters or leaves the server, sealed
// - `admin`: requests to the server's admin API
// - `http`: the HTTP client
// - `trace`: the trace of a caller, over the server

mod admin;
mod client;
mod events;
mod headers;
mod http;
mod relay;
mod trace;
mod wire;
mod worker;

pub use client::{
    FoundThread, FoundThreads, RemoteAnswer, RemoteCall, RemoteEdit, RemoteEvent, RemoteGraph, RemoteHistory,
    RemoteStream, RemoteThreads, RestateClient, RestateClientBuilder, SentContext, SentEvent, ThreadSearch,
    ThreadStatus,
};
pub use headers::Headers;
pub use relay::{EventRelay, Relaying};
pub use worker::{RestateWorker, ServeError, Serving};

/// The programs of the page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/restate.md")]
struct Guide;
