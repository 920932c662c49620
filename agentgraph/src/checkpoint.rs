//! Checkpoints.
pub mod delta;
