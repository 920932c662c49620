//! What a record means to the engine, beyond its bytes.

pub(crate) mod bytes;
pub(crate) mod codec;
pub(crate) mod header;
pub(crate) mod json;
pub(crate) mod migrate;
