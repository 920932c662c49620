//! The choice of a student's condition: rules that only read the world, and the strata of stratified
//! experiments.

pub(crate) mod answer;
pub(crate) mod assign;
pub(crate) mod draw;
mod levels;
mod pools;
mod queue;
pub(crate) mod random;
pub(crate) mod strata;
