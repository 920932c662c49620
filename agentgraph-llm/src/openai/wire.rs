//! JSON values that both wires write and read.

use crate::error::{Code, Error, Result};
use crate::json::{BadPiece, Extra, Object, RawJson, WireValue};

pub(super) fn object(kind: &str) -> Object {
    Object::default().with("type", RawJson::string(kind))
}

pub(super) fn array(items: impl IntoIterator<Item = RawJson>) -> RawJson {
    RawJson::array(&items.into_iter().collect::<Vec<_>>())
}

/// Through the number's own type: `0.2_f32` becomes `0.2` and not the nearest double of it.
pub(super) fn number(number: impl serde::Serialize) -> RawJson {
    RawJson::from_value(&number).unwrap_or_else(|_| serde_json::Value::Null.into())
}

pub(super) fn boolean(value: bool) -> RawJson {
    serde_json::Value::Bool(value).into()
}

/// The elements of a list.
pub(super) fn items(raw: &RawJson) -> Option<Vec<RawJson>> {
    let items: Vec<WireValue> = raw.parse().ok()?;
    Some(items.into_iter().map(|item| item.0).collect())
}

/// Removes a field and returns its value, if that is not null.
pub(super) fn take_some(fields: &mut Object, name: &str) -> Option<RawJson> {
    fields.take(name).filter(|value| value.get() != "null")
}

/// A field that is a text with at least one character.
pub(super) fn filled(fields: &Object, name: &str) -> Option<String> {
    fields.get_as::<String>(name).filter(|text| !text.is_empty())
}

pub(super) fn text_of(extra: &Extra, name: &str) -> Option<String> {
    extra.get(name)?.parse().ok()
}

pub(super) fn is_array(raw: &RawJson) -> bool {
    raw.get().starts_with('[')
}

pub(super) fn parse_object(body: &[u8]) -> Result<Object> {
    let text = std::str::from_utf8(body).map_err(|_| undecodable("the answer is not UTF-8", body))?;
    Object::parse(text)
        .map_err(|error| undecodable(&format!("the answer is not a JSON object ({error})"), body))
}

pub(super) fn undecodable(what: &str, body: &[u8]) -> Error {
    let message = format!(
        "{what}, in {} bytes: check that the base URL is that of a server that speaks OpenAI's API",
        body.len()
    );
    Error::new(Code::Decode, message)
}

pub(super) fn broken(what: &str) -> Error {
    Error::new(Code::Decode, format!("the answer has {what}: the server does not follow OpenAI's API"))
}

pub(super) fn bad(piece: BadPiece) -> Error {
    broken(&piece.to_string())
}

/// The levels at which pieces of a value are joined. Below, the newer piece replaces the older one.
const MAX_DEPTH: usize = 64;

/// Joins two states of a value that arrives in pieces: texts are appended, objects and lists grow, and
/// everything else is replaced. Texts are joined as they were written, so that a letter may be cut in two.
pub(super) fn merged(name: &str, old: RawJson, new: RawJson) -> RawJson {
    merged_within(MAX_DEPTH, name, old, new)
}

fn merged_within(depth: usize, name: &str, old: RawJson, new: RawJson) -> RawJson {
    if new.get() == "null" {
        return old;
    }
    if old.is_string() && new.is_string() {
        let replaces = matches!(name, "id" | "type" | "format" | "role" | "name" | "status" | "object");
        return if replaces || old == new { new } else { joined(&old, new) };
    }
    if let (Ok(mut fields), Ok(news)) = (Object::parse(old.get()), Object::parse(new.get())) {
        for (name, value) in news.iter() {
            extend_within(depth, &mut fields, name, value.clone());
        }
        return fields.to_json();
    }
    if is_array(&old) && is_array(&new) {
        return merged_lists(depth, &old, &new);
    }
    new
}

/// Adds a piece to a field.
pub(super) fn extend(fields: &mut Object, name: &str, piece: RawJson) {
    extend_within(MAX_DEPTH, fields, name, piece);
}

fn extend_within(depth: usize, fields: &mut Object, name: &str, piece: RawJson) {
    let value = match fields.get(name) {
        Some(old) if depth > 0 => merged_within(depth - 1, name, old.clone(), piece),
        _ => piece,
    };
    fields.set(name, value);
}

fn joined(old: &RawJson, new: RawJson) -> RawJson {
    let head = old.get().strip_suffix('"').unwrap_or_default();
    let tail = new.get().strip_prefix('"').unwrap_or_default();
    RawJson::parse_text(format!("{head}{tail}")).unwrap_or(new)
}

/// Elements with the same `index` are pieces of one element.
fn merged_lists(depth: usize, old: &RawJson, new: &RawJson) -> RawJson {
    let index = |item: &RawJson| Object::parse(item.get()).ok()?.get_as::<u64>("index");
    let mut all = items(old).unwrap_or_default();
    for item in items(new).unwrap_or_default() {
        let known = index(&item).and_then(|wanted| all.iter().position(|item| index(item) == Some(wanted)));
        match known {
            Some(at) if depth > 0 => all[at] = merged_within(depth - 1, "", all[at].clone(), item),
            Some(at) => all[at] = item,
            None => all.push(item),
        }
    }
    array(all)
}
