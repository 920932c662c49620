//! Helpers that several test files share. They use only the public API of the engine.
#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod clock;
pub mod later_stories;
pub mod needs;
pub mod pass_story;
pub mod poll;
#[cfg(feature = "encryption")]
pub mod reading;
pub mod saver;
pub mod stories;
pub mod tape;
pub mod thread_bytes;
pub mod words;
