//! Shared by the tests: servers, workers in processes of their own, graphs, and what these have done.

pub mod graphs;
pub mod marks;
pub mod meter;
pub mod rules;
pub mod server;
pub mod stories;
pub mod worker_process;
