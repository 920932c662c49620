//! A lease: the terms of a request for one, the answer, and the error of a writer that has lost it.

use std::time::SystemTime;

use crate::error::{StoreCode, StoreError};

/// What a writer asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTerms {
    /// The time it is, by the clock of whoever asks.
    pub now: SystemTime,
    /// Until when the lease is to hold, if nobody renews it.
    pub until: SystemTime,
    /// Take the thread from whoever has it.
    pub seize: bool,
}

/// What became of the wish for a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The thread is the writer's.
    Granted {
        /// To be given with everything it stores.
        fence: u64,
    },
    /// Another one has it.
    Held {
        /// The other's fence.
        fence: u64,
        /// Until when, if nobody renews it.
        until: SystemTime,
    },
}

/// The error of a writer whose lease is another's by now, for authors of checkpointers.
pub fn lease_lost(thread: &str) -> StoreError {
    let problem = "another run has taken the thread meanwhile, so nothing of this one was stored since: read the thread \
                   again before you go on";
    StoreError::new(StoreCode::LeaseLost, problem).on_thread(thread)
}
