//! Kills a process again and again and checks its log. `check.rs` has the rules.
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
