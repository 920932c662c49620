//! What only administrators need: preview users, settings, accounts and logs.

use axum::routing::MethodFilter;

use super::Route;
use crate::server::{accounts, audit, flags, preview, settings, strata, students};

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
    (MethodFilter::GET, "/api/flags", flags::none),
    (MethodFilter::POST, "/api/flags/paginated", flags::paginated),
    (MethodFilter::POST, "/api/flags", flags::refuse),
    (MethodFilter::PUT, "/api/flags/{id}", flags::refuse),
    (MethodFilter::DELETE, "/api/flags/{id}", flags::refuse),
    (MethodFilter::PATCH, "/api/flags/status", flags::refuse),
    (MethodFilter::PATCH, "/api/flags/filterMode", flags::refuse),
    (MethodFilter::POST, "/api/flags/import", flags::refuse),
    (MethodFilter::POST, "/api/flags/import/validation", flags::refuse),
    (MethodFilter::POST, "/api/flags/inclusionList", flags::refuse),
    (MethodFilter::POST, "/api/flags/exclusionList", flags::refuse),
    (MethodFilter::PUT, "/api/flags/inclusionList/{id}", flags::refuse),
    (MethodFilter::PUT, "/api/flags/exclusionList/{id}", flags::refuse),
    (MethodFilter::DELETE, "/api/flags/inclusionList/{id}", flags::refuse),
    (MethodFilter::DELETE, "/api/flags/exclusionList/{id}", flags::refuse),
    (MethodFilter::POST, "/api/audit", audit::paginated),
    (MethodFilter::POST, "/api/error", audit::errors),
];
