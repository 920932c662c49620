//! Workflows: versions, sleeps, and functions that go on where they stopped.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;

mod sleeps_end_when_their_time_has_come;
mod tasks_follow_the_version_they_began_with;
mod workflows_agree_with_langgraph;
mod workflows_go_on_where_they_stopped;
