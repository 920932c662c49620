//! States: reducers, what the derive makes, schemas and their versions.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;

mod channels_merge_as_declared;
mod derived_state_errors;
mod derived_state_laws;
mod derived_state_reducers;
mod files_name_the_channels_of_a_json_state;
mod inputs_and_outputs_have_their_own_types;
mod json_channels_reduce_like_typed_ones;
mod json_updates_can_be_looked_into;
mod older_states_are_migrated;
mod secret_channels_are_not_shown;
mod steps_do_not_clone_the_state;
mod stored_fields_are_not_lost;
mod sums_and_extremes_fold_every_write;
