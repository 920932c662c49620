//! Experiments: to read, make, change, move and delete them.

use axum::routing::MethodFilter;

use super::Route;
use crate::server::side::{Exclusion, Inclusion};
use crate::server::{create, exchange, experiment_lists as lists, experiments, page, update};

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
    (MethodFilter::POST, "/api/experiments/batch", exchange::create_many),
    (MethodFilter::POST, "/api/experiments/validation", exchange::validate),
    (MethodFilter::POST, "/api/experiments/import", exchange::import),
    (MethodFilter::GET, "/api/experiments/export", exchange::export),
    (MethodFilter::GET, "/api/experiments/export/all", exchange::export_all),
    (MethodFilter::PUT, "/api/experiments/{id}", update::update),
    (MethodFilter::DELETE, "/api/experiments/{id}", experiments::delete),
];

/// Each of an experiment's lists for itself.
pub(super) const LISTS: &[Route] = &[
    (MethodFilter::GET, "/api/experiments/export/includeLists/{id}", exchange::export_lists::<Inclusion>),
    (MethodFilter::GET, "/api/experiments/export/excludeLists/{id}", exchange::export_lists::<Exclusion>),
    (MethodFilter::POST, "/api/experiments/lists/import", exchange::import_lists),
    (MethodFilter::POST, "/api/experiments/inclusionList", lists::add_asked::<Inclusion>),
    (MethodFilter::PUT, "/api/experiments/inclusionList/{id}", lists::change::<Inclusion>),
    (MethodFilter::DELETE, "/api/experiments/inclusionList/{id}", lists::remove::<Inclusion>),
    (MethodFilter::POST, "/api/experiments/exclusionList", lists::add_asked::<Exclusion>),
    (MethodFilter::PUT, "/api/experiments/exclusionList/{id}", lists::change::<Exclusion>),
    (MethodFilter::DELETE, "/api/experiments/exclusionList/{id}", lists::remove::<Exclusion>),
];
