//! What the server says of itself.

use axum::routing::MethodFilter;
use serde_json::{Value, json};

use super::Route;
use crate::client::Dialect;
use crate::server::body;
use crate::server::core::{Asked, Core};
use crate::server::fault::Fault;

pub(super) const ROUTES: &[Route] =
    &[(MethodFilter::GET, "/api", health), (MethodFilter::GET, "/api/version", version)];

fn health(core: &mut Core, _: &Asked) -> Result<Value, Fault> {
    let dialect = core.world.dialect;
    Ok(json!({
        "name": "A/B Testing Backend",
        "version": body::version(dialect),
        "description": match dialect {
            Dialect::V62 => "Backend for A/B Testing Project",
            _ => "Backend for the UpGrade A/B Testing Platform",
        },
    }))
}

fn version(core: &mut Core, _: &Asked) -> Result<Value, Fault> {
    Ok(json!(body::version(core.world.dialect)))
}
