//! A chat agent for the UpGrade A/B-testing platform, as a library.
//!
//! [`client`] speaks the HTTP API of an UpGrade server, [`server`] is an UpGrade server small
//! enough to live inside the agent's own process, and [`agent`] is the agent: a [`graph`] of five
//! nodes over the [`state`] of a conversation. What it can do are its [`actions`], each of which
//! runs only after the person's own yes, which [`reply`] reads.

pub mod actions;
pub mod agent;
pub mod balance;
pub mod client;
mod glossary;
pub mod graph;
pub mod nodes;
pub mod offline;
pub mod plan;
mod prompts;
pub mod reply;
pub mod server;
pub mod state;
mod tools;

pub use agent::UpgradeAgent;
