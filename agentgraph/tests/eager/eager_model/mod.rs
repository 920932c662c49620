//! A model of eager runs: random graphs as data, gates that let their tasks finish in a given order, and the
//! expected course of a run.
#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod edits;
pub mod gates;
pub mod model;
pub mod random;
pub mod shape;
