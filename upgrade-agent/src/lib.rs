//! A chat agent for the UpGrade A/B-testing platform, as a library.
//!
//! [`client`] is a client of the HTTP API of an UpGrade server, [`server`] is an embedded UpGrade server,
//! and [`agent`] is the agent: a [`graph`] of five nodes over the [`state`] of a conversation. The
//! [`actions`] change the server, and each of them runs only after the person has said yes, which [`reply`]
//! reads.

pub mod actions;
pub mod agent;
pub mod balance;
pub mod client;
mod glossary;
pub mod graph;
pub mod nodes;
#[doc(inline)]
pub use upgrade_offline_model as offline;
pub mod plan;
mod prompts;
pub mod reply;
mod restores;
pub mod server;
pub mod state;
mod tools;

pub use agent::UpgradeAgent;
