//! The conformance kit: the stores of this crate fulfil every clause, and every clause finds a store that
//! breaks it.
#![cfg(all(feature = "conformance", feature = "encryption", feature = "sqlite"))]

mod faults;
mod faulty;
mod lines;
mod without;

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use agentgraph::Code;
use agentgraph::checkpoint::conformance::{self, Extension, Report};
use agentgraph::checkpoint::{
    Checkpointer, EncryptedSaver, EncryptionKey, KeyRing, MemorySaver, Retention, SqliteSaver,
};
use agentgraph::prelude::*;
use agentgraph::testing::store_clauses;
use faults::FAULTS;
use faulty::FaultyStore;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use without::LimitedStore;

use crate::sqlite_folder::Folder;

fn assert_holds(report: &Report) {
    assert!(report.holds(), "{report}");
    assert!(report.findings.len() > 60, "{report}");
}

#[tokio::test]
async fn memory_fulfils_the_contract() {
    assert_holds(&store_clauses::run(|| async { Ok(MemorySaver::new()) }).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_fulfils_the_contract_on_two_workers() {
    assert_holds(&store_clauses::run(|| async { Ok(MemorySaver::new()) }).await);
}

#[test]
fn memory_fulfils_the_contract_without_a_runtime() {
    let mut report = pin!(store_clauses::run(|| async { Ok(MemorySaver::new()) }));
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(report) = report.as_mut().poll(&mut context) {
            return assert_holds(&report);
        }
    }
}

#[tokio::test]
async fn sqlite_in_memory_fulfils_the_contract() {
    assert_holds(&store_clauses::run(|| async { SqliteSaver::in_memory() }).await);
}

#[tokio::test]
async fn an_sqlite_file_fulfils_the_contract() {
    let folder = Folder::new();
    assert_holds(&store_clauses::run(|| SqliteSaver::open(folder.fresh())).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_sqlite_file_fulfils_the_contract_on_two_workers() {
    let folder = Folder::new();
    assert_holds(&store_clauses::run(|| SqliteSaver::open(folder.fresh())).await);
}

fn encrypted<C: Checkpointer>(store: C) -> EncryptedSaver<C> {
    EncryptedSaver::new(store, KeyRing::new("k", EncryptionKey::from_bytes([7; 32])).unwrap())
}

/// Asserts that every clause holds except the one on sharing. Equal values differ once they are
/// encrypted, so they cannot be stored once.
fn assert_holds_except_sharing(report: &Report) {
    assert_holds(report);
    let lacks: Vec<&str> = report.lacks().map(|finding| finding.clause).collect();
    assert_eq!(
        lacks,
        ["a large value is stored once, however many records and pending writes hold it"],
        "{report}"
    );
    assert!(report.to_string().contains("\nlacks   a large value is stored once"), "{report}");
}

#[tokio::test]
async fn encrypted_memory_fulfils_the_contract() {
    let report = store_clauses::run(|| async { Ok(encrypted(MemorySaver::new())) }).await;
    assert_holds_except_sharing(&report);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_encrypted_sqlite_file_fulfils_the_contract_on_two_workers() {
    let folder = Folder::new();
    let open = || async { Ok(encrypted(SqliteSaver::open(folder.fresh()).await?)) };
    assert_holds_except_sharing(&store_clauses::run(open).await);
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Words {
    said: String,
}

/// Unusual and hostile names.
const HOSTILE: [&str; 12] = [
    "",
    " ",
    "'; DROP TABLE checkpoint; --",
    "\" OR 1=1 --",
    "$1",
    "?1",
    "%",
    "../../etc/passwd",
    "||origins",
    "a\0b",
    "\u{202e}\u{feff}名前😀",
    "NULL",
];

#[tokio::test]
async fn a_graph_runs_in_threads_and_nodes_of_any_name() {
    async fn asks(ctx: Ctx, words: Snapshot<Words>) -> agentgraph::Result<WordsUpdate> {
        let answer: String = ctx.interrupt(&words.said)?;
        Ok(Words::update().said(answer))
    }
    let folder = Folder::new();
    let open = async || SqliteSaver::open(folder.fresh()).await.unwrap();
    for store in [
        Arc::new(MemorySaver::new()) as Arc<dyn Checkpointer>,
        Arc::new(open().await),
        Arc::new(encrypted(open().await)),
    ] {
        for name in HOSTILE {
            let inside = StateGraph::new().node("asks", asks).edge(START, "asks").compile().unwrap();
            let node = if name.is_empty() { "node" } else { name };
            let graph = StateGraph::new().node(node, inside).edge(START, node).compile().unwrap();
            let graph = graph.checkpointer(Arc::clone(&store));
            let copy = format!("{name}{name} copy");
            let asked = graph.invoke(Words::update().said(name)).thread(name).await.unwrap();
            assert_eq!(asked.interrupts()[0].value, name);
            assert!(graph.waiting().after(name).await.unwrap().is_empty(), "{name:?}");
            let waiting = graph.waiting().await.unwrap();
            assert_eq!((waiting.len(), &*waiting[0].thread), (1, name));
            graph.resume(name).thread(name).await.unwrap().into_finished().unwrap();
            graph.copy_thread(name, &copy).await.unwrap();
            graph.prune(Retention::keep_last(1)).await.unwrap();
            for thread in [name, &*copy] {
                assert_eq!(graph.state(thread).await.unwrap().unwrap().values.said, name);
                graph.delete_thread(thread).await.unwrap();
            }
            assert!(store.threads().await.unwrap().is_empty(), "{name:?}");
        }
    }
}

#[tokio::test]
async fn every_fault_is_found_by_its_clause() {
    let mut found: BTreeMap<&str, Vec<&str>> =
        store_clauses::clauses().iter().map(|clause| (clause.name(), Vec::new())).collect();
    for fault in FAULTS {
        let clauses = store_clauses::clauses();
        let clause = clauses.iter().find(|clause| clause.name() == fault.clause);
        let clause = clause.unwrap_or_else(|| panic!("no clause `{}`", fault.clause));
        let problem = clause.check(FaultyStore::new(fault.kind)).await.expect_err(fault.clause);
        assert!(!problem.is_empty());
        found.get_mut(fault.clause).unwrap().push(&problem.clone().leak()[..]);
    }
    let blind: Vec<&str> = found.iter().filter(|(_, by)| by.is_empty()).map(|(clause, _)| *clause).collect();
    assert!(blind.is_empty(), "no faulty store exists for these clauses: {blind:#?}");
}

#[tokio::test]
async fn a_report_names_broken_clauses_and_shows_the_difference() {
    let report = store_clauses::run(|| async { Ok(FaultyStore::new(faults::Kind::ListsOldestFirst)) }).await;
    let shown = report.to_string();
    assert!(!report.holds());
    assert!(shown.contains("BROKEN  a list obeys `before` and `limit`\n"), "{shown}");
    assert!(
        shown.contains("        list t limit=2\n        => full 0.0 a, delta 0.1 b\n        and not\n"),
        "{shown}"
    );
    assert!(shown.contains("holds   namespaces of a thread are separate\n"), "{shown}");
}

#[tokio::test]
async fn a_store_that_cannot_be_made_breaks_every_clause() {
    let folder = Folder::new();
    let report = store_clauses::run(|| SqliteSaver::open(folder.file(""))).await;
    assert_eq!(report.broken().count(), report.findings.len());
    assert!(report.to_string().contains("the store could not be made: E_STORE"), "{report}");
}

/// All other clauses hold, so a clause names every extension that it needs.
#[tokio::test]
async fn a_missing_extension_breaks_exactly_the_clauses_that_need_it() {
    const LACKING: [&[Extension]; 3] = [&[Extension::Leases], &[Extension::Catalog], &[Extension::Upkeep]];
    for lacking in LACKING {
        let report = store_clauses::run(|| async { Ok(LimitedStore::new(lacking)) }).await;
        assert!(!report.holds(), "{report}");
        let needing =
            store_clauses::clauses().into_iter().filter(|clause| clause.needs().contains(&lacking[0]));
        let needing: Vec<&str> = needing.map(|clause| clause.name()).collect();
        let failed = report.findings.iter().filter_map(|found| Some((found.clause, found.problem.as_ref()?)));
        assert_eq!(failed.clone().map(|(clause, _)| clause).collect::<Vec<_>>(), needing, "{report}");
        let name = lacking[0];
        let expected = format!("the store has no {name}: `Checkpointer::{name}` is `None`");
        failed.for_each(|(clause, problem)| assert_eq!(*problem, expected, "{clause}"));
    }
}

#[tokio::test]
async fn a_transcript_shows_calls_of_missing_extensions() {
    let script = "acquire t 1 2 as A\nwaiting\ncopy t u\nget t";
    let transcript = conformance::transcript(&LimitedStore::new(&Extension::ALL), script).await;
    let answers: Vec<&str> = transcript.lines().filter(|line| line.starts_with("=>")).collect();
    assert_eq!(answers, ["=> no leases", "=> no catalog", "=> no upkeep", "=> nothing"]);
}

#[tokio::test]
async fn a_graph_runs_without_extensions_and_calls_that_need_one_are_errors() {
    async fn asks(ctx: Ctx) -> agentgraph::Result<WordsUpdate> {
        let answer: String = ctx.interrupt("who?")?;
        Ok(Words::update().said(answer))
    }
    let graph = StateGraph::new().node("asks", asks).edge(START, "asks").compile().unwrap();
    let graph = graph.checkpointer(LimitedStore::new(&Extension::ALL));
    graph.invoke(Words::update()).thread("t").await.unwrap();
    for (refused, problem) in [
        (graph.waiting().await.err(), "list waiting threads"),
        (graph.running().await.err(), "list the threads that run"),
        (graph.cancel("t").await.err(), "ask a run to stop"),
        (graph.prune(Retention::keep_last(1)).thread("t").await.err(), "list the namespaces of a thread"),
        (graph.copy_thread("t", "u").await.err(), "copy a thread"),
    ] {
        let error = refused.unwrap();
        assert!(error.code() == Code::Store && error.to_string().contains(problem), "{error}");
    }
    let answered = graph.resume("me").thread("t").await.unwrap();
    assert_eq!(answered.output().said, "me");
}

#[tokio::test]
async fn the_error_of_a_lost_race_says_what_to_do() {
    let script = "put t 0.3 full a";
    for saver in
        [Box::new(MemorySaver::new()) as Box<dyn Checkpointer>, Box::new(SqliteSaver::in_memory().unwrap())]
    {
        conformance::transcript(&*saver, script).await;
        let error = saver.put(lines::full("t", 3)).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "E_STALE: checkpoint 0.3 was committed by another run; read the thread again before you continue (thread `t`)",
        );
    }
}

#[tokio::test]
async fn most_puts_of_a_single_run_are_answered_at_once() {
    let folder = Folder::new();
    let file = SqliteSaver::open(folder.fresh()).await.unwrap();
    for saver in [Box::new(MemorySaver::new()) as Box<dyn Checkpointer>, Box::new(file)] {
        let mut answered = 0;
        for step in 0..200 {
            match saver.try_put(&lines::full("t", step)) {
                Some(stored) => {
                    stored.unwrap();
                    answered += 1;
                }
                None => saver.put(lines::full("t", step)).await.unwrap(),
            }
        }
        assert!(answered > 150, "only {answered} of 200 puts were answered at once");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// This test found these faults when they were inserted by hand: a delete that left leases, a copy
    /// without segments, a rewrite that kept the writes of removed steps, a renewal that forgot the
    /// thread, a fence that was checked for rows and not for writes.
    #[test]
    fn sqlite_answers_as_memory_does_and_so_does_what_is_encrypted(lines in proptest::collection::vec(lines::lines(), 1..80)) {
        let script = lines.join("\n");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let memory = runtime.block_on(conformance::transcript(&MemorySaver::new(), &script));
        let sqlite = runtime.block_on(conformance::transcript(&SqliteSaver::in_memory().unwrap(), &script));
        prop_assert_eq!(&sqlite, &memory);
        let encrypted = runtime.block_on(conformance::transcript(&encrypted(MemorySaver::new()), &script));
        prop_assert_eq!(encrypted, memory);
    }
}
