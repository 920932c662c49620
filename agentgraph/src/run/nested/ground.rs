//! The starting point of a subgraph call: its own records, those of the call before it in a memory, or
//! nothing.

use super::ChildCall;
use crate::engine::load::{Remains, Replay, RestoredState, read_remains, replay, restore};
use crate::engine::unknown_fields::{check_kept_states, check_results};
use crate::error::{Code, Error};
use crate::persistence::Persistence;
use crate::record::header::{Header, StoredCall};
use crate::run::begin::unknown_checkpoint;
use crate::words::Memory;
use agentgraph_checkpoint::{CheckpointId, Checkpointer, PendingWrite, Place, Source, Tail};

/// The content of a call's namespace.
pub(super) struct FoundRun {
    pub(super) replayed: Box<Replay>,
    pub(super) restored: RestoredState,
    pub(super) left: Remains,
    pub(super) writes: Vec<PendingWrite>,
}

impl FoundRun {
    pub(super) fn is(&self, call: StoredCall) -> bool {
        is_of(&self.replayed, call)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.replayed.header.next.is_empty()
    }
}

/// The starting point of a call.
#[derive(Default)]
pub(super) struct CallGround {
    /// `None` if nothing in the namespace counts yet.
    pub(super) found: Option<FoundRun>,
    /// The branch that it starts, if there is a newer checkpoint.
    pub(super) branch: Option<u32>,
    /// The newest checkpoint of a release that did not name memories.
    pub(super) unnamed: Option<CheckpointId>,
}

impl ChildCall {
    /// Finds the starting point of the call. Its own records come first: they are the newest of their place.
    /// Otherwise a memory starts at the checkpoint that the parent run names, on a branch of its own if that
    /// is not the newest.
    pub(super) async fn ground(&self, persistence: &Persistence, thread: &str) -> Result<CallGround, Error> {
        let place = persistence.place(thread);
        let Some(mut tail) = persistence.saver.get(place, None).await? else {
            return Ok(CallGround::default());
        };
        let newest = replay(&*persistence.saver, place, &mut tail).await?;
        let own = is_of(&newest, self.call());
        if own || self.callee.memory != Memory::PerThread {
            let found = Some(self.restore_run(persistence, place, newest, tail)?);
            return Ok(CallGround { found, ..CallGround::default() });
        }
        let newest_call = newest.header.call.filter(|call| call.is_named);
        // A checkpoint of an earlier release counts for every call.
        let unnamed = match newest_call {
            None => Some(newest.id),
            Some(call) => call.unnamed.map(|(branch, step)| CheckpointId::new(branch, step)),
        };
        let named =
            self.outer.shared.memory(self.outer.namespace()).filter(|_| newest_call.is_some()).or(unnamed);
        let named = match named {
            Some(named) if named != newest.id => Some(with_edits(&*persistence.saver, place, named).await?),
            named => named,
        };
        if named == Some(newest.id) {
            let found = Some(self.restore_run(persistence, place, newest, tail)?);
            return Ok(CallGround { found, branch: None, unnamed });
        }
        let branch = newest.id.branch.checked_add(1).ok_or_else(|| unknown_checkpoint(place, newest.id))?;
        let found = match named {
            None => None,
            Some(named) => {
                let tail = persistence.saver.get(place, Some(named)).await?;
                let mut tail = tail.ok_or_else(|| missing_checkpoint(place, named))?;
                let replayed = replay(&*persistence.saver, place, &mut tail).await?;
                Some(self.restore_run(persistence, place, replayed, tail)?)
            }
        };
        Ok(CallGround { found, branch: Some(branch), unnamed })
    }

    fn restore_run(
        &self,
        persistence: &Persistence,
        place: Place<'_>,
        replayed: Box<Replay>,
        tail: Tail,
    ) -> Result<FoundRun, Error> {
        let core = &self.callee.graph.core;
        let restored = restore(core, persistence, place, &replayed)?;
        let left = read_remains(core, place, (replayed.id, &replayed.header), &tail.writes)?;
        restored.check(core.stored.unknown_fields.keeps, place)?;
        check_kept_states(core, place, &replayed.header.eager.kept)?;
        check_results(core, &self.callee.codec, place, &left.tasks)?;
        Ok(FoundRun { replayed, restored, left, writes: tail.writes })
    }
}

fn is_of(replayed: &Replay, call: StoredCall) -> bool {
    replayed.header.call.is_some_and(|stored| stored.task == call.task)
}

/// The last edit that follows this checkpoint, or the checkpoint itself.
async fn with_edits(
    saver: &dyn Checkpointer,
    place: Place<'_>,
    mut id: CheckpointId,
) -> Result<CheckpointId, Error> {
    loop {
        let Some(step) = id.step.checked_add(1) else { return Ok(id) };
        let next = CheckpointId::new(id.branch, step);
        let Some(row) = saver.row(place, next).await? else { return Ok(id) };
        let header = Header::of_row(place, &row)?;
        match header.source {
            Source::Update | Source::Fork => id = next,
            _ => return Ok(id),
        }
    }
}

fn missing_checkpoint(place: Place<'_>, id: CheckpointId) -> Error {
    let problem = format!(
        "the thread continues from checkpoint {id} of the memory `{}`, which the store no longer has: \
         continue from a later checkpoint of the thread, or start another thread",
        place.namespace
    );
    Error::new(Code::UnknownCheckpoint, problem).on_thread(Some(place.thread))
}
