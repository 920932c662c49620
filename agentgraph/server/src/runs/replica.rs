//! Runs on records that several servers share. The line of a thread is in the records; the replica that has
//! the claim to the thread drives it, run by run, until there is none. A replica gives signs of life, and
//! takes over the threads of others that give none.

use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio::time::{Instant, sleep, sleep_until};

use super::drive::Halt;
use super::{AGAIN, busy, note_in};
use crate::app::{App, OnRestart, owner_of};
use crate::error::{ApiError, RecordError};
use crate::live::{Hold, LiveRun, Permit, Strategy};
use crate::records::{Admission, Admitted, Kind, Next, Query, Record, SharedRecords, Signal, Stop};

/// How many threads are taken over at once, so that several replicas share those of a dead one.
const TAKEN: usize = 16;

/// How long a reader of a run that is not resumable may be behind.
const FLEETING: Duration = Duration::from_secs(3600);

/// Why a thread is not driven on.
#[derive(Clone, Copy, PartialEq)]
enum Left {
    /// Another replica has it.
    Lost,
    /// It has no run.
    Released,
    /// The server ends.
    Drained,
}

impl App {
    /// Becomes a replica.
    pub(crate) async fn enter(self: &Arc<Self>, shared: &dyn SharedRecords) -> Result<(), RecordError> {
        let signals = shared.signals();
        shared.enter(&self.live.hold().replica, self.settings.lease).await?;
        tokio::spawn(hear(Arc::downgrade(self), signals));
        tokio::spawn(beat(Arc::downgrade(self)));
        self.take_over(shared).await
    }

    /// Takes the threads of dead replicas, and drives their runs.
    async fn take_over(self: &Arc<Self>, shared: &dyn SharedRecords) -> Result<(), RecordError> {
        let graphs: Vec<String> = self.graphs.keys().cloned().collect();
        while !self.live.drain.is_cancelled() {
            let hold = self.live.hold();
            let threads = shared.take_over(&hold.replica, &graphs, TAKEN).await?;
            let count = threads.len();
            for thread in threads {
                tracing::info!(thread, "taking over the runs of a thread");
                self.drive_claimed(thread, hold.clone(), self.settings.on_restart == OnRestart::Mark);
            }
            if count < TAKEN {
                break;
            }
        }
        Ok(())
    }

    /// Takes a run into the line of its thread.
    pub(super) async fn admit(
        self: &Arc<Self>,
        shared: &dyn SharedRecords,
        thread: &Record,
        strategy: Strategy,
        (run, permit): (Record, Permit),
    ) -> Result<Arc<LiveRun>, ApiError> {
        // Before the run is in the records: the task that drives the line may have it at once.
        let live = self.live.adopt(&run.id, &thread.id, owner_of(thread), Some(permit));
        let admitted = self.admitted(shared, thread, strategy, &run).await;
        let Ok((Admitted::Mine { is_new }, hold)) = admitted else {
            self.live.forget(&run.id);
            return match admitted?.0 {
                Admitted::Elsewhere => Ok(self.followed(&run)),
                _ => Err(busy()),
            };
        };
        live.stored(true);
        self.live.starts.tell(&live);
        if is_new {
            self.drive_claimed(thread.id.clone(), hold, false);
        } else if hold.lost.is_cancelled() {
            // What drove the line may have ended before it saw the run.
            self.follow(&live);
        } else if self.live.drain.is_cancelled() {
            live.end(Value::Null);
        }
        if matches!(strategy, Strategy::Interrupt | Strategy::RollBack) {
            self.apply_stops(shared).await?;
        }
        Ok(live)
    }

    async fn admitted(
        &self,
        shared: &dyn SharedRecords,
        thread: &Record,
        strategy: Strategy,
        run: &Record,
    ) -> Result<(Admitted, Hold), ApiError> {
        let mut thread = thread.clone();
        loop {
            let hold = self.live.hold();
            note_in(run, &mut thread);
            let admission = Admission {
                replica: hold.replica.to_string(),
                run: run.clone(),
                thread: thread.clone(),
                graph: run.data["graph_id"].as_str().unwrap_or_default().to_owned(),
                alone: strategy == Strategy::Reject,
                stops: match strategy {
                    Strategy::Interrupt => Some(Stop::Interrupt),
                    Strategy::RollBack => Some(Stop::RollBack),
                    Strategy::Reject | Strategy::Enqueue => None,
                },
            };
            match shared.admit(admission).await? {
                Admitted::Stale => thread = self.thread(&thread.id).await?,
                admitted => return Ok((admitted, hold)),
            }
        }
    }

    fn drive_claimed(self: &Arc<Self>, thread: String, hold: Hold, marks: bool) {
        let app = self.whole();
        self.live.tasks.spawn(async move {
            let left = tokio::select! {
                left = app.drive_line_of(&thread, &hold, marks) => left,
                // Dropping the run ends it as a kill would.
                () = hold.lost.cancelled() => Left::Lost,
            };
            // A thread that was given back may have a new run already.
            let readers = if left == Left::Released { Vec::new() } else { app.live.adopted(&thread) };
            for run in readers {
                match left {
                    Left::Lost => app.follow(&run),
                    Left::Released | Left::Drained => run.end(Value::Null),
                }
            }
        });
    }

    /// Drives the runs of a thread until there is none, or the server ends.
    async fn drive_line_of(self: &Arc<Self>, thread: &str, hold: &Hold, mut marks: bool) -> Left {
        let Some(shared) = self.records.shared() else { return Left::Released };
        let [mut pause, longest] = AGAIN;
        let mut failed: Option<Arc<LiveRun>> = None;
        while !self.live.drain.is_cancelled() {
            // Before the claim is given back.
            let told = match &failed {
                Some(live) => self.tell_stored_end(&live.id, hold).await,
                None => Ok(()),
            };
            let next = match told {
                Ok(()) => shared.next(&hold.replica, thread).await,
                Err(error) => Err(error),
            };
            let driven = match next {
                Ok(Next::Lost) => return Left::Lost,
                Ok(next) => {
                    self.look_after(failed.take(), &next);
                    let Next::Run(run, stop) = next else { return Left::Released };
                    if marks {
                        marks = false;
                        self.mark_all(thread).await.map_err(Halt::from)
                    } else {
                        let live = self.live.adopt(&run.id, thread, owner_of(&run), None);
                        live.stored(true);
                        stop.into_iter().for_each(|stop| live.stop(stop));
                        let driven = self.drive(&live, Some(hold), None).await;
                        match &driven {
                            Ok(()) => self.live.has_ended(&live),
                            Err(_) => failed = Some(live),
                        }
                        driven
                    }
                }
                Err(error) => Err(error.into()),
            };
            match driven {
                Ok(()) => [pause, _] = AGAIN,
                Err(Halt::Lost) => return Left::Lost,
                Err(Halt::Records(error)) => {
                    tracing::warn!(%error, thread, "a run is driven again, since its store failed");
                    tokio::select! {
                        () = sleep(pause) => {}
                        () = self.live.drain.cancelled() => {}
                    }
                    pause = (pause * 2).min(longest);
                }
            }
        }
        Left::Drained
    }

    /// A run whose store failed after its end was stored is not driven again. Its readers get the rest.
    fn look_after(self: &Arc<Self>, failed: Option<Arc<LiveRun>>, next: &Next) {
        let Some(live) = failed else { return };
        if !matches!(next, Next::Run(run, _) if run.id == live.id) {
            self.follow(&live);
        }
    }

    async fn mark_all(&self, thread: &str) -> Result<(), RecordError> {
        for run in self.open_records(thread).await? {
            self.mark_left(&run).await?;
        }
        Ok(())
    }

    /// The runs of a thread that are under way or wait.
    pub(super) async fn open_records(&self, thread: &str) -> Result<Vec<Record>, RecordError> {
        let mut open = Vec::new();
        for status in ["running", "pending"] {
            let query = Query {
                parent: Some(thread.to_owned()),
                status: Some(status.to_owned()),
                ..Query::all(Kind::Run)
            };
            open.extend(self.records.page(&query).await?);
        }
        Ok(open)
    }

    /// Stops the runs of this process that are to be stopped.
    pub(super) async fn apply_stops(&self, shared: &dyn SharedRecords) -> Result<(), RecordError> {
        let hold = self.live.hold();
        for (run, stop) in shared.stops(&hold.replica).await? {
            if let Some(live) = self.live.run(&run) {
                live.stop(stop);
            }
            self.end_waiting(&run, stop, Some(&hold)).await?;
        }
        Ok(())
    }

    async fn heard(self: &Arc<Self>, signal: Signal) -> Result<(), RecordError> {
        let Some(shared) = self.records.shared() else { return Ok(()) };
        match signal {
            Signal::Admitted { thread, run } => {
                if self.live.starts.is_followed(&thread)
                    && let Some(run) = self.records.get(Kind::Run, &run).await?
                {
                    self.live.starts.tell(&self.followed(&run));
                }
            }
            Signal::Stopped { .. } => self.apply_stops(shared).await?,
            Signal::Logged { log } => self.heard_of(&log).await?,
            Signal::Free => self.take_over(shared).await?,
            Signal::Missed => {
                self.look_at_logs().await?;
                self.apply_stops(shared).await?;
                self.take_over(shared).await?;
            }
        }
        Ok(())
    }

    /// A sign of life, and a look at what signals should have told. `false` after the end of the server.
    async fn beat(self: &Arc<Self>) -> Result<bool, RecordError> {
        let Some(shared) = self.records.shared() else { return Ok(false) };
        let hold = self.live.hold();
        if !shared.renew(&hold.replica, self.settings.lease).await? {
            if self.live.drain.is_cancelled() {
                return Ok(false);
            }
            tracing::warn!("this server was silent for longer than its lease: others have its runs");
            let hold = self.live.begin_again();
            shared.enter(&hold.replica, self.settings.lease).await?;
        }
        self.apply_stops(shared).await?;
        self.look_at_logs().await?;
        self.take_over(shared).await?;
        Ok(true)
    }
}

async fn hear(app: Weak<App>, mut signals: Receiver<Signal>) {
    loop {
        let signal = match signals.recv().await {
            Ok(signal) => signal,
            Err(RecvError::Lagged(_)) => Signal::Missed,
            Err(RecvError::Closed) => return,
        };
        let Some(app) = app.upgrade() else { return };
        if let Err(error) = app.heard(signal).await {
            tracing::warn!(%error, "news of other servers could not be followed; the next sign of life looks again");
        }
    }
}

async fn beat(app: Weak<App>) {
    let mut swept = Instant::now();
    loop {
        let Some(lease) = app.upgrade().map(|app| app.settings.lease) else { return };
        sleep_until(Instant::now() + lease / 3).await;
        let Some(app) = app.upgrade() else { return };
        match app.beat().await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => tracing::warn!(%error, "a sign of life could not be given"),
        }
        if swept.elapsed() > FLEETING / 60
            && let Some(shared) = app.records.shared()
        {
            swept = Instant::now();
            if let Err(error) = shared.sweep(FLEETING).await {
                tracing::warn!(%error, "old entries of logs could not be removed");
            }
        }
    }
}
