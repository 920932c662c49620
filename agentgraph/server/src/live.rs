//! The runs that this process has under way: what they have sent, who waits in which thread's line, and how
//! to stop them. It knows nothing of graphs or records.
//!
//! A thread has a line; its first run is active. A run's events are a list that grows and that any number of
//! readers follow at their own pace, so no reader holds up a run or another reader.

mod log;
mod starts;
mod usage;

pub(crate) use crate::records::Stop as StopAction;
pub(crate) use log::{LoggedEvent, ThreadLog};
pub(crate) use starts::{BEHIND, Starts};
pub(crate) use usage::{Permit, Usage};

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use agentgraph::CancellationToken;
use serde_json::Value;
use tokio::sync::{Notify, SetOnce, watch};
use tokio_util::task::TaskTracker;

/// An event as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) seq: u64,
    pub(crate) event: String,
    /// One line of JSON.
    pub(crate) data: String,
}

impl Frame {
    /// Whether it belongs to one of the modes; `metadata`, `error` and `end` belong to all.
    pub(crate) fn is_of(&self, modes: &[String]) -> bool {
        let name = self.event.split(['|', '/']).next().unwrap_or_default();
        let is_mode = |mode: &String| mode == name || (mode == "messages-tuple" && name == "messages");
        modes.is_empty() || matches!(name, "metadata" | "error" | "end") || modes.iter().any(is_mode)
    }
}

/// A run of this process, waiting or active, or one of another replica that is followed.
pub(crate) struct LiveRun {
    pub(crate) id: String,
    pub(crate) thread: String,
    /// The owner of the thread.
    pub(crate) owner: Option<String>,
    pub(crate) cancel: CancellationToken,
    /// When it may begin, in microseconds since 1970.
    pub(crate) due: AtomicI64,
    /// Its place among the runs of its caller, until it ends.
    permit: Mutex<Option<Permit>>,
    frames: Mutex<Vec<Arc<Frame>>>,
    /// How many frames there are, and whether more can come. Readers wait for a change of it.
    progress: watch::Sender<Progress>,
    stop: Mutex<Option<StopAction>>,
    result: Mutex<Option<Value>>,
    trace: Mutex<Trace>,
    /// Whether its record is stored: the line waits for this before it starts the run.
    is_stored: SetOnce<bool>,
    /// Whether a task follows the run on another replica. Then nothing else sends.
    is_followed: AtomicBool,
    /// Whether this process has begun to drive it.
    pub(crate) has_begun: AtomicBool,
    /// Wakes that task, or the line of a run that is not due.
    pub(crate) news: Arc<Notify>,
    /// The log of its thread, while another replica has readers of it and this one none.
    kept_log: Mutex<Option<Arc<ThreadLog>>>,
}

#[derive(Clone, Copy, Default, PartialEq)]
struct Progress {
    frames: usize,
    marks: usize,
    ended: bool,
}

/// What a run has done and when, for the page: the newest marks.
#[derive(Default)]
struct Trace {
    /// How many were dropped.
    dropped: usize,
    marks: VecDeque<Arc<Mark>>,
}

/// Writes one object of JSON.
pub(crate) type Mark = Box<dyn Fn() -> String + Send + Sync>;

/// How many marks a run keeps: a run without an end fits into memory.
const MARKS: usize = 8192;

impl LiveRun {
    pub(crate) fn new(id: &str, thread: &str, owner: Option<&str>, permit: Option<Permit>) -> Arc<Self> {
        Arc::new(LiveRun {
            id: id.to_owned(),
            thread: thread.to_owned(),
            owner: owner.map(str::to_owned),
            permit: Mutex::new(permit),
            cancel: CancellationToken::new(),
            due: AtomicI64::new(0),
            frames: Mutex::default(),
            progress: watch::Sender::default(),
            stop: Mutex::default(),
            result: Mutex::default(),
            trace: Mutex::default(),
            is_stored: SetOnce::new(),
            is_followed: AtomicBool::new(false),
            has_begun: AtomicBool::new(false),
            news: Arc::default(),
            kept_log: Mutex::default(),
        })
    }

    pub(crate) fn last_frame(&self) -> Option<Arc<Frame>> {
        lock(&self.frames).last().cloned()
    }

    /// The number of the last frame.
    pub(crate) fn last_seq(&self) -> Option<u64> {
        self.last_frame().map(|frame| frame.seq)
    }

    /// Notes that a task follows the run. `false` if one does.
    pub(crate) fn begin_following(&self) -> bool {
        !self.is_followed.swap(true, Ordering::Relaxed)
    }

    /// Keeps the log of the thread in memory, so that the run tells it.
    pub(crate) fn keep_log(&self, log: Arc<ThreadLog>) {
        *lock(&self.kept_log) = Some(log);
    }

    pub(crate) fn send(&self, new: impl IntoIterator<Item = Frame>) {
        let mut frames = lock(&self.frames);
        frames.extend(new.into_iter().map(Arc::new));
        let count = frames.len();
        drop(frames);
        self.progress.send_modify(|progress| progress.frames = count);
    }

    /// Adds a mark to the trace.
    pub(crate) fn mark(&self, mark: Mark) {
        let mut trace = lock(&self.trace);
        if trace.marks.len() == MARKS {
            trace.marks.pop_front();
            trace.dropped += 1;
        }
        trace.marks.push_back(Arc::new(mark));
        let count = trace.dropped + trace.marks.len();
        drop(trace);
        self.progress.send_modify(|progress| progress.marks = count);
    }

    /// At most `limit` marks from a position on: the position of the first one, which is greater if marks
    /// were dropped, and whether the run has ended. Waits until there is one.
    pub(crate) async fn trace(&self, from: usize, limit: usize) -> (usize, Vec<Arc<Mark>>, bool) {
        let mut progress = self.progress.subscribe();
        let _ = progress.wait_for(|progress| progress.marks > from || progress.ended).await;
        let trace = lock(&self.trace);
        let first = from.max(trace.dropped);
        let marks: Vec<_> = trace.marks.iter().skip(first - trace.dropped).take(limit).cloned().collect();
        let is_last = first + marks.len() >= trace.dropped + trace.marks.len();
        (first, marks, is_last && self.has_ended())
    }

    /// Ends the run for its readers. After it nothing is sent.
    pub(crate) fn end(&self, result: Value) {
        *lock(&self.result) = Some(result);
        lock(&self.permit).take();
        self.progress.send_modify(|progress| progress.ended = true);
    }

    /// The frames from a position on, and whether they are all that there will be. Waits until there is one.
    pub(crate) async fn read(&self, from: usize) -> (Vec<Arc<Frame>>, bool) {
        let mut progress = self.progress.subscribe();
        // The sender lives as long as `self`, so that waiting cannot fail.
        let ended = match progress.wait_for(|progress| progress.frames > from || progress.ended).await {
            Ok(progress) => progress.ended,
            Err(_) => true,
        };
        let frames = lock(&self.frames);
        (frames.get(from..).unwrap_or_default().to_vec(), ended)
    }

    /// Waits for the end, and returns the result.
    pub(crate) async fn result(&self) -> Value {
        let mut progress = self.progress.subscribe();
        let _ = progress.wait_for(|progress| progress.ended).await;
        lock(&self.result).clone().unwrap_or_default()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.progress.borrow().ended
    }

    /// Asks the run to stop. The first action counts.
    pub(crate) fn stop(&self, action: StopAction) {
        lock(&self.stop).get_or_insert(action);
        self.cancel.cancel();
    }

    pub(crate) fn stop_action(&self) -> Option<StopAction> {
        *lock(&self.stop)
    }

    pub(crate) fn stored(&self, is_stored: bool) {
        // It fails if it is known already.
        let _ = self.is_stored.set(is_stored);
    }

    fn due(&self) -> i64 {
        self.due.load(Ordering::Relaxed)
    }

    /// Waits until the run is due or is to stop. `false` if another run goes before it.
    pub(crate) async fn until_due(&self, live: &Live) -> bool {
        loop {
            let wait = u64::try_from(self.due() - crate::ids::now()).unwrap_or(0);
            if wait == 0 {
                return true;
            }
            tokio::select! {
                () = tokio::time::sleep(Duration::from_micros(wait)) => return true,
                () = self.cancel.cancelled() => return true,
                () = live.drain.cancelled() => return true,
                () = self.news.notified() => if live.gives_way(self) { return false },
            }
        }
    }

    /// Waits until the record is stored; `false` if it could not be.
    pub(crate) async fn until_stored(&self) -> bool {
        *self.is_stored.wait().await
    }
}

/// What a new run does about those before it in the line of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strategy {
    Reject,
    Enqueue,
    Interrupt,
    RollBack,
}

impl Strategy {
    pub(crate) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "reject" => Strategy::Reject,
            "enqueue" => Strategy::Enqueue,
            "interrupt" => Strategy::Interrupt,
            "rollback" => Strategy::RollBack,
            _ => return None,
        })
    }
}

#[derive(Default)]
struct Line {
    active: Option<Arc<LiveRun>>,
    waiting: VecDeque<Arc<LiveRun>>,
}

/// How many ended runs keep their events in memory for a late reader.
const ENDED_RUNS: usize = 64;

/// All runs of this process.
pub(crate) struct Live {
    lines: Mutex<HashMap<String, Line>>,
    runs: Mutex<HashMap<String, Arc<LiveRun>>>,
    ended: Mutex<VecDeque<String>>,
    /// The logs that have a writer or a reader.
    logs: Mutex<HashMap<String, Weak<ThreadLog>>>,
    /// Tells the readers of a whole thread of new runs.
    pub(crate) starts: Starts,
    pub(crate) tasks: TaskTracker,
    /// The runs that wait or are under way, by caller.
    pub(crate) queued: Arc<Usage>,
    /// The requests that stay open, by caller.
    pub(crate) streams: Arc<Usage>,
    /// Cancelled when the server stops: runs end their superstep.
    pub(crate) drain: CancellationToken,
    /// Runs of other replicas that have readers here.
    mirrors: Mutex<HashMap<String, Weak<LiveRun>>>,
    hold: Mutex<Hold>,
}

/// What this process holds claims by, among replicas on one store.
#[derive(Clone)]
pub(crate) struct Hold {
    /// Its name. A replica that was declared dead goes on under another one.
    pub(crate) replica: Arc<str>,
    /// Cancelled when it was declared dead: others have its claims.
    pub(crate) lost: CancellationToken,
}

impl Hold {
    fn new() -> Self {
        Hold { replica: crate::ids::new_id().into(), lost: CancellationToken::new() }
    }
}

impl Live {
    pub(crate) fn new() -> Self {
        Live {
            lines: Mutex::default(),
            runs: Mutex::default(),
            ended: Mutex::default(),
            logs: Mutex::default(),
            starts: Starts::default(),
            tasks: TaskTracker::new(),
            queued: Arc::default(),
            streams: Arc::default(),
            drain: CancellationToken::new(),
            mirrors: Mutex::default(),
            hold: Mutex::new(Hold::new()),
        }
    }

    pub(crate) fn hold(&self) -> Hold {
        lock(&self.hold).clone()
    }

    /// Gives up all claims, and goes on under another name.
    pub(crate) fn begin_again(&self) -> Hold {
        let new = Hold::new();
        std::mem::replace(&mut *lock(&self.hold), new.clone()).lost.cancel();
        new
    }

    /// A run that this process drives for the line of its thread in the records. A run that was taken over by
    /// another process and came back starts with an empty log; its readers follow it.
    pub(crate) fn adopt(
        &self,
        id: &str,
        thread: &str,
        owner: Option<&str>,
        permit: Option<Permit>,
    ) -> Arc<LiveRun> {
        let mut runs = lock(&self.runs);
        match runs.get(id) {
            Some(known) if !known.is_followed.load(Ordering::Relaxed) => Arc::clone(known),
            _ => {
                let new = LiveRun::new(id, thread, owner, permit);
                runs.insert(id.to_owned(), Arc::clone(&new));
                new
            }
        }
    }

    /// The runs of a thread that this process has adopted, that are in the records and have not ended.
    pub(crate) fn adopted(&self, thread: &str) -> Vec<Arc<LiveRun>> {
        let is_stored = |run: &LiveRun| run.is_stored.get() == Some(&true);
        let is_open = |run: &&Arc<LiveRun>| run.thread == thread && is_stored(run) && !run.has_ended();
        lock(&self.runs).values().filter(is_open).cloned().collect()
    }

    /// A run that another replica drives, and whether it is new here: then it must be followed.
    pub(crate) fn mirror(&self, id: &str, thread: &str, owner: Option<&str>) -> (Arc<LiveRun>, bool) {
        let mut mirrors = lock(&self.mirrors);
        if let Some(known) = mirrors.get(id).and_then(Weak::upgrade) {
            return (known, false);
        }
        mirrors.retain(|_, mirror| mirror.strong_count() > 0);
        let mirror = LiveRun::new(id, thread, owner, None);
        mirrors.insert(id.to_owned(), Arc::downgrade(&mirror));
        (mirror, true)
    }

    /// Wakes the task that follows a run, or all of them.
    pub(crate) fn wake(&self, run: Option<&str>) {
        let followed = match run {
            Some(id) => {
                lock(&self.mirrors).get(id).and_then(Weak::upgrade).into_iter().chain(self.run(id)).collect()
            }
            None => lock(&self.mirrors).values().filter_map(Weak::upgrade).collect::<Vec<_>>(),
        };
        followed.into_iter().for_each(|run| run.news.notify_waiters());
    }

    /// The logs that have a writer or a reader.
    pub(crate) fn known_logs(&self) -> Vec<Arc<ThreadLog>> {
        lock(&self.logs).values().filter_map(Weak::upgrade).collect()
    }

    /// Puts a run into the line of its thread. `None` if it is refused; otherwise whether the line must be
    /// driven, because no other run did so.
    pub(crate) fn join(&self, run: &Arc<LiveRun>, strategy: Strategy) -> Option<bool> {
        let mut lines = lock(&self.lines);
        let line = lines.get_mut(&run.thread);
        let starts = line.is_none();
        if let Some(line) = line {
            line.active.iter().for_each(|active| active.news.notify_one());
            match strategy {
                Strategy::Reject => return None,
                Strategy::Enqueue => {}
                Strategy::Interrupt | Strategy::RollBack => {
                    let action = match strategy {
                        Strategy::RollBack => StopAction::RollBack,
                        _ => StopAction::Interrupt,
                    };
                    line.active.iter().chain(&line.waiting).for_each(|before| before.stop(action));
                }
            }
        }
        lines.entry(run.thread.clone()).or_default().waiting.push_back(Arc::clone(run));
        lock(&self.runs).insert(run.id.clone(), Arc::clone(run));
        self.starts.tell(run);
        Some(starts)
    }

    /// The next run of a thread, which becomes the active one: that which is due first. Without one the line
    /// ends.
    pub(crate) fn next(&self, thread: &str) -> Option<Arc<LiveRun>> {
        let mut lines = lock(&self.lines);
        let line = lines.get_mut(thread)?;
        let next = line.waiting.iter().enumerate().min_by_key(|(_, run)| run.due());
        line.active = next.map(|(at, _)| at).and_then(|at| line.waiting.remove(at));
        let next = line.active.clone();
        if next.is_none() {
            lines.remove(thread);
        }
        next
    }

    /// Puts the active run back if another one is due before it.
    pub(crate) fn gives_way(&self, run: &LiveRun) -> bool {
        let mut lines = lock(&self.lines);
        let Some(line) = lines.get_mut(&run.thread) else { return false };
        let gives_way = line.waiting.iter().any(|other| other.due() < run.due());
        if gives_way && let Some(active) = line.active.take() {
            line.waiting.push_front(active);
        }
        gives_way
    }

    /// Takes a run that waits out of the line of its thread. `false` if it does not wait.
    pub(crate) fn leave_line(&self, run: &LiveRun) -> bool {
        let mut lines = lock(&self.lines);
        let Some(line) = lines.get_mut(&run.thread) else { return false };
        let before = line.waiting.len();
        // Without an active run, the first one is about to begin.
        let first = usize::from(line.active.is_none());
        let at = line.waiting.iter().skip(first).position(|waiting| waiting.id == run.id);
        at.and_then(|at| line.waiting.remove(at + first));
        line.waiting.len() < before
    }

    pub(crate) fn run(&self, id: &str) -> Option<Arc<LiveRun>> {
        lock(&self.runs).get(id).cloned()
    }

    /// The runs of a thread that are active or wait.
    pub(crate) fn of_thread(&self, thread: &str) -> Vec<Arc<LiveRun>> {
        let lines = lock(&self.lines);
        let Some(line) = lines.get(thread) else { return Vec::new() };
        line.active.iter().chain(&line.waiting).cloned().collect()
    }

    /// How many runs of this process are under way, and how many wait.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let is_open = |run: &&Arc<LiveRun>| !run.has_ended() && !run.is_followed.load(Ordering::Relaxed);
        let runs = lock(&self.runs);
        let (running, waiting): (Vec<_>, Vec<_>) =
            runs.values().filter(is_open).partition(|run| run.has_begun.load(Ordering::Relaxed));
        (running.len(), waiting.len())
    }

    /// Keeps the newest ended runs for readers that come late, and forgets the others.
    pub(crate) fn has_ended(&self, run: &LiveRun) {
        let mut ended = lock(&self.ended);
        ended.push_back(run.id.clone());
        let mut runs = lock(&self.runs);
        while ended.len() > ENDED_RUNS {
            if let Some(oldest) = ended.pop_front() {
                runs.remove(&oldest);
            }
        }
    }

    /// The log of a thread, if it has a writer or a reader.
    pub(crate) fn known_log(&self, thread: &str) -> Option<Arc<ThreadLog>> {
        lock(&self.logs).get(thread)?.upgrade()
    }

    /// The log of a thread: the same one for all that use it at a time.
    pub(crate) fn log(&self, thread: &str) -> Arc<ThreadLog> {
        let mut logs = lock(&self.logs);
        if let Some(log) = logs.get(thread).and_then(Weak::upgrade) {
            return log;
        }
        // Only before the map grows: then each new log costs a constant time on average.
        if logs.len() == logs.capacity() {
            logs.retain(|_, log| log.strong_count() > 0);
        }
        let log = ThreadLog::new(thread);
        logs.insert(thread.to_owned(), Arc::downgrade(&log));
        log
    }

    pub(crate) fn forget(&self, run: &str) {
        lock(&self.runs).remove(run);
    }
}

/// A lock that a panicking task has left is as good as any: each change is one statement.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_forgotten_when_nobody_has_it() {
        let live = Live::new();
        let kept = live.log("kept");
        (0..1000).for_each(|n| drop(live.log(&n.to_string())));
        assert!(Arc::ptr_eq(&kept, &live.log("kept")));
        assert!(lock(&live.logs).len() < 64);
    }
}
