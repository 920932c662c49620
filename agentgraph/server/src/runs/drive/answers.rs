//! Answers to the questions of a thread.

use agentgraph::run::{Interrupt, InterruptKind};
use serde_json::{Value, json};

use crate::graph::{End, Moment};
use crate::ids;

pub(super) fn asked(head: &Moment) -> Vec<&Interrupt> {
    head.interrupts.iter().filter(|one| one.kind == InterruptKind::Asked).collect()
}

/// The end of a run that has nothing to do.
pub(in crate::runs) fn standing(head: &Moment) -> End {
    let asked = asked(head);
    if asked.is_empty() { End::Finished } else { End::Interrupted(asked.into_iter().cloned().collect()) }
}

/// Answers to questions.
#[derive(Default)]
pub(super) struct Answers {
    /// By the position of their question among those that are asked.
    pub(super) known: Vec<(usize, Value)>,
    /// The ids that no open question has.
    pub(super) unknown: Vec<String>,
}

/// The answers by their ids. `None` if the keys are not all ids: then the object is one answer.
pub(super) fn by_id(resume: &Value, asked: &[&Interrupt]) -> Option<Answers> {
    let answers = resume.as_object().filter(|answers| !answers.is_empty())?;
    if !answers.keys().all(|id| ids::is_interrupt_id(id)) {
        return None;
    }
    let mut sorted = Answers::default();
    for (id, answer) in answers {
        match asked.iter().position(|one| one.id.is_some_and(|known| ids::interrupt_id(known) == *id)) {
            Some(at) => sorted.known.push((at, answer.clone())),
            None => sorted.unknown.push(id.clone()),
        }
    }
    Some(sorted)
}

/// The questions that a run answers.
pub(super) fn answered(resume: &Value, head: Option<&Moment>) -> Vec<String> {
    let asked = head.map(asked).unwrap_or_default();
    let id = |one: &Interrupt| one.id.map(ids::interrupt_id);
    match by_id(resume, &asked) {
        Some(answers) => answers.known.iter().filter_map(|(at, _)| id(asked.get(*at)?)).collect(),
        // One answer without an id is to the only question.
        None if !resume.is_null() && asked.len() == 1 => asked.into_iter().filter_map(id).collect(),
        None => Vec::new(),
    }
}

/// The details of the error of a strict run that refuses answers: their ids and those of the open questions.
pub(super) fn refused(resume: &Value, head: Option<&Moment>) -> Value {
    let asked = head.map(asked).unwrap_or_default();
    let pending: Vec<String> = asked.iter().filter_map(|one| one.id.map(ids::interrupt_id)).collect();
    let unknown = by_id(resume, &asked).map(|answers| answers.unknown).unwrap_or_default();
    json!({ "reason": "unknown_interrupt", "interrupt_ids": unknown, "pending_ids": pending })
}

pub(in crate::runs) fn wire_interrupts(interrupts: &[Interrupt]) -> Value {
    let shown = interrupts.iter().filter_map(|one| {
        let id = ids::interrupt_id(one.id?);
        Some(json!({ "id": id, "value": one.value, "response_schema": one.schema }))
    });
    shown.collect()
}
