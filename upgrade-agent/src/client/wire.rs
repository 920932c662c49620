//! Conversion between JSON and types, for both dialects.
//!
//! Reading is tolerant: a field that is missing, `null` or of another type is empty, because each call
//! returns other fields. Only a missing id is an error. Nothing here sends anything.

mod failure;
mod fields;
mod lists;
mod read;
mod students;
pub(super) mod v62;
mod v65;
mod write;

pub(super) use failure::{short, success};
pub(super) use lists::{ListStep, Side, steps as list_steps};
pub(super) use read::{
    conditions, context_metadata, deleted, enrollment, experiment, experiment_name, experiment_of,
    global_exclusion, health, list, page,
};
pub(super) use students::{aliases, assignment, mark_body, marked, user};
pub(super) use write::create_body;
