//! The embedded server, beside recordings of the real one, its clients, and models of its rules.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../fixtures/assignment_model.rs"]
mod assignment_model;
#[path = "../fixtures/recording.rs"]
mod recording;
#[path = "../fixtures/update_model.rs"]
mod update_model;

mod answers_updates_as_recorded;
mod assigns_as_a_model_does;
mod draws_are_a_function_of_ids_and_weights;
mod replays_recordings;
mod serves_feature_flags;
mod serves_javascript_clients;
mod serves_the_python_client;
mod updates_as_a_model_does;
mod withstands_hostile_input;
