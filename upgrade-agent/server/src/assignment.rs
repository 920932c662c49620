//! Which condition a student gets: rules that read the world alone, and the strata that the draw of some
//! experiments weighs.

pub(crate) mod answer;
pub(crate) mod assign;
pub(crate) mod draw;
mod levels;
mod pools;
mod queue;
pub(crate) mod random;
pub(crate) mod strata;
