//! What is called by nobody but the original's own machinery: its scheduler, which signs its calls with a
//! secret that it alone knows, and its demonstrations, which start over by forgetting everything.

use serde_json::{Value, json};

use super::gate;
use crate::core::{ApiRequest, Core};
use crate::wire::fault::Fault;
use crate::wire::token::{self, TokenFault};

/// `POST /scheduledJobs/...`: there is no scheduler that anybody could be.
pub(crate) fn refuse(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let token = gate::bearer(asked).ok_or_else(|| Fault::thrown("Token is not present in request header"))?;
    let secret = core.new_id();
    Err(match token::check(&token, "", secret.as_bytes(), 0) {
        Err(TokenFault::Malformed(what)) => Fault::thrown(what),
        _ => Fault::thrown("invalid signature"),
    })
}

/// `DELETE /v5/clearDB`: this is no demonstration.
pub(crate) fn keep_all(_: &mut Core, _: &ApiRequest) -> Result<Value, Fault> {
    Ok(json!("DEMO mode is disabled. You cannot clear DB."))
}

/// `DELETE /v6/clearDB`: the same for a student who is known.
pub(crate) fn keep_all_of(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    core.student(asked)?;
    keep_all(core, asked)
}
