//! An UpGrade server inside the process: routes, bodies, errors and quirks of UpGrade 6.5.0, or of
//! 6.2.0 in the old dialect, with the same draws for the same ids ([`draw_condition`]).
//!
//! It listens on loopback only, and asks nobody for a token unless it is told which. Experiments and students
//! live in memory; with a data file every change is written there before it is answered, so that a server
//! which is killed and started again knows everything it has answered for.
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
//! It shares no type with a client of the same API, so that a mistake in one of the two shows. Its answers
//! are compared with recordings of real servers.
//!
//! # What is missing
//!
//! Adaptive experiments, rewards and mail need services outside of UpGrade; they are refused as by an UpGrade
//! server that has none. The log of deeds does not say how a changed experiment or flag differed.
//!
//! # Rooms
//!
//! The files of this crate, from the top of the house to the bottom. A file imports from its own room and
//! from rooms further down; `tests/files_import_only_from_rooms_below.rs` holds it to that.
//!
//! - `builder`: settings, and the start
//! - `handle`: a running server, and its end
//! - `routes`: HTTP: connections, paths, origins, and which path is answered by what
//! - `shared`: one call at a time, if the gate admits it
//! - `students`: the calls of their applications, old and new; visits, aliases, groups; preview users
//! - `flags`: features that some students are shown, with their lists and files
//! - `experiments`: creating, updating, showing, moving between states, counting; lists and files
//! - `assignment`: which condition a student gets: draws, strata, pools, queues
//! - `segments`: named sets of students, what uses them, and whom a list takes in
//! - `metrics`: what applications log, and what experiments ask of it
//! - `accounts`: who may call what, settings, the log of deeds
//! - `core`: a call as a route is asked it, and what an answer may touch: world, journal, clock, ids
//! - `contexts`: what applications offer to experiments
//! - `world`: all that is stored, in tables, and the journal that keeps it on disk
//! - `error`: why a server does not start
//! - `wire`: words, bodies and their forms, times, tokens, bad answers

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
mod shared;
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
