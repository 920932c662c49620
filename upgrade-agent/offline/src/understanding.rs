//! A message in its conversation: an answer to the question that is open, a follow-up of an earlier
//! question, a word of insistence.

use serde_json::Value;

use crate::facts::Facts;
use crate::reading::{Clause, Reading, Slot, one_value_each, read};
use crate::slots::Known;
use crate::wire;

/// How many messages back a follow-up may refer to.
const REACH: usize = 4;

/// Reads the person's message.
pub(crate) fn understand(facts: &Facts, known: &Known) -> Reading {
    let mut reading = read(&facts.message, known, asked(facts));
    if let [clause] = reading.clauses.as_slice() {
        let replaced = match clause.act() {
            "and" => follow_up(clause, facts, known),
            "insist" => insisted(facts, known),
            _ => None,
        };
        if let Some(replaced) = replaced {
            reading.clauses = vec![replaced];
        }
    }
    merge_updates(&mut reading.clauses);
    reading
}

/// The parameter that the person was asked for; the context before all that depend on it. A change is asked
/// for by `change`.
pub(crate) fn asked(facts: &Facts) -> &'static str {
    const PARAMETERS: &[&str] = &[
        "name",
        "description",
        "user_id",
        "decision_points",
        "decision_point",
        "conditions",
        "experiment_id",
        "status",
        "group_type",
        "site",
        "target",
        "steps",
    ];
    let pending = facts.situation_field("pending");
    if !pending["action"].is_string() {
        return if facts.situation_field("dropped")["action"].is_string() { "change" } else { "" };
    }
    let missing = wire::texts(&pending["missing"]);
    if missing.iter().any(|name| name == "context") {
        return "context";
    }
    let Some(first) = missing.first() else { return "change" };
    let half = |name: &str| {
        let place = &pending["params"][first.as_str()];
        let place = place.get(0).unwrap_or(place);
        place.get(name).is_some_and(Value::is_string)
    };
    match first.as_str() {
        "decision_points" | "decision_point" if half("site") => "target",
        "decision_points" | "decision_point" if half("target") => "site",
        first => PARAMETERS.iter().find(|name| **name == first).copied().unwrap_or("change"),
    }
}

/// "And in mathstream?" repeats the last question about a context or an experiment for another one.
fn follow_up(clause: &Clause, facts: &Facts, known: &Known) -> Option<Clause> {
    const ACTS: &[&str] =
        &["conditions", "points", "groups", "experiments", "status_of", "details", "enrollment", "assign"];
    let earlier = facts.earlier.iter().rev().take(REACH);
    let mut questions =
        earlier.flat_map(|said| read(said, known, "").clauses).filter(|clause| ACTS.contains(&clause.act()));
    let mut question = questions.next()?;
    let places = ["context", "experiment"];
    question.slots.retain(|slot| !places.contains(&slot.name));
    question.slots.extend(clause.slots.iter().filter(|slot| places.contains(&slot.name)).cloned());
    Some(question)
}

/// "Do it anyway" repeats the last order with force, and with what was answered since.
fn insisted(facts: &Facts, known: &Known) -> Option<Clause> {
    const ACTS: &[&str] = &["set_status", "update", "journey"];
    let first = facts.earlier.len().saturating_sub(REACH);
    let near: Vec<Reading> = facts.earlier[first..].iter().map(|said| read(said, known, "")).collect();
    let is_order = |reading: &Reading| {
        reading.is_whole()
            && reading.clauses.len() == 1
            && ACTS.contains(&reading.clauses[0].act())
            && reading.clauses[0].slot("experiment").is_some()
    };
    let at = near.iter().rposition(is_order)?;
    let mut order = near[at].clauses[0].clone();
    let answers =
        near[at + 1..].iter().flat_map(|reading| &reading.clauses).filter(|clause| clause.form.is_answer());
    order.slots.extend(answers.flat_map(|clause| clause.slots.clone()));
    order.slots.push(Slot { name: "force", value: "true".to_owned(), said: false });
    Some(order)
}

/// Changes of one experiment in one message are one change.
fn merge_updates(clauses: &mut Vec<Clause>) {
    let mut at = 1;
    while at < clauses.len() {
        let again = clauses[at]
            .slots
            .iter()
            .all(|slot| slot.name != "experiment" || (slot.value == "that" && !slot.said));
        if clauses[at].act() == "update" && clauses[at - 1].act() == "update" && again {
            let own = clauses[at].slots.iter().filter(|slot| slot.name != "experiment");
            let slots: Vec<Slot> = clauses[at - 1].slots.iter().chain(own).cloned().collect();
            if one_value_each(clauses[at].form, &slots) {
                let source = format!("{}, {}", clauses[at - 1].source, clauses[at].source);
                clauses.remove(at);
                clauses[at - 1] = Clause { slots, source, ..clauses[at - 1].clone() };
                continue;
            }
        }
        at += 1;
    }
}

/// The last clause of this act in the messages before.
pub(crate) fn earlier_clause(facts: &Facts, act: &str) -> Option<Clause> {
    let earlier = facts.earlier.iter().rev().take(REACH);
    earlier.flat_map(|said| read(said, &Known::default(), "").clauses).find(|clause| clause.act() == act)
}
