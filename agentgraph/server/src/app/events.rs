//! The log of a thread: the events of all its runs in one order, in the records, with the newest in memory.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{App, object_of};
use crate::error::RecordError;
use crate::ids;
use crate::live::{Hold, LoggedEvent, ThreadLog};
use crate::records::{Kind, LogEntry};

/// An event that has no number yet.
pub(crate) struct NewEvent {
    pub(crate) method: &'static str,
    pub(crate) namespace: Vec<String>,
    pub(crate) node: Option<String>,
    pub(crate) data: Value,
    /// An id that is the same whenever the event is told again. Others get one of their time and number.
    pub(crate) id: Option<String>,
}

/// How many events of a thread are kept.
const KEPT: u64 = 10_000;

/// How often older ones are removed, in events.
const TRIMMED: u64 = 1_000;

/// How many events are read from the records at once.
const PAGE: usize = 64;

/// Threads and runs may have the same id, if a client chose it.
fn key(thread: &str) -> String {
    format!("{THREAD}{thread}")
}

const THREAD: &str = "thread:";

impl App {
    /// The log of a thread, begun if there is none. From then on the events of all its runs are kept.
    pub(crate) async fn thread_log(&self, thread: &str) -> Result<Arc<ThreadLog>, RecordError> {
        let log = self.live.log(thread);
        log.load(self.records.last(&key(thread))).await?;
        if let Some(shared) = self.records.shared()
            && log.last() == 0
        {
            // The replica that drives the thread must know of the reader.
            shared.begin(&key(thread)).await?;
        }
        Ok(log)
    }

    /// Looks at a log to which another replica has added something, or which it reads.
    pub(crate) async fn heard_of(&self, log: &str) -> Result<(), RecordError> {
        let Some(thread) = log.strip_prefix(THREAD) else {
            self.live.wake(Some(log));
            return Ok(());
        };
        if let Some(known) = self.live.known_log(thread) {
            known.catch_up(self.records.last(log).await?.unwrap_or(0));
        } else if let Some(run) = self.live.adopted(thread).first() {
            run.keep_log(self.live.log(thread));
        }
        Ok(())
    }

    /// Goes on after what another replica has added.
    pub(crate) async fn look_at_log(&self, log: &ThreadLog) -> Result<(), RecordError> {
        log.catch_up(self.records.last(&key(&log.thread)).await?.unwrap_or(0));
        Ok(())
    }

    /// Looks at all logs that have readers here.
    pub(crate) async fn look_at_logs(&self) -> Result<(), RecordError> {
        self.live.wake(None);
        for log in self.live.known_logs() {
            if log.last() == 0 {
                self.thread_log(&log.thread).await?;
            }
            self.heard_of(&key(&log.thread)).await?;
        }
        Ok(())
    }

    /// Adds to a log of a thread that this process drives. `false` if another replica has it.
    pub(crate) async fn append(
        &self,
        (thread, hold): (&str, Option<&Hold>),
        log: &str,
        entries: Vec<LogEntry>,
        fleeting: bool,
    ) -> Result<bool, RecordError> {
        match (hold, self.records.shared()) {
            (Some(hold), Some(shared)) => {
                shared.append_claimed((&hold.replica, thread), log, entries, fleeting).await
            }
            _ => self.records.append(log, entries).await.map(|()| true),
        }
    }

    /// The log of a thread whose events are kept: one that has some, or a reader.
    pub(crate) async fn kept_log(&self, thread: &str) -> Result<Option<Arc<ThreadLog>>, RecordError> {
        let is_kept =
            self.live.known_log(thread).is_some() || self.records.last(&key(thread)).await?.is_some();
        Ok(if is_kept { Some(self.thread_log(thread).await?) } else { None })
    }

    /// Adds events. They are stored before readers get them, so that a kill loses no event that a reader has
    /// seen. `false` if another replica owns the thread.
    pub(crate) async fn log_events(
        &self,
        log: &ThreadLog,
        hold: Option<&Hold>,
        events: Vec<NewEvent>,
    ) -> Result<bool, RecordError> {
        let _writing = log.writing.lock().await;
        let before = log.last();
        let now = log.time(ids::now() / 1000);
        let logged = events.into_iter().zip(before + 1..).map(|(event, seq)| numbered(event, seq, now));
        let logged: Vec<LoggedEvent> = logged.collect();
        let entries = logged.iter().map(|event| LogEntry { seq: event.seq, text: stored(event) });
        let claim = (&*log.thread, hold);
        if !self.append(claim, &key(&log.thread), entries.collect(), false).await? {
            return Ok(false);
        }
        log.add(logged);
        let last = log.last();
        if last / TRIMMED != before / TRIMMED && last > KEPT {
            self.records.trim(&key(&log.thread), last - KEPT + 1).await?;
        }
        Ok(true)
    }

    /// The events after a number, which becomes that of the last one. Waits until there is one.
    pub(crate) async fn events_after(
        &self,
        log: &ThreadLog,
        at: &mut u64,
    ) -> Result<Vec<Arc<LoggedEvent>>, RecordError> {
        loop {
            log.until_after(*at).await;
            let events = self.known_events(log, at).await?;
            if !events.is_empty() {
                return Ok(events);
            }
        }
    }

    /// The number of the last event of a log that the caller may see; 0 if there is none.
    pub(crate) async fn seen_through(&self, log: &ThreadLog) -> Result<u64, RecordError> {
        Ok(if self.sees(&log.thread).await? { log.last() } else { 0 })
    }

    /// Whether the caller may see the events of a thread. One of another caller is to it like one that is not
    /// there yet.
    async fn sees(&self, thread: &str) -> Result<bool, RecordError> {
        Ok(self.caller.name().is_none() || self.records.get(Kind::Thread, thread).await?.is_some())
    }

    /// Some of the events after a number that are there. The number becomes that of the last one.
    pub(crate) async fn known_events(
        &self,
        log: &ThreadLog,
        at: &mut u64,
    ) -> Result<Vec<Arc<LoggedEvent>>, RecordError> {
        let known = log.last();
        let events = match log.after(*at) {
            _ if known <= *at => Vec::new(),
            Some(events) => events,
            None => self.stored_events(&log.thread, *at).await?.into_iter().map(Arc::new).collect(),
        };
        // Asked for each time: a reader may have come before the thread, which may then be another caller's.
        let sees = events.is_empty() || self.sees(&log.thread).await?;
        // Readers are dropped at any await and begin again, so the number changes after the last one. There
        // are no events if the thread was removed.
        *at = events.last().map_or(known.max(*at), |last| last.seq);
        Ok(if sees { events } else { Vec::new() })
    }

    async fn stored_events(&self, thread: &str, after: u64) -> Result<Vec<LoggedEvent>, RecordError> {
        let entries = self.records.read(&key(thread), Some(after), PAGE).await?;
        Ok(entries.into_iter().filter_map(read).collect())
    }

    /// The ids of the events of a run that were made of it, for a run that goes on in another process.
    pub(crate) async fn told_by(&self, log: &ThreadLog, run: &str) -> Result<Vec<String>, RecordError> {
        let (mut told, mut at) = (Vec::new(), 0);
        while at < log.last() {
            let events = self.stored_events(&log.thread, at).await?;
            let Some(last) = events.last() else { break };
            at = last.seq;
            let ids = events.iter().filter_map(|event| {
                let event: Value = serde_json::from_str(&event.text).ok()?;
                event["event_id"].as_str().map(str::to_owned)
            });
            told.extend(ids.filter(|id| id.starts_with(&format!("synth:{run}:"))));
        }
        Ok(told)
    }

    pub(crate) async fn forget_events(&self, thread: &str) -> Result<(), RecordError> {
        self.records.forget(&key(thread)).await?;
        if let Some(log) = self.live.known_log(thread) {
            log.clear();
        }
        Ok(())
    }
}

fn numbered(event: NewEvent, seq: u64, now: i64) -> LoggedEvent {
    let NewEvent { method, namespace, node, data, id } = event;
    let channel = match (method, data["name"].as_str()) {
        ("custom", Some(name)) => format!("custom:{name}"),
        _ => method.to_owned(),
    };
    let mut params = object_of([("namespace", json!(namespace)), ("timestamp", now.into()), ("data", data)]);
    if let Some(node) = node {
        params["node"] = node.into();
    }
    let id = id.unwrap_or_else(|| format!("{now}-{seq}"));
    let event = object_of([
        ("type", "event".into()),
        ("event_id", id.into()),
        ("seq", seq.into()),
        ("method", method.into()),
        ("params", params),
    ]);
    LoggedEvent { seq, channel, namespace, text: event.to_string() }
}

/// An event in the records: a line for the filters of readers, then what they get.
fn stored(event: &LoggedEvent) -> String {
    format!("{}\n{}", json!([event.channel, event.namespace]), event.text)
}

fn read(entry: LogEntry) -> Option<LoggedEvent> {
    let (about, text) = entry.text.split_once('\n')?;
    let (channel, namespace) = serde_json::from_str(about).ok()?;
    Some(LoggedEvent { seq: entry.seq, channel, namespace, text: text.to_owned() })
}
