//! What the client of UpGrade promises.

#[path = "../../server/tests/fixtures/recording.rs"]
mod recording;
#[path = "../fixtures/scripted.rs"]
mod scripted;

mod client_changes_lists;
mod client_distinguishes_errors;
mod client_keeps_secrets;
mod client_serves_students;
mod client_works_with_servers_from_6_3;
mod client_works_with_servers_up_to_6_2;
