//! An UpGrade server inside the process: routes, bodies, errors and quirks of UpGrade 6.5.0, or of
//! 6.2.0 in the old dialect, with the same draws for the same ids ([`draw_condition`]).
//!
//! It listens on loopback only, and requires tokens only if they were set. Data live in memory. With a data
//! file, each change is written there before its request is answered, so a server that was killed has, after
//! its next start, every change that it had confirmed.
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//! use tokio::net::TcpStream;
//! use upgrade_simulator::EmbeddedServer;
//!
//! let server = EmbeddedServer::builder().in_memory().start().await?;
//! let mut call = TcpStream::connect(server.addr()).await?;
//! call.write_all(b"GET /api HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await?;
//! let mut answer = String::new();
//! call.read_to_string(&mut answer).await?;
//! assert!(answer.contains(r#""version":"6.5.0""#));
//! server.shutdown().await;
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! It shares no type with a client of the same API, so a mistake in one of them shows in the tests of both.
//! Its answers are compared with recordings of real servers.
//!
//! # Limits
//!
//! Adaptive experiments, rewards and mail need services outside of UpGrade. They are refused with the errors
//! of an UpGrade server that lacks these services. The audit log does not contain the difference that a
//! change made.
//!
//! # Rooms
//!
//! The files of this crate, from the top of the house to the bottom. A file imports from its own room and
//! from rooms further down; a test of `agentgraph` (`tests/sources`) checks it.
//!
//! - `builder`: the settings and the start of a server
//! - `handle`: a running server and its end
//! - `routes`: HTTP: connections, origins, and the table from paths to answers
//! - `shared_core`: runs one call at a time, after the gate has admitted it
//! - `students`: the routes of applications, old and new; visits, aliases, groups; preview users
//! - `flags`: feature flags, with their lists and files
//! - `experiments`: routes that create, update, show, start, stop and count experiments; lists and files
//! - `assignment`: the choice of a student's condition: draws, strata, pools, queues
//! - `segments`: named sets of students, their use, and the verdict of lists on a student
//! - `metrics`: logs of applications, and the queries of experiments over them
//! - `accounts`: authorization, accounts, settings, the audit log
//! - `core`: a request to a route, and the data that an answer may touch: world, journal, clock, ids
//! - `contexts`: the sites, targets and conditions that applications offer
//! - `world`: all stored data in tables, and the journal that keeps it on disk
//! - `error`: the errors of a start
//! - `wire`: words, bodies and their validation, times, tokens, error answers

#![warn(clippy::too_many_lines)]

mod accounts;
mod assignment;
mod builder;
mod contexts;
mod core;
mod error;
mod experiments;
mod flags;
mod handle;
mod metrics;
mod routes;
mod segments;
mod shared_core;
mod students;
mod wire;
mod world;

pub use assignment::draw::draw_condition;
pub use builder::{EmbeddedServer, EmbeddedServerBuilder};
pub use contexts::{Context, Contexts};
pub use error::ServerError;
pub use handle::ServerHandle;
pub use wire::calendar::timestamp;
pub use wire::dialect::Dialect;
