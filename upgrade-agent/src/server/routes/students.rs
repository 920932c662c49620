//! The calls of a student's application.

use axum::routing::MethodFilter;

use super::Route;
use crate::server::students;

pub(super) const ROUTES: &[Route] = &[
    (MethodFilter::POST, "/api/v6/init", students::init),
    (MethodFilter::POST, "/api/v6/assign", students::assign),
    (MethodFilter::POST, "/api/v6/mark", students::mark),
    (MethodFilter::POST, "/api/v6/log", students::log),
    (MethodFilter::PATCH, "/api/v6/groupmembership", students::set_groups),
    (MethodFilter::PATCH, "/api/v6/workinggroup", students::set_working_group),
];
