//! A call that is built and dropped warns in debug builds, with its place in the code: through `tracing`, or
//! on the standard error stream of a program without a subscriber. Calls that run, and unwinding panics, do
//! not warn.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::{Arc, Mutex};

use agentgraph::prelude::*;
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Count {
    n: u32,
}

async fn count(count: Snapshot<Count>) -> CountUpdate {
    Count::update().n(count.n + 1)
}

fn graph() -> CompiledGraph<Count> {
    StateGraph::new().node("count", count).edge(START, "count").compile().unwrap()
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The lines of `tracing` while `work` runs.
fn logged(work: impl FnOnce()) -> Vec<String> {
    let log = Log::default();
    let writer = log.clone();
    let subscriber =
        tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).without_time();
    tracing::subscriber::with_default(subscriber.finish(), work);
    let bytes = log.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

const PROBLEM: &str = "a call was built and dropped, so nothing ran: `.await` it, or read its `.stream()`";

#[test]
fn every_kind_of_call_warns_once_with_its_place() {
    let graph = graph();
    let passes = DependencyGraph::<u8>::new().node("one", || 1).compile().unwrap();
    let lines = logged(|| {
        let _run = graph.invoke(Count::update());
        let _run = graph.resume(1).thread("t");
        let _run = graph.proceed();
        let _run = graph.invoke(Count::update()).output::<Count>();
        let _run = passes.invoke(());
    });
    assert_eq!(lines.len(), if cfg!(debug_assertions) { 5 } else { 0 }, "{lines:#?}");
    for line in lines {
        assert!(line.contains(PROBLEM) && line.contains("WARN agentgraph"), "{line}");
        assert!(line.contains("calls_that_are_dropped_warn.rs:"), "{line}");
    }
}

#[test]
fn calls_that_run_do_not_warn() {
    let graph = graph();
    let lines = logged(|| {
        block_on(async {
            graph.invoke(Count::update()).await.unwrap();
            graph.invoke(Count::update()).output::<Count>().max_supersteps(9).await.unwrap();
            let mut events = graph.invoke(Count::update()).stream();
            while events.next().await.is_some() {}
            drop(graph.invoke(Count::update()).stream());
            let kept = graph.clone().checkpointer(MemorySaver::new());
            kept.invoke(Count::update()).thread("t").await.unwrap();
            kept.update_state("t").update(Count::update().n(7)).await.unwrap();
            kept.copy_thread("t", "u").await.unwrap();
        });
    });
    assert_eq!(lines, Vec::<String>::new());
}

#[test]
fn an_unwinding_panic_does_not_warn() {
    let graph = graph();
    let lines = logged(|| {
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            let _run = graph.invoke(Count::update());
            std::panic::resume_unwind(Box::new("a panic of the program"));
        }));
        assert!(unwound.is_err());
    });
    assert_eq!(lines, Vec::<String>::new());
}

const IN_CHILD: &str = "AGENTGRAPH_TEST_DROPS_A_CALL";

/// A program without a subscriber: this test again, in a process of its own.
#[test]
fn without_a_subscriber_the_warning_is_on_the_standard_error_stream() {
    if std::env::var_os(IN_CHILD).is_some() {
        let _run = graph().invoke(Count::update());
        return;
    }
    let name =
        "calls_that_are_dropped_warn::without_a_subscriber_the_warning_is_on_the_standard_error_stream";
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(IN_CHILD, "1")
        .output()
        .unwrap();
    assert!(child.status.success());
    let text = String::from_utf8(child.stderr).unwrap();
    let warnings: Vec<&str> = text.lines().filter(|line| line.contains(PROBLEM)).collect();
    assert_eq!(warnings.len(), usize::from(cfg!(debug_assertions)), "{text}");
    assert!(warnings.iter().all(|line| line.starts_with("warning: ")), "{text}");
}
