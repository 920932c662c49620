//! A lease: the terms of a request, the answer, the list of held leases, and the error of a writer that lost
//! its lease.

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
        /// The end of that lease, unless it is renewed. It may be in the past: see
        /// [`Leases::acquire`](crate::Leases::acquire).
        until: SystemTime,
    },
}

/// Which leases [`Leases::held`](crate::Leases::held) returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldQuery<'a> {
    /// The current time by the clock of the caller: leases that have ended by then are left out.
    pub now: SystemTime,
    /// Only the lease of this thread.
    pub thread: Option<&'a str>,
    /// Only leases whose writers were asked to stop.
    pub asked_to_stop: bool,
    /// Only threads after this one, in alphabetical order.
    pub after: Option<&'a str>,
    /// The most leases.
    pub limit: Option<usize>,
}

impl HeldQuery<'_> {
    /// All leases that are held at that time.
    pub const fn at(now: SystemTime) -> Self {
        HeldQuery { now, thread: None, asked_to_stop: false, after: None, limit: None }
    }
}

/// A lease that a writer holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLease {
    /// The thread.
    pub thread: String,
    /// The fence of the writer.
    pub fence: u64,
    /// The end of the lease, unless it is renewed.
    pub until: SystemTime,
    /// Whether the writer was [asked to stop](crate::Leases::ask_to_stop).
    pub asked_to_stop: bool,
}

/// Hears at once of requests to stop that reach a store in this process: see
/// [`Leases::hear_stops`](crate::Leases::hear_stops).
pub trait HearsStops: Send + Sync {
    /// The writer of the thread with this fence was asked to stop.
    fn asked_to_stop(&self, thread: &str, fence: u64);
}

/// The error of a writer whose lease was taken by another writer, for authors of checkpointers.
pub fn lease_lost(thread: &str) -> StoreError {
    let problem = "another run has taken the thread, and this run has stored nothing since: read the thread again \
                   before you continue";
    StoreError::new(StoreCode::LeaseLost, problem).on_thread(thread)
}
