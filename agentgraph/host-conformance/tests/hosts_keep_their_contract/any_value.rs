//! [`AnyValue`]: any MessagePack, so that faulty hosts can change parts of it.

use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Clone, Debug, PartialEq)]
pub enum AnyValue {
    Nil,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
    List(Vec<AnyValue>),
    Map(Vec<(AnyValue, AnyValue)>),
}

impl AnyValue {
    /// Leaves out the checksum of bytes that are stored as they are.
    pub fn read(bytes: &[u8]) -> Self {
        let value = if bytes.first() == Some(&0xd6) { &bytes[6..] } else { bytes };
        rmp_serde::from_slice(value).unwrap()
    }

    pub fn write(&self) -> Vec<u8> {
        rmp_serde::to_vec_named(self).unwrap()
    }

    /// Removes an entry of a map.
    pub fn remove(&mut self, key: &str) {
        if let AnyValue::Map(entries) = self {
            entries.retain(|(name, _)| *name != AnyValue::Text(key.to_owned()));
        }
    }

    /// An entry of a map, if it is there.
    pub fn entry(&mut self, key: &str) -> Option<&mut AnyValue> {
        let AnyValue::Map(entries) = self else { return None };
        entries.iter_mut().find(|(name, _)| *name == AnyValue::Text(key.to_owned())).map(|(_, value)| value)
    }
}

impl Serialize for AnyValue {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            AnyValue::Nil => to.serialize_unit(),
            AnyValue::Bool(value) => to.serialize_bool(*value),
            AnyValue::Unsigned(value) => to.serialize_u64(*value),
            AnyValue::Signed(value) => to.serialize_i64(*value),
            AnyValue::Float(value) => to.serialize_f64(*value),
            AnyValue::Text(value) => to.serialize_str(value),
            AnyValue::Bytes(value) => to.serialize_bytes(value),
            AnyValue::List(items) => {
                let mut list = to.serialize_seq(Some(items.len()))?;
                items.iter().try_for_each(|item| list.serialize_element(item))?;
                list.end()
            }
            AnyValue::Map(entries) => {
                let mut map = to.serialize_map(Some(entries.len()))?;
                entries.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for AnyValue {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = AnyValue;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<AnyValue, E> {
        Ok(AnyValue::Nil)
    }

    fn visit_none<E>(self) -> Result<AnyValue, E> {
        Ok(AnyValue::Nil)
    }

    fn visit_bool<E>(self, value: bool) -> Result<AnyValue, E> {
        Ok(AnyValue::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<AnyValue, E> {
        Ok(AnyValue::Unsigned(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<AnyValue, E> {
        Ok(AnyValue::Signed(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<AnyValue, E> {
        Ok(AnyValue::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<AnyValue, E> {
        Ok(AnyValue::Text(value.to_owned()))
    }

    fn visit_bytes<E>(self, value: &[u8]) -> Result<AnyValue, E> {
        Ok(AnyValue::Bytes(value.to_vec()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<AnyValue, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = from.next_element()? {
            items.push(item);
        }
        Ok(AnyValue::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<AnyValue, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = from.next_entry()? {
            entries.push(entry);
        }
        Ok(AnyValue::Map(entries))
    }
}
