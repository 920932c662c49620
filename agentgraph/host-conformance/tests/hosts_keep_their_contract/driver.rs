//! [`DrivenRuns`]: a driver of whole runs, as a durable engine is one, and its faults.
//!
//! It carries tasks to other values of the graphs as bytes, all that are open at a time; keeps the rows of
//! threads; and records each reply in a journal before it gives it to the run. From the journal it builds the
//! run again: when its workers are killed, and from every prefix once the call has ended.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use agentgraph::host::{
    Commit, DrivenRun, Ground, HostedGraph, Need, NeedId, NeedKind, Reply, RunCall, RunEnd, StoreChange,
    TaskCall, TaskReply, ThreadState,
};
use agentgraph::prelude::*;
use agentgraph::{BoxError, CancellationToken, MemorySaver};
use agentgraph_host_conformance::{self as conformance, Ability, HostUnderTest, Notes};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{Mutex as Turn, watch};

use super::workers::Workers;
use crate::needs::bytes_of;

/// A fault of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverFault {
    WaitsForAll,
    FiresTimersAtOnce,
    LosesTheLastChange,
    ShowsCommitsOnly,
    ShowsOldStates,
    ForgetsNamespaces,
    StartsAnew,
    StartsUnknownThreads,
    SharesRows,
    HasOneSeed,
    StopsItsClock,
    DividesCalls,
    SkipsCommits,
    ForgetsItsJournal,
    StopsAtQuestions,
    LosesTimesOfReplies,
    HoldsTimersBack,
}

/// The most supersteps of one run: a longer call is several.
const SHARE: u64 = 250;

type Rows = BTreeMap<String, Vec<u8>>;

pub struct DrivenRuns {
    graphs: BTreeMap<&'static str, Arc<dyn HostedGraph>>,
    workers: Arc<Workers>,
    threads: Mutex<HashMap<String, Arc<Thread>>>,
    seeds: AtomicU64,
    kills: watch::Sender<u64>,
    fault: Option<DriverFault>,
}

/// A thread: one call at a time, its rows, and the token that cancels the call.
#[derive(Default)]
struct Thread {
    turn: Turn<()>,
    rows: Mutex<Rows>,
    /// The rows before the last call.
    old_rows: Mutex<Rows>,
    cancel: Mutex<CancellationToken>,
}

/// A reply, as a journal keeps it.
#[derive(Clone, Debug, PartialEq)]
enum Kept {
    Task(Vec<u8>),
    HostFailed(String),
    Stored,
    Fired,
    Cancel,
    Drain,
}

/// The needs of each rest as bytes, and the replies between them.
#[derive(Default)]
struct Journal {
    needs: Vec<Vec<u8>>,
    replies: Vec<(Option<NeedId>, Kept)>,
}

impl Journal {
    fn has(&self, kind: &Kept) -> bool {
        self.replies.iter().any(|(_, reply)| reply == kind)
    }
}

fn carried<T: Serialize + DeserializeOwned>(value: &T) -> T {
    rmp_serde::from_slice(&rmp_serde::to_vec_named(value).unwrap()).unwrap()
}

impl DrivenRuns {
    pub fn new(notes: &Notes, fault: Option<DriverFault>) -> Self {
        let graphs = conformance::graphs(notes).into_iter();
        DrivenRuns {
            graphs: graphs
                .map(|graph| (graph.name(), graph.checkpointer(Arc::new(MemorySaver::new())).hosted()))
                .collect(),
            workers: Workers::new(notes),
            threads: Mutex::default(),
            seeds: AtomicU64::new(1),
            kills: watch::Sender::new(0),
            fault,
        }
    }

    fn has(&self, fault: DriverFault) -> bool {
        self.fault == Some(fault)
    }

    fn graph(&self, name: &str) -> &Arc<dyn HostedGraph> {
        &self.graphs[name]
    }

    fn thread(&self, graph: &str, thread: &str) -> Arc<Thread> {
        let key =
            if self.has(DriverFault::SharesRows) { graph.to_owned() } else { format!("{graph} {thread}") };
        Arc::clone(self.threads.lock().unwrap().entry(key).or_default())
    }

    fn ground(&self, thread: &Thread, name: &str) -> Ground {
        let rows: Vec<(String, Vec<u8>)> = thread.rows.lock().unwrap().clone().into_iter().collect();
        let seed =
            if self.has(DriverFault::HasOneSeed) { 7 } else { self.seeds.fetch_add(1, Ordering::Relaxed) };
        let now = if self.has(DriverFault::StopsItsClock) { UNIX_EPOCH } else { SystemTime::now() };
        Ground::new(name, seed, now).rows(rows).journaled()
    }
}

#[async_trait::async_trait]
impl HostUnderTest for DrivenRuns {
    async fn call(&self, graph: &str, name: &str, call: RunCall) -> Result<RunEnd, BoxError> {
        let thread = self.thread(graph, name);
        let _turn = match self.has(DriverFault::SharesRows) {
            true => None,
            false => Some(thread.turn.lock().await),
        };
        *thread.cancel.lock().unwrap() = CancellationToken::new();
        *thread.old_rows.lock().unwrap() = thread.rows.lock().unwrap().clone();
        if self.has(DriverFault::StartsAnew) && call.begins_a_run() {
            thread.rows.lock().unwrap().clear();
        }
        let mut call: RunCall = carried(&call);
        if self.has(DriverFault::StartsUnknownThreads) && thread.rows.lock().unwrap().is_empty() {
            call = RunCall::invoke::<conformance::Sheet>(&(), &conformance::Sheet::update())?;
        }
        loop {
            let run = Driving { runs: self, graph: self.graph(graph), name: graph, thread: &thread };
            let begun = SystemTime::now();
            let (end, steps) = run.to_its_end(call.clone(), self.ground(&thread, name)).await?;
            let divided = end.stop_reason() == Some(StopReason::Drained) && steps >= SHARE;
            if !divided || self.has(DriverFault::DividesCalls) {
                return Ok(carried(&end));
            }
            call = call.after_drain(steps, begun.elapsed().unwrap_or_default());
        }
    }

    async fn state(&self, graph: &str, thread: &str) -> Result<Option<ThreadState>, BoxError> {
        let kept = self.thread(graph, thread);
        let rows = if self.has(DriverFault::ShowsOldStates) { &kept.old_rows } else { &kept.rows };
        let mut rows = rows.lock().unwrap().clone();
        if self.has(DriverFault::ShowsCommitsOnly) {
            rows.retain(|key, _| !key.contains(".w"));
        }
        let state = self.graph(graph).thread_state(thread, rows.into_iter().collect()).await?;
        Ok(carried(&state))
    }

    fn abilities(&self) -> Vec<Ability> {
        Ability::ALL.to_vec()
    }

    async fn history(&self, graph: &str, thread: &str) -> Result<Vec<ThreadState>, BoxError> {
        Ok(carried(&self.graph(graph).history(thread, None, None).await?))
    }

    async fn cancel(&self, graph: &str, thread: &str) -> Result<(), BoxError> {
        self.thread(graph, thread).cancel.lock().unwrap().cancel();
        Ok(())
    }

    async fn kill_workers(&self) -> Result<(), BoxError> {
        self.kills.send_modify(|kills| *kills += 1);
        Ok(())
    }
}

/// A run under way.
struct Driving<'a> {
    runs: &'a DrivenRuns,
    graph: &'a Arc<dyn HostedGraph>,
    name: &'a str,
    thread: &'a Thread,
}

/// The open needs, by their ids.
type OpenNeeds = BTreeMap<NeedId, Need>;

type Meeting<'a> = FuturesUnordered<BoxFuture<'a, (NeedId, Kept)>>;

impl Driving<'_> {
    async fn to_its_end(&self, call: RunCall, ground: Ground) -> Result<(RunEnd, u64), BoxError> {
        let mut kills = self.runs.kills.subscribe();
        let mut journal = Journal::default();
        let ends = loop {
            let run = self.graph.drive(call.clone(), ground.clone())?;
            tokio::select! {
                ends = self.go_on(run, &mut journal) => break ends?,
                _ = kills.changed() => {}
            }
            if self.runs.has(DriverFault::ForgetsItsJournal) {
                journal = Journal::default();
                *self.thread.rows.lock().unwrap() = self.thread.old_rows.lock().unwrap().clone();
            }
        };
        self.replay_all(&call, &ground, &journal)?;
        Ok(ends)
    }

    /// Builds the run from its journal, and goes on to its end.
    async fn go_on(&self, mut run: DrivenRun, journal: &mut Journal) -> Result<(RunEnd, u64), BoxError> {
        let mut open = replay(&mut run, journal, journal.replies.len())?;
        let mut meeting: Meeting<'_> = open.values().map(|need| self.meet(need)).collect();
        let mut stops = false;
        loop {
            let cancel = self.thread.cancel.lock().unwrap().clone();
            let is_cancelled = journal.has(&Kept::Cancel);
            if journal.needs.len() <= journal.replies.len() {
                let needs = run.needs()?;
                journal.needs.push(bytes_of(&needs));
                for need in needs {
                    match need.kind {
                        NeedKind::Withdrawn => drop(open.remove(&need.id)),
                        _ => {
                            meeting.push(self.meet(&need));
                            open.insert(need.id, need);
                        }
                    }
                }
            }
            if let Some(end) = run.end() {
                return Ok((end, run.steps()));
            }
            if (run.steps() >= SHARE || stops) && !journal.has(&Kept::Drain) {
                record(&mut run, journal, None, Kept::Drain)?;
                continue;
            }
            tokio::select! {
                biased;
                () = cancel.cancelled(), if !is_cancelled => {
                    record(&mut run, journal, None, Kept::Cancel)?;
                }
                met = self.next(&mut meeting) => {
                    for (id, reply) in met {
                        if open.remove(&id).is_some() {
                            stops |= self.runs.has(DriverFault::StopsAtQuestions) && asks(&reply);
                            record(&mut run, journal, Some(id), reply)?;
                            if self.runs.has(DriverFault::WaitsForAll) {
                                break;
                            }
                        }
                    }
                }
            }
        }
    }

    /// The next replies: one, unless a fault waits for all that are open.
    async fn next(&self, meeting: &mut Meeting<'_>) -> Vec<(NeedId, Kept)> {
        if self.runs.has(DriverFault::WaitsForAll) {
            let mut all: Vec<_> = meeting.by_ref().collect().await;
            all.sort_by_key(|(id, _)| *id);
            all.into_iter().rev().for_each(|met| meeting.push(Box::pin(std::future::ready(met))));
        }
        let mut held = Vec::new();
        while let Some(met) = meeting.next().await {
            if self.runs.has(DriverFault::HoldsTimersBack) && met.1 == Kept::Fired && !meeting.is_empty() {
                held.push(met);
                continue;
            }
            held.into_iter().for_each(|met| meeting.push(Box::pin(std::future::ready(met))));
            return vec![met];
        }
        held
    }

    fn meet<'b>(&'b self, need: &Need) -> BoxFuture<'b, (NeedId, Kept)> {
        let id = need.id;
        match &need.kind {
            NeedKind::Task(call) => {
                let call: TaskCall = carried(&**call);
                Box::pin(async move {
                    match self.runs.workers.run(self.name, call).await {
                        Ok(reply) => {
                            let mut reply = serde_json::to_value(&reply).unwrap();
                            if self.runs.has(DriverFault::LosesTimesOfReplies) {
                                reply["at"] = 0.into();
                            }
                            let reply: TaskReply = serde_json::from_value(reply).unwrap();
                            (id, Kept::Task(rmp_serde::to_vec_named(&reply).unwrap()))
                        }
                        Err(error) => (id, Kept::HostFailed(error.to_string())),
                    }
                })
            }
            NeedKind::Timer(duration) => {
                let duration = *duration;
                let at_once = self.runs.has(DriverFault::FiresTimersAtOnce);
                Box::pin(async move {
                    if !at_once {
                        tokio::time::sleep(duration).await;
                    }
                    (id, Kept::Fired)
                })
            }
            NeedKind::Store(change) => {
                let change = change.clone();
                Box::pin(async move {
                    self.store(change).await;
                    (id, Kept::Stored)
                })
            }
            other => panic!("{other:?} needs no reply"),
        }
    }

    async fn store(&self, change: StoreChange) {
        let is_commit = change.commit.is_some() && change.set.iter().any(|(key, _)| !key.contains(".w"));
        if self.runs.has(DriverFault::LosesTheLastChange) && !is_commit {
            return;
        }
        self.set(&change);
        let (Some(commit), Some(saver)) = (&change.commit, self.graph.checkpointer()) else { return };
        if self.runs.has(DriverFault::SkipsCommits) && !saver.threads().await.unwrap().is_empty() {
            return;
        }
        let commit: Commit = carried(commit);
        // A second time, as after a kill between the commit and its entry in the journal.
        for _ in 0..2 {
            let stored = commit.put_into(&*saver).await;
            // A driver that loses rows contradicts its own history.
            assert!(stored.is_ok() || self.runs.fault.is_some(), "{stored:?}");
        }
    }

    fn set(&self, change: &StoreChange) {
        let forgets = self.runs.has(DriverFault::ForgetsNamespaces);
        let mut rows = self.thread.rows.lock().unwrap();
        rows.extend(change.set.iter().filter(|(key, _)| !forgets || key.starts_with('.')).cloned());
        for key in &change.clear {
            rows.remove(key);
        }
    }

    /// Builds the run again from prefixes of its journal: it asks for the same, byte by byte.
    fn replay_all(&self, call: &RunCall, ground: &Ground, journal: &Journal) -> Result<(), BoxError> {
        let replies = journal.replies.len();
        for length in (0..=replies).filter(|length| replies < 40 || length % (replies / 7) == 0) {
            let mut run = self.graph.drive(call.clone(), ground.clone())?;
            replay(&mut run, journal, length)?;
        }
        Ok(())
    }
}

fn asks(reply: &Kept) -> bool {
    let Kept::Task(reply) = reply else { return false };
    let reply: TaskReply = rmp_serde::from_slice(reply).unwrap();
    serde_json::to_value(reply).unwrap()["reply"].get("Waits").is_some()
}

fn record(
    run: &mut DrivenRun,
    journal: &mut Journal,
    id: Option<NeedId>,
    reply: Kept,
) -> Result<(), BoxError> {
    give(run, id, &reply)?;
    journal.replies.push((id, reply));
    Ok(())
}

fn give(run: &mut DrivenRun, id: Option<NeedId>, reply: &Kept) -> Result<(), BoxError> {
    let Some(id) = id else {
        match reply {
            Kept::Drain => run.drain(),
            _ => run.cancel(),
        }
        return Ok(());
    };
    let reply = match reply {
        Kept::Task(reply) => Reply::Task(rmp_serde::from_slice(reply)?),
        Kept::HostFailed(problem) => Reply::HostFailed(problem.clone()),
        Kept::Stored => Reply::Stored(Ok(())),
        _ => Reply::Fired,
    };
    Ok(run.give(id, reply)?)
}

/// Gives a run the first replies of a journal, compares all that it asks for, and returns what is open then.
fn replay(run: &mut DrivenRun, journal: &Journal, length: usize) -> Result<OpenNeeds, BoxError> {
    let mut open = OpenNeeds::new();
    for at in 0..journal.needs.len().min(length + 1) {
        let needs = run.needs()?;
        if bytes_of(&needs) != journal.needs[at] {
            return Err(
                format!("after {at} of {length} replies the run asks for other things: {needs:?}").into()
            );
        }
        for need in needs {
            match need.kind {
                NeedKind::Withdrawn => drop(open.remove(&need.id)),
                _ => drop(open.insert(need.id, need)),
            }
        }
        if let Some((id, reply)) = journal.replies.get(at).filter(|_| at < length) {
            id.and_then(|id| open.remove(&id));
            give(run, *id, reply)?;
        }
    }
    Ok(open)
}
