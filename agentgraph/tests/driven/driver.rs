//! A driver of driven runs: it carries tasks to another graph value as bytes, or runs them where they are,
//! keeps the rows of the thread, and records a journal, from which a run can be built again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agentgraph::MemorySaver;
use agentgraph::host::{
    DrivenRun, FarSide, Ground, HostedGraph, Need, NeedId, NeedKind, Reply, RunCall, RunEnd, TaskCall,
    TaskReply,
};

use crate::common::needs::bytes_of;

/// A reply, as a journal keeps it.
#[derive(Clone, Debug, PartialEq)]
pub enum Kept {
    Task(Vec<u8>),
    Stored,
    Fired,
    Cancel,
    Drain,
}

/// What happened in one call: the needs of each rest as bytes, and the replies between them.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    pub needs: Vec<Vec<u8>>,
    pub replies: Vec<(Option<NeedId>, Kept)>,
    pub tasks: Vec<String>,
}

/// Which open need is answered next.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    AsAsked,
    Random(u64),
}

pub struct Driver {
    pub near: Arc<dyn HostedGraph>,
    pub far: Arc<dyn HostedGraph>,
    pub thread: String,
    pub rows: BTreeMap<String, Vec<u8>>,
    pub history: Arc<MemorySaver>,
    pub order: Order,
    pub journaled: bool,
    pub calls: u64,
    /// After how many replies the call is cancelled or drained.
    pub cancel_after: Option<usize>,
    pub drain_after: Option<usize>,
    pub now: SystemTime,
}

/// A call that has ended, with everything that is needed to build it again.
pub struct Done {
    pub end: RunEnd,
    pub journal: Journal,
    pub call: RunCall,
    pub ground: Ground,
    pub steps: u64,
    pub rows: BTreeMap<String, Vec<u8>>,
}

fn bytes(value: &impl serde::Serialize) -> Vec<u8> {
    rmp_serde::to_vec_named(value).unwrap()
}

impl Driver {
    pub fn new(near: impl HostedGraph, far: impl HostedGraph) -> Self {
        Driver {
            near: Arc::new(near),
            far: Arc::new(far),
            thread: "t".to_owned(),
            rows: BTreeMap::new(),
            history: Arc::new(MemorySaver::new()),
            order: Order::AsAsked,
            journaled: true,
            calls: 0,
            cancel_after: None,
            drain_after: None,
            now: UNIX_EPOCH,
        }
    }

    pub fn ground(&self) -> Ground {
        // The rows are stored and loaded again between two calls.
        let rows: Vec<(String, Vec<u8>)> =
            rmp_serde::from_slice(&bytes(&self.rows.clone().into_iter().collect::<Vec<_>>())).unwrap();
        let ground = Ground::new(&*self.thread, 7 + self.calls, self.now).rows(rows);
        if self.journaled { ground.journaled().tasks_run_here() } else { ground }
    }

    /// Drives a call to its end, then builds it again from every prefix of its journal.
    pub async fn call(&mut self, call: RunCall) -> Done {
        let done = self.call_once(call).await;
        self.replay_all(&done).await;
        done
    }

    /// Drives a call to its end.
    pub async fn call_once(&mut self, call: RunCall) -> Done {
        let call: RunCall = rmp_serde::from_slice(&bytes(&call)).unwrap();
        let ground = self.ground();
        self.calls += 1;
        let mut run = self.near.drive(call.clone(), ground.clone()).unwrap();
        let mut going = Going::new(self.order, &self.near);
        let mut rows = self.rows.clone();
        going.base = rows.clone().into_iter().collect();
        going
            .go_on(
                &mut run,
                &*self.far,
                &mut rows,
                Some(&self.history),
                (self.cancel_after, self.drain_after),
            )
            .await;
        self.rows.clone_from(&rows);
        let end: RunEnd = rmp_serde::from_slice(&bytes(&run.end().unwrap())).unwrap();
        Done { end, journal: going.journal, call, ground, steps: run.steps(), rows }
    }

    /// Builds the run again from each prefix of its journal, and lets some of them go on to the end.
    pub async fn replay_all(&self, done: &Done) {
        let replies = done.journal.replies.len();
        for length in (0..=replies).filter(|length| replies < 60 || length % (replies / 23) == 0) {
            let (mut run, open) = self.replay(done, length);
            if matches!(self.order, Order::AsAsked)
                && self.cancel_after.is_none()
                && self.drain_after.is_none()
            {
                let mut going = Going::new(self.order, &self.near);
                going.open = open;
                let mut rows = BTreeMap::new();
                going.go_on(&mut run, &*self.far, &mut rows, None, (None, None)).await;
                assert_eq!(run.end().unwrap(), done.end, "after {length} replies from the journal");
            }
        }
    }

    /// Builds the run again from a prefix of its journal, and compares everything that it asks for.
    pub fn replay(&self, done: &Done, length: usize) -> (DrivenRun, VecDeque<Need>) {
        let mut run = self.near.drive(done.call.clone(), done.ground.clone()).unwrap();
        let mut open = VecDeque::new();
        let mut withdrawn = BTreeSet::new();
        for at in 0..=length {
            let needs = run.needs().unwrap();
            assert_eq!(
                bytes_of(&needs),
                done.journal.needs[at],
                "after {at} of {length} replies, the run asks for {needs:?}"
            );
            withdrawn.extend(
                needs.iter().filter(|need| matches!(need.kind, NeedKind::Withdrawn)).map(|need| need.id),
            );
            open.extend(needs);
            if at < length {
                let (id, reply) = &done.journal.replies[at];
                open.retain(|need| Some(need.id) != *id);
                give(&mut run, *id, reply);
            }
        }
        open.retain(|need| !withdrawn.contains(&need.id));
        (run, open)
    }
}

fn give(run: &mut DrivenRun, id: Option<NeedId>, reply: &Kept) {
    let reply = match reply {
        Kept::Cancel => return run.cancel(),
        Kept::Drain => return run.drain(),
        Kept::Task(reply) => Reply::Task(rmp_serde::from_slice::<TaskReply>(reply).unwrap()),
        Kept::Stored => Reply::Stored(Ok(())),
        Kept::Fired => Reply::Fired,
    };
    run.give(id.unwrap(), reply).unwrap();
}

/// A call under way.
struct Going {
    journal: Journal,
    open: VecDeque<Need>,
    order: Order,
    random: u64,
    /// The rows at the beginning.
    base: Vec<(String, Vec<u8>)>,
    near: Arc<dyn HostedGraph>,
}

impl Going {
    fn new(order: Order, near: &Arc<dyn HostedGraph>) -> Self {
        let random = match order {
            Order::AsAsked => 0,
            Order::Random(seed) => seed,
        };
        let near = Arc::clone(near);
        Going { journal: Journal::default(), open: VecDeque::new(), order, random, base: Vec::new(), near }
    }

    async fn go_on(
        &mut self,
        run: &mut DrivenRun,
        far: &dyn HostedGraph,
        rows: &mut BTreeMap<String, Vec<u8>>,
        history: Option<&MemorySaver>,
        (cancel_after, drain_after): (Option<usize>, Option<usize>),
    ) {
        loop {
            let needs = run.needs().unwrap();
            self.journal.needs.push(bytes_of(&needs));
            for need in needs {
                match need.kind {
                    NeedKind::Withdrawn => self.open.retain(|open| open.id != need.id),
                    _ => self.open.push_back(need),
                }
            }
            let given = self.journal.replies.len();
            if cancel_after == Some(given) {
                run.cancel();
                self.journal.replies.push((None, Kept::Cancel));
                continue;
            }
            if drain_after == Some(given) {
                run.drain();
                self.journal.replies.push((None, Kept::Drain));
                continue;
            }
            let Some(need) = self.next() else {
                assert!(run.end().is_some(), "nothing is asked for, and the run has not ended");
                return;
            };
            assert!(run.end().is_none(), "the run has ended, and {need:?} is open");
            let reply = self.meet(&need.kind, far, rows, history).await;
            give(run, Some(need.id), &reply);
            self.journal.replies.push((Some(need.id), reply));
        }
    }

    fn next(&mut self) -> Option<Need> {
        // Timers are longer than everything else here.
        let first =
            |open: &VecDeque<Need>| open.iter().position(|need| !matches!(need.kind, NeedKind::Timer(_)));
        let at = match self.order {
            Order::AsAsked => first(&self.open).unwrap_or(0),
            Order::Random(_) => {
                self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let others: Vec<usize> = (0..self.open.len())
                    .filter(|at| !matches!(self.open[*at].kind, NeedKind::Timer(_)))
                    .collect();
                match others.len() {
                    0 => 0,
                    count => others[(self.random >> 33) as usize % count],
                }
            }
        };
        self.open.remove(at)
    }

    async fn meet(
        &mut self,
        need: &NeedKind,
        far: &dyn HostedGraph,
        rows: &mut BTreeMap<String, Vec<u8>>,
        history: Option<&MemorySaver>,
    ) -> Kept {
        match need {
            NeedKind::Task(call) => {
                self.journal.tasks.push(call.node.clone());
                let mut call = TaskCall::clone(call);
                // Every second task that holds its state is run here. A replay may do it the other way.
                let stays = call.state().is_none() && self.journal.tasks.len().is_multiple_of(2);
                let graph = if stays {
                    &*self.near
                } else {
                    call.encode_state().unwrap();
                    call = rmp_serde::from_slice(&bytes(&call)).unwrap();
                    far
                };
                Kept::Task(bytes(&graph.run_task(call, FarSide::new()).await.unwrap()))
            }
            NeedKind::Store(change) => {
                let sorted = |keys: Vec<&String>| keys.windows(2).all(|pair| pair[0] < pair[1]);
                assert!(sorted(change.set.iter().map(|(key, _)| key).collect()), "{change:?}");
                assert!(sorted(change.clear.iter().collect()), "{change:?}");
                rows.extend(change.set.iter().cloned());
                for key in &change.clear {
                    assert!(
                        rows.remove(key).is_some() || history.is_none(),
                        "`{key}` is cleared and was not there"
                    );
                }
                if let (Some(commit), Some(history)) = (&change.commit, history) {
                    let commit: agentgraph::host::Commit = rmp_serde::from_slice(&bytes(commit)).unwrap();
                    commit.put_after(&self.base, history).await.unwrap();
                    commit.put_into(history).await.unwrap();
                }
                Kept::Stored
            }
            NeedKind::Timer(duration) => {
                assert!(*duration < Duration::from_secs(1_000_000));
                Kept::Fired
            }
            other => panic!("{other:?} needs no reply"),
        }
    }
}
