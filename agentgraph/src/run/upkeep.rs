//! Maintaining threads: pruning by hand and by policy, deleting, copying.

use std::sync::Arc;

use futures_util::{FutureExt, TryFutureExt};

use super::open::StoredTasks;
use super::problem::ThreadProblem;
use crate::engine::journal::Pruning;
use crate::engine::load::read_remains;
use crate::error::{Code, Error};
use crate::graph::run_graph::RunGraph;
use crate::graph::{Discipline, GraphCore};
use crate::persistence::Persistence;
use crate::persistence::lease::{LeaseSource, TakenThread, busy};
use crate::record::header::Header;
use crate::run::CompiledGraph;
use crate::run::attached::Attached;
use crate::state::State;
use agentgraph_checkpoint::catalog::namespaces;
use agentgraph_checkpoint::engine::Leased;
use agentgraph_checkpoint::prune::{prune_place, remove_place};
use agentgraph_checkpoint::upkeep::{compact, copy_thread};
use agentgraph_checkpoint::{CheckpointId, Checkpointer, Place, Retention, TaskId, awaited};
use tokio_util::sync::CancellationToken;

/// A builder of a pruning: `graph.prune(Retention::keep_last(10)).await?` for every thread of the store, or
/// `.thread("t-1")` for one.
///
/// Pruning is safe while runs are active. Each thread is leased as for a run, and a busy one is skipped until
/// the next time. A thread with unreadable records is skipped too, and listed in [`Pruned::failed`]; it is an
/// error only if it was selected with `.thread(..)`. The records of subgraph calls are removed as well,
/// unless their superstep is still open.
#[must_use = "nothing is pruned until it is awaited"]
pub struct Prune {
    graph: Arc<Attached>,
    retention: Retention,
    thread: Option<Arc<str>>,
}

/// The result of pruning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pruned {
    /// The number of removed checkpoints.
    pub checkpoints: u64,
    /// The number of examined threads.
    pub threads: u64,
    /// The busy threads, which were skipped.
    pub busy: Vec<String>,
    /// The threads that could not be pruned, since something in them cannot be read or stored.
    pub failed: Vec<ThreadProblem>,
}

/// Pruning ends if the store fails for this number of threads in a row.
const STORE_IS_GONE: u32 = 3;

impl Prune {
    fn new(graph: Arc<Attached>, retention: Retention) -> Self {
        Prune { graph, retention, thread: None }
    }

    /// Prunes only that thread.
    pub fn thread(mut self, thread: impl AsRef<str>) -> Self {
        self.thread = Some(Arc::from(thread.as_ref()));
        self
    }

    async fn carry_out(self) -> Result<Pruned, Error> {
        let persistence = self.graph.kept()?;
        let threads = match &self.thread {
            Some(thread) => vec![Arc::clone(thread)],
            None => persistence.saver.threads().await?.into_iter().map(Arc::from).collect(),
        };
        let mut pruned = Pruned::default();
        let mut failed_stores = 0;
        for thread in threads {
            persistence.settle(&thread).await;
            match self.prune(persistence, &thread).await {
                Ok(checkpoints) => {
                    pruned.threads += 1;
                    pruned.checkpoints += checkpoints;
                    failed_stores = 0;
                }
                Err(error) if error.code() == Code::ThreadBusy => pruned.busy.push(thread.to_string()),
                Err(error) if self.thread.is_some() => return Err(error.on_thread(Some(&thread))),
                Err(error) => {
                    failed_stores = if error.code() == Code::Store { failed_stores + 1 } else { 0 };
                    if failed_stores == STORE_IS_GONE {
                        return Err(error.on_thread(Some(&thread)));
                    }
                    pruned.failed.push(ThreadProblem::of(&thread, &error));
                }
            }
        }
        compact(&*persistence.saver).await?;
        Ok(pruned)
    }

    async fn prune(&self, persistence: &Persistence, thread: &Arc<str>) -> Result<u64, Error> {
        let services = &self.graph.shared.services;
        let ground = LeaseSource::of(persistence, services);
        let Some(TakenThread { lease, .. }) = ground.take(thread).await? else { return Err(busy(thread)) };
        let saver = Leased { inner: Arc::clone(&persistence.saver), fence: lease.fence() };
        let pruning = prune_thread(&self.graph, &saver, thread, &self.retention, false);
        let pruned = lease.run_while_held(pruning).await;
        lease.end().await;
        pruned.map(|[removed, _]| removed)
    }
}

awaited!([] Prune: 'static Result<Pruned, Error> = |prune| prune.carry_out());

/// Whether enough was stored since a call started to make pruning worthwhile.
pub(super) fn is_due(retention: &Retention, began_at: u64, ended_at: Option<CheckpointId>) -> bool {
    let stride = retention.stride();
    ended_at.is_some_and(|ended_at| ended_at.step / stride > began_at / stride)
}

/// Applies the policy to a thread while a run goes on.
pub(super) fn pruning(graph: &Attached, thread: &Arc<str>, retention: &Retention) -> Pruning {
    let (graph, thread, policy) = (graph.clone(), Arc::clone(thread), retention.clone());
    let prune = move |saver: Arc<dyn Checkpointer>| {
        let (graph, thread, policy) = (graph.clone(), Arc::clone(&thread), policy.clone());
        let pruned = async move { prune_thread(&graph, &*saver, &thread, &policy, true).await };
        pruned.map_ok(|[_, kept]| kept).boxed()
    };
    Pruning::new(retention.stride(), Box::new(prune))
}

/// Prunes a thread that no run writes meanwhile. If `committed`, a run has just made the newest
/// checkpoint, and none of its tasks has started.
/// Returns the number of removed checkpoints, and of those of the root that stay.
pub(super) async fn prune_thread(
    graph: &Attached,
    saver: &dyn Checkpointer,
    thread: &str,
    retention: &Retention,
    committed: bool,
) -> Result<[u64; 2], Error> {
    let now = graph.shared.services.now();
    let root = Place::root(thread);
    let open = open_tasks(&graph.core, saver, root).await?;
    // The root first: the checkpoints that it names stay until it no longer names them.
    let ([mut removed, kept], named) = prune_place(saver, root, retention, now, None).await?;
    for namespace in namespaces(saver, thread).await? {
        let place = Place { thread, namespace: &namespace };
        match (namespace.is_empty(), call_of(&namespace), &open) {
            (true, ..) => {}
            // The records of an open superstep's tasks stay, whatever the policy.
            (_, None, Some(_)) if !committed || graph.core.rules.discipline != Discipline::Superstep => {}
            (_, None, _) => {
                removed += prune_place(saver, place, retention, now, named.get(&namespace)).await?.0[0];
            }
            (_, Some(call), Some(open)) if open.iter().any(|task| task.to_string() == call) => {}
            (_, Some(_), _) => remove_place(saver, place).await?,
        }
    }
    Ok([removed, kept])
}

/// The outermost call that a namespace belongs to; `None` for the memory of a whole thread.
fn call_of(namespace: &str) -> Option<&str> {
    let per_call = |part: &&str| part.contains(':');
    let outermost = namespace.split('|').find(per_call)?;
    outermost.split(':').nth(1)
}

/// The tasks of the open superstep at the newest checkpoint, by all ids that they ever had.
async fn open_tasks(
    core: &Arc<GraphCore>,
    saver: &dyn Checkpointer,
    place: Place<'_>,
) -> Result<Option<Vec<TaskId>>, Error> {
    let Some(tail) = saver.get(place, None).await? else { return Ok(None) };
    let header = Header::of_rows(place, &tail.rows)?;
    let id = tail.rows.last().map(|row| row.id).unwrap_or_default();
    if header.next.is_empty() {
        return Ok(None);
    }
    let left = read_remains(core, place, (id, &header), &tail.writes)?.tasks;
    let core = RunGraph::restore(core, &header, &mut Vec::new());
    let tasks = StoredTasks { core: &core, place, header: &header, id, left: &left };
    Ok(Some(tasks.ids_and_calls()))
}

/// # Keeping threads
impl<S: State> CompiledGraph<S> {
    /// Removes checkpoints that a policy does not keep, and returns the space to the system: see
    /// [`Retention`] and [`Prune`].
    pub fn prune(&self, retention: Retention) -> Prune {
        Prune::new(self.any.clone(), retention)
    }

    /// Prunes threads automatically: while a run goes on and at the end of a call, whenever enough
    /// checkpoints were made since the last time. Call it after [`checkpointer`](Self::checkpointer).
    ///
    /// Between two prunings a thread has at most about twice the checkpoints that the policy keeps, or 32
    /// more; if its state is large, as many as have the bytes of the state. The records of a subgraph stay
    /// until its call has ended.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
    /// # struct Count { n: u64 }
    /// # async fn count(state: Snapshot<Count>) -> CountUpdate { Count::update().n(state.n + 1) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// use agentgraph::checkpoint::Retention;
    ///
    /// # let graph = StateGraph::new().node("count", count).edge(START, "count").edge("count", "count").compile()?;
    /// let graph = graph.checkpointer(MemorySaver::new()).retention(Retention::keep_last(10));
    /// graph.invoke(Count::update()).thread("t-1").max_supersteps(1_000).await?;
    /// assert!(graph.history("t-1").await?.len() < 50);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Freed space is used again; [`prune`](Self::prune) also returns it to the system.
    #[must_use]
    pub fn retention(mut self, retention: Retention) -> Self {
        if let Some(persistence) = &mut self.attached().persistence {
            persistence.retention = Some(retention);
        }
        self
    }

    /// Removes everything of a thread from the store: checkpoints, remains of tasks, subgraphs, its lease. A
    /// run on the thread cannot store anything any more and ends with [`Code::LeaseLost`].
    ///
    /// # Errors
    /// Without a checkpointer, or if the store fails.
    pub async fn delete_thread(&self, thread: impl AsRef<str>) -> Result<(), Error> {
        self.any.delete_thread(thread.as_ref()).await
    }

    /// Copies a thread with its history to a new one. The two are independent afterwards.
    ///
    /// A copy of a waiting thread continues from its last checkpoint. Its open interrupts have new ids, and
    /// the results of finished tasks in the open superstep are kept; calls of subgraphs that had started
    /// start again.
    ///
    /// The store copies in one transaction and assigns the new ids in the next. A process killed in between
    /// leaves a copy whose open superstep starts again, and whose interrupts cannot be answered. Copying
    /// again completes it. After a run has continued on either thread this is no longer possible: delete the
    /// copy first.
    ///
    /// # Errors
    /// [`Code::UnknownThread`] if `from` does not exist; [`Code::ThreadExists`] if `to` contains anything but
    /// an incomplete copy, also if that is only pending writes; [`Code::ThreadBusy`] if a run is active on
    /// `to`; without a checkpointer; if the store fails.
    pub async fn copy_thread(&self, from: impl AsRef<str>, to: impl AsRef<str>) -> Result<(), Error> {
        self.any.copy_thread(from.as_ref(), to.as_ref()).await
    }
}

impl Attached {
    async fn delete_thread(&self, thread: &str) -> Result<(), Error> {
        let persistence = self.kept()?;
        persistence.settle(thread).await;
        let runs = persistence.keeper.runs_on(thread);
        persistence.saver.delete_thread(thread).await?;
        // Afterwards: the next call on the thread must not find what such a run has left.
        runs.iter().for_each(CancellationToken::cancel);
        Ok(())
    }

    async fn copy_thread(self: &Arc<Self>, from: &str, to: &str) -> Result<(), Error> {
        let persistence = self.kept()?;
        persistence.settle(from).await;
        persistence.settle(to).await;
        let saver = &*persistence.saver;
        match copy_thread(saver, from, to).await {
            Err(error) if error.code() != Code::ThreadExists || !are_alike(saver, from, to).await? => {
                Err(error.into())
            }
            Ok(()) => super::edit::adopt_copy(self, from, to).await.map(drop),
            // The copy may be complete already.
            Err(exists) => {
                if super::edit::adopt_copy(self, from, to).await? {
                    Ok(())
                } else {
                    Err(exists.into())
                }
            }
        }
    }
}

/// Whether both threads have equal records, byte by byte: neither has continued since the store copied it.
async fn are_alike(saver: &dyn Checkpointer, from: &str, to: &str) -> Result<bool, Error> {
    let copied = namespaces(saver, to).await?;
    if from == to || copied.is_empty() || copied != namespaces(saver, from).await? {
        return Ok(false);
    }
    for namespace in copied {
        let place = |thread| Place { thread, namespace: &namespace };
        let original = place(from);
        let copy = place(to);
        if saver.get(original, None).await? != saver.get(copy, None).await? {
            return Ok(false);
        }
    }
    Ok(true)
}
