//! The repository itself: its sources, pages and scripts.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod comments_fit_110_columns;
mod every_error_code_has_its_page;
mod every_test_file_is_in_a_program;
mod every_test_that_the_guide_names_exists;
mod modules_import_only_what_the_map_allows;
mod pages_lead_where_they_say;
mod structs_keep_their_fields_to_their_folder;
mod the_test_command_gets_what_a_machine_lacks;
mod what_an_sdk_hides_is_in_one_file;
