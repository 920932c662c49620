//! A process that is killed again and again, and what its log must show: see `check.rs` for the rules.
#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod chance;
pub mod check;
pub mod child;
pub mod faults;
pub mod log;
pub mod mark;
pub mod plans;
pub mod points;
pub mod race;
pub mod stories;
pub mod trial;
pub mod watched;
