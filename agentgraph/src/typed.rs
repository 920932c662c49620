//! The shell between a state type and the engine, which is compiled once for all of them.
//!
//! The engine knows no state type: it holds an [`AnyState`], takes an [`AnyUpdate`] from a task and asks the
//! [`AnySchema`] of the graph what to do with both. Everything that is generic over a state is here or in the
//! public face: what a further state type adds to a program is this folder and the thin functions that name
//! the types.

pub(crate) mod express;
pub(crate) mod node;
mod ops;
pub(crate) mod state;

pub(crate) use ops::AnySchema;
pub(crate) use state::{AnyState, AnyUpdate, HeldUpdate, Seen, UpdateSlot, other_type};
