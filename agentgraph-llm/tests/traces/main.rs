//! What a subscriber of `tracing` gets.
//!
//! Each test has a subscriber for its thread. The tests without one are in other programs, because a process
//! decides once for all threads whether a span is heard.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod logs_hold_neither_key_nor_conversation;
mod spans_name_each_call_and_hold_no_content;
