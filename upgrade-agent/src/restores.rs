//! [`RestoreDue`]: a status that a plan changed and could not restore.
//!
//! The thread of the plan keeps it in its state and tries again at each turn. A note in the store, which all
//! threads share, lets other threads say so. The note is made before the plan changes anything and removed
//! after the restore, so it is also there while the plan runs.

use std::sync::Arc;

use agentgraph::Ctx;
use agentgraph::store::{Namespace, Store, StoreExt};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::actions::{ExperimentRef, display};
use crate::client::ExperimentState;

const NOTES: &str = "restores";

/// A status to restore.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RestoreDue {
    /// The experiment.
    pub experiment: ExperimentRef,
    /// The status before the plan.
    pub first: ExperimentState,
    /// The statuses that the plan may have left behind. If the experiment has another status, somebody else
    /// set it, and it is not restored.
    pub left: Vec<ExperimentState>,
}

#[derive(Serialize, Deserialize)]
struct SharedNote {
    experiment: ExperimentRef,
    first: ExperimentState,
    thread: String,
}

/// Tells other threads that a plan changes the status of an experiment.
pub(crate) async fn announce(ctx: &Ctx, experiment: &ExperimentRef, first: &ExperimentState) {
    let (Ok(store), Some(thread)) = (ctx.store(), ctx.thread()) else { return };
    let note = json!({ "experiment": experiment, "first": first, "thread": thread });
    let put = async { store.put(&Namespace::new([NOTES])?, &experiment.id, note).await };
    if let Err(error) = put.await {
        tracing::warn!(%error, "other conversations cannot be told of a status to restore");
    }
}

/// Removes the note of [`announce`].
pub(crate) async fn withdraw(ctx: &Ctx, experiment: &str) {
    let Ok(store) = ctx.store() else { return };
    remove(store.as_ref(), experiment).await;
}

async fn remove(store: &dyn Store, experiment: &str) {
    let deleted = async { store.delete(&Namespace::new([NOTES])?, experiment).await };
    if let Err(error) = deleted.await {
        tracing::warn!(%error, "other conversations are still told of a status that was restored");
    }
}

async fn notes(store: &dyn Store) -> Vec<SharedNote> {
    let found = async { store.search(&Namespace::new([NOTES])?).await };
    match found.await {
        Ok(found) => {
            found.into_iter().filter_map(|found| serde_json::from_value(found.item.value).ok()).collect()
        }
        Err(error) => {
            tracing::warn!(%error, "statuses to restore are not known");
            Vec::new()
        }
    }
}

/// The threads with a status to restore, except those that run a plan in this moment.
pub(crate) async fn threads(store: &Arc<dyn Store>) -> Vec<String> {
    let mut threads: Vec<String> = notes(store.as_ref()).await.into_iter().map(|note| note.thread).collect();
    threads.sort();
    threads.dedup();
    threads
}

/// Removes the notes of a thread that does not exist any more.
pub(crate) async fn forget(store: &Arc<dyn Store>, thread: &str) {
    for note in notes(store.as_ref()).await.into_iter().filter(|note| note.thread == thread) {
        remove(store.as_ref(), &note.experiment.id).await;
    }
}

/// A sentence for each of these experiments whose status a plan of another thread has to restore.
pub(crate) async fn elsewhere(ctx: &Ctx, experiments: &[String]) -> Vec<String> {
    let Ok(store) = ctx.store() else { return Vec::new() };
    if experiments.is_empty() {
        return Vec::new();
    }
    let others = notes(store.as_ref()).await.into_iter().filter(|note| {
        experiments.contains(&note.experiment.id) && Some(note.thread.as_str()) != ctx.thread()
    });
    let sentence = |note: SharedNote| {
        format!(
            "A test of experiment '{}' in the conversation {} changed its status and has not restored {} yet: it still runs, \
             or it was cut off and is restored when that conversation goes on.",
            display(&note.experiment.name),
            display(&note.thread),
            note.first
        )
    };
    others.map(sentence).collect()
}
