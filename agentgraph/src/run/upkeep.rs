//! Keeping threads small: pruning by hand and by policy, deleting, copying.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

use super::open::tasks_and_calls;
use super::problem::ThreadProblem;
use super::view::no_checkpointer;
use crate::engine::load::left_behind;
use crate::error::{Code, Error};
use crate::graph::GraphCore;
use crate::graph::run_graph::RunGraph;
use crate::persistence::Persistence;
use crate::persistence::lease::{Ground, Taken};
use crate::record::header::Header;
use crate::run::CompiledGraph;
use crate::state::State;
use crate::words::WhenBusy;
use agentgraph_checkpoint::catalog::namespaces;
use agentgraph_checkpoint::engine::Leased;
use agentgraph_checkpoint::prune::{prune_place, remove_place};
use agentgraph_checkpoint::upkeep::{compact, copy_thread};
use agentgraph_checkpoint::{CheckpointId, Checkpointer, Place, Retention, TaskId};

/// Pruning in the making: `graph.prune(Retention::keep_last(10)).await?` for every thread of the store, or
/// `.thread("t-1")` for one.
///
/// It is safe while runs go on: each thread is taken like for a run, and one that is busy is left for the
/// next time. So is one of which something cannot be read: [`Pruned::failed`] names it. That is an error only
/// where it is the one that was asked for. What calls of subgraphs have left goes too, unless their superstep
/// is still open.
#[must_use = "nothing is pruned until it is awaited"]
pub struct Prune<S: State> {
    graph: CompiledGraph<S>,
    retention: Retention,
    thread: Option<Arc<str>>,
}

/// What pruning came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pruned {
    /// The checkpoints that were removed.
    pub checkpoints: u64,
    /// The threads that were looked at.
    pub threads: u64,
    /// Those that were busy, and were left as they are.
    pub busy: Vec<String>,
    /// Those that could not be pruned, because something of them cannot be read, or not be stored. The others
    /// were.
    pub failed: Vec<ThreadProblem>,
}

/// A store that has failed for so many threads in a row is not asked for more.
const STORE_IS_GONE: u32 = 3;

impl<S: State> Prune<S> {
    pub(crate) fn new(graph: CompiledGraph<S>, retention: Retention) -> Self {
        Prune { graph, retention, thread: None }
    }

    /// Only that thread.
    pub fn thread(mut self, thread: impl AsRef<str>) -> Self {
        self.thread = Some(Arc::from(thread.as_ref()));
        self
    }

    async fn carry_out(self) -> Result<Pruned, Error> {
        let persistence = self.graph.persistence.as_ref().ok_or_else(no_checkpointer)?;
        let threads = match &self.thread {
            Some(thread) => vec![Arc::clone(thread)],
            None => persistence.saver.threads().await?.into_iter().map(Arc::from).collect(),
        };
        let (mut pruned, mut failed_stores) = (Pruned::default(), 0);
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

    async fn prune(&self, persistence: &Persistence<S>, thread: &Arc<str>) -> Result<u64, Error> {
        let services = &self.graph.shared.services;
        let ground = Ground::of(persistence, services);
        let Taken { lease, .. } = ground.take(thread, WhenBusy::Refuse, None).await?;
        let saver = Leased { inner: Arc::clone(&persistence.saver), fence: lease.fence() };
        let pruned = lease.keep_up(prune_thread(&self.graph, &saver, thread, &self.retention)).await;
        lease.end().await;
        pruned
    }
}

impl<S: State> IntoFuture for Prune<S> {
    type Output = Result<Pruned, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.carry_out())
    }
}

/// Whether so much was stored since a call began that it is worth looking at what can go.
pub(crate) fn is_due(retention: &Retention, began_at: u64, ended_at: Option<CheckpointId>) -> bool {
    let stride = retention.stride();
    ended_at.is_some_and(|ended_at| ended_at.step / stride > began_at / stride)
}

/// Prunes a thread that nobody else writes.
pub(crate) async fn prune_thread<S: State>(
    graph: &CompiledGraph<S>,
    saver: &dyn Checkpointer,
    thread: &str,
    retention: &Retention,
) -> Result<u64, Error> {
    let now = graph.shared.services.now();
    let root = Place::root(thread);
    let open = open_tasks(&graph.core, saver, root).await?;
    // First the root's: what its checkpoints name stays until they are gone.
    let (mut removed, named) = prune_place(saver, root, retention, now, None).await?;
    for namespace in namespaces(saver, thread).await? {
        let place = Place { thread, namespace: &namespace };
        match (namespace.is_empty(), call_of(&namespace), &open) {
            (true, ..) => {}
            // What the tasks of an open superstep have begun is theirs, whatever the policy.
            (_, None, Some(_)) => {}
            (_, None, None) => {
                removed += prune_place(saver, place, retention, now, named.get(&namespace)).await?.0;
            }
            (_, Some(call), Some(open)) if open.iter().any(|task| task.to_string() == call) => {}
            (_, Some(_), _) => remove_place(saver, place).await?,
        }
    }
    Ok(removed)
}

/// The outermost call that a namespace belongs to; `None` for the memory of a whole thread.
fn call_of(namespace: &str) -> Option<&str> {
    let per_call = |part: &&str| part.contains(':');
    let outermost = namespace.split('|').find(per_call)?;
    outermost.split(':').nth(1)
}

/// The tasks of the superstep that is open at the newest checkpoint, by every id that they have had.
async fn open_tasks<S: State>(
    core: &Arc<GraphCore<S>>,
    saver: &dyn Checkpointer,
    place: Place<'_>,
) -> Result<Option<Vec<TaskId>>, Error> {
    let Some(tail) = saver.get(place, None).await? else { return Ok(None) };
    let header = Header::of_rows(place, &tail.rows)?;
    let id = tail.rows.last().map(|row| row.id).unwrap_or_default();
    if header.next.is_empty() {
        return Ok(None);
    }
    let left = left_behind(core, place, (id, &header), &tail.writes)?.tasks;
    let core = RunGraph::restore(core, &header, &mut Vec::new());
    Ok(Some(tasks_and_calls(&core, place, &header, id, &left)))
}

/// # Keeping threads
impl<S: State> CompiledGraph<S> {
    /// Removes checkpoints that a policy does not keep, and gives the space back: see [`Retention`] and
    /// [`Prune`].
    pub fn prune(&self, retention: Retention) -> Prune<S> {
        Prune::new(self.clone(), retention)
    }

    /// The same graph, which prunes the threads that it runs: at the end of a call, and only when so many
    /// checkpoints were made since that it is worth it. Has to come after
    /// [`checkpointer`](Self::checkpointer).
    ///
    /// Space that becomes free is used again; [`prune`](Self::prune) also gives it back to the system.
    #[must_use]
    pub fn retention(mut self, retention: Retention) -> Self {
        if let Some(persistence) = &mut self.persistence {
            persistence.retention = Some(retention);
        }
        self
    }

    /// Removes everything of a thread from the store: checkpoints, what tasks left behind, subgraphs, its
    /// lease. A run that goes on in it cannot store anything any more and ends with [`Code::LeaseLost`].
    ///
    /// # Errors
    /// Without a checkpointer, or when the store fails.
    pub async fn delete_thread(&self, thread: &str) -> Result<(), Error> {
        let persistence = self.persistence.as_ref().ok_or_else(no_checkpointer)?;
        persistence.settle(thread).await;
        persistence.keeper.lose_thread(thread);
        Ok(persistence.saver.delete_thread(thread).await?)
    }

    /// Copies a thread as it stands, history and all, onto a new one. The two have nothing to do with each
    /// other afterwards.
    ///
    /// A copy of a thread that waits goes on from its last checkpoint: its open interrupts get new ids, and
    /// what tasks of the open superstep had finished is kept; what had begun within subgraphs begins anew.
    ///
    /// The store copies in one transaction, and the new ids are given in the next. A process that is killed
    /// in between leaves a copy in which the open superstep begins anew, and whose interrupts nobody can
    /// answer: copy again, and what is missing is done. Once a run has gone on in one of the two threads it
    /// is too late for that, and the copy has to be deleted first.
    ///
    /// # Errors
    /// [`Code::ThreadExists`] if `to` has anything but a copy that was cut off; [`Code::ThreadBusy`] if a run
    /// goes on in that; without a checkpointer; when the store fails.
    pub async fn copy_thread(&self, from: &str, to: &str) -> Result<(), Error> {
        let persistence = self.persistence.as_ref().ok_or_else(no_checkpointer)?;
        persistence.settle(from).await;
        persistence.settle(to).await;
        let saver = &*persistence.saver;
        match copy_thread(saver, from, to).await {
            Err(error) if error.code() != Code::ThreadExists || !are_alike(saver, from, to).await? => {
                Err(error.into())
            }
            Ok(()) => super::edit::adopt_copy(self, from, to).await.map(drop),
            // It may be that nothing is missing.
            Err(exists) => match super::edit::adopt_copy(self, from, to).await? {
                true => Ok(()),
                false => Err(exists.into()),
            },
        }
    }
}

/// Whether the one stands where the other does, to the byte: nobody has gone on in either since the store
/// copied it.
async fn are_alike(saver: &dyn Checkpointer, from: &str, to: &str) -> Result<bool, Error> {
    let copied = namespaces(saver, to).await?;
    if from == to || copied.is_empty() || copied != namespaces(saver, from).await? {
        return Ok(false);
    }
    for namespace in copied {
        let place = |thread| Place { thread, namespace: &namespace };
        let (original, copy) = (place(from), place(to));
        if saver.get(original, None).await? != saver.get(copy, None).await? {
            return Ok(false);
        }
    }
    Ok(true)
}
