//! The program as a person or a script runs it.
#![allow(missing_docs, unreachable_pub)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[cfg(all(unix, feature = "browser"))]
#[path = "../../../shared/browser.rs"]
mod browser;
#[path = "../common/mod.rs"]
mod common;
mod shell;

mod every_error_code_has_its_page;
mod every_sentence_of_the_document_has_its_test;
mod interrupted_and_killed_runs_go_on;
mod looks_at_runs_show_what_happened;
mod models_are_asked_over_their_wires;
#[cfg(all(unix, feature = "browser"))]
mod pages_show_runs_as_they_go;
mod questions_are_answered_one_by_one;
mod runs_score_themselves;
mod settings_that_cannot_be_used_are_refused;
mod submissions_reach_the_server_once;
mod the_page_is_of_this_machine_alone;
