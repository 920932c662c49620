//! [`JsonReducer`]: how a write changes a key.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::functions::JsonFunction;
use super::update::WriteOf;
use super::{keyed, number};
use crate::error::{BoxError, hint, nearest};
use agentgraph_checkpoint::delta::{DeltaWriter, EncodeError};

/// How a write changes a key of a [`JsonState`](super::JsonState).
///
/// In a file it is a word (`"append"`, `"by_id"`), `{"by_id": field}` or `{"with": name}`.
///
/// ```
/// use agentgraph::json_state::JsonReducer;
/// use serde_json::json;
///
/// let reducer: JsonReducer = serde_json::from_value(json!("sum")).unwrap();
/// assert_eq!(reducer, JsonReducer::Sum);
/// assert_eq!(serde_json::to_value(JsonReducer::by_field("name")).unwrap(), json!({ "by_id": "name" }));
/// let error = serde_json::from_value::<JsonReducer>(json!("apend")).unwrap_err();
/// assert!(error.to_string().contains("did you mean `append`?"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum JsonReducer {
    /// The write replaces the value; two writers in a superstep are an error.
    Once,
    /// The last write in task order replaces the value.
    Last,
    /// The value is an array: the items of a written array are appended, and so is any other written value.
    Append,
    /// The value is an object: the entries of a written object replace those with the same key.
    Merge,
    /// The value is a number: written numbers are added. A sum beyond 64 bits is an error.
    Sum,
    /// The least of the value and all writes, numbers or texts. Any write replaces `null`, and a written
    /// `null` changes nothing.
    Min,
    /// The greatest of the value and all writes, like [`Min`](JsonReducer::Min).
    Max,
    /// The value is an array of objects with ids: a written object, or each of a written array, replaces the
    /// item with the same id or is added at the end. [`JsonUpdate::remove`](super::JsonUpdate::remove)
    /// removes items. Stored item by item. Made by [`by_id`](JsonReducer::by_id) or
    /// [`by_field`](JsonReducer::by_field).
    ById {
        /// The field of an item that holds its id, a text.
        field: Cow<'static, str>,
    },
    /// A function changes the value. Made by [`with`](JsonReducer::with).
    With(JsonFunction),
}

/// The words of the reducers in a file.
const WORDS: [&str; 8] = ["once", "last", "append", "merge", "sum", "min", "max", "by_id"];

impl JsonReducer {
    /// Items replace those with the same `id`: [`ById`](JsonReducer::ById).
    ///
    /// ```
    /// use agentgraph::json_state::JsonReducer;
    /// use agentgraph::prelude::*;
    /// use serde_json::json;
    ///
    /// let channels = JsonChannels::new().channel("tasks", json!([]), JsonReducer::by_id());
    /// let mut state = JsonState::initial(&channels);
    /// let plan = json!([{ "id": "a", "done": false }, { "id": "b", "done": false }]);
    /// state.apply(&channels, JsonUpdate::new().set("tasks", plan)).unwrap();
    /// let update = JsonUpdate::new().set("tasks", json!({ "id": "b", "done": true })).remove("tasks", ["a"]);
    /// state.apply(&channels, update).unwrap();
    /// assert_eq!(state["tasks"], json!([{ "id": "b", "done": true }]));
    /// ```
    pub const fn by_id() -> Self {
        JsonReducer::ById { field: Cow::Borrowed("id") }
    }

    /// Items replace those with the same value in `field`: [`ById`](JsonReducer::ById).
    pub fn by_field(field: impl AsRef<str>) -> Self {
        JsonReducer::ById { field: Cow::Owned(field.as_ref().to_owned()) }
    }

    /// A function that changes the value by a write. An error of it fails the superstep with
    /// [`Code::BadValue`](crate::Code::BadValue). It must be pure. The whole value is stored at each change.
    /// The name is part of the graph's fingerprint.
    ///
    /// ```
    /// use agentgraph::json_state::JsonReducer;
    /// use agentgraph::prelude::*;
    /// use serde_json::{Value, json};
    ///
    /// let product = JsonReducer::with("product", |value: &mut Value, write: Value| {
    ///     let factors = value.as_u64().zip(write.as_u64()).ok_or("a factor is a number")?;
    ///     *value = factors.0.checked_mul(factors.1).ok_or("the product is too large")?.into();
    ///     Ok(())
    /// });
    /// let channels = JsonChannels::new().channel("n", json!(2), product);
    /// let mut state = JsonState::initial(&channels);
    /// state.apply(&channels, JsonUpdate::new().set("n", 3).set("n", 7)).unwrap();
    /// assert_eq!(state["n"], 42);
    /// assert!(state.apply(&channels, JsonUpdate::new().set("n", "many")).is_err());
    /// ```
    pub fn with(
        name: impl AsRef<str>,
        function: impl Fn(&mut Value, Value) -> Result<(), BoxError> + Send + Sync + 'static,
    ) -> Self {
        JsonReducer::With(JsonFunction::new(Cow::Owned(name.as_ref().to_owned()), function))
    }

    /// The kind for the graph's fingerprint.
    pub(super) fn kind(&self) -> Cow<'static, str> {
        match self {
            JsonReducer::Once => "once".into(),
            JsonReducer::Last => "last".into(),
            JsonReducer::Append => "append".into(),
            JsonReducer::Merge => "merge".into(),
            JsonReducer::Sum => "sum".into(),
            JsonReducer::Min => "min".into(),
            JsonReducer::Max => "max".into(),
            JsonReducer::ById { field } if field == "id" => "by_id".into(),
            JsonReducer::ById { field } => format!("by_id:{field}").into(),
            JsonReducer::With(function) => format!("with:{}", function.name()).into(),
        }
    }

    /// The initial value if a file names none.
    pub(super) fn usual_value(&self) -> Value {
        match self {
            JsonReducer::Append | JsonReducer::ById { .. } => json!([]),
            JsonReducer::Merge => json!({}),
            JsonReducer::Sum => json!(0),
            _ => Value::Null,
        }
    }

    /// The reason why `compile()` refuses a key with this reducer and this initial value.
    pub(super) fn problem(&self, initial: &Value) -> Option<String> {
        match self {
            JsonReducer::ById { field } if field.is_empty() => {
                Some("its reducer `by_id` needs the name of a field, and this one is empty".to_owned())
            }
            JsonReducer::With(function) if function.name().is_empty() => {
                Some("its reducer is a function, which needs a name, and this one is empty".to_owned())
            }
            JsonReducer::With(function) if !function.is_known() => Some(format!(
                "it is reduced by the function `{}`, which was read by name only: add it with \
                 `.with_functions(..)` to the channels",
                function.name()
            )),
            _ => self.refuses(initial).map(|problem| format!("the initial value is wrong: {problem}")),
        }
    }

    /// The reason why the key cannot have this value before a write, with a remedy. It does not show the
    /// value, which may be secret.
    pub(super) fn refuses(&self, value: &Value) -> Option<String> {
        let needs = match (self, value) {
            (JsonReducer::Append, Value::Array(_))
            | (JsonReducer::Merge, Value::Object(_))
            | (JsonReducer::Sum, Value::Number(_))
            | (JsonReducer::Min | JsonReducer::Max, Value::Number(_) | Value::String(_) | Value::Null)
            | (JsonReducer::Once | JsonReducer::Last | JsonReducer::With(_), _) => return None,
            (JsonReducer::ById { field }, Value::Array(items)) => {
                return match keyed::admit(items.clone(), field) {
                    Ok(admitted) if admitted.len() == items.len() => None,
                    Ok(_) => Some(format!("two of its items have the same `{field}`")),
                    Err(problem) => Some(problem),
                };
            }
            (JsonReducer::Append | JsonReducer::ById { .. }, _) => "an array, such as `[]`",
            (JsonReducer::Merge, _) => "an object, such as `{}`",
            (JsonReducer::Sum, _) => "a number, such as `0`",
            (JsonReducer::Min | JsonReducer::Max, _) => "a number, a text, or `null` for none yet",
        };
        Some(format!("it is {}, and `{}` needs {needs}", kind_of(value), self.kind()))
    }

    /// Changes the value by a write, and records the change.
    ///
    /// # Errors
    /// If the write does not fit. A function may have changed the value then; everything else has not.
    pub(super) fn fold(
        &self,
        value: &mut Value,
        write: WriteOf,
        delta: Option<&mut DeltaWriter>,
    ) -> Result<(), Fault> {
        let write = match write {
            WriteOf::Reduce(write) => write,
            WriteOf::Overwrite(new) => return self.overwrite(value, new, delta),
            WriteOf::Remove(keys) => return self.remove(value, &keys, delta),
        };
        match (self, &mut *value) {
            (JsonReducer::Append, Value::Array(items)) => return append(items, write, delta),
            (JsonReducer::Merge, Value::Object(entries)) => return merge(entries, write, delta),
            (JsonReducer::ById { field }, Value::Array(items)) => {
                let new = if let Value::Array(new) = write { new } else { vec![write] };
                return keyed::upsert(items, field, new, delta);
            }
            (JsonReducer::Append | JsonReducer::ById { .. }, _) => {
                return Err(Fault::misfit("it holds no array to add to"));
            }
            (JsonReducer::Merge, _) => return Err(Fault::misfit("it holds no object to merge into")),
            (JsonReducer::Once | JsonReducer::Last, value) => *value = write,
            (JsonReducer::Sum, value) => *value = number::sum(value, &write)?,
            (JsonReducer::Min, value) => replace_if(value, write, Ordering::Less)?,
            (JsonReducer::Max, value) => replace_if(value, write, Ordering::Greater)?,
            (JsonReducer::With(function), value) => function.call(value, write)?,
        }
        delta.map_or(Ok(()), |delta| Ok(delta.set(value)?))
    }

    /// Changes an overwriting value by a later write to what the two make of any value, one after the other.
    pub(super) fn fold_overwriting(&self, value: &mut Value, later: WriteOf) -> Result<(), Fault> {
        let overwriting = value.take();
        self.overwrite(value, overwriting, None)?;
        self.fold(value, later, None)
    }

    fn overwrite(&self, value: &mut Value, new: Value, delta: Option<&mut DeltaWriter>) -> Result<(), Fault> {
        let new = match (self, new) {
            (JsonReducer::ById { field }, Value::Array(items)) => keyed::admit(items, field)?.into(),
            (_, new) => match self.refuses(&new) {
                Some(problem) => return Err(Fault::Misfit(format!("the overwriting value: {problem}"))),
                None => new,
            },
        };
        if let Some(delta) = delta {
            self.record_whole(&new, delta)?;
        }
        *value = new;
        Ok(())
    }

    fn remove(
        &self,
        value: &mut Value,
        keys: &[String],
        delta: Option<&mut DeltaWriter>,
    ) -> Result<(), Fault> {
        match (self, value) {
            (JsonReducer::ById { field }, Value::Array(items)) => keyed::remove(items, field, keys, delta),
            (JsonReducer::ById { .. }, _) => Err(Fault::misfit("it holds no array to remove from")),
            _ => Err(Fault::Misfit(format!(
                "its reducer is `{}`, and only items of `by_id` can be removed",
                self.kind()
            ))),
        }
    }

    /// Records a whole value, so that later changes of a part can be stored as such.
    pub(super) fn record_whole(&self, value: &Value, delta: &mut DeltaWriter) -> Result<(), EncodeError> {
        match (self, value) {
            (JsonReducer::Merge, Value::Object(entries)) => delta.entries(entries.iter()),
            (JsonReducer::ById { field }, Value::Array(items)) => {
                // Items of stored bytes may lack a key; a list with one is stored as it is.
                let keys: Result<Vec<&str>, String> =
                    items.iter().map(|item| keyed::key_of(item, field)).collect();
                match keys {
                    Ok(keys) => delta.keyed(keys.into_iter().zip(items)),
                    Err(_) => delta.set(value),
                }
            }
            _ => delta.set(value),
        }
    }
}

/// Why a write was not applied.
pub(super) enum Fault {
    /// It does not fit; with the reason.
    Misfit(String),
    /// The change cannot be stored.
    Encode(EncodeError),
}

impl Fault {
    fn misfit(problem: &str) -> Self {
        Fault::Misfit(problem.to_owned())
    }
}

impl From<String> for Fault {
    fn from(problem: String) -> Self {
        Fault::Misfit(problem)
    }
}

impl From<EncodeError> for Fault {
    fn from(error: EncodeError) -> Self {
        Fault::Encode(error)
    }
}

fn append(items: &mut Vec<Value>, write: Value, delta: Option<&mut DeltaWriter>) -> Result<(), Fault> {
    match write {
        Value::Array(mut more) => {
            delta.map_or(Ok(()), |delta| delta.append(&more))?;
            items.append(&mut more);
        }
        one => {
            delta.map_or(Ok(()), |delta| delta.append(std::slice::from_ref(&one)))?;
            items.push(one);
        }
    }
    Ok(())
}

fn merge(
    entries: &mut Map<String, Value>,
    write: Value,
    delta: Option<&mut DeltaWriter>,
) -> Result<(), Fault> {
    let Value::Object(more) = write else {
        return Err(Fault::misfit("only an object can be merged into it"));
    };
    if let Some(delta) = delta {
        more.iter().try_for_each(|(key, value)| delta.entry(key, value, entries.get(key)))?;
    }
    entries.extend(more);
    Ok(())
}

/// Replaces the value by a write that is on the `wanted` side of it.
fn replace_if(value: &mut Value, write: Value, wanted: Ordering) -> Result<(), Fault> {
    let replaces = match (&*value, &write) {
        (_, Value::Null) => false,
        (Value::Null, Value::Number(_) | Value::String(_)) => true,
        (value, write) => match number::compare(write, value) {
            Some(ordering) => ordering == wanted,
            None => {
                let (write, value) = (kind_of(write), kind_of(value));
                return Err(Fault::Misfit(format!("{write} cannot be compared with {value}")));
            }
        },
    };
    if replaces {
        *value = write;
    }
    Ok(())
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

impl Serialize for JsonReducer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            JsonReducer::With(function) => json!({ "with": function.name() }).serialize(serializer),
            JsonReducer::ById { field } if field != "id" => json!({ "by_id": field }).serialize(serializer),
            _ => serializer.serialize_str(&self.kind()),
        }
    }
}

/// A function is read without its code: see
/// [`JsonChannels::with_functions`](super::JsonChannels::with_functions).
impl<'de> Deserialize<'de> for JsonReducer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(&Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

fn read(form: &Value) -> Result<JsonReducer, String> {
    let entry = form.as_object().filter(|form| form.len() == 1).and_then(|form| form.iter().next());
    match (form, entry) {
        (Value::String(word), _) => of_word(word),
        (_, Some((word, Value::String(name)))) if name.is_empty() => {
            Err(format!("a reducer `{word}` needs a name, and this one is empty"))
        }
        (_, Some((word, Value::String(field)))) if word == "by_id" => {
            Ok(JsonReducer::by_field(field.clone()))
        }
        (_, Some((word, Value::String(name)))) if word == "with" => {
            Ok(JsonReducer::With(JsonFunction::named(name.clone())))
        }
        _ => Err("a reducer is a word, `{\"by_id\": field}` or `{\"with\": name}`".to_owned()),
    }
}

fn of_word(word: &str) -> Result<JsonReducer, String> {
    Ok(match word {
        "once" => JsonReducer::Once,
        "last" => JsonReducer::Last,
        "append" => JsonReducer::Append,
        "merge" => JsonReducer::Merge,
        "sum" => JsonReducer::Sum,
        "min" => JsonReducer::Min,
        "max" => JsonReducer::Max,
        "by_id" => JsonReducer::by_id(),
        _ => {
            let remedy = match nearest(word, WORDS.into_iter()) {
                None => format!(": use one of {}", WORDS.join(", ")),
                near => hint(near),
            };
            return Err(format!("there is no reducer `{word}`{remedy}"));
        }
    })
}
