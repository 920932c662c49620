//! An object in a wire format. Its values are raw JSON, while those of [`RawJson`] in a checkpoint are
//! strings.

use std::fmt;

use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{Extra, RawJson};

/// A value in a wire format: raw JSON, where [`RawJson`] itself would be a string.
pub(crate) struct WireValue(pub(crate) RawJson);

impl<'de> Deserialize<'de> for WireValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(WireValue(RawJson(raw.into())))
    }
}

/// An object in a wire format: fields in order, each value as raw text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Object(Vec<(String, RawJson)>);

impl Object {
    pub(crate) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
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

    pub(crate) fn retain(&mut self, is_kept: impl Fn(&RawJson) -> bool) {
        self.0.retain(|(_, value)| is_kept(value));
    }

    /// Removes and returns a field if it is a `T`; otherwise leaves it.
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

    /// Joins an earlier view of the same object: what it has and this one lacks is added. Objects are joined
    /// by their fields, and of two lists the longer one counts.
    pub(crate) fn complete_from(&mut self, earlier: Object) {
        for (name, old) in earlier.0 {
            match self.get(&name) {
                None => self.0.push((name, old)),
                Some(new) => {
                    if let Some(joined) = joined(old, new) {
                        self.set(&name, joined);
                    }
                }
            }
        }
    }

    /// Updates counts, such as those of tokens, with later ones: totals replace, and what is missing, null
    /// or zero stays as it was.
    pub(crate) fn update_counts(&mut self, later: Object) {
        for (name, value) in later.0 {
            let inner = || Some((self.get_as::<Object>(&name)?, value.parse::<Object>().ok()?));
            if let Some((mut old, new)) = inner() {
                old.update_counts(new);
                self.set(&name, old.to_json());
            } else if !(value.is_blank() || matches!(value.get(), "0" | "0.0")) || self.get(&name).is_none() {
                self.set(&name, value);
            }
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

/// What replaces the newer of two views of a value, if the older one says more.
fn joined(old: RawJson, new: &RawJson) -> Option<RawJson> {
    if old.is_blank() || old == *new {
        return None;
    }
    if new.is_blank() {
        return Some(old);
    }
    if let (Ok(old), Ok(newer)) = (old.parse::<Object>(), new.parse::<Object>()) {
        let mut all = newer.clone();
        all.complete_from(old);
        return (all != newer).then(|| all.to_json());
    }
    let length = |list: &RawJson| list.parse::<Vec<WireValue>>().ok().map(|items| items.len());
    length(&old).zip(length(new)).is_some_and(|(old, new)| old > new).then_some(old)
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
