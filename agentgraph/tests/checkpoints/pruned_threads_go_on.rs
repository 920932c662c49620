//! Pruning, deleting and copying: everything that is kept reads as before, and nothing else is left.
#![cfg(feature = "sqlite")]

mod copies;
mod talk;
mod waiting;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agentgraph::checkpoint::{Place, Put, Retention, RowKind, SqliteSaver};
use agentgraph::checkpoint::{Services, Source};
use agentgraph::prelude::*;
use agentgraph::{CheckpointId, Checkpointer, Code};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use talk::{family, said};

use crate::common::saver::NotingSaver;
use crate::sqlite_folder::Folder;

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Work {
    #[reduce(append)]
    log: Vec<String>,
    #[reduce(merge)]
    counts: std::collections::BTreeMap<String, u64>,
    /// Set once; later records only refer to it.
    large: String,
    /// Set in every step, so that fulls are written.
    scratch: String,
    n: u64,
}

async fn step(work: Snapshot<Work>) -> WorkUpdate {
    let n = work.n + 1;
    let counts = [(format!("{}", n % 3), n)];
    Work::update().n(n).log([format!("step {n}")]).counts(counts).scratch("x".repeat(9_000))
}

fn graph(saver: impl Checkpointer) -> CompiledGraph<Work> {
    let graph = StateGraph::new().node("step", step).edge(START, "step");
    let again = |work: &Work| if work.n.is_multiple_of(10) { END } else { "step" };
    graph.branch("step", again, ["step", END]).compile().unwrap().checkpointer(saver)
}

/// Returns every checkpoint of a thread, found by trying all ids.
async fn all(graph: &CompiledGraph<Work>, thread: &str) -> Vec<Checkpoint<Work>> {
    let mut found = Vec::new();
    for branch in 0..4 {
        for step in 0..80 {
            found.extend(graph.state_at(thread, CheckpointId::new(branch, step)).await.unwrap());
        }
    }
    found
}

use agentgraph::Checkpoint;

fn shown(checkpoints: &[Checkpoint<Work>]) -> Vec<(CheckpointId, Work, Vec<String>, SystemTime, Source)> {
    let shown =
        checkpoints.iter().map(|one| (one.id, one.values.clone(), one.next.clone(), one.created, one.source));
    shown.collect()
}

/// Makes a thread of three runs of ten steps, a fork from the middle of the second run, and one more
/// run.
async fn make_history(graph: &CompiledGraph<Work>, thread: &str) {
    graph.invoke(Work::update().large("L".repeat(20_000))).thread(thread).await.unwrap();
    for _ in 0..2 {
        graph.invoke(Work::update()).thread(thread).await.unwrap();
    }
    graph.proceed().thread(thread).from(CheckpointId::new(0, 15)).await.unwrap();
    graph.invoke(Work::update()).thread(thread).await.unwrap();
}

fn savers() -> Vec<Arc<dyn Checkpointer>> {
    vec![Arc::new(MemorySaver::new()), Arc::new(SqliteSaver::in_memory().unwrap())]
}

#[tokio::test]
async fn keep_last_keeps_the_newest_checkpoints_of_the_history() {
    for keep in [1, 2, 7, 12, 20, 35, 1000] {
        for saver in savers() {
            let graph = graph(Arc::clone(&saver));
            make_history(&graph, "t").await;
            let before = graph.history("t").await.unwrap();
            let stored = all(&graph, "t").await.len();
            let pruned = graph.prune(Retention::keep_last(keep)).await.unwrap();
            let kept = &before[..keep.min(before.len())];
            assert_eq!(shown(&graph.history("t").await.unwrap()), shown(kept), "keep {keep}");
            assert_eq!(
                (pruned.threads, pruned.checkpoints),
                (1, (stored - kept.len()) as u64),
                "keep {keep}"
            );
            assert_eq!(all(&graph, "t").await.len(), kept.len());
            let again = graph.prune(Retention::keep_last(keep)).await.unwrap();
            assert_eq!(again.checkpoints, 0);
            let on = graph.invoke(Work::update()).thread("t").await.unwrap();
            assert_eq!(on.output().log.len() as u64, on.output().n);
            assert_eq!(on.output().large.len(), 20_000);
        }
    }
}

#[tokio::test]
async fn older_than_removes_older_checkpoints() {
    #[derive(Clone)]
    struct Minutes(Arc<std::sync::atomic::AtomicU64>);
    #[async_trait::async_trait]
    impl Services for Minutes {
        fn now(&self) -> SystemTime {
            UNIX_EPOCH + Duration::from_secs(60 * self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst))
        }
        async fn sleep(&self, _: Duration) {}
        fn random(&self) -> u64 {
            7
        }
    }
    let clock = Minutes(Arc::default());
    let graph = graph(MemorySaver::new()).services(clock.clone());
    graph.invoke(Work::update()).thread("old").await.unwrap();
    graph.invoke(Work::update()).thread("t").await.unwrap();
    let before = graph.history("t").await.unwrap();
    let now = clock.now();
    let limit = Duration::from_secs(60 * 8);
    graph.prune(Retention::older_than(limit)).await.unwrap();
    let after = graph.history("t").await.unwrap();
    assert!(after.len() > 1 && after.len() < before.len(), "{}", after.len());
    assert!(after.iter().all(|one| now.duration_since(one.created).unwrap() < limit));
    assert_eq!(shown(&after), shown(&before[..after.len()]));
    assert_eq!(graph.history("old").await.unwrap().len(), 1, "the newest of a thread always stays");
}

#[tokio::test]
async fn a_policy_may_decide_by_the_stored_checkpoint() {
    for saver in savers() {
        let graph = graph(saver);
        make_history(&graph, "t").await;
        let before = all(&graph, "t").await;
        let ends = Retention::keep(|one| one.finished || one.source == Source::Input);
        graph.prune(ends).thread("t").await.unwrap();
        let expected: Vec<_> =
            before.into_iter().filter(|one| one.next.is_empty() || one.source == Source::Input).collect();
        assert_eq!(shown(&all(&graph, "t").await), shown(&expected));
    }
}

#[tokio::test]
async fn a_thread_with_an_active_run_is_not_pruned() {
    let saver = Arc::new(MemorySaver::new());
    let pruner = graph(Arc::clone(&saver));
    let inside = pruner.clone();
    let prunes = move || {
        let pruner = inside.clone();
        async move {
            let pruned = pruner.prune(Retention::keep_latest_per_thread()).await?;
            Ok::<_, BoxError>(Work::update().log(pruned.busy).n(pruned.threads))
        }
    };
    use agentgraph::BoxError;
    let running = StateGraph::new().node("prunes", prunes).edge(START, "prunes").compile().unwrap();
    let running = running.checkpointer(saver);
    make_history(&pruner, "other").await;
    let outcome = running.invoke(Work::update()).thread("t").await.unwrap();
    assert_eq!((outcome.output().log.join(" "), outcome.output().n), ("t".to_owned(), 1));
    assert_eq!(all(&pruner, "other").await.len(), 1);
}

#[tokio::test]
async fn a_graph_with_a_policy_prunes_its_threads_itself() {
    for saver in savers() {
        let graph = graph(saver).retention(Retention::keep_last(5));
        for turn in 1..=30 {
            let outcome = graph.invoke(Work::update()).thread("t").await.unwrap();
            assert_eq!(outcome.output().n, 10 * turn);
            assert!(graph.history("t").await.unwrap().len() < 5 + 2 * 32, "turn {turn}");
        }
        assert_eq!(graph.state("t").await.unwrap().unwrap().values.log.len(), 300);
    }
}

/// Pruning after a run does not change the outcome of the run.
#[tokio::test]
async fn a_run_finishes_even_if_its_thread_cannot_be_pruned() {
    let saver = NotingSaver::memory();
    let graph = graph(saver.clone()).retention(Retention::keep_last(1));
    let turn = async || graph.invoke(Work::update()).thread("t").await.unwrap().into_finished().unwrap().n;
    let kept = async || graph.history("t").await.unwrap().len();
    saver.fail_rewrites(1);
    for turns in 1..=3 {
        assert_eq!(turn().await, 10 * turns);
    }
    assert_eq!((saver.still_to_fail(), kept().await), (0, 33), "the first pruning failed");
    for turns in 4..=6 {
        assert_eq!(turn().await, 10 * turns, "the lease was released");
    }
    assert!(kept().await < 33, "the next pruning succeeded");
}

/// The rewritten rows are too many for one transaction, and a segment begins before them.
#[tokio::test]
async fn pruning_that_fails_midway_loses_no_kept_checkpoint() {
    const KEPT: [u64; 5] = [1_010, 1_015, 1_030, 1_040, 1_099];
    async fn grow(work: Snapshot<Work>) -> WorkUpdate {
        Work::update().n(work.n + 1).log(["x".repeat(3_000)])
    }
    let saver = NotingSaver::memory().at_once();
    let graph = StateGraph::new().node("grow", grow).edge(START, "grow").edge("grow", "grow");
    let graph = graph.compile().unwrap().checkpointer(saver.clone());
    graph.invoke(Work::update()).thread("t").max_supersteps(1_099).await.unwrap();
    let policy = || Retention::keep(|one| KEPT.contains(&one.id.step));
    let mut failed = 0;
    loop {
        saver.fail_rewrite_after(failed);
        let pruned = graph.prune(policy()).thread("t").await;
        for step in KEPT {
            let state = graph.state_at("t", CheckpointId::new(0, step)).await.unwrap().unwrap().values;
            assert_eq!((state.n, state.log.len() as u64), (step, step), "after {failed} parts");
        }
        if pruned.is_ok() {
            break;
        }
        failed += 1;
    }
    assert!(failed > 1, "the rewrite has one part only");
    assert_eq!(graph.history("t").await.unwrap().len(), KEPT.len());
    graph.proceed().thread("t").max_supersteps(1).await.unwrap();
    assert_eq!(graph.state("t").await.unwrap().unwrap().values.log.len(), 1_100);
}

/// Branch numbers come from the store, and the engine does not count up to them.
#[tokio::test]
async fn a_branch_of_any_number_is_pruned() {
    for saver in savers() {
        let graph = graph(Arc::clone(&saver));
        make_history(&graph, "t").await;
        let newest = graph.state("t").await.unwrap().unwrap();
        graph.prune(Retention::keep_last(1)).await.unwrap();
        let row = saver.row(Place::root("t"), newest.id).await.unwrap().unwrap();
        let far = CheckpointId::new(u32::MAX - 7, 0);
        saver.put(Put::new(Place::root("t"), far, RowKind::Full, &row.record)).await.unwrap();
        assert_eq!(graph.prune(Retention::keep_last(1)).await.unwrap().checkpoints, 1);
        assert_eq!(graph.state("t").await.unwrap().unwrap().id, far);
        assert_eq!(saver.catalog().unwrap().branches(Place::root("t")).await.unwrap(), [far.branch]);
    }
}

/// Stores a checkpoint with bytes that cannot be read.
async fn spoil(saver: &impl Checkpointer, thread: &str) {
    let put = Put::new(Place::root(thread), CheckpointId::new(0, 0), RowKind::Full, b"\x01\xff\xff\xff\xff");
    saver.put(put).await.unwrap();
}

#[tokio::test]
async fn a_damaged_thread_does_not_prevent_pruning_of_others() {
    for saver in savers() {
        let graph = graph(Arc::clone(&saver));
        for thread in ["b", "d"] {
            make_history(&graph, thread).await;
        }
        for thread in ["a", "c", "e"] {
            spoil(&saver, thread).await;
        }
        let pruned = graph.prune(Retention::keep_last(1)).await.unwrap();
        let failed: Vec<_> = pruned.failed.iter().map(|one| (&*one.thread, one.code)).collect();
        assert_eq!(failed, ["a", "c", "e"].map(|thread| (thread, Code::CorruptCheckpoint)));
        assert_eq!(pruned.threads, 2);
        for thread in ["b", "d"] {
            assert_eq!(graph.history(thread).await.unwrap().len(), 1);
        }
        let alone = graph.prune(Retention::keep_last(1)).thread("a").await.unwrap_err();
        assert_eq!((alone.code(), alone.thread()), (Code::CorruptCheckpoint, Some("a")));
    }
}

#[tokio::test]
async fn pruning_is_an_error_if_the_store_fails_for_every_thread() {
    let saver = NotingSaver::memory();
    let graph = graph(saver.clone());
    for thread in ["a", "b", "c", "d"] {
        graph.invoke(Work::update()).thread(thread).await.unwrap();
    }
    saver.fail_rewrites(100);
    assert_eq!(graph.prune(Retention::keep_last(1)).await.unwrap_err().code(), Code::Store);
}

#[tokio::test]
async fn pruning_makes_the_file_smaller() {
    let folder = Folder::new();
    let path = folder.file("threads.db");
    let graph = graph(SqliteSaver::open(&path).await.unwrap());
    for thread in ["a", "b", "c", "d"] {
        for _ in 0..5 {
            graph.invoke(Work::update().large("L".repeat(200_000))).thread(thread).await.unwrap();
        }
    }
    let size = || std::fs::metadata(&path).unwrap().len();
    graph.prune(Retention::keep_last(1000)).await.unwrap();
    let full = size();
    graph.prune(Retention::keep_latest_per_thread()).await.unwrap();
    let pruned = size();
    assert!(pruned < full / 3, "{full} bytes became {pruned}");
    for thread in ["a", "b", "c", "d"] {
        graph.delete_thread(thread).await.unwrap();
    }
    graph.prune(Retention::keep_latest_per_thread()).await.unwrap();
    assert!(size() < 100_000, "an empty store takes {} bytes", size());
}

#[tokio::test]
async fn a_deleted_thread_leaves_no_word_in_the_file() {
    let folder = Folder::new();
    let path = folder.file("threads.db");
    let graph = graph(SqliteSaver::open(&path).await.unwrap());
    graph.invoke(Work::update().large("my-secret-word ".repeat(500))).thread("the-name-of-it").await.unwrap();
    graph.invoke(Work::update()).thread("other").await.unwrap();
    graph.delete_thread("the-name-of-it").await.unwrap();
    graph.prune(Retention::keep_latest_per_thread()).await.unwrap();
    drop(graph);
    for file in std::fs::read_dir(path.parent().unwrap()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        for word in ["my-secret-word", "the-name-of-it"] {
            assert!(!bytes.windows(word.len()).any(|window| window == word.as_bytes()), "{word}");
        }
    }
}

#[tokio::test]
async fn pruning_keeps_open_subgraph_calls_and_removes_finished_ones() {
    for saver in savers() {
        let graph = family(Arc::clone(&saver));
        for turn in 0..3 {
            let outcome = graph.invoke(said("i")).thread("t").await.unwrap();
            assert_eq!(outcome.interrupts().len(), 1);
            graph.prune(Retention::keep_latest_per_thread()).await.unwrap();
            let namespaces = saver.catalog().unwrap().namespaces("t").await.unwrap();
            let calls = namespaces.iter().filter(|name| name.contains(':')).count();
            assert_eq!(calls, 1, "{namespaces:?}");
            let outcome = graph.resume("so").thread("t").await.unwrap();
            assert_eq!(outcome.output().said.len(), 4 * (turn + 1));
        }
        graph.prune(Retention::keep_latest_per_thread()).await.unwrap();
        assert_eq!(saver.catalog().unwrap().namespaces("t").await.unwrap(), ["", "memory"]);
        graph.delete_thread("t").await.unwrap();
        assert!(saver.catalog().unwrap().namespaces("t").await.unwrap().is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 40, ..ProptestConfig::default() })]

    /// Every kept checkpoint reads as before, whichever are kept, also after repeated pruning. Faults
    /// that this test finds: references to removed rows, segments that fold removed rows, a branch
    /// without the values of its parent, and missing joins of a header that was not repeated.
    #[test]
    fn whatever_is_kept_reads_as_it_did(
        masks in proptest::collection::vec(proptest::collection::vec(any::<bool>(), 80), 1..3),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let graph = graph(MemorySaver::new());
            make_history(&graph, "t").await;
            for mask in masks {
                let before = all(&graph, "t").await;
                let newest = graph.state("t").await.unwrap().unwrap().id;
                let wanted = move |id: CheckpointId| mask[(id.step as usize + 40 * id.branch as usize) % 80];
                let policy = wanted.clone();
                graph.prune(Retention::keep(move |one| policy(one.id))).await.unwrap();
                let expected: Vec<_> = before.into_iter().filter(|one| wanted(one.id) || one.id == newest).collect();
                assert_eq!(shown(&all(&graph, "t").await), shown(&expected));
                let on = graph.invoke(Work::update()).thread("t").await.unwrap();
                assert_eq!(on.output().log.len() as u64, on.output().n);
            }
        });
    }
}

#[tokio::test]
async fn a_pruned_store_holds_no_row_of_removed_checkpoints() {
    let saver = Arc::new(MemorySaver::new());
    let graph = graph(Arc::clone(&saver));
    make_history(&graph, "t").await;
    graph.prune(Retention::keep_latest_per_thread()).await.unwrap();
    let tail = saver.get(Place::root("t"), None).await.unwrap().unwrap();
    assert_eq!(tail.rows.len(), 1);
}
