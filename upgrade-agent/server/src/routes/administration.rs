//! Routes of administrators: preview users, settings, accounts and logs.

use axum::routing::MethodFilter;

use super::Route;
use crate::accounts::{self, audit, jobs, settings};
use crate::assignment::strata;
use crate::flags;
use crate::metrics::{self, analysis};
use crate::segments::side::{Exclusion, Inclusion};
use crate::students::{self, preview};

pub(super) const ROUTES: &[Route] = &[
    (MethodFilter::POST, "/api/previewusers", preview::create),
    (MethodFilter::POST, "/api/previewusers/paginated", preview::paginated),
    (MethodFilter::POST, "/api/previewusers/assign", preview::assign),
    (MethodFilter::GET, "/api/previewusers/{id}", preview::single),
    (MethodFilter::PUT, "/api/previewusers/{id}", preview::update),
    (MethodFilter::DELETE, "/api/previewusers/{id}", preview::delete),
    (MethodFilter::GET, "/api/setting", settings::read),
    (MethodFilter::POST, "/api/setting", settings::write),
    (MethodFilter::POST, "/api/users", accounts::upsert),
    (MethodFilter::POST, "/api/users/paginated", accounts::paginated),
    (MethodFilter::POST, "/api/users/details", accounts::details),
    (MethodFilter::GET, "/api/users/{id}", accounts::single),
    (MethodFilter::DELETE, "/api/users/{id}", accounts::delete),
    (MethodFilter::POST, "/api/login/user", accounts::login),
    (MethodFilter::POST, "/api/batch-assign", students::assign_many),
    (MethodFilter::GET, "/api/stratification", strata::all),
    (MethodFilter::POST, "/api/stratification", strata::upload),
    (MethodFilter::GET, "/api/stratification/download/{factor}", strata::download),
    (MethodFilter::DELETE, "/api/stratification/{factor}", strata::delete),
    (MethodFilter::GET, "/api/metric", metrics::all),
    (MethodFilter::POST, "/api/metric/save", metrics::save),
    (MethodFilter::GET, "/api/metric/{id}", metrics::of_context),
    (MethodFilter::DELETE, "/api/metric/{id}", metrics::delete),
    (MethodFilter::POST, "/api/query/analyse", analysis::analyse),
    (MethodFilter::GET, "/api/flags", flags::all),
    (MethodFilter::POST, "/api/flags", flags::create),
    (MethodFilter::PATCH, "/api/flags/status", flags::set_status),
    (MethodFilter::PATCH, "/api/flags/filterMode", flags::set_filter),
    (MethodFilter::GET, "/api/flags/{id}", flags::single),
    (MethodFilter::PUT, "/api/flags/{id}", flags::update),
    (MethodFilter::DELETE, "/api/flags/{id}", flags::delete),
    (MethodFilter::POST, "/api/flags/inclusionList", flags::lists::add::<Inclusion>),
    (MethodFilter::POST, "/api/flags/exclusionList", flags::lists::add::<Exclusion>),
    (MethodFilter::PUT, "/api/flags/inclusionList/{id}", flags::lists::change::<Inclusion>),
    (MethodFilter::PUT, "/api/flags/exclusionList/{id}", flags::lists::change::<Exclusion>),
    (MethodFilter::DELETE, "/api/flags/inclusionList/{id}", flags::lists::remove::<Inclusion>),
    (MethodFilter::DELETE, "/api/flags/exclusionList/{id}", flags::lists::remove::<Exclusion>),
    (MethodFilter::POST, "/api/scheduledJobs/start", jobs::refuse),
    (MethodFilter::POST, "/api/scheduledJobs/end", jobs::refuse),
    (MethodFilter::POST, "/api/scheduledJobs/clearLogs", jobs::refuse),
    (MethodFilter::DELETE, "/api/v5/clearDB", jobs::keep_all),
    (MethodFilter::DELETE, "/api/v6/clearDB", jobs::keep_all_of),
    (MethodFilter::POST, "/api/audit", audit::paginated),
    (MethodFilter::POST, "/api/error", audit::errors),
];
