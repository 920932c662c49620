//! [`Refused`]: replaces a checkpointer that a graph must not use. Every call returns the reason as an
//! error, so nothing is stored even if a caller forgets to check.

use std::sync::Weak;

use async_trait::async_trait;

use crate::catalog::Catalog;
use crate::checkpointer::Checkpointer;
use crate::delegate;
use crate::error::{StoreCode, StoreError};
use crate::lease::HearsStops;
use crate::leases::Leases;
use crate::upkeep::Upkeep;

/// Fails every call with the same error.
pub struct Refused {
    /// The code of the error.
    pub code: StoreCode,
    /// The text of the error.
    pub why: String,
}

impl Refused {
    fn error(&self) -> StoreError {
        StoreError::new(self.code, self.why.clone())
    }
}

#[async_trait]
impl Checkpointer for Refused {
    fn outlives_its_process(&self) -> bool {
        true
    }

    fn keeps_secrets(&self) -> bool {
        false
    }

    delegate!(self has: leases, catalog, upkeep);
    delegate!(self fails: self.error(); get, row, put, put_writes, list, threads, delete_thread);
}

#[async_trait]
impl Leases for Refused {
    /// It has granted nothing.
    fn let_go(&self, _: &str, _: u64) {}

    async fn released(&self, _: &str, _: u64) {}

    /// There are no leases, so no stop is ever requested.
    fn hear_stops(&self, _: Weak<dyn HearsStops>) {}

    delegate!(self fails: self.error(); acquire, renew, release, ask_to_stop, held);
}

#[async_trait]
impl Catalog for Refused {
    delegate!(self fails: self.error(); waiting, namespaces, branches, usage);
}

#[async_trait]
impl Upkeep for Refused {
    delegate!(self fails: self.error(); copy_thread, rewrite, compact);
}
