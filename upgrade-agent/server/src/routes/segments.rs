//! Segments and their lists.

use axum::routing::MethodFilter;

use super::Route;
use crate::segments::{self, files};

pub(super) const ROUTES: &[Route] = &[
    (MethodFilter::GET, "/api/segments", segments::all),
    (MethodFilter::POST, "/api/segments", segments::upsert),
    (MethodFilter::GET, "/api/segments/global", segments::global),
    (MethodFilter::POST, "/api/segments/paginated", segments::paginated),
    (MethodFilter::GET, "/api/segments/status/{id}", segments::status),
    (MethodFilter::POST, "/api/segments/validation", files::validate),
    (MethodFilter::POST, "/api/segments/import", files::import),
    (MethodFilter::POST, "/api/segments/import/validation", files::validate_all),
    (MethodFilter::POST, "/api/segments/list/import", files::import_lists),
    (MethodFilter::POST, "/api/segments/list/import/validation", files::validate_lists),
    (MethodFilter::GET, "/api/segments/export/json", files::export),
    (MethodFilter::GET, "/api/segments/export/csv", files::export_csv),
    (MethodFilter::POST, "/api/segments/list", segments::add_list),
    (MethodFilter::DELETE, "/api/segments/list/{id}", segments::delete_list),
    (MethodFilter::GET, "/api/segments/{id}", segments::single),
    (MethodFilter::DELETE, "/api/segments/{id}", segments::delete),
];
