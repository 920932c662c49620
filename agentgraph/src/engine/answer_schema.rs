//! Whether an answer fits the JSON schema that its interrupt shows.

use serde_json::Value;

use crate::error::{Code, Error};
use crate::run::InterruptId;

/// Problems that are told of one answer.
const MOST: usize = 3;

/// # Errors
/// [`Code::BadAnswer`], which says where and why, and does not repeat the answer.
pub(super) fn check(id: InterruptId, node: &str, schema: &Value, answer: &Value) -> Result<(), Error> {
    let problems = match jsonschema::validator_for(schema) {
        Ok(validator) => {
            let problems = validator.iter_errors(answer).take(MOST).map(|error| {
                let path = error.instance_path().as_str().to_owned();
                let problem = error.masked().to_string();
                if path.is_empty() { problem } else { format!("at `{path}`, {problem}") }
            });
            problems.collect::<Vec<_>>()
        }
        // The node reads the answer as its type in any case.
        Err(_) => Vec::new(),
    };
    if problems.is_empty() {
        return Ok(());
    }
    let problem = format!(
        "the answer to interrupt {id} does not fit its schema: {}; nothing was stored, and the interrupt stays open",
        problems.join("; ")
    );
    Err(Error::new(Code::BadAnswer, problem).at_node(node))
}
