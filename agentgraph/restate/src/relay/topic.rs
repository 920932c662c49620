//! [`Topic`]: the newest events of one thread.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::events::{Post, Posted};

/// The most bytes of kept events.
const KEPT_BYTES: usize = 8 * 1024 * 1024;

/// The sources whose numbers are remembered.
const SOURCES: usize = 4_096;

pub(super) struct Topic {
    /// Tells the ids of this topic from those of an earlier one of the same thread.
    epoch: String,
    kept: usize,
    events: Mutex<Events>,
    changed: Notify,
}

#[derive(Default)]
struct Events {
    entries: VecDeque<Arc<Entry>>,
    bytes: usize,
    /// The number of the first kept entry.
    first: u64,
    sources: HashMap<String, Source>,
    /// The sources, the oldest first.
    order: VecDeque<String>,
}

/// What is known of a source.
#[derive(Default)]
struct Source {
    execution: Option<String>,
    /// Executions that were followed by others: what is still on its way from them is void.
    void: Vec<String>,
    next: u64,
}

/// One line of the stream.
pub(super) struct Entry {
    call: String,
    kind: &'static str,
    data: String,
}

/// Where a reader is in the stream.
pub(super) enum Position {
    /// The entry with this number comes next.
    At(u64),
    /// The reader was in another stream, of which nothing is left.
    Elsewhere,
}

impl Entry {
    fn new(call: &str, kind: &'static str, data: &Value) -> Self {
        Entry { call: call.to_owned(), kind, data: data.to_string() }
    }

    fn gap(call: &str, missed: Option<u64>) -> Self {
        Entry::new(call, "gap", &json!({ "call": call, "missed": missed }))
    }

    pub(super) fn kind(&self) -> &'static str {
        self.kind
    }

    pub(super) fn data(&self) -> &str {
        &self.data
    }
}

impl Topic {
    pub(super) fn new(kept: usize) -> Self {
        let epoch = Uuid::new_v4().simple().to_string();
        Topic { epoch, kept, events: Mutex::default(), changed: Notify::new() }
    }

    fn events(&self) -> MutexGuard<'_, Events> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a post, unless it is a repeat.
    pub(super) fn take(&self, post: Post) {
        let mut events = self.events();
        for entry in events.judge(post) {
            events.push(entry, self.kept);
        }
        drop(events);
        self.changed.notify_waiters();
    }

    /// Where a reader begins: after the event with this id, or at the next new one.
    pub(super) fn position(&self, last: Option<&str>) -> Position {
        let events = self.events();
        let newest = events.first + events.entries.len() as u64;
        match last.map(|last| last.rsplit_once('-')) {
            None => Position::At(newest),
            Some(Some((epoch, number))) if epoch == self.epoch => {
                number.parse().map_or(Position::Elsewhere, |number: u64| {
                    Position::At(number.saturating_add(1).min(newest))
                })
            }
            Some(_) => Position::Elsewhere,
        }
    }

    /// The entries from a position on, at least one, and the position after them.
    pub(super) async fn next(
        &self,
        mut position: Position,
        call: Option<&str>,
    ) -> (Vec<(String, Arc<Entry>)>, Position) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on a change is not missed.
            changed.as_mut().enable();
            let (found, after) = self.read(&position, call);
            if !found.is_empty() {
                return (found, after);
            }
            position = after;
            changed.await;
        }
    }

    fn read(&self, position: &Position, call: Option<&str>) -> (Vec<(String, Arc<Entry>)>, Position) {
        let events = self.events();
        let newest = events.first + events.entries.len() as u64;
        let id = |number: u64| format!("{}-{number}", self.epoch);
        let mut found = Vec::new();
        let from = match position {
            Position::At(number) if *number >= events.first => *number,
            lost => {
                let missed = match lost {
                    Position::At(number) => Some(events.first - number),
                    Position::Elsewhere => None,
                };
                // The id is that of the entry before those that are left.
                let before = id(events.first.saturating_sub(1));
                found.push((before, Arc::new(Entry::gap(call.unwrap_or_default(), missed))));
                events.first
            }
        };
        let skipped = usize::try_from(from - events.first).unwrap_or(usize::MAX);
        for (number, entry) in (from..).zip(events.entries.iter().skip(skipped)) {
            if call.is_none_or(|call| entry.call == call) {
                found.push((id(number), Arc::clone(entry)));
            }
        }
        (found, Position::At(newest))
    }
}

impl Events {
    /// The entries that a post makes.
    fn judge(&mut self, post: Post) -> Vec<Entry> {
        let Post { call, source, execution, post, .. } = post;
        let (seq, mut event) = match post {
            Posted::End => return vec![Entry::new(&call, "end", &json!({ "call": call }))],
            Posted::Event { seq, event } => (seq, event),
        };
        let mut entries = Vec::new();
        let known = self.source(&source);
        if execution != known.execution {
            match (&execution, known.execution.take()) {
                (Some(new), _) if known.void.contains(new) => return entries,
                (_, Some(old)) => {
                    known.void.push(old);
                    known.next = 0;
                    entries.push(Entry::new(&call, "restarted", &json!({ "call": call, "source": source })));
                }
                (_, None) => {}
            }
            known.execution.clone_from(&execution);
        }
        if seq < known.next {
            return entries;
        }
        if seq > known.next {
            entries.push(Entry::gap(&call, Some(seq - known.next)));
        }
        known.next = seq + 1;
        if let Value::Object(fields) = &mut event {
            fields.insert("call".to_owned(), call.as_str().into());
            fields.insert("source".to_owned(), source.into());
        }
        entries.push(Entry::new(&call, "event", &event));
        entries
    }

    fn source(&mut self, name: &str) -> &mut Source {
        if !self.sources.contains_key(name) {
            if self.order.len() >= SOURCES
                && let Some(oldest) = self.order.pop_front()
            {
                self.sources.remove(&oldest);
            }
            self.order.push_back(name.to_owned());
        }
        self.sources.entry(name.to_owned()).or_default()
    }

    fn push(&mut self, entry: Entry, kept: usize) {
        self.bytes += entry.data.len();
        self.entries.push_back(Arc::new(entry));
        while self.entries.len() > kept || self.bytes > KEPT_BYTES && self.entries.len() > 1 {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.bytes -= oldest.data.len();
            self.first += 1;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn post(source: &str, execution: Option<&str>, seq: u64) -> Post {
        Post {
            graph: "g".to_owned(),
            thread: "t".to_owned(),
            call: "c".to_owned(),
            source: source.to_owned(),
            execution: execution.map(str::to_owned),
            post: Posted::Event { seq, event: json!({ "n": seq }) },
        }
    }

    /// The entries of a topic, each as one word.
    fn words(topic: &Topic, from: Option<&str>) -> Vec<String> {
        let position = from.map_or(Position::At(0), |from| topic.position(Some(from)));
        let (found, _) = topic.read(&position, None);
        let word = |entry: &Entry| {
            let data: Value = serde_json::from_str(&entry.data).unwrap();
            match entry.kind {
                "event" => format!("{}{}", data["source"].as_str().unwrap(), data["n"]),
                "gap" => format!("gap {}", data["missed"]),
                kind => kind.to_owned(),
            }
        };
        found.iter().map(|(_, entry)| word(entry)).collect()
    }

    #[test]
    fn repeats_are_dropped_and_lost_events_are_marked() {
        let topic = Topic::new(100);
        for seq in [0, 1, 0, 1, 2, 5, 4, 6] {
            topic.take(post("a", None, seq));
        }
        topic.take(post("b", None, 2));
        assert_eq!(words(&topic, None), ["a0", "a1", "a2", "gap 2", "a5", "a6", "gap 2", "b2"]);
    }

    #[test]
    fn an_attempt_that_runs_again_voids_its_earlier_execution() {
        let topic = Topic::new(100);
        for (execution, seq) in [("x", 0), ("x", 1), ("y", 0), ("x", 2), ("y", 1)] {
            topic.take(post("a", Some(execution), seq));
        }
        assert_eq!(words(&topic, None), ["a0", "a1", "restarted", "a0", "a1"]);
    }

    #[test]
    fn a_reader_that_comes_back_gets_the_rest_or_a_gap() {
        let topic = Topic::new(3);
        (0..3).for_each(|seq| topic.take(post("a", None, seq)));
        let id = topic.read(&Position::At(0), None).0[0].0.clone();
        assert_eq!(words(&topic, Some(&id)), ["a1", "a2"]);
        (3..7).for_each(|seq| topic.take(post("a", None, seq)));
        assert_eq!(words(&topic, Some(&id)), ["gap 3", "a4", "a5", "a6"]);
        assert_eq!(words(&topic, Some("another-1")), ["gap null", "a4", "a5", "a6"]);
        assert_eq!(words(&topic, Some("nonsense")), ["gap null", "a4", "a5", "a6"]);
    }

    #[test]
    fn memory_is_bounded() {
        let topic = Topic::new(usize::MAX);
        for seq in 0..20 {
            let event = json!({ "text": "x".repeat(1024 * 1024) });
            topic.take(Post { post: Posted::Event { seq, event }, ..post("a", None, 0) });
        }
        assert!(topic.events().bytes <= KEPT_BYTES);
        (0..SOURCES * 2).for_each(|n| topic.take(post(&n.to_string(), None, 0)));
        let events = topic.events();
        assert_eq!((events.sources.len(), events.order.len()), (SOURCES, SOURCES));
    }

    #[tokio::test]
    async fn a_reader_of_one_call_gets_the_events_of_that_call() {
        let topic = Arc::new(Topic::new(100));
        topic.take(Post { call: "other".to_owned(), ..post("a", None, 0) });
        let reader = Arc::clone(&topic);
        let (found, _) =
            tokio::join!(async move { reader.next(Position::At(0), Some("c")).await.0 }, async {
                topic.take(post("b", None, 0))
            });
        assert_eq!(found.len(), 1);
        assert!(found[0].1.data.contains("\"source\":\"b\""));
    }
}
