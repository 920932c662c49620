//! Routes that read, create, change, start, stop and delete experiments.

use axum::routing::MethodFilter;

use super::Route;
use crate::experiments::{self, create, files, lists, page, update};
use crate::segments::side::{Exclusion, Inclusion};

pub(super) const ROUTES: &[Route] = &[
    (MethodFilter::GET, "/api/experiments", experiments::all),
    (MethodFilter::POST, "/api/experiments", create::create),
    (MethodFilter::GET, "/api/experiments/contextMetaData", experiments::contexts),
    (MethodFilter::GET, "/api/experiments/names", experiments::names),
    (MethodFilter::GET, "/api/experiments/partitions", experiments::partitions),
    (MethodFilter::POST, "/api/experiments/paginated", page::paginated),
    (MethodFilter::POST, "/api/experiments/state", experiments::set_state),
    (MethodFilter::GET, "/api/experiments/single/{id}", experiments::single),
    (MethodFilter::GET, "/api/experiments/conditions/{id}", experiments::conditions),
    (MethodFilter::GET, "/api/experiments/getGroupAssignmentStatus/{id}", experiments::full_groups),
    (MethodFilter::POST, "/api/experiments/batch", create::create_many),
    (MethodFilter::POST, "/api/experiments/validation", files::validate),
    (MethodFilter::POST, "/api/experiments/import", files::import),
    (MethodFilter::GET, "/api/experiments/export", files::export),
    (MethodFilter::GET, "/api/experiments/export/all", files::export_all),
    (MethodFilter::PUT, "/api/experiments/{id}", update::update),
    (MethodFilter::DELETE, "/api/experiments/{id}", experiments::delete),
];

/// Routes of single lists.
pub(super) const LISTS: &[Route] = &[
    (MethodFilter::GET, "/api/experiments/export/includeLists/{id}", files::export_lists::<Inclusion>),
    (MethodFilter::GET, "/api/experiments/export/excludeLists/{id}", files::export_lists::<Exclusion>),
    (MethodFilter::POST, "/api/experiments/lists/import", files::import_lists),
    (MethodFilter::POST, "/api/experiments/inclusionList", lists::add_asked::<Inclusion>),
    (MethodFilter::PUT, "/api/experiments/inclusionList/{id}", lists::change::<Inclusion>),
    (MethodFilter::DELETE, "/api/experiments/inclusionList/{id}", lists::remove::<Inclusion>),
    (MethodFilter::POST, "/api/experiments/exclusionList", lists::add_asked::<Exclusion>),
    (MethodFilter::PUT, "/api/experiments/exclusionList/{id}", lists::change::<Exclusion>),
    (MethodFilter::DELETE, "/api/experiments/exclusionList/{id}", lists::remove::<Exclusion>),
];
