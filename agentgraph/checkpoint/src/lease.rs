//! A lease: the terms of a request, the answer, and the error of a writer that lost its lease.

use std::time::SystemTime;

use crate::error::{StoreCode, StoreError};

/// The terms of a lease that a writer requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTerms {
    /// The current time by the clock of the caller.
    pub now: SystemTime,
    /// The end of the lease, unless it is renewed.
    pub until: SystemTime,
    /// Whether to take the thread from its current writer.
    pub seize: bool,
}

/// The answer to a request for a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The writer has the thread.
    Granted {
        /// To be passed with every write.
        fence: u64,
    },
    /// Another writer has the thread.
    Held {
        /// The fence of the other writer.
        fence: u64,
        /// The end of that lease, unless it is renewed.
        until: SystemTime,
    },
}

/// The error of a writer whose lease was taken by another writer, for authors of checkpointers.
pub fn lease_lost(thread: &str) -> StoreError {
    let problem = "another run has taken the thread, and this run has stored nothing since: read the thread again \
                   before you continue";
    StoreError::new(StoreCode::LeaseLost, problem).on_thread(thread)
}
