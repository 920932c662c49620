//! `/flags`: there are none. What reads them is answered as by a server that has none; what would
//! make one is refused, since this server does not simulate them.

use serde_json::{Value, json};

use super::core::{Asked, Core};
use super::fault::Fault;
use super::shape::{has, number};

/// `GET /flags`, and other lists of them.
pub(super) fn none(_: &mut Core, _: &Asked) -> Result<Value, Fault> {
    Ok(json!([]))
}

/// `POST /flags/paginated`.
pub(super) fn paginated(_: &mut Core, asked: &Asked) -> Result<Value, Fault> {
    if !(has(&asked.body, "skip", number) && has(&asked.body, "take", number)) {
        return Err(Fault::body());
    }
    let mut answer = json!({ "total": 0, "nodes": [] });
    if let (Some(answer), Some(asked)) = (answer.as_object_mut(), asked.body.as_object()) {
        answer.extend(asked.clone());
    }
    Ok(answer)
}

/// Whatever would need a flag.
pub(super) fn refuse(_: &mut Core, _: &Asked) -> Result<Value, Fault> {
    Err(Fault::not_served("feature flags"))
}
