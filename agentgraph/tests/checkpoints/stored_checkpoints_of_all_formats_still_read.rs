//! Threads stored by an earlier release are read and continued.
//!
//! The files under `fixtures/format-1` and `fixtures/format-2` are never rewritten: they define the formats.
//! To add a file of this release's format for a feature that no file covers yet, run these tests with
//! `AGENTGRAPH_WRITE_FIXTURES=1`, which leaves existing files alone.

use std::path::PathBuf;
use std::sync::Arc;

use agentgraph::checkpoint::Source;
use agentgraph::checkpoint::{ListQuery, Place, RowKind};
use agentgraph::prelude::*;
use agentgraph::{Code, MemorySaver};

use crate::common::later_stories::{self, asked, failed, handled, nested};
use crate::common::stories::{Story, large, long, long_step, paused, person, recorded};
use crate::common::tape::{Tape, hex, unhex};

/// All formats; this release writes the last one.
const FORMATS: [u8; 2] = [1, WRITTEN];
const WRITTEN: u8 = 2;

fn file(format: u8, name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    folder.join(format!("format-{format}")).join(format!("{name}.json"))
}

async fn all_recorded() -> Vec<(&'static str, Tape)> {
    let mut all = Vec::from(recorded().await);
    all.extend(later_stories::recorded().await);
    all
}

async fn fixture(format: u8, name: &str) -> Tape {
    let path = file(format, name);
    let writes = format == WRITTEN && std::env::var_os("AGENTGRAPH_WRITE_FIXTURES").is_some();
    if writes && !path.exists() {
        let (_, tape) = all_recorded().await.into_iter().find(|(known, _)| *known == name).unwrap();
        std::fs::write(&path, serde_json::to_string_pretty(&tape).unwrap() + "\n").unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

async fn stored(format: u8, name: &str) -> Arc<MemorySaver> {
    fixture(format, name).await.play().await
}

#[tokio::test]
async fn a_paused_thread_with_dispatches_a_half_full_join_and_pending_writes_is_read() {
    for format in FORMATS {
        let graph = paused(stored(format, "paused").await);
        let state = graph.state("t").await.unwrap().unwrap();
        assert_eq!(state.values.title, "paused");
        assert_eq!(state.values.lines, ["early", "page 2"]);
        assert_eq!((&state.values.longest[..], state.values.count), ("page one", 2));
        assert_eq!(state.values.people, [person("ada", 36)]);
        assert_eq!(state.values.table.get("pi"), Some(&3.25));
        assert_eq!(state.next, ["ask", "read"], "page 3 failed, pages 2 and 1 are finished");
        assert_eq!(state.interrupts.len(), 1);
        assert_eq!(state.interrupts[0].value, serde_json::json!({ "ask": "age?", "of": "cy" }));
        assert_eq!(state.interrupts[0].schema.as_ref().unwrap()["maximum"], 255);

        let history = graph.history("t").await.unwrap();
        let listed: Vec<_> =
            history.iter().map(|one| (one.source, one.values.flash, &one.next[..])).collect();
        assert_eq!(listed[0], (Source::Loop, 9, &["ask", "read", "read", "read"].map(String::from)[..]));
        assert_eq!(listed[1], (Source::Input, 0, &["begin", "early"].map(String::from)[..]));

        let error = graph.resume(41).thread("t").await.unwrap_err();
        assert_eq!((error.code(), error.to_string().contains("page 3 is torn")), (Code::NodeFailed, true));
        let left = graph.state("t").await.unwrap().unwrap();
        assert_eq!(
            (&left.next[..], &left.values.lines[..]),
            (&["read".to_owned()][..], &["early", "asked", "page 2"].map(String::from)[..])
        );
    }
}

#[tokio::test]
async fn a_thread_with_a_segment_is_read_and_continued() {
    for format in FORMATS {
        let saver = stored(format, "long").await;
        let tail = agentgraph::Checkpointer::get(&*saver, Place::root("t"), None).await.unwrap().unwrap();
        let kinds: Vec<RowKind> = tail.rows.iter().map(|row| row.kind).collect();
        assert_eq!(kinds, [RowKind::Full, RowKind::Segment, RowKind::Delta]);
        let graph = long(saver);
        let state = graph.state("t").await.unwrap().unwrap();
        let title = if format == 1 { "long".to_owned() } else { "long".repeat(1500) };
        let mut expected = Story { title, ..Story::default() };
        for n in 0..1025 {
            expected.apply(&(), long_step(n)).unwrap();
        }
        assert_eq!(state.values, expected);
        let end = graph.proceed().thread("t").await.unwrap().into_finished().unwrap();
        assert_eq!(end.count, 1030);
    }
}

#[tokio::test]
async fn a_full_that_refers_to_a_large_value_in_another_record_is_read() {
    for format in FORMATS {
        let saver = stored(format, "large").await;
        let graph = large(Arc::clone(&saver), 2);
        let state = graph.state("t").await.unwrap().unwrap();
        assert_eq!(
            (state.values.title.len(), state.values.lines.join(", ")),
            (5000, "0 long, 5000 long".into())
        );
        assert_eq!(state.next, ["new"]);
        let rows =
            agentgraph::Checkpointer::list(&*saver, Place::root("t"), ListQuery::default()).await.unwrap();
        assert!(rows[0].kind == RowKind::Full && rows[0].record.len() < 1000, "the full refers to the value");
        assert_eq!(graph.proceed().thread("t").await.unwrap().into_finished().unwrap().title.len(), 5000);
    }
}

#[tokio::test]
async fn a_waiting_handler_on_a_branch_resumes_with_its_joins_deferred_node_and_spent_units() {
    for format in FORMATS {
        let graph = handled(stored(format, "handled").await);
        let state = graph.state("t").await.unwrap().unwrap();
        assert_eq!((state.id.branch, &*state.values.title), (1, "handled"));
        assert_eq!(
            state.values.lines,
            ["paid", "quick", "first"],
            "`first` is finished while the handler waits"
        );
        assert_eq!(
            (&state.next[..], &state.deferred[..]),
            (&["mend".to_owned()][..], &["late".to_owned()][..])
        );
        assert_eq!(state.interrupts[0].value, "the page is torn");
        let branches: Vec<u32> =
            graph.history("t").branch(0).await.unwrap().iter().map(|one| one.id.branch).collect();
        assert_eq!(branches, [0, 0], "the original branch is unchanged");
        let end = graph.resume("glue").thread("t").await.unwrap();
        assert_eq!(end.spent("cents"), 25);
        let lines = ["paid", "quick", "first", "mended with glue", "waited", "late"];
        assert_eq!(end.into_finished().unwrap().lines, lines);
    }
}

#[tokio::test]
async fn two_waiting_subgraphs_one_with_a_memory_are_resumed() {
    let graph = nested(stored(1, "nested").await);
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!((&state.next[..], state.values.count), (&["part", "counter"].map(String::from)[..], 1));
    let asked: Vec<_> = state.interrupts.iter().map(|asked| (&*asked.node, asked.value.clone())).collect();
    assert_eq!(asked, [("ask", "and then?".into()), ("count", 1.into())]);
    let [part, counter] = [0, 1].map(|at| state.interrupts[at].id.unwrap());
    let answers = [(part, serde_json::json!("the end")), (counter, 41.into())];
    let end = graph.resume_many(answers).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!((end.lines, end.count), (vec!["opened".to_owned(), "the end".to_owned()], 42));
}

#[tokio::test]
async fn two_waiting_subgraphs_one_with_a_memory_that_the_checkpoint_names_are_abandoned() {
    for format in FORMATS {
        let graph = nested(stored(format, "named").await);
        let named = graph.state("t").await.unwrap().unwrap().memories;
        assert_eq!(named, [("counter".to_owned(), agentgraph::CheckpointId::new(0, 1))].into());
        let again = graph.invoke(Story::update().title("again")).thread("t").abandon().await.unwrap();
        let asked: Vec<_> = again.interrupts().iter().map(|asked| asked.value.clone()).collect();
        assert_eq!(asked, [serde_json::json!("and then?"), 1.into()], "the waiting call was abandoned");
        let answers = [serde_json::json!("the end"), 41.into()];
        let answers = again.interrupts().iter().map(|asked| asked.id.unwrap()).zip(answers);
        let end = graph.resume_many(answers).thread("t").await.unwrap().into_finished().unwrap();
        assert_eq!(end.count, 42);
    }
}

/// Such a thread continues from the newest memory that the earlier release left. Its later checkpoints
/// name their memories.
#[tokio::test]
async fn a_thread_whose_checkpoints_name_no_memories_continues_from_the_newest_memory() {
    let graph = nested(stored(1, "nested").await);
    let begin = graph.history("t").await.unwrap().pop().unwrap().id;
    let state = graph.state("t").await.unwrap().unwrap();
    assert!(state.memories.is_empty());
    let answers = [serde_json::json!("the end"), 41.into()];
    let answers = state.interrupts.iter().map(|asked| asked.id.unwrap()).zip(answers);
    let end = graph.resume_many(answers).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(end.count, 42);
    for title in ["third", "fourth"] {
        let asks = graph.invoke(Story::update().title(title)).thread("t").abandon().await.unwrap();
        assert_eq!(asks.interrupts()[1].value, 42, "{title}");
    }
    let replayed = graph.proceed().thread("t").from(begin).await.unwrap();
    assert_eq!(replayed.interrupts()[0].value, 42, "the first checkpoint names no memory");
}

#[tokio::test]
async fn interrupts_with_keys_a_void_answer_and_a_null_answer_are_read() {
    for format in FORMATS {
        for (name, eager) in [("asked", false), ("asked_eager", true)] {
            let graph = asked(stored(format, name).await, eager, 2);
            let open = graph.state("t").await.unwrap().unwrap().interrupts;
            assert_eq!(open.len(), 1, "{name}");
            assert_eq!((&open[0].value, &open[0].key), (&serde_json::json!("mallory?"), &None), "{name}");
            let replaced = open[0].replaces.as_ref().unwrap();
            assert_eq!((&replaced.value, replaced.times), (&serde_json::json!("the baker?"), 1), "{name}");
            assert_eq!(graph.waiting().await.unwrap()[0].interrupts, open, "{name}");
            let end = graph.resume("no").thread("t").await.unwrap().into_finished().unwrap();
            assert_eq!(end.lines, ["yes", "", "no"], "{name}");
        }
    }
}

#[tokio::test]
async fn failures_of_tasks_and_stuck_joins_of_subgraphs_are_read() {
    for format in FORMATS {
        let tape = fixture(format, "failed").await;
        let hold = |key: &[u8]| {
            let records = tape.commits.iter().map(|commit| unhex(&commit.record));
            records.filter(|record| record.windows(key.len()).any(|part| part == key)).count()
        };
        assert!(
            hold(b"\xa5stuck") > 0 && hold(b"\xaaalso_stuck") > 0,
            "records hold stuck joins in full and as additions"
        );

        let saver = stored(format, "failed").await;
        let failures = failed(Arc::clone(&saver), false).state("t").await.unwrap().unwrap().failures;
        let listed: Vec<_> = failures.iter().map(|one| (one.node(), one.message())).collect();
        assert_eq!(listed, [("tear", "the page is torn")]);

        let Outcome::Finished { stuck, .. } = failed(saver, true).proceed().thread("t").await.unwrap() else {
            panic!("the run finishes once the node is mended")
        };
        let listed = stuck
            .iter()
            .map(|join| (join.namespace.split(':').next().unwrap(), &*join.to, &join.missing[..]));
        let missing = &["absent".to_owned()][..];
        assert_eq!(listed.collect::<Vec<_>>(), [("one", "both", missing), ("two", "both", missing)]);
    }
}

/// Returns a record with one more key in its header.
fn with_key(record: &[u8], key: &str, value: &[u8]) -> Vec<u8> {
    let (head, rest) = record.split_at(8);
    assert_eq!((head[0], head[5]), (1, 0xde), "format 1, and a map of up to 65,535 keys");
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    let keys = u16::from_be_bytes([head[6], head[7]]) + 1;
    let (header, operations) = rest.split_at(length - 3);
    let mut entry = vec![0xa0 | key.len() as u8];
    entry.extend_from_slice(key.as_bytes());
    entry.extend_from_slice(value);
    let mut record = vec![1];
    record.extend_from_slice(&((length + entry.len()) as u32).to_be_bytes());
    record.push(0xde);
    record.extend_from_slice(&keys.to_be_bytes());
    record.extend_from_slice(header);
    record.extend_from_slice(&entry);
    record.extend_from_slice(operations);
    record
}

#[tokio::test]
async fn header_keys_of_a_later_release_are_kept_and_written_with_the_next_full() {
    let value = [0x93, 1, 0x81, 0xa1, b'x', 0xc3, 0xc0];
    let mut tape = fixture(1, "large").await;
    tape.commits.truncate(2);
    tape.commits[0].record = hex(&with_key(&unhex(&tape.commits[0].record), "a_later", &value));
    let saver = tape.play().await;
    large(Arc::clone(&saver), 2).proceed().thread("t").await.unwrap();
    let rows = agentgraph::Checkpointer::list(&*saver, Place::root("t"), ListQuery::default()).await.unwrap();
    let full = rows.iter().find(|row| row.kind == RowKind::Full).unwrap();
    assert!(full.id.step > 1, "a full was written by this release");
    let kept = [&b"\xa7a_later"[..], &value].concat();
    assert!(full.record.windows(kept.len()).any(|window| window == kept));
}

#[tokio::test]
async fn a_newer_format_is_refused_with_a_remedy() {
    let mut tape = fixture(1, "large").await;
    let mut record = unhex(&tape.commits[0].record);
    record[0] = 3;
    tape.commits[0].record = hex(&record);
    tape.commits.truncate(1);
    let error = large(tape.play().await, 1).state("t").await.unwrap_err();
    assert_eq!(error.code(), Code::UnknownFormat);
    assert!(
        error.to_string().contains("it has format 3, and this release reads up to 2: update agentgraph"),
        "{error}"
    );
}

/// The slot of the failure of an open task. The first fixtures have no such pending writes.
const ERROR: u32 = u32::MAX - 3;

/// This release writes the stories with the same steps, kinds and record lengths, and with the same slots
/// except those of failures.
#[tokio::test]
async fn this_release_writes_format_2() {
    for (name, tape) in all_recorded().await {
        let before = fixture(WRITTEN, name).await;
        assert_eq!(tape.commits.len(), before.commits.len(), "{name}");
        let slots = |tape: &Tape| {
            let slots = tape.writes.iter().map(|write| write.slot);
            let mut slots: Vec<u32> = slots.filter(|slot| *slot != ERROR).collect();
            slots.sort_unstable();
            slots
        };
        assert_eq!(slots(&tape), slots(&before), "{name}");
        let shape = |tape: &Tape| {
            tape.commits.iter().map(|one| (one.step, one.kind, one.record.len())).collect::<Vec<_>>()
        };
        assert_eq!(shape(&tape), shape(&before), "{name}");
    }
}
