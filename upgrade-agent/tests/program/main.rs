//! The program as a person or a script runs it.

#[path = "../shell/mod.rs"]
mod shell;

mod ask_prints_one_turn;
mod chat_reads_lines_and_prints_turns;
mod chat_works_at_a_terminal;
mod every_error_code_has_its_page;
mod guide_shows_real_output;
mod killed_chats_lose_nothing_with_a_simulator;
mod killed_chats_lose_nothing_with_an_embedded_server;
mod restate_settings_are_checked;
mod serve_answers_web_clients;
mod the_default_model_is_named_in_one_place;
mod threads_are_listed_and_deleted;
