//! Durable steps of a task that runs for a host: their results are stored by the id of the task, in a thread
//! of their own, so that every process that runs the task again has them.

use std::pin::pin;
use std::sync::Arc;

use crate::context::{Control, NewOnce};
use crate::engine::once::{beside, or_unstored};
use crate::engine::stored::{once_result, once_write};
use crate::error::Error;
use crate::record::once::StoredOnce;
use agentgraph_checkpoint::frame::{HeaderWriter, complete};
use agentgraph_checkpoint::{
    CheckpointId, Checkpointer, PendingWrite, Place, Put, PutWrites, RowKind, RunId, Source, StoreCode,
    TaskId,
};

/// Deletes the results of durable steps that a task stored with [`once_in`](super::TaskRun::once_in): when
/// its run is over, or has stored the result of the task.
///
/// # Errors
/// If the store fails.
pub async fn forget_once(saver: &dyn Checkpointer, task: TaskId) -> Result<(), Error> {
    Ok(saver.delete_thread(&thread_of(task)).await?)
}

fn thread_of(task: TaskId) -> String {
    format!("once/{task}")
}

/// The results of one task.
pub(super) struct FarOnce {
    saver: Arc<dyn Checkpointer>,
    thread: String,
    run: RunId,
    task: TaskId,
    /// Whether the thread exists.
    begun: bool,
    /// The results in the store.
    steps: u32,
}

impl FarOnce {
    pub(super) fn new(saver: Arc<dyn Checkpointer>, run: RunId, task: TaskId) -> Self {
        FarOnce { saver, thread: thread_of(task), run, task, begun: false, steps: 0 }
    }

    /// The results so far.
    pub(super) async fn load(&mut self) -> Result<Vec<(u32, StoredOnce)>, Error> {
        let Some(tail) = self.saver.get(Place::root(&self.thread), None).await? else {
            return Ok(Vec::new());
        };
        self.begun = true;
        let own = tail.writes.iter().filter(|write| write.task == self.task);
        let found: Vec<_> =
            own.filter_map(|write| once_result(write).transpose()).collect::<Result<_, Error>>()?;
        self.steps = u32::try_from(found.len()).unwrap_or(u32::MAX);
        Ok(found)
    }

    /// The number of results in the store.
    pub(super) fn steps(&self) -> u32 {
        self.steps
    }

    /// Runs an attempt to its end. Each result is in the store before its step is woken.
    pub(super) async fn around<T>(
        &mut self,
        control: &Control,
        attempt: impl Future<Output = T>,
    ) -> Result<T, Error> {
        let mut attempt = pin!(attempt);
        loop {
            if let Some(ended) = or_unstored(control, &mut attempt).await {
                return Ok(ended);
            }
            let new = control.take_unstored();
            let (stored, ended) = beside(self.put(&new), &mut attempt).await;
            stored?;
            control.mark_stored(&new);
            if let Some(ended) = ended {
                return Ok(ended);
            }
        }
    }

    async fn put(&mut self, new: &[NewOnce]) -> Result<(), Error> {
        let place = Place::root(&self.thread);
        let at = CheckpointId::default();
        if !self.begun {
            let mut record = Vec::new();
            let mut header = HeaderWriter::begin(&mut record);
            header.value("run", &self.run);
            header.value("source", &Source::Input);
            header.finish();
            complete(&mut record, RowKind::Full, &[]);
            match self.saver.put(Put::new(place, at, RowKind::Full, &record)).await {
                // Another process that runs the task was first.
                Err(error) if error.code() == StoreCode::Stale => {}
                put => put?,
            }
            self.begun = true;
        }
        let writes: Vec<PendingWrite> =
            new.iter().map(|one| once_write(self.task, one)).collect::<Result<_, Error>>()?;
        self.saver.put_writes(PutWrites::new(place, at, &writes)).await?;
        self.steps = self.steps.saturating_add(u32::try_from(writes.len()).unwrap_or(u32::MAX));
        Ok(())
    }
}
