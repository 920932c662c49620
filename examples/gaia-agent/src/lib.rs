//! A question-answering agent for the GAIA benchmark, as a library.
//!
//! # Rooms
//!
//! The modules, from the top of the house to the bottom. A file imports from its own module and from modules
//! further down; a test of `agentgraph` (`tests/sources`) checks it.
//!
//! - `cli`: the command line of the program
//! - `config`: its settings: flags, environment, `.env`, file
//! - `report`: the figures of a run, as text and as a page
//! - `run`: many questions at once, and the book of runs
//! - `evaluation`: the client of evaluation servers
//! - `trace`: the steps of a question
//! - `offline`: a rule-based model
//! - `agent`: a question in, an answer out
//! - `tools`: the seventeen tools
//! - `settings`: the settings of an agent
//! - `solving`: what is stored of a question
//! - `task`: a question with its file
//! - `cache`: answers of earlier runs
//! - `python`: code of a model, in a process of its own
//! - `answer`: the answer in the text of a model
//! - `net`: HTTP for tools; downloads from public addresses only
//! - `log`: what a run does, without secrets
//! - `files`: files that are replaced whole, and links
//! - `world`: twenty embedded questions, and the servers for them
//! - `score`: whether an answer is right
//! - `question`: a question of the benchmark

#![warn(clippy::too_many_lines)]

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
mod solving;
mod task;
pub mod tools;
pub mod trace;
pub mod world;

pub use agent::GaiaAgent;

/// The programs of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
