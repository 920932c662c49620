//! Checks an answer against the JSON schema of its interrupt.

use serde_json::Value;

use crate::error::{Code, Error};
use crate::words::InterruptId;

/// The most problems reported for one answer.
const MOST: usize = 3;

/// # Errors
/// [`Code::BadAnswer`]; the message states where and why, and does not repeat the answer.
pub(crate) fn check(id: InterruptId, node: &str, schema: &Value, answer: &Value) -> Result<(), Error> {
    let Some(problem) = problem(schema, answer) else { return Ok(()) };
    let problem = format!(
        "the answer to interrupt {id} does not fit its schema: {problem}; nothing was stored, and the interrupt stays open"
    );
    Err(Error::new(Code::BadAnswer, problem).at_node(node))
}

/// The places and reasons of a mismatch, without the answer. `None` if the answer fits.
pub(super) fn problem(schema: &Value, answer: &Value) -> Option<String> {
    // Without a validator, the node reads the answer as its type in any case.
    let validator = jsonschema::validator_for(schema).ok()?;
    let problems = validator.iter_errors(answer).take(MOST).map(|error| {
        let path = error.instance_path().as_str().to_owned();
        let problem = error.masked().to_string();
        if path.is_empty() { problem } else { format!("at `{path}`, {problem}") }
    });
    let problems: Vec<String> = problems.collect();
    (!problems.is_empty()).then(|| problems.join("; "))
}
