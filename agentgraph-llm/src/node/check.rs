//! The check of an answer's JSON, and the messages to the model about a failed check.

use std::fmt;

use schemars::{JsonSchema, schema_for};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::json::RawJson;
use crate::json_in_text::JsonInText;

/// A kind of JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JsonKind {
    /// `{..}`
    Object,
    /// `[..]`
    Array,
    /// `".."`
    String,
    /// `1.5`
    Number,
    /// `true`, `false`
    Boolean,
}

impl JsonKind {
    fn of(value: &Value) -> Option<JsonKind> {
        match value {
            Value::Object(_) => Some(JsonKind::Object),
            Value::Array(_) => Some(JsonKind::Array),
            Value::String(_) => Some(JsonKind::String),
            Value::Number(_) => Some(JsonKind::Number),
            Value::Bool(_) => Some(JsonKind::Boolean),
            Value::Null => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            JsonKind::Object => "object",
            JsonKind::Array => "array",
            JsonKind::String => "string",
            JsonKind::Number => "number",
            JsonKind::Boolean => "boolean",
        }
    }
}

impl fmt::Display for JsonKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// A check of the last JSON value of an answer.
///
/// ```
/// use agentgraph_llm::JsonCheck;
///
/// let check = JsonCheck::object().required(["answer"]).length(1);
/// assert_eq!(check.read(r#"Well: {"answer": "yes"}."#).unwrap().get(), r#"{"answer": "yes"}"#);
/// assert_eq!(check.read("[1]").unwrap_err(), "The JSON is of the kind array. Answer with a JSON object that has the key \"answer\".");
/// ```
#[derive(Clone, Debug, Default)]
pub struct JsonCheck {
    kind: Option<JsonKind>,
    required: Vec<String>,
    length: Option<usize>,
    typed: Option<TypeCheck>,
}

#[derive(Clone, Debug)]
struct TypeCheck {
    schema: String,
    read: fn(&str) -> Result<(), serde_json::Error>,
}

impl JsonCheck {
    /// Any JSON.
    pub fn any() -> Self {
        JsonCheck::default()
    }

    /// An object.
    pub fn object() -> Self {
        JsonCheck::of(JsonKind::Object)
    }

    /// An array.
    pub fn array() -> Self {
        JsonCheck::of(JsonKind::Array)
    }

    /// A value of the given kind.
    pub fn of(kind: JsonKind) -> Self {
        JsonCheck { kind: Some(kind), ..JsonCheck::default() }
    }

    /// A value that can be read as a `T`. If it cannot, the model gets the reason and the JSON schema of `T`.
    pub fn typed<T: DeserializeOwned + JsonSchema>() -> Self {
        let typed = TypeCheck {
            schema: schema_for!(T).to_value().to_string(),
            read: |json| serde_json::from_str::<T>(json).map(drop),
        };
        JsonCheck { typed: Some(typed), ..JsonCheck::default() }
    }

    /// Requires keys of an object, or of each object in an array.
    pub fn required<K: Into<String>>(mut self, keys: impl IntoIterator<Item = K>) -> Self {
        self.required.extend(keys.into_iter().map(Into::into));
        self
    }

    /// Requires an exact number of entries of an object or an array, or of characters of a string.
    pub fn length(mut self, length: usize) -> Self {
        self.length = Some(length);
        self
    }

    /// The schema of a [typed](Self::typed) check.
    pub(super) fn schema(&self) -> Option<&str> {
        self.typed.as_ref().map(|typed| typed.schema.as_str())
    }

    /// The last JSON value of a text, if it passes the check.
    ///
    /// # Errors
    /// The reason, for the model.
    pub fn read(&self, text: &str) -> Result<RawJson, String> {
        let found = JsonInText::of(text);
        let Some(json) = found.last() else {
            return Err(format!("{} Answer with {}.", no_json(&found), self.wanted()));
        };
        let told = |why: String| match found.broken() {
            Some(broken) => format!("{why} Behind it, JSON breaks off: {broken}."),
            None => why,
        };
        let value: Value = serde_json::from_str(json).map_err(|error| {
            told(format!("The JSON cannot be read: {error}. Answer with {}.", self.wanted()))
        })?;
        self.check(&value, json).map_err(told)?;
        RawJson::parse_text(json).map_err(|error| error.to_string())
    }

    fn check(&self, value: &Value, json: &str) -> Result<(), String> {
        if self.kind.is_some() && JsonKind::of(value) != self.kind {
            let is = JsonKind::of(value).map_or("null", JsonKind::name);
            return Err(format!("The JSON is of the kind {is}. Answer with {}.", self.wanted()));
        }
        self.check_length(value)?;
        self.check_keys(value)?;
        let Some(typed) = &self.typed else { return Ok(()) };
        (typed.read)(json).map_err(|error| {
            format!("The JSON does not fit: {error}. Answer with JSON of this schema: {}", typed.schema)
        })
    }

    fn check_length(&self, value: &Value) -> Result<(), String> {
        let Some(wanted) = self.length else { return Ok(()) };
        let length = match value {
            Value::Object(map) => map.len(),
            Value::Array(items) => items.len(),
            Value::String(text) => text.chars().count(),
            _ => return Err(format!("The JSON has no length. Answer with {}.", self.wanted())),
        };
        let what = if value.is_string() { "characters" } else { "entries" };
        let message = || format!("The JSON has {length} {what}. It must have exactly {wanted}.");
        if length == wanted { Ok(()) } else { Err(message()) }
    }

    fn check_keys(&self, value: &Value) -> Result<(), String> {
        if self.required.is_empty() {
            return Ok(());
        }
        match value {
            Value::Array(items) => items.iter().enumerate().try_for_each(|(n, item)| {
                self.check_object(item).map_err(|why| format!("Item {n} of the array: {why}"))
            }),
            value => self.check_object(value),
        }
    }

    fn check_object(&self, value: &Value) -> Result<(), String> {
        let Value::Object(map) = value else {
            return Err(format!("It is no object. It must have {}.", keys(&self.required)));
        };
        match self.required.iter().find(|key| !map.contains_key(*key)) {
            Some(missing) => {
                Err(format!("The key \"{missing}\" is missing. It must have {}.", keys(&self.required)))
            }
            None => Ok(()),
        }
    }

    fn wanted(&self) -> String {
        let kind = self.kind.map_or("JSON".to_owned(), |kind| format!("a JSON {kind}"));
        match (&self.typed, self.required.is_empty()) {
            (Some(typed), _) => format!("{kind} of this schema: {}", typed.schema),
            (None, false) => format!("{kind} that has {}", keys(&self.required)),
            (None, true) => kind,
        }
    }
}

fn no_json(found: &JsonInText<'_>) -> String {
    match found.broken() {
        Some(broken) => format!("The JSON breaks off: {broken}."),
        None => "There is no JSON in the answer.".to_owned(),
    }
}

fn keys(keys: &[String]) -> String {
    let quoted: Vec<_> = keys.iter().map(|key| format!("\"{key}\"")).collect();
    let noun = if quoted.len() == 1 { "the key" } else { "the keys" };
    format!("{noun} {}", quoted.join(", "))
}
