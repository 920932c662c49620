//! A durable step is never done again once its result is stored, however its node comes to run again.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, unreachable_pub)]

mod common;

#[path = "durable_steps_are_done_once/calls.rs"]
mod calls;
#[path = "durable_steps_are_done_once/passes.rs"]
mod passes;
#[path = "durable_steps_are_done_once/reruns.rs"]
mod reruns;
#[path = "durable_steps_are_done_once/stored.rs"]
mod stored;
#[path = "durable_steps_are_done_once/world.rs"]
mod world;
