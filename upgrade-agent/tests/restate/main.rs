//! The program on a real Restate server, with workers and relays in processes of their own.
//!
//! `.ci/restate` fetches the server and runs these tests.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, unreachable_pub, missing_docs)]
#[path = "../../../agentgraph/restate/tests/on_a_server/common/server.rs"]
mod server;
#[path = "../shell/mod.rs"]
mod shell;
mod stage;
mod switch;

mod conversations_are_listed_and_deleted;
mod lost_workers_are_replaced;
mod replies_come_over_a_relay;
mod stopped_turns_end_early;
mod the_commands_of_the_guide_work;
mod turns_end_as_they_end_in_one_process;
