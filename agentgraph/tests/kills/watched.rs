//! A watching store. It passes a point before and after every write and lease operation, and logs each mark
//! once the mark is stored.

use std::sync::{Arc, Mutex};

use agentgraph::Checkpointer;
use agentgraph::checkpoint::leases::leases_of;
use agentgraph::checkpoint::{Claim, LeaseTerms, Leases, Place, Put, PutWrites, StoreError, delegate};

use super::faults::Fault;
use super::log::{Event, Log};
use super::mark::Mark;
use super::points::Points;

pub struct Watched {
    pub inner: Arc<dyn Checkpointer>,
    pub log: Arc<Log>,
    pub points: Arc<Points>,
    /// A fault of the watching store itself, which the rules must detect.
    pub fault: Option<Fault>,
    /// The marks that are stored but not logged yet, with `Fault::LogsLate`.
    pub unlogged: Mutex<Vec<Mark>>,
}

impl Watched {
    fn begin(&self, point: &'static str, place: Place<'_>, marks: &[Mark]) {
        if self.fault == Some(Fault::LogsTooSoon) {
            self.note(place, marks);
        }
        self.points.pass(point);
    }

    fn end(&self, point: &'static str, place: Place<'_>, marks: &[Mark], stored: &Result<(), StoreError>) {
        match (stored, self.fault) {
            (Ok(()), Some(Fault::LogsLate)) => self.note_late(place, marks),
            (Ok(()), _) => self.note(place, marks),
            (Err(_), _) => {}
        }
        self.points.pass(point);
    }

    fn note_late(&self, place: Place<'_>, marks: &[Mark]) {
        let before = std::mem::replace(&mut *self.unlogged.lock().unwrap(), marks.to_vec());
        let fresh: Vec<Mark> = marks.iter().filter(|mark| !before.contains(mark)).cloned().collect();
        if before.is_empty() || fresh.is_empty() {
            return;
        }
        self.note(place, &fresh);
        self.note(place, &before);
    }

    /// Logs marks as stored. Rows of a subgraph also contain marks of the graph around it; these do not
    /// count.
    fn note(&self, place: Place<'_>, marks: &[Mark]) {
        let its_own = |mark: &&Mark| place.namespace.is_empty() || mark.is_of_subgraph();
        for mark in marks.iter().filter(its_own).filter(|mark| !self.log.has_stored(mark)) {
            self.log.write(Event::Stored { mark: mark.clone() });
        }
    }
}

#[async_trait::async_trait]
impl Checkpointer for Watched {
    async fn put(&self, put: Put<'_>) -> Result<(), StoreError> {
        let marks = Mark::all_in(put.record);
        self.begin("before a commit", put.place, &marks);
        let stored = self.inner.put(put).await;
        self.end("after a commit", put.place, &marks, &stored);
        stored
    }

    fn try_put(&self, put: &Put<'_>) -> Option<Result<(), StoreError>> {
        let marks = Mark::all_in(put.record);
        self.begin("before a commit at once", put.place, &marks);
        let stored = self.inner.try_put(put)?;
        self.end("after a commit at once", put.place, &marks, &stored);
        Some(stored)
    }

    async fn put_writes(&self, put: PutWrites<'_>) -> Result<(), StoreError> {
        let marks: Vec<Mark> = put.writes.iter().flat_map(|write| Mark::all_in(&write.bytes)).collect();
        self.begin("before writes", put.place, &marks);
        let stored = self.inner.put_writes(put).await;
        self.end("after writes", put.place, &marks, &stored);
        stored
    }

    fn leases(&self) -> Option<&dyn Leases> {
        Some(self)
    }

    delegate!(self => &self.inner; get, row, list, threads, delete_thread, outlives_its_process, keeps_secrets);
    delegate!(self => &self.inner; catalog, upkeep);
}

#[async_trait::async_trait]
impl Leases for Watched {
    async fn acquire(&self, thread: &str, terms: LeaseTerms) -> Result<Claim, StoreError> {
        self.points.pass("before the lease");
        let claim = leases_of(&*self.inner).acquire(thread, terms).await?;
        if let Claim::Granted { fence } = claim {
            self.log.write(Event::Took { fence });
            self.points.pass("after the lease");
        }
        Ok(claim)
    }

    async fn release(&self, thread: &str, fence: u64) -> Result<(), StoreError> {
        self.points.pass("before the release");
        let released = leases_of(&*self.inner).release(thread, fence).await;
        self.points.pass("after the release");
        released
    }

    delegate!(self => &self.inner; renew, let_go, released, ask_to_stop, held, hear_stops);
}
