//! What needs neither a provider nor a graph.
#![allow(missing_docs, unreachable_pub)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod models;
mod schemas;
