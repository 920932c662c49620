//! Who takes a thread, and gives back one that nobody wants any more.

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Object;
use tokio::spawn;
use tokio::sync::oneshot;

use super::fault::Fault;
use super::leases::{self, Absent, Wish};
use super::listen::Listener;
use super::{Calls, answered};
use crate::error::{StoreCode, StoreError};
use crate::lease::{Claim, LeaseTerms};

/// What it takes to ask for a thread, beside the saver.
pub(super) struct Taker {
    pub(super) calls: Calls,
    pub(super) listener: Arc<Listener>,
    pub(super) absent: Arc<Absent>,
    pub(super) grace: Duration,
    pub(super) thread: String,
}

/// A thread that was taken, until whoever asked knows its fence. Dropped, it is given back.
struct Unclaimed(Option<(Taker, u64)>);

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if let Some((taker, fence)) = self.0.take() {
            taker.let_go(fence);
        }
    }
}

impl Taker {
    /// Asks in a task of its own: the server takes the thread also for one who was dropped while he waited
    /// for the answer.
    pub(super) async fn ask(self, terms: LeaseTerms) -> Result<Wish, Fault> {
        let (tell, told) = oneshot::channel();
        spawn(async move {
            let absent = (&*self.absent, self.grace);
            let wish = answered!(self.calls, connection => {
                leases::acquire(&connection, self.listener.owner(), absent, &self.thread, terms).await
            });
            let taken = match &wish {
                Ok(Wish::Done(Claim::Granted { fence })) => Some((self, *fence)),
                _ => None,
            };
            // What cannot be told is given back.
            let _ = tell.send((wish, Unclaimed(taken)));
        });
        let (wish, mut unclaimed) = told.await.map_err(|_| {
            let problem = "the thread was not taken: the runtime that asks for it is being shut down";
            StoreError::new(StoreCode::Store, problem)
        })?;
        unclaimed.0 = None;
        wish
    }

    /// By a task, if there is a runtime to spawn one on. A lease that cannot be given back ends by time.
    pub(super) fn let_go(self, fence: u64) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            if let Ok(connection) = self.calls.connection().await {
                let _ = leases::release(&connection, self.listener.channel(), &self.thread, fence).await;
            }
        });
    }
}
