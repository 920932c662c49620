//! How many take part.

use axum::routing::MethodFilter;

use super::Route;
use crate::server::statistics;

pub(super) const ROUTES: &[Route] = &[
    (MethodFilter::POST, "/api/stats/enrollment", statistics::enrollment),
    (MethodFilter::POST, "/api/stats/enrollment/detail", statistics::detail),
];
