//! [`Extension`]: what a clause asks of a store beyond the core.

use std::fmt;

use super::Tried;
use crate::catalog::Catalog;
use crate::checkpointer::Checkpointer;
use crate::leases::Leases;
use crate::upkeep::Upkeep;

/// An extension of [`Checkpointer`], which a store may lack.
///
/// ```
/// use agentgraph_checkpoint::MemorySaver;
/// use agentgraph_checkpoint::conformance::Extension;
///
/// assert!(Extension::ALL.iter().all(|extension| extension.is_in(&MemorySaver::new())));
/// assert_eq!(Extension::Leases.to_string(), "leases");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Extension {
    /// [`Checkpointer::leases`].
    Leases,
    /// [`Checkpointer::catalog`].
    Catalog,
    /// [`Checkpointer::upkeep`].
    Upkeep,
}

impl Extension {
    /// Every extension there is.
    pub const ALL: [Extension; 3] = [Extension::Leases, Extension::Catalog, Extension::Upkeep];

    /// Whether a store has it.
    pub fn is_in(self, store: &dyn Checkpointer) -> bool {
        match self {
            Extension::Leases => store.leases().is_some(),
            Extension::Catalog => store.catalog().is_some(),
            Extension::Upkeep => store.upkeep().is_some(),
        }
    }

    /// The finding about a store that lacks it.
    pub(super) fn lack(self) -> String {
        format!("the store has no {self}: `Checkpointer::{self}` is `None`")
    }
}

/// The name of its method.
impl fmt::Display for Extension {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Extension::Leases => "leases",
            Extension::Catalog => "catalog",
            Extension::Upkeep => "upkeep",
        })
    }
}

pub(super) fn leases(store: &dyn Checkpointer) -> Tried<&dyn Leases> {
    store.leases().ok_or_else(|| Extension::Leases.lack().into())
}

pub(super) fn catalog(store: &dyn Checkpointer) -> Tried<&dyn Catalog> {
    store.catalog().ok_or_else(|| Extension::Catalog.lack().into())
}

pub(super) fn upkeep(store: &dyn Checkpointer) -> Tried<&dyn Upkeep> {
    store.upkeep().ok_or_else(|| Extension::Upkeep.lack().into())
}
