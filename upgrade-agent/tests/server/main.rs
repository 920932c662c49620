//! What the embedded server promises.

#[path = "../../server/tests/fixtures/recording.rs"]
mod recording;
#[path = "../fixtures/stage.rs"]
mod stage;

mod server_assigns_by_the_rules;
mod server_behaves_as_the_tables_say;
mod server_checks_authorization;
mod server_draws_as_recorded;
mod server_excludes_students_as_configured;
mod server_keeps_its_data;
mod server_replays_recordings_of_6_2;
mod server_serves_administrators;
mod server_serves_applications;
mod server_serves_lists_and_segments;
