//! [`FieldPath`]: the way to a field of a value.

use serde_json::Value;

const MAX_NAMES: usize = 16;
const MAX_BYTES: usize = 1024;

/// The names on the way to a field, from the outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldPath(Vec<Name>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Name {
    Text(String),
    /// Every element of a list, or every field of an object.
    Each,
}

impl FieldPath {
    /// Reads `a.b`, where `*` is each element, or a JSON pointer. The error says what is wrong.
    pub(crate) fn parse(path: &str) -> Result<Self, String> {
        if path.len() > MAX_BYTES {
            return Err("the path of a field is longer than 1024 bytes".to_owned());
        }
        let names: Vec<Name> = match path.strip_prefix('/') {
            Some(pointer) => pointer.split('/').map(unescaped).collect::<Result<_, _>>()?,
            None if path.is_empty() => Vec::new(),
            None => path.split('.').map(plain).collect::<Result<_, _>>()?,
        };
        if names.len() > MAX_NAMES {
            return Err("the path of a field has more than 16 names".to_owned());
        }
        Ok(FieldPath(names))
    }

    /// The path with one more name, which is taken as it is.
    pub(crate) fn child(&self, name: &str) -> Result<Self, String> {
        if self.0.len() == MAX_NAMES {
            return Err("the path of a field has more than 16 names".to_owned());
        }
        let names = self.0.iter().cloned().chain([Name::Text(name.to_owned())]);
        Ok(FieldPath(names.collect()))
    }

    pub(crate) fn has_wildcard(&self) -> bool {
        self.0.contains(&Name::Each)
    }

    /// The field, if the value has it. Of several, the first.
    pub(crate) fn find<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        let mut found = value;
        for name in &self.0 {
            found = match name {
                Name::Text(name) => child_of(found, name)?,
                Name::Each => return None,
            };
        }
        Some(found)
    }

    /// All fields, in the order of the value; at most `limit`.
    pub(crate) fn find_all<'a>(&self, value: &'a Value, limit: usize) -> Vec<&'a Value> {
        let mut found = vec![value];
        for name in &self.0 {
            let next = found.into_iter().flat_map(|value| -> Box<dyn Iterator<Item = &'a Value>> {
                match (name, value) {
                    (Name::Text(name), value) => Box::new(child_of(value, name).into_iter()),
                    (Name::Each, Value::Array(elements)) => Box::new(elements.iter()),
                    (Name::Each, Value::Object(fields)) => Box::new(fields.values()),
                    (Name::Each, _) => Box::new(std::iter::empty()),
                }
            });
            found = next.take(limit).collect();
        }
        found
    }
}

fn child_of<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    match value {
        Value::Object(fields) => fields.get(name),
        Value::Array(elements) => {
            // As in a JSON pointer: digits without zeros before them.
            let is_position =
                name.bytes().all(|byte| byte.is_ascii_digit()) && (name == "0" || !name.starts_with('0'));
            elements.get(name.parse::<usize>().ok().filter(|_| is_position)?)
        }
        _ => None,
    }
}

fn plain(name: &str) -> Result<Name, String> {
    match name {
        "" => {
            Err("the path of a field has an empty name: write `a.b`, or a JSON pointer as `/a/b`".to_owned())
        }
        "*" => Ok(Name::Each),
        name => Ok(Name::Text(name.to_owned())),
    }
}

fn unescaped(name: &str) -> Result<Name, String> {
    let mut parts = name.split('~');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (character, rest) = match part.as_bytes().first() {
            Some(b'0') => ('~', &part[1..]),
            Some(b'1') => ('/', &part[1..]),
            _ => {
                return Err("a JSON pointer has a `~` without 0 or 1: write `~0` for `~`, and `~1` for `/`"
                    .to_owned());
            }
        };
        text.push(character);
        text.push_str(rest);
    }
    Ok(Name::Text(text))
}
