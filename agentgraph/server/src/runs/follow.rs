//! Runs that another replica drives, as readers here see them: what it adds to the log of a run becomes the
//! frames of a [`LiveRun`]. A signal says that there is something new, and the log what it is.

use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{RESULT, frame_of, is_open, wait_result};
use crate::app::{App, owner_of};
use crate::error::RecordError;
use crate::live::{LiveRun, StopAction};
use crate::records::{Kind, Record};

/// How long a follower waits for a signal before it looks again.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long the last entries of a run may come after its status. They come later only if its server was
/// killed in between.
const LAST_WORDS: Duration = Duration::from_secs(30);

/// How many entries are read at once.
const PAGE: usize = 256;

impl App {
    /// A run of another replica, followed while it has readers here.
    pub(super) fn followed(self: &Arc<Self>, run: &Record) -> Arc<LiveRun> {
        let (live, is_new) = self.live.mirror(&run.id, &run.parent, owner_of(run));
        if is_new {
            self.follow(&live);
        }
        live
    }

    /// Sends what the log of a run gets to its readers here, unless that happens already.
    pub(super) fn follow(self: &Arc<Self>, live: &Arc<LiveRun>) {
        if live.begin_following() {
            tokio::spawn(follow(self.whole(), Arc::downgrade(live)));
        }
    }

    /// A run that is under way, here or on another replica, or that this process has in memory.
    pub(crate) fn live_run(self: &Arc<Self>, run: &Record) -> Option<Arc<LiveRun>> {
        let elsewhere = || (self.records.shared().is_some() && is_open(run)).then(|| self.followed(run));
        self.live.run(&run.id).or_else(elsewhere)
    }

    /// A run that is under way, or the frames that are still there of one that has ended.
    pub(crate) async fn readable_run(self: &Arc<Self>, run: &Record) -> Result<Arc<LiveRun>, RecordError> {
        if let Some(live) = self.live_run(run) {
            return Ok(live);
        }
        let frames = self.stored_frames(&run.id, None).await?;
        if self.records.shared().is_some() && !frames.is_empty() {
            // Its last ones may still come.
            return Ok(self.followed(run));
        }
        let ended = LiveRun::new(&run.id, &run.parent, owner_of(run), None);
        ended.send(frames);
        ended.end(Value::Null);
        Ok(ended)
    }

    /// The runs of a thread that are under way or wait.
    pub(crate) async fn open_runs(self: &Arc<Self>, thread: &str) -> Result<Vec<Arc<LiveRun>>, RecordError> {
        if self.records.shared().is_none() {
            return Ok(self.live.of_thread(thread));
        }
        let open = self.open_records(thread).await?;
        Ok(open.iter().filter_map(|run| self.live_run(run)).collect())
    }
}

/// Follows a run to its end, while it has readers. Their stop of it is passed on.
async fn follow(app: Arc<App>, live: Weak<LiveRun>) {
    let Some(begun) = live.upgrade() else { return };
    let (id, cancel, news) = (begun.id.clone(), begun.cancel.clone(), Arc::clone(&begun.news));
    let mut follower = Follower { app: &app, at: begun.last_seq(), over_since: None };
    drop(begun);
    let mut has_asked = false;
    loop {
        let mut heard = pin!(news.notified());
        // From now on signals are heard: what they tell of may be read below.
        heard.as_mut().enable();
        if cancel.is_cancelled() && !has_asked {
            has_asked = app.stop_elsewhere(&id, StopAction::Interrupt).await.is_ok();
        }
        let Some(run) = live.upgrade() else { return };
        match follower.read(&run).await {
            Ok(true) => {
                if app.live.run(&id).is_some_and(|own| Arc::ptr_eq(&own, &run)) {
                    app.live.has_ended(&run);
                }
                return;
            }
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, run = id, "a run of another server could not be followed"),
        }
        drop(run);
        tokio::select! {
            () = heard => {}
            () = sleep(PATIENCE) => {}
            () = cancel.cancelled(), if !has_asked => {}
            () = app.live.drain.cancelled() => {
                live.upgrade().inspect(|run| run.end(Value::Null));
                return;
            }
        }
    }
}

struct Follower<'a> {
    app: &'a App,
    at: Option<u64>,
    /// Since when the run has ended by its record.
    over_since: Option<Instant>,
}

impl Follower<'_> {
    /// Passes on what is new. Returns whether that was all.
    async fn read(&mut self, run: &LiveRun) -> Result<bool, RecordError> {
        loop {
            let entries = self.app.records.read(&run.id, self.at, PAGE).await?;
            if entries.is_empty() {
                break;
            }
            for entry in entries {
                self.at = Some(entry.seq);
                let frame = frame_of(entry);
                if frame.event == RESULT {
                    run.end(serde_json::from_str(&frame.data).unwrap_or_default());
                    return Ok(true);
                }
                run.send([frame]);
            }
        }
        let record = self.app.records.get(Kind::Run, &run.id).await?;
        if record.as_ref().is_some_and(is_open) {
            return Ok(false);
        }
        if self.over_since.get_or_insert_with(Instant::now).elapsed() < LAST_WORDS {
            return Ok(false);
        }
        run.end(match record {
            Some(record) => wait_result(self.app, &record).await.unwrap_or_default(),
            None => json!({}),
        });
        Ok(true)
    }
}
