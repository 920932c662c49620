//! Routes of the original's own infrastructure: its scheduler, which signs its calls with a private secret,
//! and its demonstrations, which delete all data to start again.

use serde_json::{Value, json};

use super::gate;
use crate::core::{ApiRequest, Core};
use crate::wire::fault::Fault;
use crate::wire::token::{self, TokenFault};

/// `POST /scheduledJobs/...`: rejected, because this server has no scheduler.
pub(crate) fn refuse(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let token = gate::bearer(asked).ok_or_else(|| Fault::thrown("Token is not present in request header"))?;
    let secret = core.new_id();
    Err(match token::check(&token, "", secret.as_bytes(), 0) {
        Err(TokenFault::Malformed(what)) => Fault::thrown(what),
        _ => Fault::thrown("invalid signature"),
    })
}

/// `DELETE /v5/clearDB`: rejected, because this is not a demonstration.
pub(crate) fn keep_all(_: &mut Core, _: &ApiRequest) -> Result<Value, Fault> {
    Ok(json!("DEMO mode is disabled. You cannot clear DB."))
}

/// `DELETE /v6/clearDB`: the same for a known student.
pub(crate) fn keep_all_of(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    core.student(asked)?;
    keep_all(core, asked)
}
