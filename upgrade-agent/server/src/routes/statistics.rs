//! Routes of statistics.

use axum::routing::MethodFilter;

use super::Route;
use crate::experiments::{by_date, statistics};

pub(super) const ROUTES: &[Route] = &[
    (MethodFilter::POST, "/api/stats/enrollment", statistics::enrollment),
    (MethodFilter::POST, "/api/stats/enrollment/detail", statistics::detail),
    (MethodFilter::POST, "/api/stats/enrollment/date", by_date::enrollment),
    (MethodFilter::GET, "/api/stats/csv", statistics::csv),
];
