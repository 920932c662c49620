//! The arguments of one call, read one by one.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor, value::Error as NoValue};
use serde::forward_to_deserialize_any;
use serde_json::value::RawValue;

use crate::json::RawJson;
use crate::tool::ToolError;

/// A type that a model can give as an argument: one with `Deserialize` and `JsonSchema`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a tool",
    label = "neither an argument nor an injected value",
    note = "an argument has `#[derive(serde::Deserialize, schemars::JsonSchema)]`, so that a model can give it",
    note = "a value from the call has `#[inject]` before its name, and its type implements `FromToolCall`"
)]
pub trait Argument: DeserializeOwned + JsonSchema + Send {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send> Argument for T {}

/// How an argument of a type is described and read. Only the function that makes it has a bound on the type,
/// so that a type that is no argument is one error of the compiler.
pub struct Access<T> {
    pub(super) schema: fn(&mut SchemaGenerator) -> Schema,
    parse: fn(&RawValue) -> Result<T, serde_json::Error>,
    of_nothing: fn() -> Option<T>,
}

/// The access to an argument of a type.
pub fn argument<T: Argument>() -> Access<T> {
    Access {
        schema: |generator| generator.subschema_for::<T>(),
        parse: |value| serde_json::from_str(value.get()),
        of_nothing: || T::deserialize(Nothing).ok(),
    }
}

impl<T> Access<T> {
    /// Whether the argument may be left out: its type has a value for nothing, as an `Option` has.
    pub(super) fn is_optional(&self) -> bool {
        (self.of_nothing)().is_some()
    }
}

/// The arguments that a model has given, and what is wrong with them.
pub struct Given<'a> {
    values: Vec<(String, &'a RawValue)>,
    /// The names of the tool's arguments.
    known: &'static [&'static str],
    problems: Vec<String>,
}

impl<'a> Given<'a> {
    /// Reads the object, and notes unknown and repeated names.
    ///
    /// # Errors
    /// If the input is not an object.
    pub fn read(input: &'a RawJson, known: &'static [&'static str]) -> Result<Self, ToolError> {
        if !input.is_object() {
            return Err(ToolError::invalid_arguments("they must be a JSON object"));
        }
        let values = pairs(input.get()).map_err(ToolError::invalid_arguments)?;
        let mut given = Given { values, known, problems: Vec::new() };
        given.problems = given.wrong_names();
        Ok(given)
    }

    fn wrong_names(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (index, (name, _)) in self.values.iter().enumerate() {
            if !self.known.contains(&&**name) {
                problems.push(format!("there is no argument `{name}`; {}", self.choices()));
            } else if self.values[..index].iter().any(|(earlier, _)| earlier == name) {
                problems.push(format!("`{name}` is given twice"));
            }
        }
        problems
    }

    fn choices(&self) -> String {
        if self.known.is_empty() {
            return "the tool takes none".to_owned();
        }
        let names: Vec<_> = self.known.iter().map(|name| format!("`{name}`")).collect();
        format!("the tool takes {}", names.join(", "))
    }

    /// Reads one argument. `None` if it is wrong; the problem is noted.
    pub fn take<T>(&mut self, access: Access<T>, name: &str) -> Option<T> {
        match self.value(name) {
            Some(value) => self.parse(access, name, value),
            None => {
                let value = (access.of_nothing)();
                if value.is_none() {
                    self.problems.push(format!("`{name}` is missing"));
                }
                value
            }
        }
    }

    /// Reads one argument that may be left out. `None` if it is wrong; the problem is noted.
    pub fn take_or<T>(&mut self, access: Access<T>, name: &str, default: impl FnOnce() -> T) -> Option<T> {
        match self.value(name) {
            Some(value) => self.parse(access, name, value),
            None => Some(default()),
        }
    }

    fn value(&self, name: &str) -> Option<&'a RawValue> {
        self.values.iter().find(|(given, _)| given == name).map(|(_, value)| *value)
    }

    fn parse<T>(&mut self, access: Access<T>, name: &str, value: &RawValue) -> Option<T> {
        (access.parse)(value)
            .inspect_err(|error| self.problems.push(format!("`{name}`: {}", without_position(error))))
            .ok()
    }

    /// Checks that nothing was wrong.
    ///
    /// # Errors
    /// All problems, for the model.
    pub fn check(self) -> Result<(), ToolError> {
        if self.problems.is_empty() { Ok(()) } else { Err(self.into_error()) }
    }

    /// All problems as one error for the model.
    pub fn into_error(self) -> ToolError {
        ToolError::invalid_arguments(self.problems.join("; "))
    }
}

/// The error's text without the line and column, which count from the start of the argument and not of the
/// text that the model wrote.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&*position).map(str::to_owned).unwrap_or(text)
}

/// Deserialises an `Option` as `None` and fails for any other type.
struct Nothing;

impl<'de> Deserializer<'de> for Nothing {
    type Error = NoValue;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, NoValue> {
        Err(serde::de::Error::custom("missing"))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NoValue> {
        visitor.visit_none()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Reads an object as pairs, so that repeated names are seen.
pub(crate) fn pairs(object: &str) -> serde_json::Result<Vec<(String, &RawValue)>> {
    serde_json::Deserializer::from_str(object).deserialize_map(Pairs)
}

struct Pairs;

impl<'de> Visitor<'de> for Pairs {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
            pairs.push((name, value));
        }
        Ok(pairs)
    }
}
