//! The codec of Anthropic's Messages API, and what its calls have beside those of [other wires](../wires).

mod calls_are_posts_with_version_and_betas;
mod errors_are_told_apart_by_code_and_not_by_wording;
mod requests_match_the_messages_api;
mod responses_are_read_without_loss;
