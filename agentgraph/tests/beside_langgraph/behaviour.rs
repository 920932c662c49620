//! What nodes and routes do, as a function of what they see: the same as in `graphs.py`.

use agentgraph::json_state::{JsonChannels, JsonReducer, JsonState, JsonUpdate};
use agentgraph::node::IntoGoto;
use agentgraph::state::Lifetime;
use agentgraph::{Dispatch, END, Goto};
use serde_json::{Map, Value, json};

use super::record::NodeShape;

pub fn schema() -> JsonChannels {
    JsonChannels::new()
        .channel("log", json!([]), JsonReducer::Append)
        .channel("bag", json!([]), JsonReducer::Append)
        .channel("table", json!({}), JsonReducer::Merge)
        .channel("last", json!(0), JsonReducer::Last)
        .channel("once", Value::Null, JsonReducer::Once)
        .with_lifetime("flash", Value::Null, JsonReducer::Once, Lifetime::Ephemeral)
}

/// The values with their keys in order, and without spaces.
pub fn canonical(state: &JsonState) -> String {
    sorted(&state.to_value()).to_string()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(entries) => {
            let mut keys: Vec<&String> = entries.keys().collect();
            keys.sort_unstable();
            let entries = keys.into_iter().map(|key| (key.clone(), sorted(&entries[key])));
            Value::Object(entries.collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

/// FNV-1a.
pub fn fnv(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// What a task says, and asks if it asks.
pub fn word(name: &str, arg: Option<u64>) -> String {
    arg.map_or_else(|| name.to_owned(), |arg| format!("{name}({arg})"))
}

/// A number that changes with everything that a task sees.
pub fn seen(name: &str, arg: Option<u64>, answer: Option<u64>, state: &JsonState) -> u64 {
    let sees = arg.map_or_else(|| canonical(state), |arg| format!("arg:{arg}"));
    let answer = answer.map_or_else(String::new, |answer| format!("|{answer}"));
    fnv(&format!("{sees}|{name}{answer}"))
}

pub fn update(shape: &NodeShape, seen: u64, word: String) -> JsonUpdate {
    shape.writes.iter().enumerate().fold(JsonUpdate::new().set("log", word), |update, (place, write)| {
        let value = (seen >> (5 * place)) & 511;
        let channel = write.trim_end_matches('=');
        let value = match channel {
            "bag" => json!([value]),
            "table" => json!({ (format!("k{}", value % 3)): value }),
            _ => json!(value),
        };
        match write.ends_with('=') {
            true => update.overwrite(channel, value),
            false => update.set(channel, value),
        }
    })
}

/// The choice among options.
pub fn choose(options: &[Vec<String>], seen: u64) -> Vec<Goto> {
    let Some(option) = options.get(((seen >> 40) % options.len().max(1) as u64) as usize) else {
        return Vec::new();
    };
    let base = (seen >> 20) % 1000 * 10;
    let targets = (base..).zip(option).map(|(arg, target)| match target.strip_prefix('@') {
        Some(node) => Dispatch::new(node.to_owned(), arg).into_goto(),
        None if target == "end" => END.into_goto(),
        None => target.clone().into_goto(),
    });
    targets.collect()
}

pub fn routed(slot: usize, options: &[Vec<String>], state: &JsonState) -> Vec<Goto> {
    choose(options, fnv(&format!("{}|r{slot}", canonical(state))))
}

/// How a question is answered.
pub fn answer(word: &str) -> u64 {
    fnv(word) % 97
}
