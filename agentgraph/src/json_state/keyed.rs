//! A JSON array whose items have keys, for [`JsonReducer::ById`](super::JsonReducer::ById).

use std::collections::HashMap;

use serde_json::Value;

use super::reducer::Fault;
use agentgraph_checkpoint::delta::DeltaWriter;

/// The key of an item.
///
/// # Errors
/// If the item has none.
pub(super) fn key_of<'a>(item: &'a Value, field: &str) -> Result<&'a str, String> {
    item.get(field)
        .and_then(Value::as_str)
        .ok_or_else(|| format!("each of its items needs a text in `{field}`, which is its id"))
}

fn position(items: &[Value], field: &str, key: &str) -> Option<usize> {
    items.iter().rposition(|item| key_of(item, field) == Ok(key))
}

/// Replaces the items with the keys of `new`, and adds the others at the end.
pub(super) fn upsert(
    items: &mut Vec<Value>,
    field: &str,
    new: Vec<Value>,
    mut delta: Option<&mut DeltaWriter>,
) -> Result<(), Fault> {
    new.iter().try_for_each(|item| key_of(item, field).map(drop))?;
    for item in new {
        let key = key_of(&item, field)?;
        let at = position(items, field, key);
        if let Some(delta) = delta.as_deref_mut() {
            delta.upsert(key, &item, at.map(|at| &items[at]))?;
        }
        match at {
            Some(at) => items[at] = item,
            None => items.push(item),
        }
    }
    Ok(())
}

/// Removes the items with these keys.
pub(super) fn remove(
    items: &mut Vec<Value>,
    field: &str,
    keys: &[String],
    mut delta: Option<&mut DeltaWriter>,
) -> Result<(), Fault> {
    for key in keys {
        let Some(at) = position(items, field, key) else { continue };
        let removed = items.remove(at);
        if let Some(delta) = delta.as_deref_mut() {
            delta.remove(key, &removed)?;
        }
    }
    Ok(())
}

/// The items with each key once: at the place of its first item, with the value of its last.
///
/// # Errors
/// If an item has no key.
pub(super) fn admit(items: Vec<Value>, field: &str) -> Result<Vec<Value>, String> {
    let mut places: HashMap<String, usize> = HashMap::with_capacity(items.len());
    let mut admitted: Vec<Value> = Vec::with_capacity(items.len());
    for item in items {
        let key = key_of(&item, field)?;
        match places.get(key) {
            Some(at) => admitted[*at] = item,
            None => {
                places.insert(key.to_owned(), admitted.len());
                admitted.push(item);
            }
        }
    }
    Ok(admitted)
}
