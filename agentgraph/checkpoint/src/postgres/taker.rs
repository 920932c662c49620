//! Takes threads, and releases those that no caller wants any more.

use std::sync::Arc;
use std::time::Duration;

use tokio::spawn;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::fault::Fault;
use super::leases::{self, Absent, Wish};
use super::listen::Listener;
use super::{Calls, answered};
use crate::error::{StoreCode, StoreError};
use crate::lease::{Claim, LeaseTerms};

/// The parts needed to ask for a thread, besides the saver.
pub(super) struct Taker {
    pub(super) calls: Calls,
    pub(super) listener: Arc<Listener>,
    pub(super) absent: Arc<Absent>,
    pub(super) grace: Duration,
    pub(super) thread: String,
}

/// A taken thread, until the caller has received its fence. Dropping it releases the thread.
struct Unclaimed(Option<(Taker, u64)>);

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if let Some((taker, fence)) = self.0.take() {
            taker.let_go(fence);
        }
    }
}

impl Taker {
    /// Asks in a separate task: the server takes the thread even if the caller is dropped while it waits
    /// for the answer.
    pub(super) async fn ask(self, terms: LeaseTerms, deadline: Instant) -> Result<Wish, Fault> {
        let (tell, told) = oneshot::channel();
        spawn(async move {
            let absent = (&*self.absent, self.grace);
            let wish = answered!(self.calls, deadline, connection => {
                leases::acquire(connection, self.listener.owner(), absent, &self.thread, terms).await
            });
            let taken = match &wish {
                Ok(Wish::Done(Claim::Granted { fence })) => Some((self, *fence)),
                _ => None,
            };
            // If the caller is gone, dropping the message releases the thread.
            let _ = tell.send((wish, Unclaimed(taken)));
        });
        let (wish, mut unclaimed) = told.await.map_err(|_| {
            let problem = "the thread was not taken: the runtime that asks for it is being shut down";
            StoreError::new(StoreCode::Store, problem)
        })?;
        unclaimed.0 = None;
        wish
    }

    /// In a spawned task, if there is a runtime. A lease that cannot be released ends by time.
    pub(super) fn let_go(self, fence: u64) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let deadline = self.calls.deadline();
            let _ = answered!(self.calls, deadline, connection => {
                leases::release(connection, self.listener.channel(), &self.thread, fence).await
            });
        });
    }
}
