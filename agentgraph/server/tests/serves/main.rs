//! The server on real sockets: what LangGraph's clients find there.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[cfg(all(unix, feature = "browser"))]
#[path = "../../../../examples/shared/browser.rs"]
mod browser;

#[cfg(all(unix, feature = "postgres"))]
#[path = "../../../tests/postgres_server/mod.rs"]
mod postgres_server;

mod a_caller_has_a_limited_share;
mod a_failing_store_loses_no_end;
mod a_killed_server_leaves_no_ghost_runs;
mod a_thread_has_one_log_of_events;
mod callers_see_only_what_is_theirs;
mod calls_end_as_on_langgraph;
mod clients_of_langgraph_work_unmodified;
mod commands_are_answered_as_the_protocol_says;
mod common;
mod counts_have_no_ids;
mod errors_have_a_detail_and_the_right_status;
mod events_and_commands_share_a_websocket;
mod every_route_is_described;
mod hostile_requests_are_refused;
mod items_are_shared_with_graphs;
mod messages_have_langchains_shape;
#[cfg(target_os = "linux")]
mod open_streams_take_little_memory;
#[cfg(all(unix, feature = "browser"))]
mod page;
mod pages_of_other_sites_are_kept_out;
#[cfg(all(unix, feature = "postgres"))]
mod replicas_share_a_database;
mod runs_of_a_thread_follow_its_strategy;
mod runs_stream_in_every_mode;
mod secrets_are_never_shown;
mod states_can_be_read_changed_and_forked;
mod streams_are_resumed_without_loss;
mod subgraphs_are_drawn_as_langgraph_does;
mod threads_and_assistants_are_found;
#[cfg(feature = "jwt")]
mod tokens_are_checked_by_the_keys_of_their_issuer;
