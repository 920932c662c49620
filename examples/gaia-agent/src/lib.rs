//! A question-answering agent for the GAIA benchmark, as a library.

pub mod agent;
pub mod answer;
pub mod cache;
pub mod evaluation;
mod files;
pub mod log;
pub mod net;
pub mod offline;
pub mod python;
pub mod question;
pub mod report;
pub mod run;
pub mod score;
pub mod settings;
pub mod tools;
pub mod trace;
pub mod world;

pub use agent::GaiaAgent;

/// The programs of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
