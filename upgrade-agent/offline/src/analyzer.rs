//! The model as conversation analyzer: one tool call with the class of the message.

use serde_json::{Value, json};

use crate::facts::Facts;
use crate::reading::{Clause, Reading};
use crate::slots::Known;
use crate::understanding::understand;

pub(crate) const TOOL: &str = "analyze_user_request";

/// The arguments of the call.
pub(crate) fn analysis(facts: &Facts) -> Value {
    let reading = understand(facts, &Known::default());
    let (intent, confidence) = class(&reading, facts);
    let about = facts.situation_field("that_experiment").get("name").and_then(Value::as_str);
    let refers = reading
        .clauses
        .iter()
        .flat_map(|clause| &clause.slots)
        .any(|slot| slot.value == "that" && !slot.said);
    let about =
        about.filter(|_| refers).map_or_else(String::new, |name| format!(" (about experiment '{name}')"));
    json!({
        "intent": intent,
        "confidence": confidence,
        "user_request_summary": format!("{}{about}", reading.shown()),
        "reasoning": "read by the grammar",
    })
}

fn class(reading: &Reading, facts: &Facts) -> (&'static str, f64) {
    if reading.too_long.is_some() {
        return ("needs_info", 0.9);
    }
    let has_draft = !facts.situation_field("dropped").is_null();
    let has_that = !facts.situation_field("that_experiment").is_null();
    let sure = if reading.is_whole() && reading.others.is_empty() { 0.9 } else { 0.75 };
    let needs = |clause: &Clause| intent(clause, has_draft, has_that) == "needs_info";
    match reading.clauses.as_slice() {
        [] if reading.left.is_empty() => ("greeting", 0.9),
        [] => ("unclear", 0.3),
        [one] if one.act() == "status_of" && is_open(one, facts) => ("needs_info", 0.5),
        all if all.iter().any(needs) => ("needs_info", sure),
        _ if !reading.is_whole() => ("unclear", 0.3),
        [one, ..] => (intent(one, has_draft, has_that), 0.9),
    }
}

/// Whether a question about the status names no experiment, and the conversation is about none.
fn is_open(clause: &Clause, facts: &Facts) -> bool {
    let unsaid = clause.slots.iter().all(|slot| slot.name != "experiment");
    let several =
        facts.before.lines().filter(|line| line.starts_with("- ") && line.ends_with(')')).count() > 1;
    unsaid && (facts.situation_field("that_experiment").is_null() || several)
}

fn intent(clause: &Clause, has_draft: bool, has_that: bool) -> &'static str {
    match clause.act() {
        "greeting" | "thanks" | "farewell" => "greeting",
        "help" | "explain" | "report" | "undo" => "direct_answer",
        "yes" => "confirm_reply",
        "no" | "refuse" => "cancel",
        "mode" if has_that => "needs_info",
        "count" | "mode" | "insist" | "answer" | "weights" if !has_draft => "unclear",
        "set_status" if clause.form.is_answer() && !has_draft => "unclear",
        _ => "needs_info",
    }
}
