//! What a condition of a factorial design assigns: a code that is made of its levels, and the levels.

use serde_json::{Map, Value, json};

use crate::wire::fault::Fault;
use crate::world::model::{Condition, Experiment, Factor, Level};

/// The code under which a condition is assigned. It is spelt from the levels; the original gives a
/// lone level's payload in place of a code, and stumbles where there is none.
pub(super) fn code(experiment: &Experiment, condition: &Condition) -> Result<Value, Fault> {
    match levels(experiment, condition).as_slice() {
        [] => Err(Fault::assignment_reads_nothing("payload")),
        [(_, only)] => Ok(only.payload()),
        more => {
            let words: Vec<String> =
                more.iter().map(|(factor, level)| format!("{}={}", factor.name, level.name)).collect();
            Ok(json!(words.join("; ")))
        }
    }
}

/// The levels that a condition assigns, by the names of their factors. Whatever the type of their
/// payloads, it is called a string.
pub(super) fn assigned(experiment: &Experiment, condition: &Condition) -> Value {
    let entry = |(factor, level): (&Factor, &Level)| {
        let value = level.payload_value.as_deref().filter(|value| !value.is_empty());
        let payload = value.map(|value| json!({ "type": "string", "value": value }));
        (factor.name.clone(), json!({ "level": level.name, "payload": payload }))
    };
    Value::Object(levels(experiment, condition).into_iter().map(entry).collect::<Map<_, _>>())
}

/// The levels of a condition in the order of their factors.
fn levels<'e>(experiment: &'e Experiment, condition: &Condition) -> Vec<(&'e Factor, &'e Level)> {
    let is_own = |level: &Level| {
        experiment.elements.iter().any(|e| e.condition_id == condition.id && e.level_id == level.id)
    };
    let all = experiment.factors.iter().flat_map(|factor| factor.levels.iter().map(move |l| (factor, l)));
    let mut own: Vec<_> = all.filter(|(_, level)| is_own(level)).collect();
    own.sort_by_key(|(factor, _)| factor.order);
    own
}
