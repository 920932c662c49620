//! A saver around another one. It notes what is stored, fails on demand, and can be dropped in the
//! middle of a call.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use agentgraph::checkpoint::leases::leases_of;
use agentgraph::checkpoint::{
    Catalog, Leases, PendingWrite, Place, Put, PutWrites, Rewrite, StoreCode, StoreError, Tail, Upkeep,
    Usage, Waiting, WaitingQuery, catalog, delegate, upkeep,
};
use agentgraph::{CheckpointId, Checkpointer, MemorySaver};
use futures_util::future::BoxFuture;

use super::poll::pending_for;

/// A saver whose `put` and `put_writes` are pending once before they store and once after it.
#[derive(Clone)]
pub struct NotingSaver {
    inner: Arc<dyn Checkpointer>,
    notes: Arc<Mutex<Notes>>,
    awaits: bool,
}

#[derive(Default)]
struct Notes {
    stored: Vec<Vec<u8>>,
    /// Every `<text>` in the stored bytes.
    marked: HashSet<Vec<u8>>,
    puts: u64,
    put_bytes: u64,
    /// The pending writes of each call.
    writes: Vec<Vec<PendingWrite>>,
    fail_puts: u32,
    fail_writes: u32,
    writes_before_failure: u32,
    fail_rewrites: u32,
    rewrites_before_failure: u32,
    /// The threads whose leases were renewed.
    renewed: Vec<String>,
    /// The thread whose commits and renewals never end.
    hangs: Option<String>,
    /// The future that is awaited before the next read of a thread.
    meanwhile: Option<BoxFuture<'static, ()>>,
}

impl NotingSaver {
    pub fn new(inner: impl Checkpointer) -> Self {
        NotingSaver { inner: Arc::new(inner), notes: Arc::default(), awaits: true }
    }

    pub fn memory() -> Self {
        Self::new(MemorySaver::new())
    }

    /// Stores without ever being pending.
    pub fn at_once(mut self) -> Self {
        self.awaits = false;
        self
    }

    /// Whether a stored record or pending write contains this text.
    pub fn has_stored(&self, text: &str) -> bool {
        let notes = self.notes.lock().unwrap();
        notes.stored.iter().any(|bytes| bytes.windows(text.len()).any(|window| window == text.as_bytes()))
    }

    /// Whether stored bytes contain this text, which is in angle brackets. Faster than
    /// [`has_stored`](Self::has_stored).
    pub fn has_stored_marked(&self, text: &str) -> bool {
        self.notes.lock().unwrap().marked.contains(text.as_bytes())
    }

    /// Awaits `happens` before the next read of a thread.
    pub fn meanwhile(&self, happens: impl Future<Output = ()> + Send + 'static) {
        self.notes.lock().unwrap().meanwhile = Some(Box::pin(happens));
    }

    /// Returns the number of stored checkpoints.
    pub fn puts(&self) -> u64 {
        self.notes.lock().unwrap().puts
    }

    /// Returns the total size of all stored records and segments.
    pub fn put_bytes(&self) -> u64 {
        self.notes.lock().unwrap().put_bytes
    }

    /// Returns every stored pending write, in order.
    pub fn writes(&self) -> Vec<PendingWrite> {
        self.notes.lock().unwrap().writes.concat()
    }

    /// Returns every stored pending write, grouped by call.
    pub fn writes_by_call(&self) -> Vec<Vec<PendingWrite>> {
        self.notes.lock().unwrap().writes.clone()
    }

    /// Lets the next `count` commits fail.
    pub fn fail_puts(&self, count: u32) {
        self.notes.lock().unwrap().fail_puts = count;
    }

    /// Lets the next `count` calls that store pending writes fail.
    pub fn fail_writes(&self, count: u32) {
        let mut notes = self.notes.lock().unwrap();
        (notes.fail_writes, notes.writes_before_failure) = (count, 0);
    }

    /// Lets one call that stores pending writes fail, after `others` further ones.
    pub fn fail_writes_after(&self, others: u32) {
        let mut notes = self.notes.lock().unwrap();
        (notes.fail_writes, notes.writes_before_failure) = (1, others);
    }

    /// Lets one call that rewrites rows fail, after `others` further ones.
    pub fn fail_rewrite_after(&self, others: u32) {
        let mut notes = self.notes.lock().unwrap();
        (notes.fail_rewrites, notes.rewrites_before_failure) = (1, others);
    }

    /// Lets the next `count` calls that rewrite rows fail.
    pub fn fail_rewrites(&self, count: u32) {
        self.notes.lock().unwrap().fail_rewrites = count;
    }

    /// Returns the number of calls that are still to fail.
    pub fn still_to_fail(&self) -> u32 {
        let notes = self.notes.lock().unwrap();
        notes.fail_puts + notes.fail_writes + notes.fail_rewrites
    }

    /// Keeps all commits and renewals of the thread from ending.
    pub fn hang(&self, thread: &str) {
        self.notes.lock().unwrap().hangs = Some(thread.to_owned());
    }

    /// Returns the threads whose leases were renewed since the last call of this function.
    pub fn renewed(&self) -> Vec<String> {
        std::mem::take(&mut self.notes.lock().unwrap().renewed)
    }

    async fn may_hang(&self, thread: &str) {
        let hangs = self.notes.lock().unwrap().hangs.as_deref() == Some(thread);
        if hangs {
            std::future::pending::<()>().await;
        }
    }

    async fn yield_once(&self) {
        if self.awaits {
            pending_for(1).await;
        }
    }
}

impl Notes {
    fn note(&mut self, bytes: &[u8]) {
        let ends = bytes.split_inclusive(|byte| *byte == b'>');
        let marked =
            ends.filter_map(|text| Some(text[text.iter().rposition(|byte| *byte == b'<')?..].to_vec()));
        self.marked.extend(marked);
        self.stored.push(bytes.to_vec());
    }
}

fn take_failure(left: &mut u32) -> Result<(), StoreError> {
    if *left == 0 {
        return Ok(());
    }
    *left -= 1;
    Err(StoreError::new(StoreCode::Store, "the disk of this test is full"))
}

#[async_trait::async_trait]
impl Checkpointer for NotingSaver {
    async fn get(&self, place: Place<'_>, at: Option<CheckpointId>) -> Result<Option<Tail>, StoreError> {
        let meanwhile = self.notes.lock().unwrap().meanwhile.take();
        if let Some(happens) = meanwhile {
            happens.await;
        }
        self.inner.get(place, at).await
    }

    async fn put(&self, put: Put<'_>) -> Result<(), StoreError> {
        self.yield_once().await;
        self.may_hang(put.place.thread).await;
        take_failure(&mut self.notes.lock().unwrap().fail_puts)?;
        self.inner.put(put).await?;
        {
            let mut notes = self.notes.lock().unwrap();
            notes.note(put.record);
            notes.puts += 1;
            notes.put_bytes +=
                put.record.len() as u64 + put.segment.map_or(0, |segment| segment.len() as u64);
        }
        self.yield_once().await;
        Ok(())
    }

    async fn put_writes(&self, put: PutWrites<'_>) -> Result<(), StoreError> {
        let writes = put.writes;
        self.yield_once().await;
        {
            let mut notes = self.notes.lock().unwrap();
            match notes.writes_before_failure.checked_sub(1) {
                Some(left) => notes.writes_before_failure = left,
                None => take_failure(&mut notes.fail_writes)?,
            }
        }
        self.inner.put_writes(put).await?;
        {
            let mut notes = self.notes.lock().unwrap();
            notes.writes.push(writes.to_vec());
            let results = [0..1, PendingWrite::KEPT..PendingWrite::SPECIAL];
            let is_result = |write: &&PendingWrite| results.iter().any(|slots| slots.contains(&write.slot));
            writes.iter().filter(is_result).for_each(|write| notes.note(&write.bytes));
        }
        self.yield_once().await;
        Ok(())
    }

    fn outlives_its_process(&self) -> bool {
        true
    }

    fn keeps_secrets(&self) -> bool {
        false
    }

    fn leases(&self) -> Option<&dyn Leases> {
        Some(self)
    }

    fn catalog(&self) -> Option<&dyn Catalog> {
        Some(self)
    }

    fn upkeep(&self) -> Option<&dyn Upkeep> {
        Some(self)
    }

    delegate!(self => &self.inner; row, list, threads, delete_thread);
}

#[async_trait::async_trait]
impl Leases for NotingSaver {
    async fn renew(&self, thread: &str, fence: u64, until: SystemTime) -> Result<bool, StoreError> {
        self.notes.lock().unwrap().renewed.push(thread.to_owned());
        self.may_hang(thread).await;
        leases_of(&*self.inner).renew(thread, fence, until).await
    }

    async fn release(&self, thread: &str, fence: u64) -> Result<(), StoreError> {
        self.yield_once().await;
        leases_of(&*self.inner).release(thread, fence).await
    }

    delegate!(self => &self.inner; acquire, let_go, released, ask_to_stop, held, hear_stops);
}

#[async_trait::async_trait]
impl Catalog for NotingSaver {
    async fn waiting(&self, query: WaitingQuery<'_>) -> Result<Vec<Waiting>, StoreError> {
        catalog::waiting(&*self.inner, query).await
    }

    async fn namespaces(&self, thread: &str) -> Result<Vec<String>, StoreError> {
        catalog::namespaces(&*self.inner, thread).await
    }

    async fn branches(&self, place: Place<'_>) -> Result<Vec<u32>, StoreError> {
        catalog::branches(&*self.inner, place).await
    }

    async fn usage(&self) -> Result<Usage, StoreError> {
        catalog::usage(&*self.inner).await
    }
}

#[async_trait::async_trait]
impl Upkeep for NotingSaver {
    async fn copy_thread(&self, from: &str, to: &str) -> Result<(), StoreError> {
        upkeep::copy_thread(&*self.inner, from, to).await
    }

    async fn rewrite(&self, rewrite: Rewrite<'_>) -> Result<(), StoreError> {
        {
            let mut notes = self.notes.lock().unwrap();
            match notes.rewrites_before_failure.checked_sub(1) {
                Some(left) => notes.rewrites_before_failure = left,
                None => take_failure(&mut notes.fail_rewrites)?,
            }
        }
        upkeep::rewrite(&*self.inner, rewrite).await
    }

    async fn compact(&self) -> Result<(), StoreError> {
        upkeep::compact(&*self.inner).await
    }
}
