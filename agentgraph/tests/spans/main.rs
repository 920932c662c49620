//! What a subscriber of spans sees of a run. All tests of this program share one subscriber.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;

mod recorded;

mod a_dropped_run_closes_its_spans;
mod a_run_is_traced_to_its_attempts;
mod spans_hold_no_content;
