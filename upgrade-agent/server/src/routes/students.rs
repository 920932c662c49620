//! Routes of a student's application.

use axum::routing::MethodFilter;

use super::Route;
use crate::students::{self, v5};

pub(super) const ROUTES: &[Route] = &[
    (MethodFilter::POST, "/api/v6/init", students::init),
    (MethodFilter::POST, "/api/v6/assign", students::assign),
    (MethodFilter::POST, "/api/v6/mark", students::mark),
    (MethodFilter::POST, "/api/v6/log", students::log),
    (MethodFilter::PATCH, "/api/v6/groupmembership", students::set_groups),
    (MethodFilter::PATCH, "/api/v6/workinggroup", students::set_working_group),
    (MethodFilter::PATCH, "/api/v6/useraliases", students::set_aliases),
    (MethodFilter::POST, "/api/v6/featureflag", students::flags),
    (MethodFilter::POST, "/api/v6/reward", students::reward),
    (MethodFilter::POST, "/api/v5/init", v5::init),
    (MethodFilter::POST, "/api/v5/assign", v5::assign),
    (MethodFilter::POST, "/api/v5/mark", v5::mark),
    (MethodFilter::POST, "/api/v5/log", v5::log),
    (MethodFilter::POST, "/api/v5/bloblog", v5::log_blob),
    (MethodFilter::POST, "/api/v5/featureflag", v5::flags),
    (MethodFilter::PATCH, "/api/v5/groupmembership", v5::set_groups),
    (MethodFilter::PATCH, "/api/v5/workinggroup", v5::set_working_group),
    (MethodFilter::PATCH, "/api/v5/useraliases", v5::set_aliases),
];
