//! JSON that is kept as the text it came as.
//!
//! A parsed value forgets the order of keys, the spelling of numbers and the escapes of strings. A provider's state
//! must come back to it unchanged, so everything opaque is held as [`RawJson`], and fields that this crate does not
//! know beside known ones as [`Extra`]. Both are plain strings in a checkpoint, whatever its format, and raw JSON on
//! the wire.

use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeOwned, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// One JSON value as text: checked to be JSON, otherwise untouched. Cheap to clone.
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
    /// Takes a text that is one JSON value. White space round it is dropped, all else is kept.
    ///
    /// # Errors
    /// When the text is not JSON.
    pub fn parse_text(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        Ok(RawJson(RawValue::from_string(text.into())?.into()))
    }

    /// Writes a value as JSON.
    ///
    /// # Errors
    /// When the value cannot be JSON, for example a map whose keys are not strings.
    pub fn from_value<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        Ok(RawJson(serde_json::value::to_raw_value(value)?.into()))
    }

    /// `{}`
    pub fn empty_object() -> Self {
        serde_json::Map::new().into()
    }

    /// The text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// Reads the text as a `T`.
    ///
    /// # Errors
    /// When the JSON does not have the shape of `T`.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.get())
    }

    /// Whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.get().starts_with('{')
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

/// Equal texts; two spellings of one value are not equal.
impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for RawJson {}

impl From<serde_json::Value> for RawJson {
    fn from(value: serde_json::Value) -> Self {
        // A `Value` always has a JSON text; `null` only stands in for the impossible.
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

/// Fields of an object that this crate does not know, in their order: `citations` of a text, `caller` of a tool call,
/// or whatever a provider invents next. They go back to the provider behind the known fields.
///
/// ```
/// use agentgraph_llm::{Message, Extra};
/// use serde_json::json;
///
/// let extra = Extra::new().with("cache_control", json!({"type": "ephemeral"}));
/// assert_eq!(extra.get("cache_control").unwrap().get(), r#"{"type":"ephemeral"}"#);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Extra(Vec<(String, RawJson)>);

impl Extra {
    /// No fields.
    pub const fn new() -> Self {
        Extra(Vec::new())
    }

    /// The same with one field more; a field of that name is replaced in its place.
    pub fn with(mut self, name: impl Into<String>, value: impl Into<RawJson>) -> Self {
        self.insert(name, value);
        self
    }

    /// Sets a field; a field of that name is replaced in its place.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<RawJson>) {
        let (name, value) = (name.into(), value.into());
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some(field) => field.1 = value,
            None => self.0.push((name, value)),
        }
    }

    /// The value of a field.
    pub fn get(&self, name: &str) -> Option<&RawJson> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Whether there is no field.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many fields there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The fields in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawJson)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

/// A value on the wire: raw JSON, where [`RawJson`] itself would be a string.
pub(crate) struct OnWire(pub(crate) RawJson);

impl<'de> Deserialize<'de> for OnWire {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(OnWire(RawJson(raw.into())))
    }
}

/// An object on the wire: fields in their order, each value as raw text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Object(Vec<(String, RawJson)>);

impl Object {
    pub(crate) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&RawJson> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    pub(crate) fn get_as<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        self.get(name)?.parse().ok()
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<RawJson> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.remove(at).1)
    }

    /// Takes a field out if it is a `T`, else leaves it.
    pub(crate) fn take_as<T: DeserializeOwned>(&mut self, name: &str) -> Option<T> {
        let value = self.get_as(name)?;
        self.take(name);
        Some(value)
    }

    /// Sets a field; a field of that name is replaced in its place.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<RawJson>) {
        let value = value.into();
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some(field) => field.1 = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<RawJson>) -> Self {
        self.set(name, value);
        self
    }

    pub(crate) fn with_all(mut self, extra: &Extra) -> Self {
        for (name, value) in extra.iter() {
            self.set(name, value.clone());
        }
        self
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &RawJson)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    pub(crate) fn into_extra(self) -> Extra {
        Extra(self.0)
    }

    pub(crate) fn to_json(&self) -> RawJson {
        RawJson::from_value(self).unwrap_or_else(|_| RawJson::empty_object())
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value.as_raw())))
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
        let mut fields = Vec::new();
        while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
            fields.push((name, RawJson(value.into())));
        }
        Ok(Object(fields))
    }
}
