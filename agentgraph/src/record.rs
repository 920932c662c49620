//! The content of records in the engine's types.

pub(crate) mod blob;
pub(crate) mod bytes;
pub(crate) mod codec;
#[cfg(feature = "testing")]
pub(crate) mod content;
pub(crate) mod header;
pub(crate) mod json;
pub(crate) mod migrate;
pub(crate) mod once;
pub(crate) mod unordered;
