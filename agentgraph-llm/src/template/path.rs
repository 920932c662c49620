//! A path into a JSON value.

use std::fmt;

use serde_json::Value;

/// The limit of keys in a message.
const NAMED_KEYS: usize = 8;

/// A path into a JSON value, such as `.users[0].name`. Displays as it is written in a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path(Vec<Segment>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    /// A key; if it is a number, also the index of an array.
    Key(String),
    Index(usize),
}

impl Path {
    /// Parses the path at the start of `text`, up to its `$`. Returns it with its length, the `$` included.
    pub(super) fn parse(text: &str) -> Result<(Path, usize), &'static str> {
        let mut steps = Vec::new();
        let mut rest = text;
        loop {
            let (step, length) = match rest.chars().next() {
                Some('$') => return Ok((Path(steps), text.len() - rest.len() + 1)),
                Some('.') => dotted(rest)?,
                Some('[') => bracketed(rest)?,
                Some('\n') | None => return Err("it is not closed"),
                Some(_) => return Err("behind a bracket stands a dot, a bracket or the end"),
            };
            steps.push(step);
            rest = &rest[length..];
        }
    }

    /// The value at the path.
    pub fn get<'v>(&self, root: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(root, |value, step| step.of(value))
    }

    /// The place and reason where the path leads to nothing or to `null`, without any value in the text.
    pub(super) fn why_missing(&self, root: &Value) -> Option<String> {
        let mut value = root;
        for (depth, step) in self.0.iter().enumerate() {
            match step.of(value) {
                Some(inner) => value = inner,
                None => {
                    let reached = PathPrefix(&self.0[..depth]);
                    return Some(format!("`db{self}`: `db{reached}` {}", step.why_not(value)));
                }
            }
        }
        value.is_null().then(|| format!("`db{self}`: it is null"))
    }
}

fn dotted(text: &str) -> Result<(Segment, usize), &'static str> {
    let key = &text[1..];
    let key = &key[..key.find(['.', '[', '$', '\n']).unwrap_or(key.len())];
    if key.is_empty() {
        let is_open = text.len() == 1 || text[1..].starts_with('\n');
        return Err(if is_open { "it is not closed" } else { "a key is empty" });
    }
    Ok((Segment::Key(key.to_owned()), 1 + key.len()))
}

fn bracketed(text: &str) -> Result<(Segment, usize), &'static str> {
    const WRONG: &str = "between brackets stands an index or a key in quotes";
    let inner = &text[1..];
    let (step, length) = if inner.starts_with('"') {
        let mut keys = serde_json::Deserializer::from_str(inner).into_iter::<String>();
        let key = keys.next().and_then(Result::ok).ok_or(WRONG)?;
        (Segment::Key(key), keys.byte_offset())
    } else {
        let digits = inner.len() - inner.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        (Segment::Index(inner[..digits].parse().map_err(|_| WRONG)?), digits)
    };
    if inner[length..].starts_with(']') { Ok((step, length + 2)) } else { Err("a bracket is not closed") }
}

impl Segment {
    fn of<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        match (self, value) {
            (Segment::Key(key), Value::Object(map)) => map.get(key),
            (Segment::Key(key), Value::Array(items)) => items.get(key.parse::<usize>().ok()?),
            (Segment::Index(index), Value::Array(items)) => items.get(*index),
            _ => None,
        }
    }

    fn why_not(&self, value: &Value) -> String {
        let is_index = match self {
            Segment::Key(key) => key.parse::<usize>().is_ok(),
            Segment::Index(_) => true,
        };
        match value {
            Value::Object(map) if matches!(self, Segment::Key(_)) => match map.len() {
                0 => "is empty".to_owned(),
                more if more > NAMED_KEYS => {
                    format!("has only {}, and {} more", keys(map), more - NAMED_KEYS)
                }
                _ => format!("has only {}", keys(map)),
            },
            Value::Object(_) => "is an object".to_owned(),
            Value::Array(items) if is_index => format!("has {} items", items.len()),
            Value::Array(_) => "is an array".to_owned(),
            Value::Null => "is null".to_owned(),
            Value::Bool(_) => "is a boolean".to_owned(),
            Value::Number(_) => "is a number".to_owned(),
            Value::String(_) => "is a string".to_owned(),
        }
    }
}

fn keys(map: &serde_json::Map<String, Value>) -> String {
    map.keys().take(NAMED_KEYS).map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Path {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        PathPrefix(&self.0).fmt(out)
    }
}

/// The first segments of a path.
struct PathPrefix<'p>(&'p [Segment]);

impl fmt::Display for PathPrefix<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|step| match step {
            Segment::Index(index) => write!(out, "[{index}]"),
            Segment::Key(key) if key.is_empty() || key.contains(['.', '[', '$', '\n']) => {
                write!(out, "[{}]", Value::from(key.as_str()))
            }
            Segment::Key(key) => write!(out, ".{key}"),
        })
    }
}
