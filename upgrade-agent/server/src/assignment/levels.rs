//! The conditions of a factorial design: a code built from the levels, and the levels.

use serde_json::{Map, Value, json};

use crate::wire::fault::Fault;
use crate::world::model::{Condition, Experiment, Factor, Level};

/// The assigned code, built from the levels. For a single level the original uses its payload as the code,
/// and fails if there is none.
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

/// The levels of a condition, by factor. Their payloads have the type string, whatever was set.
pub(super) fn assigned(experiment: &Experiment, condition: &Condition) -> Value {
    let entry = |(factor, level): (&Factor, &Level)| {
        let value = level.payload_value.as_deref().filter(|value| !value.is_empty());
        let payload = value.map(|value| json!({ "type": "string", "value": value }));
        (factor.name.clone(), json!({ "level": level.name, "payload": payload }))
    };
    Value::Object(levels(experiment, condition).into_iter().map(entry).collect::<Map<_, _>>())
}

/// The levels of a condition in the order of the factors.
fn levels<'e>(experiment: &'e Experiment, condition: &Condition) -> Vec<(&'e Factor, &'e Level)> {
    let is_own = |level: &Level| {
        experiment.elements.iter().any(|e| e.condition_id == condition.id && e.level_id == level.id)
    };
    let all = experiment.factors.iter().flat_map(|factor| factor.levels.iter().map(move |l| (factor, l)));
    let mut own: Vec<_> = all.filter(|(_, level)| is_own(level)).collect();
    own.sort_by_key(|(factor, _)| factor.order);
    own
}
