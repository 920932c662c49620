//! What the server says of itself.

use axum::routing::MethodFilter;
use serde_json::{Value, json};

use super::Route;
use crate::server::body;
use crate::server::core::{Asked, Core};
use crate::server::fault::Fault;

pub(super) const ROUTES: &[Route] = &[
    (MethodFilter::GET, "/api", health),
    (MethodFilter::GET, "/api/", health),
    (MethodFilter::GET, "/api/version", version),
    (MethodFilter::GET, "/api/version/", version),
];

fn health(_: &mut Core, _: &Asked) -> Result<Value, Fault> {
    Ok(json!({
        "name": "A/B Testing Backend",
        "version": body::VERSION,
        "description": "Backend for the UpGrade A/B Testing Platform",
    }))
}

fn version(_: &mut Core, _: &Asked) -> Result<Value, Fault> {
    Ok(json!(body::VERSION))
}
