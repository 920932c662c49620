//! A chat agent for the UpGrade A/B-testing platform, as a library.
//!
//! [`client`] speaks the HTTP API of an UpGrade server, [`server`] is an UpGrade server small
//! enough to live inside the agent's own process.

pub mod client;
pub mod server;
