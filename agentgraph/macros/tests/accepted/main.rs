//! What the macros accept, compiled and run. What they refuse is in `macro_messages.rs`.

mod constants_may_have_any_name;
mod nodes_of_every_kind;
mod routes_of_every_kind;
// Its lints ask whether the types are reachable.
pub mod state_attributes_combine;
mod states_that_implement_drop;
mod updates_show_their_values;
