//! JSON that is kept as text.
//!
//! A parsed value loses the order of keys, the spelling of numbers and the escapes of strings. A provider's
//! state has to be returned unchanged, so opaque values are kept as [`RawJson`], and unknown fields of an
//! object as [`Extra`]. Both are plain strings in a checkpoint of any format, and raw JSON on the wire.

mod extra;
mod growing;
mod object;
mod pieces;

use std::fmt;
use std::sync::{Arc, LazyLock};

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

pub use extra::Extra;
pub(crate) use growing::{Growing, extension, is_same_json};
pub(crate) use object::{Object, WireValue};
pub(crate) use pieces::{BadPiece, TextPieces};

/// One JSON value as text, valid and otherwise unchanged. Cheap to clone.
///
/// ```
/// use agentgraph_llm::RawJson;
///
/// let input = RawJson::parse_text(r#"{"b":1.0,"a":1e400}"#).unwrap();
/// assert_eq!(input.get(), r#"{"b":1.0,"a":1e400}"#);       // neither order nor numbers change
/// assert!(RawJson::parse_text(r#"{"b":"#).is_err());
/// ```
#[derive(Clone)]
pub struct RawJson(Arc<RawValue>);

impl RawJson {
    /// Takes a text that is one JSON value. White space around it is dropped.
    ///
    /// # Errors
    /// If the text is not JSON.
    pub fn parse_text(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        Ok(RawJson(RawValue::from_string(text.into())?.into()))
    }

    /// Writes a value as JSON.
    ///
    /// # Errors
    /// If the value cannot be written as JSON, for example a map whose keys are not strings.
    pub fn from_value<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        Ok(RawJson(serde_json::value::to_raw_value(value)?.into()))
    }

    /// `{}`
    pub fn empty_object() -> Self {
        static EMPTY: LazyLock<RawJson> = LazyLock::new(|| serde_json::Map::new().into());
        EMPTY.clone()
    }

    /// The text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// Reads the text as a `T`.
    ///
    /// # Errors
    /// If the JSON does not match `T`.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.get())
    }

    /// Whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.get().starts_with('{')
    }

    /// Whether the value says nothing: `null`, `""`, `[]` or `{}`.
    pub(crate) fn is_blank(&self) -> bool {
        let is_blank = |open, close| {
            let inside = self.get().strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
            inside.is_some_and(|inside: &str| inside.trim().is_empty())
        };
        matches!(self.get(), "null" | "\"\"") || is_blank('[', ']') || is_blank('{', '}')
    }

    fn as_raw(&self) -> &RawValue {
        &self.0
    }

    /// A JSON string.
    pub(crate) fn string(text: &str) -> Self {
        serde_json::Value::from(text).into()
    }

    /// A JSON array.
    pub(crate) fn array<'a>(items: impl IntoIterator<Item = &'a RawJson>) -> Self {
        let items: Vec<_> = items.into_iter().map(RawJson::as_raw).collect();
        RawJson::from_value(&items).unwrap_or_else(|_| RawJson(RawValue::NULL.to_owned().into()))
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.get())
    }
}

impl fmt::Display for RawJson {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.get())
    }
}

/// Compares texts: two spellings of one value are not equal.
impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for RawJson {}

impl From<serde_json::Value> for RawJson {
    fn from(value: serde_json::Value) -> Self {
        // A `Value` always has a JSON text, so the `null` is never used.
        RawJson::from_value(&value).unwrap_or_else(|_| RawJson(RawValue::NULL.to_owned().into()))
    }
}

impl From<serde_json::Map<String, serde_json::Value>> for RawJson {
    fn from(map: serde_json::Map<String, serde_json::Value>) -> Self {
        serde_json::Value::Object(map).into()
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.get())
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RawJson::parse_text(String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
