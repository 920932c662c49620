//! A state that grows to a megabyte, and one that holds an unchanged megabyte.

use std::rc::Rc;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use agentgraph::prelude::*;
use cpu_time::ProcessTime;

use crate::case::{Case, Entrant, Figure};
use crate::cases::looped::Next;
use crate::cases::sqlite::{Bare, records};
use crate::folder::Folder;
use crate::measure::{median, timed};
use crate::runtime::one_thread;
use crate::states::{Log, LogUpdate, Message};

pub(crate) const STEPS: u64 = 1000;
const TENTH: u64 = STEPS / 10;
const REPEATS: usize = 5;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("growth/append_100", "step", STEPS, || entrants(append_little, Log::update))
            .with_figures(|| figures(append_little, Log::update, 0.12)),
        Case::new("growth/append", "step", STEPS, || entrants(append, Log::update))
            .with_figures(|| figures(append, Log::update, 1.2)),
        Case::new("growth/by_id", "step", STEPS, || entrants(message, Log::update))
            .with_figures(|| figures(message, Log::update, 1.2)),
        Case::new("growth/unchanged", "step", STEPS, || entrants(count, large))
            .with_figures(|| figures(count, large, 1.2)),
    ]
}

pub(crate) type Change = fn(&Log) -> LogUpdate;

/// A megabyte that compression hardly shrinks: Postgres compresses large values.
static TEXT: LazyLock<String> = LazyLock::new(|| {
    let mut state = 1_u32;
    let letters = (0..1_000_000).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'0' + (state >> 26) as u8)
    });
    letters.collect()
});

/// Returns the part of [`TEXT`] for one step.
fn text(step: u64, bytes: usize) -> String {
    let from = step as usize * bytes;
    TEXT[from..from + bytes].to_owned()
}

/// Appends a hundred bytes a step.
pub(crate) fn append_little(state: &Log) -> LogUpdate {
    Log::update().count(state.count + 1).lines([text(state.count, 100)])
}

/// Appends a thousand bytes a step.
pub(crate) fn append(state: &Log) -> LogUpdate {
    Log::update().count(state.count + 1).lines([text(state.count, 1000)])
}

fn message(state: &Log) -> LogUpdate {
    let id = format!("message-{}", state.count);
    let role = if state.count.is_multiple_of(2) { "user" } else { "assistant" };
    let text = text(state.count, 1000 - id.len() - role.len());
    Log::update().count(state.count + 1).messages([Message { id, role: role.to_owned(), text }])
}

pub(crate) fn count(state: &Log) -> LogUpdate {
    Log::update().count(state.count + 1)
}

pub(crate) fn large() -> LogUpdate {
    Log::update().fixed(TEXT.clone())
}

fn next(state: &Log) -> Next {
    if state.count < STEPS { Next::Work } else { Next::Done }
}

/// The processor time at the start of each tenth of the steps.
pub(crate) type Times = Arc<Mutex<Vec<Duration>>>;

pub(crate) fn graph(change: Change, begin: ProcessTime, times: &Times) -> CompiledGraph<Log> {
    let times = Arc::clone(times);
    let work = move |state: Snapshot<Log>| {
        if state.count.is_multiple_of(TENTH) {
            times.lock().expect("nobody panicked").push(begin.elapsed());
        }
        async move { change(&state) }
    };
    let graph = StateGraph::new().node("work", work).edge(START, "work").route("work", next);
    graph.compile().expect("a graph")
}

pub(crate) async fn run(graph: &CompiledGraph<Log>, input: LogUpdate, thread: &str) {
    let outcome = graph.invoke(input).thread(thread).await.expect("the run ends");
    assert_eq!((outcome.output().count, outcome.checkpoint().map(|id| id.step)), (STEPS, Some(STEPS)));
}

fn entrants(change: Change, input: fn() -> LogUpdate) -> Vec<Entrant> {
    let runtime = one_thread();
    let plain = || graph(change, ProcessTime::now(), &Times::default());
    let records = runtime.block_on(records(plain(), input(), STEPS));
    let bare = Rc::new(Bare::open(false));
    let floor = move |times| (0..times).for_each(|_| bare.insert_singly(&records));
    let folder = Folder::create();
    let saver = runtime.block_on(SqliteSaver::open(folder.file("engine.db"))).expect("a saver");
    let graph = plain().checkpointer(saver);
    let mut runs = 0;
    let engine = move |times| {
        let _keep = &folder;
        for _ in 0..times {
            runs += 1;
            runtime.block_on(run(&graph, input(), &format!("thread-{runs}")));
        }
    };
    vec![
        Entrant::new("floor: an insert of the same bytes", floor),
        Entrant::new("engine, `SqliteSaver`", engine),
    ]
}

/// Measures runs that each have their own file.
fn figures(change: Change, input: fn() -> LogUpdate, megabytes: f64) -> Vec<Figure> {
    let mut disk = Vec::new();
    let mut growth = Vec::new();
    let mut read = Vec::new();
    for _ in 0..REPEATS {
        let runtime = one_thread();
        let folder = Folder::create();
        let times = Times::default();
        let saver = runtime.block_on(SqliteSaver::open(folder.file("engine.db"))).expect("a saver");
        let begin = ProcessTime::now();
        let graph = graph(change, begin, &times).checkpointer(saver);
        runtime.block_on(run(&graph, input(), "thread-1"));
        let end = begin.elapsed();
        let (state, taken) = timed("", || runtime.block_on(graph.state("thread-1")).expect("it can be read"));
        assert_eq!(state.map(|state| state.values.count), Some(STEPS));
        read.push(taken.value);
        let times = times.lock().expect("nobody panicked");
        let last = end - times[times.len() - 1];
        growth.push(last.as_secs_f64() / (times[1] - times[0]).as_secs_f64());
        // Closing the database moves the content of its log into the file.
        drop(graph);
        disk.push(folder.bytes() as f64 / 1e6);
    }
    vec![
        Figure::new("on disk, closed", median(disk), "MB").within(megabytes),
        Figure::new("a step of the last tenth to one of the first", median(growth), "").within(1.25),
        Figure::new("reading the last state", median(read), "us").within(1000.0),
    ]
}
