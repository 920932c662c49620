//! The behaviour of nodes and routes as functions of their input. `graphs.py` has the same functions.

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

/// Returns the state as JSON with sorted keys and no spaces.
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

/// Returns the FNV-1a hash of a text.
pub fn fnv(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Returns the word that a task logs. A node that interrupts also uses it as the value of its interrupt.
pub fn word(name: &str, arg: Option<u64>) -> String {
    arg.map_or_else(|| name.to_owned(), |arg| format!("{name}({arg})"))
}

/// Returns a hash of everything that a task sees: its name, its input or the state, and the answer.
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
        if write.ends_with('=') { update.overwrite(channel, value) } else { update.set(channel, value) }
    })
}

/// Chooses one of the options by the bits of `seen`, and returns its targets.
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

/// Returns the answer to the interrupt with this value.
pub fn answer(word: &str) -> u64 {
    fnv(word) % 97
}
