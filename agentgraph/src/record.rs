//! What a record means to the engine, beyond its bytes.

pub(crate) mod json;
pub(crate) mod migrate;
