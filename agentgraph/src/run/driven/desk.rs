//! [`Desk`]: where a driven run leaves its needs, and finds the replies.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use super::need::{Need, NeedId, NeedKind, Reply};
use crate::error::{Code, Error};
use agentgraph_checkpoint::TaskId;
use agentgraph_checkpoint::engine::Lock;
use agentgraph_checkpoint::services::from_micros;

/// The needs of one driven run, its clock and its randomness. All of them change only with replies, so a run
/// that is built again goes the same way.
pub(super) struct Desk(Lock<DeskState>);

struct DeskState {
    last: u64,
    /// The needs since the last rest, in the order in which the run asked.
    asked: Vec<Need>,
    open: BTreeMap<NeedId, OpenNeed>,
    withdrawn: BTreeSet<NeedId>,
    now: SystemTime,
    random: u64,
}

/// A need without a delivered reply.
struct OpenNeed {
    kind: WaitKind,
    /// Whether a reply is on its way.
    is_answered: bool,
    reply: Option<Reply>,
    waker: Option<Waker>,
}

/// The replies that fit a need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitKind {
    /// An attempt of a task.
    Task(TaskId, u32),
    Store,
    /// A timer, with the time at which it ends.
    Timer(SystemTime),
}

impl WaitKind {
    fn fits(self, reply: &Reply) -> bool {
        match self {
            WaitKind::Task(task, attempt) => match reply {
                Reply::Task(reply) => (reply.task, reply.attempt) == (task, attempt),
                reply => matches!(reply, Reply::HostFailed(_)),
            },
            WaitKind::Store => matches!(reply, Reply::Stored(_)),
            WaitKind::Timer(_) => matches!(reply, Reply::Fired),
        }
    }

    fn expects(self) -> &'static str {
        match self {
            WaitKind::Task(..) => "`Reply::Task` of that task and attempt, or `Reply::HostFailed`",
            WaitKind::Store => "`Reply::Stored`",
            WaitKind::Timer(_) => "`Reply::Fired`",
        }
    }
}

impl Desk {
    pub(super) fn new(seed: u64, now: SystemTime) -> Self {
        Desk(Lock::new(DeskState {
            last: 0,
            asked: Vec::new(),
            open: BTreeMap::new(),
            withdrawn: BTreeSet::new(),
            now,
            random: seed,
        }))
    }

    pub(super) fn now(&self) -> SystemTime {
        self.0.lock().now
    }

    /// The next number of a generator (SplitMix64) that starts with the seed.
    pub(super) fn random(&self) -> u64 {
        let mut state = self.0.lock();
        state.random = state.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Notes a need. The returned future waits for the reply.
    pub(super) fn ask(self: &Arc<Self>, kind: NeedKind) -> WaitForReply {
        WaitForReply { desk: Arc::clone(self), id: self.0.lock().ask(kind) }
    }

    /// Notes a need that is answered to [`take_reply`](Self::take_reply).
    pub(super) fn ask_without_waiting(&self, kind: NeedKind) -> NeedId {
        self.0.lock().ask(kind)
    }

    /// The needs since the last call.
    pub(super) fn take_asked(&self) -> Vec<Need> {
        std::mem::take(&mut self.0.lock().asked)
    }

    /// Whether a need is unanswered.
    pub(super) fn has_open_needs(&self) -> bool {
        !self.0.lock().open.is_empty()
    }

    /// Checks a reply before it is delivered. Returns false if its need was withdrawn.
    pub(super) fn accept(&self, id: NeedId, reply: &Reply) -> Result<bool, Error> {
        let mut state = self.0.lock();
        if state.withdrawn.contains(&id) {
            return Ok(false);
        }
        let last = state.last;
        let refused = match state.open.get_mut(&id) {
            Some(open) if !open.kind.fits(reply) => {
                format!("it is answered by {}", open.kind.expects())
            }
            Some(open) if !open.is_answered => {
                open.is_answered = true;
                return Ok(true);
            }
            None if id.0 == 0 || id.0 > last => "the run has not asked for it".to_owned(),
            _ => "it was answered before".to_owned(),
        };
        Err(Error::new(Code::Host, format!("a host replied to need {id} of a driven run, and {refused}")))
    }

    /// Delivers an accepted reply, unless the run has withdrawn the need meanwhile.
    pub(super) fn deliver(&self, id: NeedId, reply: Reply) {
        let mut state = self.0.lock();
        let Some(open) = state.open.get_mut(&id) else { return };
        let then = match (open.kind, &reply) {
            (WaitKind::Timer(end), _) => Some(end),
            (_, Reply::Task(reply)) => Some(from_micros(reply.at)),
            _ => None,
        };
        open.reply = Some(reply);
        let waker = open.waker.take();
        if let Some(then) = then {
            state.now = state.now.max(then);
        }
        // Woken without the lock: a waker may call code that asks this desk for something.
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The delivered reply to a need.
    pub(super) fn take_reply(&self, id: NeedId) -> Option<Reply> {
        let mut state = self.0.lock();
        let reply = state.open.get_mut(&id)?.reply.take()?;
        state.open.remove(&id);
        Some(reply)
    }

    fn withdraw(&self, id: NeedId) {
        let mut state = self.0.lock();
        let Some(open) = state.open.get(&id) else { return };
        // A driver may have begun to store, so this is not withdrawn.
        if open.kind == WaitKind::Store {
            return;
        }
        state.open.remove(&id);
        state.withdrawn.insert(id);
        match state.asked.iter().position(|need| need.id == id) {
            // Not handed out yet.
            Some(at) => drop(state.asked.remove(at)),
            None => state.asked.push(Need { id, kind: NeedKind::Withdrawn }),
        }
    }
}

impl DeskState {
    fn ask(&mut self, kind: NeedKind) -> NeedId {
        self.last += 1;
        let id = NeedId(self.last);
        let wait = match &kind {
            NeedKind::Store(_) => WaitKind::Store,
            NeedKind::Timer(limit) => WaitKind::Timer(after(self.now, *limit)),
            NeedKind::Task(call) => WaitKind::Task(call.task, call.attempt),
            NeedKind::Withdrawn => return id,
        };
        self.asked.push(Need { id, kind });
        self.open.insert(id, OpenNeed { kind: wait, is_answered: false, reply: None, waker: None });
        id
    }
}

fn after(now: SystemTime, limit: Duration) -> SystemTime {
    now.checked_add(limit).unwrap_or(now)
}

/// Waits for the reply to a need. Dropped before, it withdraws the need.
pub(super) struct WaitForReply {
    desk: Arc<Desk>,
    id: NeedId,
}

impl Future for WaitForReply {
    type Output = Reply;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Reply> {
        if let Some(reply) = self.desk.take_reply(self.id) {
            return Poll::Ready(reply);
        }
        if let Some(open) = self.desk.0.lock().open.get_mut(&self.id) {
            open.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl Drop for WaitForReply {
    fn drop(&mut self) {
        self.desk.withdraw(self.id);
    }
}
