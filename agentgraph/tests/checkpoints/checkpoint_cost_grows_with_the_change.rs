//! The bytes and rows of a checkpoint are proportional to the change, not to the state, the graph or the
//! history. The tests count bytes and rows; they measure no time.

mod random_costs;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use agentgraph::checkpoint::{ListQuery, Place, RowKind, Tail};
use agentgraph::json_state::{JsonChannels, JsonReducer, JsonUpdate};
use agentgraph::prelude::*;
use agentgraph::{CheckpointId, Checkpointer, Command, Dispatch, JsonState};
use proptest::prelude::*;
use proptest::test_runner::Config;
use random_costs::{Call, Known, Live, calls, play, referred_and_set, small_calls};
use serde::{Deserialize, Serialize};

use crate::common::saver::NotingSaver;

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Long {
    n: u64,
    /// A large text, written once.
    page: String,
    #[reduce(append)]
    lines: Vec<String>,
    #[reduce(by_id)]
    notes: Vec<Note>,
    /// A text that each write replaces.
    #[reduce(last)]
    draft: String,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Note {
    id: String,
    text: String,
}

impl Keyed for Note {
    fn key(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.id)
    }
}

/// Returns a graph with one node that runs until `n` is `steps`.
fn looped(steps: u64, write: impl Fn(u64) -> LongUpdate + Clone + Send + Sync + 'static) -> StateGraph<Long> {
    let node = move |state: Snapshot<Long>| {
        let update = write(state.n).n(state.n + 1);
        std::future::ready(update)
    };
    let more = move |state: &Long| if state.n < steps { "step" } else { END };
    StateGraph::new().node("step", node).edge(START, "step").branch("step", more, ["step", END])
}

async fn run(graph: &CompiledGraph<Long>) -> Long {
    let outcome = graph.invoke(Long::update()).thread("t").max_supersteps(u64::MAX).await.unwrap();
    outcome.into_finished().unwrap()
}

fn bytes(tail: &Tail) -> u64 {
    tail.rows.iter().map(|row| row.record.len() as u64).sum()
}

#[tokio::test]
async fn a_list_of_a_megabyte_takes_little_more_than_a_megabyte() {
    let saver = NotingSaver::memory().at_once();
    let graph = looped(1000, |_| Long::update().lines(["x".repeat(1000)]))
        .compile()
        .unwrap()
        .checkpointer(saver.clone());
    run(&graph).await;
    assert!(saver.put_bytes() < 1_200_000, "{} bytes", saver.put_bytes());
}

#[tokio::test]
async fn messages_by_id_of_a_megabyte_take_little_more_than_a_megabyte() {
    let note = |n: u64| Note { id: format!("note-{n}"), text: "x".repeat(1000) };
    let saver = NotingSaver::memory().at_once();
    let graph =
        looped(1000, move |n| Long::update().notes([note(n)])).compile().unwrap().checkpointer(saver.clone());
    assert_eq!(run(&graph).await.notes.len(), 1000);
    assert!(saver.put_bytes() < 1_200_000, "{} bytes", saver.put_bytes());
}

#[tokio::test]
async fn an_unchanged_large_field_is_stored_once_across_full_records_and_processes() {
    let saver = NotingSaver::memory().at_once();
    let build = || {
        let write = |n: u64| match n {
            0 => Long::update().page("p".repeat(1_000_000)),
            _ => Long::update().draft("d".repeat(3500)),
        };
        looped(1000, write).compile().unwrap().checkpointer(saver.clone())
    };
    build().invoke(Long::update()).thread("t").max_supersteps(100).await.unwrap();
    while let Outcome::Stopped { .. } = build().proceed().thread("t").max_supersteps(100).await.unwrap() {}
    assert_eq!(build().state("t").await.unwrap().unwrap().values.page.len(), 1_000_000);
    // Besides the page, the store holds only 1,000 drafts of 3,500 bytes.
    assert!(saver.put_bytes() < 4_800_000, "{} bytes", saver.put_bytes());
    let fulls = rows(&saver, RowKind::Full).await;
    assert!(fulls.len() > 2, "too few full records: {}", fulls.len());
}

#[tokio::test]
async fn a_full_record_does_not_refer_to_a_list_that_has_grown_since() {
    let write = |n: u64| match n {
        0 => Long::update().overwrite_lines(vec!["l".repeat(5000)]),
        1..3 => Long::update().lines([n.to_string()]),
        _ => Long::update().draft("d".repeat(3500)),
    };
    // With 0, the second process writes the whole list. With 2, it reads a list that the first one stored.
    for first in [0, 2] {
        let saver = NotingSaver::memory().at_once();
        let build = || looped(60, write).compile().unwrap().checkpointer(saver.clone());
        build().invoke(Long::update()).thread("t").max_supersteps(first).await.unwrap();
        build().proceed().thread("t").await.unwrap();
        let fulls = rows(&saver, RowKind::Full).await;
        assert!(fulls[0].id.step > 3, "no full record after the list grew");
        let lines = build().state("t").await.unwrap().unwrap().values.lines;
        assert_eq!((lines.len(), &lines[1..]), (3, &["1".to_owned(), "2".to_owned()][..]));
    }
}

async fn rows(saver: &impl Checkpointer, kind: RowKind) -> Vec<agentgraph::checkpoint::Row> {
    let mut rows = saver.list(Place::root("t"), ListQuery::default()).await.unwrap();
    rows.retain(|row| row.kind == kind);
    rows
}

#[tokio::test]
async fn the_bytes_of_a_step_do_not_grow_with_the_number_of_steps() {
    let saver = NotingSaver::memory().at_once();
    let graph = looped(2500, |_| Long::update().lines(["x"])).compile().unwrap().checkpointer(saver.clone());
    run(&graph).await;
    let deltas = rows(&saver, RowKind::Delta).await;
    let longest = deltas.iter().map(|row| row.record.len()).max().unwrap();
    let shortest = deltas.iter().map(|row| row.record.len()).min().unwrap();
    assert!(longest < shortest + 40, "{shortest} to {longest} bytes");
}

#[tokio::test]
async fn the_bytes_of_a_step_do_not_grow_with_the_graph() {
    let mut longest = Vec::new();
    for nodes in [1, 400] {
        let saver = NotingSaver::memory().at_once();
        let mut graph = looped(20, |_| Long::update());
        for extra in 0..nodes {
            graph = graph.node(format!("extra{extra}"), || async {}).edge(format!("extra{extra}"), "step");
        }
        run(&graph.compile().unwrap().checkpointer(saver.clone())).await;
        longest.push(rows(&saver, RowKind::Delta).await.iter().map(|row| row.record.len()).max());
    }
    assert_eq!(longest[0], longest[1]);
}

/// A segment holds only the edits since the full record or segment before it. The first segment of a call or
/// run holds all edits of the run.
#[tokio::test]
async fn the_bytes_of_temporary_edits_do_not_grow_with_earlier_edits() {
    async fn edit(ctx: Ctx) -> Result<()> {
        let edits = ctx.edits();
        match ctx.step() % 2 {
            1 => edits.add_edge("edit", "rest")?,
            _ => edits.remove_edge("edit", "rest")?,
        }
        Ok(())
    }
    async fn rest() {}
    let graph = || {
        let graph = StateGraph::<Long>::new().node("edit", edit).node("rest", rest);
        graph.edge(START, "edit").edge("edit", "edit").compile().unwrap()
    };
    let saver = Arc::new(MemorySaver::new());
    let (mut read, mut repeated) = (Vec::new(), Vec::new());
    for call in 1..=4 {
        let graph = graph().checkpointer(Arc::clone(&saver));
        let run = match call {
            1 | 4 => graph.invoke(Long::update()).abandon(),
            _ => graph.proceed(),
        };
        run.thread("t").max_supersteps(2100).await.unwrap();
        let tail = saver.get(Place::root("t"), None).await.unwrap().unwrap();
        read.push(bytes(&tail));
        let edits = if call == 4 { 2100 } else { call * 2100 };
        let now = graph.state("t").await.unwrap().unwrap();
        assert_eq!(now.edits.len(), edits, "call {call}");
        let deltas = tail.rows.iter().filter(|row| row.kind == RowKind::Delta);
        let repeats = tail.rows.iter().filter(|row| row.kind != RowKind::Delta);
        repeated.push((repeats.map(|row| row.record.len()).sum::<usize>(), edits - deltas.count()));
        let past = graph.history("t").before(now.id).limit(100).await.unwrap();
        assert_eq!(past.last().unwrap().edits.len(), edits - 100, "call {call}");
    }
    assert!(read[2] <= 3 * read[0], "{read:?}");
    // Fulls and segments together contain each edit once, wherever the last full is.
    let (first, edits) = repeated[0];
    for (bytes, all) in &repeated {
        assert!(100 * bytes * edits <= 101 * first * all, "{repeated:?}");
    }
}

#[tokio::test]
async fn every_step_of_a_long_thread_is_read_correctly_from_few_rows() {
    let write = |n: u64| {
        let note = |n: u64| Note { id: (n % 7).to_string(), text: n.to_string() };
        match n % 5 {
            // The page makes the state too large for a full record before there are 1,024 deltas.
            _ if n == 0 => Long::update().page("p".repeat(5000)),
            0 => Long::update().lines([n.to_string()]),
            1 => Long::update().notes([note(n)]),
            2 => Long::update().remove_notes([(n % 7).to_string()]),
            3 if n % 1000 == 3 => Long::update().overwrite_lines(vec![n.to_string()]),
            _ => Long::update().draft(n.to_string()),
        }
    };
    let saver = Arc::new(MemorySaver::new());
    let graph = looped(3000, write).compile().unwrap().checkpointer(Arc::clone(&saver));
    let end = run(&graph).await;
    let mut expected = Long::default();
    let mut history = graph.history("t").await.unwrap();
    history.reverse();
    assert_eq!(history.len(), 3001);
    for checkpoint in &history {
        assert_eq!(checkpoint.values, expected, "{}", checkpoint.id);
        if expected.n < 3000 {
            let update = write(expected.n).n(expected.n + 1);
            expected.apply(&(), update).unwrap();
        }
    }
    assert_eq!(end, history.last().unwrap().values);
    let mut segments = 0;
    for step in 0..=3000 {
        let tail = saver.get(Place::root("t"), Some(CheckpointId::new(0, step))).await.unwrap().unwrap();
        let count = |kind| tail.rows.iter().filter(|row| row.kind == kind).count();
        assert_eq!(count(RowKind::Full), 1);
        assert!(count(RowKind::Delta) <= 1024 && count(RowKind::Segment) <= 3, "step {step}");
        segments += count(RowKind::Segment);
    }
    assert!(segments > 0, "no read includes a segment");
    // `history` reads the steps in sequence. These steps are also read alone.
    for step in [1, 1023, 1024, 1025, 2047, 2048, 2049, 2999, 3000] {
        let alone = graph.history("t").before(CheckpointId::new(0, step + 1)).limit(1).await.unwrap();
        assert_eq!(alone[0].values, history[step as usize].values, "step {step}");
    }
}

#[tokio::test]
async fn a_read_takes_at_most_twice_the_live_bytes_plus_64_kib() {
    let saver = Arc::new(MemorySaver::new());
    let write = |n: u64| match n {
        0..300 => Long::update().draft("d".repeat(1 + (n as usize * 37) % 9000)),
        _ => Long::update().overwrite_lines(vec!["l".repeat(3000)]),
    };
    let graph = looped(600, write).compile().unwrap().checkpointer(Arc::clone(&saver));
    run(&graph).await;
    for checkpoint in graph.history("t").await.unwrap() {
        let tail = saver.get(Place::root("t"), Some(checkpoint.id)).await.unwrap().unwrap();
        let live = serde_json::to_string(&checkpoint.values).unwrap().len() as u64;
        // Live bytes do not include the headers of rows, about fifty bytes each.
        let headers = 64 * tail.rows.len() as u64 + 300;
        assert!(
            bytes(&tail) <= 2 * live + 64 * 1024 + headers,
            "{}: {} for {live}",
            checkpoint.id,
            bytes(&tail)
        );
    }
}

/// The field number and the length of an entry count as live bytes, because a full record has them too.
/// Otherwise every step of a map with tiny entries would be a full record.
#[tokio::test]
async fn a_map_of_many_small_entries_is_not_rewritten_at_every_step() {
    #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
    struct Seen {
        #[reduce(merge)]
        words: BTreeMap<String, u8>,
        n: u64,
    }
    async fn count(seen: Snapshot<Seen>) -> SeenUpdate {
        let words = match seen.n {
            0 => (0..40_000).map(|word| (format!("{word:05}"), 1)).collect(),
            n => BTreeMap::from([(format!("{n:05}"), 2)]),
        };
        Seen::update().words(words).n(seen.n + 1)
    }
    let saver = NotingSaver::memory().at_once();
    let build = || {
        let graph = StateGraph::new().node("count", count).edge(START, "count").edge("count", "count");
        graph.compile().unwrap().checkpointer(saver.clone())
    };
    build().invoke(Seen::update()).thread("t").max_supersteps(1).await.unwrap();
    let first = saver.put_bytes();
    for _ in 0..5 {
        build().proceed().thread("t").max_supersteps(20).await.unwrap();
    }
    assert!(
        saver.put_bytes() < first + 15_000,
        "{first} bytes after the first call, {} at the end",
        saver.put_bytes()
    );
}

/// Returns the lengths of a record's header and of its operations.
fn part_lengths(record: &[u8]) -> (u64, u64) {
    let header = u64::from(u32::from_be_bytes(record[5..9].try_into().unwrap()));
    (header, record.len() as u64 - 9 - header)
}

/// The greatest length of a header in these threads.
const HEADER: u64 = 700;

/// Returns the bytes that a reader processes: the operations of all rows, and the values that the full record
/// refers to unless a later row replaces them.
fn bytes_read(tail: &Tail, at_full: Live) -> u64 {
    let start = |record: &[u8]| record.len() - part_lengths(record).1 as usize;
    let mut rows = tail.rows.iter().map(|row| &row.record[start(&row.record)..]);
    let own: u64 = rows.clone().map(|operations| operations.len() as u64).sum();
    let [mut referred, _] = referred_and_set(rows.next().unwrap());
    let later: Vec<usize> = rows.flat_map(|operations| referred_and_set(operations)[1].clone()).collect();
    referred.retain(|field| !later.contains(field));
    own + referred.iter().map(|field| at_full.0[*field]).sum::<u64>()
}

/// Returns the ids of the full records of all branches.
async fn fulls(saver: &NotingSaver, known: &BTreeMap<CheckpointId, Known>) -> Vec<CheckpointId> {
    let mut fulls = Vec::new();
    for branch in 0..=known.keys().next_back().unwrap().branch {
        let query = ListQuery { branch: Some(branch), ..ListQuery::default() };
        let rows = saver.list(Place::root("t"), query).await.unwrap();
        fulls.extend(rows.into_iter().filter(|row| row.kind == RowKind::Full).map(|row| row.id));
    }
    fulls
}

/// Asserts the bounds that `docs/durability.md` states under "Why reading is bounded" and "Why writing is
/// bounded".
async fn assert_costs_are_bounded(calls: &[Call]) {
    let saver = NotingSaver::memory().at_once();
    let known = play(calls, &saver).await;
    let known: BTreeMap<CheckpointId, Known> = known.into_iter().map(|one| (one.id, one)).collect();
    let fulls = fulls(&saver, &known).await;
    // A read takes the most bytes right before a full record.
    let before = known.values().zip(known.values().skip(1)).filter(|(_, next)| fulls.contains(&next.id));
    let sample = known.values().rev().step_by(1 + known.len() / 40);
    for one in before.map(|(one, _)| one).chain(sample) {
        let tail = saver.get(Place::root("t"), Some(one.id)).await.unwrap().unwrap();
        let count = |kind| tail.rows.iter().filter(|row| row.kind == kind).count();
        assert_eq!((tail.rows[0].kind, count(RowKind::Full)), (RowKind::Full, 1), "{}", one.id);
        let since = (one.id.step - tail.rows[0].id.step) as usize;
        assert!(count(RowKind::Delta) < 1024 && count(RowKind::Segment) == since / 1024, "{}", one.id);
        let reads = bytes_read(&tail, known[&tail.rows[0].id].live);
        let live = one.live.total();
        assert!(reads <= 2 * live + 64 * 1024 + 64, "{}: {reads} bytes for {live}", one.id);
    }
    assert_small_states_are_read_in_few_rows(&saver, &known).await;
    let mut written = WrittenBytes::default();
    for branch in 0..=known.keys().next_back().unwrap().branch {
        let query = ListQuery { branch: Some(branch), ..ListQuery::default() };
        let rows = saver.list(Place::root("t"), query).await.unwrap();
        for row in rows.iter().filter(|row| row.id.branch == branch) {
            written.add(row, &known[&row.id]);
        }
    }
    written.segments = saver.put_bytes() - written.rows;
    assert!(written.segments <= written.deltas + written.deltas / 1000 + HEADER, "{written:?}");
    assert!(written.fulls <= written.updates + 2 * written.forced, "{written:?}");
}

/// A state with fewer live bytes is small. The deltas after its full record take no more bytes than the
/// largest small state since then.
const SMALL: u64 = 4096;

/// The least length of a record: format, length, and a header with its time and frontier.
const SHORTEST: u64 = 20;

/// The greatest number of rows in a read of a small state.
const ROWS: u64 = 2 + (SMALL + HEADER) / SHORTEST;

async fn assert_small_states_are_read_in_few_rows(
    saver: &NotingSaver,
    known: &BTreeMap<CheckpointId, Known>,
) {
    let small = known.values().filter(|one| one.live.total() < SMALL);
    let small: Vec<_> = small.collect();
    for one in small.iter().rev().step_by(1 + small.len() / 200) {
        let tail = saver.get(Place::root("t"), Some(one.id)).await.unwrap().unwrap();
        assert!(tail.rows.len() as u64 <= ROWS, "{}: {} rows", one.id, tail.rows.len());
        let since = known.range(tail.rows[0].id..=one.id).map(|(_, one)| one.live.total());
        let heaviest = since.filter(|live| *live < SMALL).max().unwrap_or(0);
        // The header of the last delta does not count.
        let Some(last) = tail.rows[1..].last() else { continue };
        let deltas = bytes(&tail) - tail.rows[0].record.len() as u64 - last.record.len() as u64;
        assert!(
            deltas + part_lengths(&last.record).1 <= heaviest + HEADER,
            "{}: {deltas} for {heaviest}",
            one.id
        );
    }
}

#[derive(Debug, Default)]
struct WrittenBytes {
    rows: u64,
    deltas: u64,
    segments: u64,
    fulls: u64,
    /// The live bytes at full records that a call requires regardless of cost.
    forced: u64,
    /// The bytes of all deltas, and an upper bound for each update that was stored as a full record.
    updates: u64,
}

impl WrittenBytes {
    fn add(&mut self, row: &agentgraph::checkpoint::Row, known: &Known) {
        self.rows += row.record.len() as u64;
        let operations = part_lengths(&row.record).1;
        match row.kind {
            RowKind::Full => {
                assert!(
                    operations <= known.live.total() + 64,
                    "{}: {operations} for {:?}",
                    row.id,
                    known.live
                );
                self.fulls += row.record.len() as u64;
                self.updates += known.max_bytes;
                self.forced += if known.forced { known.live.total() + HEADER } else { 0 };
            }
            _ => {
                self.deltas += row.record.len() as u64;
                self.updates += row.record.len() as u64;
            }
        }
    }
}

/// This test caught each of these faults, which were inserted by hand one by one:
///
/// | fault | broken bound |
/// |---|---|
/// | a full record as soon as a read takes more than the live bytes | writing |
/// | no full record before a read takes eight times the live bytes | reading |
/// | values that a full record refers to are not counted | reading |
/// | no segments | reading |
/// | the bytes of a thread read from the store are not counted | reading |
/// | only full records after the first one | writing |
/// | a replaced entry still counts as live | reading |
/// | no early full record of a small state | reading, of small states |
/// | an early full record once the deltas have a third, or three times, its bytes | writing; reading |
/// | the parts of a full record beside the state are not counted | writing, of small states |
/// | the deltas of a thread read from the store are not counted | reading, of small states |
#[test]
fn reading_and_writing_are_bounded_for_random_calls() {
    let config = Config { failure_persistence: None, cases: 40, ..Config::default() };
    proptest!(config, |(calls in calls())| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(assert_costs_are_bounded(&calls));
    });
}

#[test]
fn small_states_are_read_in_few_rows_and_cost_no_more_than_twice_their_deltas() {
    let config = Config { failure_persistence: None, cases: 40, ..Config::default() };
    proptest!(config, |(calls in small_calls())| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(assert_costs_are_bounded(&calls));
    });
}

/// Runs `steps` supersteps over a state with a page of `page` bytes. Returns the number of rows in a read and
/// the bytes written.
async fn rows_and_bytes(steps: u64, page: usize) -> (usize, u64) {
    let saver = NotingSaver::memory().at_once();
    let graph = looped(steps, |_| Long::update()).compile().unwrap().checkpointer(saver.clone());
    let input = Long::update().page("p".repeat(page));
    graph.invoke(input).thread("t").max_supersteps(u64::MAX).await.unwrap();
    (saver.get(Place::root("t"), None).await.unwrap().unwrap().rows.len(), saver.put_bytes())
}

#[tokio::test]
async fn a_counter_is_read_in_a_few_rows_after_any_number_of_steps() {
    for steps in [10, 100, 999, 1000, 1023, 1024, 1025, 3000] {
        let (rows, written) = rows_and_bytes(steps, 0).await;
        assert!(rows <= 12, "{rows} rows after {steps} steps");
        // With a page of 5,000 bytes the state is not small, so the thread has deltas only.
        let deltas = rows_and_bytes(steps, 5000).await.1 - 5000;
        assert!(written <= 2 * deltas + HEADER, "{written} bytes where the deltas take {deltas}");
    }
}

#[tokio::test]
async fn lists_that_only_grow_are_not_rewritten() {
    for (bytes, at_most) in [(1000, 1024), (100, 6 * 1024), (10, 24 * 1024)] {
        let saver = NotingSaver::memory().at_once();
        let write = move |_| Long::update().lines(["x".repeat(bytes)]);
        run(&looped(1000, write).compile().unwrap().checkpointer(saver.clone())).await;
        let fulls = rows(&saver, RowKind::Full).await;
        let again: u64 = fulls.iter().map(|row| row.record.len() as u64).sum();
        assert!(again <= at_most, "{again} bytes of items of {bytes} bytes");
    }
}

/// Every full record contains the names of all channels. They take more bytes than the few numbers.
#[tokio::test]
async fn many_channels_are_not_rewritten_for_a_few_changes() {
    let names: Vec<String> = (0..300).map(|n| format!("channel_number_{n:03}")).collect();
    let schema = names.iter().fold(JsonChannels::new(), |schema, name| {
        schema.channel(name, serde_json::Value::Null, JsonReducer::Once)
    });
    let saver = NotingSaver::memory().at_once();
    let step = |ctx: Ctx, _: Snapshot<JsonState>| async move {
        JsonUpdate::new().set(format!("channel_number_{:03}", ctx.step() % 7), ctx.step())
    };
    let graph = StateGraph::with_schema(schema).node("step", step).edge(START, "step").edge("step", "step");
    let graph = graph.compile().unwrap().checkpointer(saver.clone());
    graph.invoke(JsonUpdate::new()).thread("t").max_supersteps(1000).await.unwrap();
    let fulls = rows(&saver, RowKind::Full).await;
    let deltas = rows(&saver, RowKind::Delta).await;
    let sum =
        |rows: &[agentgraph::checkpoint::Row]| rows.iter().map(|row| row.record.len() as u64).sum::<u64>();
    assert!(fulls.len() > 2 && sum(&fulls[..fulls.len() - 1]) <= sum(&deltas), "{}", fulls.len());
}

/// The size of a full record includes the sessions, large or small.
#[tokio::test]
async fn a_large_session_beside_a_small_state_is_not_rewritten_at_every_step() {
    #[derive(Clone, Default, Serialize, Deserialize)]
    struct Heavy(String);
    async fn step(ctx: Ctx, state: Snapshot<Long>, heavy: Session<Heavy>) -> LongUpdate {
        match ctx.step() {
            1 => heavy.with(|heavy| heavy.0 = "h".repeat(10_000)),
            500 => heavy.with(|heavy| heavy.0.clear()),
            _ => {}
        }
        Long::update().n(state.n + 1)
    }
    let saver = NotingSaver::memory().at_once();
    let graph = StateGraph::new().session::<Heavy>("heavy").node("step", step).edge(START, "step");
    let graph = graph.edge("step", "step").compile().unwrap().checkpointer(saver.clone());
    graph.invoke(Long::update()).thread("t").max_supersteps(1000).await.unwrap();
    let fulls = rows(&saver, RowKind::Full).await;
    let deltas = rows(&saver, RowKind::Delta).await;
    let sum =
        |rows: &[agentgraph::checkpoint::Row]| rows.iter().map(|row| row.record.len() as u64).sum::<u64>();
    assert!(sum(&fulls[..fulls.len() - 1]) <= sum(&deltas), "{} of {}", sum(&fulls), sum(&deltas));
    // After the session is cleared, a read takes few rows again.
    let tail = saver.get(Place::root("t"), None).await.unwrap().unwrap();
    assert!(tail.rows.len() < 40, "{} rows", tail.rows.len());
}

#[tokio::test]
async fn open_activations_count_towards_the_size_of_a_full_record() {
    let saver = NotingSaver::memory().at_once();
    let plan = || async {
        let inputs = (0..100).map(|n| Dispatch::new("wait", format!("{n}{}", "i".repeat(500))));
        Command::<Long>::new().goto(inputs.collect::<Vec<_>>())
    };
    let wait = |input: Input<String>, ctx: Ctx| async move { ctx.interrupt::<bool>(input.0).map(drop) };
    let count = |state: Snapshot<Long>| async move { Long::update().n(state.n + 1) };
    let more = |state: &Long| if state.n < 1000 { "count" } else { END };
    let graph = StateGraph::<Long>::new().node("plan", plan).node("wait", wait).node("count", count);
    let graph = graph.edge(START, "plan").edge(START, "count").branch("count", more, ["count", END]).eager();
    let graph = graph.compile().unwrap().checkpointer(saver.clone());
    graph.invoke(Long::update()).thread("t").max_supersteps(u64::MAX).await.unwrap();
    let fulls = rows(&saver, RowKind::Full).await;
    let deltas = rows(&saver, RowKind::Delta).await;
    let sum =
        |rows: &[agentgraph::checkpoint::Row]| rows.iter().map(|row| row.record.len() as u64).sum::<u64>();
    assert!(sum(&fulls[..fulls.len() - 1]) <= sum(&deltas), "{} of {}", sum(&fulls), sum(&deltas));
}

#[tokio::test]
async fn a_small_state_is_read_in_few_rows_across_processes_forks_and_pruning() {
    use agentgraph::checkpoint::Retention;
    let saver = NotingSaver::memory().at_once();
    let build = || looped(2000, |_| Long::update()).compile().unwrap().checkpointer(saver.clone());
    build().invoke(Long::update()).thread("t").max_supersteps(100).await.unwrap();
    // Each process stores fewer bytes than a full record has.
    for _ in 0..300 {
        build().proceed().thread("t").max_supersteps(1).await.unwrap();
    }
    let forked =
        build().proceed().thread("t").from(CheckpointId::new(0, 250)).max_supersteps(60).await.unwrap();
    for step in (0..=400).map(|step| CheckpointId::new(0, step)).chain(forked.checkpoint()) {
        let tail = saver.get(Place::root("t"), Some(step)).await.unwrap().unwrap();
        assert!(tail.rows.len() <= 12, "{step}: {} rows", tail.rows.len());
    }
    let odd = |one: &agentgraph::checkpoint::StoredCheckpoint<'_>| one.id.step % 50 > 20;
    build().prune(Retention::keep(odd)).await.unwrap();
    let graph = build();
    for step in (0..=400).filter(|step| step % 50 > 20) {
        let id = CheckpointId::new(0, step);
        assert_eq!(graph.state_at("t", id).await.unwrap().unwrap().values.n, step);
        let tail = saver.get(Place::root("t"), Some(id)).await.unwrap().unwrap();
        assert!(tail.rows.len() <= 12, "{id}: {} rows", tail.rows.len());
    }
}
