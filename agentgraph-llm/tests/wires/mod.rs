//! One table of behaviours for all wires, through the real HTTP driver against a scripted server.
//!
//! A row is a test that runs with every [`wire::Wire`] of [`wire::WIRES`]. A new wire implements the trait in
//! a file beside `anthropic_messages.rs` and is added to the list there.

mod aimock;
mod anthropic_messages;
mod any_bytes;
mod gemini;
mod openai_chat;
mod openai_responses;
pub(crate) mod server;
mod wire;

mod a_provider_of_ones_own_is_a_codec;
mod aimock_answers_on_every_wire;
mod aimock_deviates_in_known_ways;
mod answers_in_another_form_are_read_or_refused_by_name;
mod bytes_that_the_fuzzers_found_are_read;
mod calls_end_in_time;
mod empty_answers_are_asked_for_once_more;
mod failed_calls_are_retried_only_if_that_can_help;
mod hosts_are_profiles_of_the_wires;
mod keys_are_sent_and_shown_nowhere;
mod requests_are_legal_by_the_types_of_the_sdks;
mod responses_have_what_their_headers_say;
mod streams_are_read_however_they_are_cut;
mod text_cut_between_utf16_units_comes_out_whole;
mod token_counts_are_estimates_if_the_server_cannot_count;
mod views_are_neither_lost_nor_invented;
