//! Routes about the server itself.

use axum::routing::MethodFilter;
use serde_json::{Value, json};

use super::Route;
use crate::core::{ApiRequest, Core};
use crate::wire::dialect::Dialect;
use crate::wire::fault::Fault;

pub(super) const ROUTES: &[Route] =
    &[(MethodFilter::GET, "/api", health), (MethodFilter::GET, "/api/version", version)];

fn health(core: &mut Core, _: &ApiRequest) -> Result<Value, Fault> {
    let dialect = core.world.dialect;
    Ok(json!({
        "name": "A/B Testing Backend",
        "version": dialect.version(),
        "description": match dialect {
            Dialect::V62 => "Backend for A/B Testing Project",
            _ => "Backend for the UpGrade A/B Testing Platform",
        },
    }))
}

fn version(core: &mut Core, _: &ApiRequest) -> Result<Value, Fault> {
    Ok(json!(core.world.dialect.version()))
}
