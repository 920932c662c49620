//! The codec of Anthropic's Messages API, and what its calls have beside those of [other wires](../wires).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, unreachable_pub)]

#[path = "../wires/server.rs"]
mod server;

mod calls_are_posts_with_version_and_betas;
mod errors_are_told_apart_by_code_and_not_by_wording;
mod requests_match_the_messages_api;
mod responses_are_read_without_loss;
