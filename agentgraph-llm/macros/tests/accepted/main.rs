//! What the macros accept, compiled and run. What they refuse is in `macro_messages.rs`.

mod constants_may_have_any_name;
// Its lints ask whether the items are reachable.
pub mod tools_of_every_kind;
