//! A run can be dropped at any poll, and its thread still proceeds to the same end. A task that was not
//! stored before the drop may repeat its effect, once per drop. A stored task never repeats its effect.
#![cfg(feature = "sqlite")]

use std::collections::BTreeMap;
use std::future::IntoFuture;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentgraph::checkpoint::SqliteSaver;
use agentgraph::node::IntoGoto;
use agentgraph::prelude::*;
use agentgraph::{Memory, RunBuilder};

use crate::common::clock::Clock;
use crate::common::poll::{at_most, pending_for};
use crate::common::saver::NotingSaver;
use crate::common::words::{Words, WordsUpdate, text};
use crate::sqlite_folder::Folder;

/// The effects of all tasks. Each effect must come before its task is stored.
#[derive(Clone)]
struct Effects {
    seen: Arc<Mutex<Vec<String>>>,
    saver: NotingSaver,
}

impl Effects {
    fn add(&self, task: &str) {
        assert!(!self.saver.has_stored(task), "`{task}` has an effect although it is stored");
        self.seen.lock().unwrap().push(task.to_owned());
    }

    fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for task in self.seen.lock().unwrap().iter() {
            *counts.entry(task.clone()).or_default() += 1;
        }
        counts
    }

    /// Returns a node with an effect and a word for each execution. It is pending for `polls` polls before
    /// and after the effect.
    fn node(&self, name: &'static str, polls: u32) -> agentgraph::node::Node<Words> {
        let effects = self.clone();
        let node = move |words: Snapshot<Words>| {
            let effects = effects.clone();
            let word = format!("<{name}{}>", words.seen.len());
            async move {
                pending_for(polls).await;
                effects.add(&word);
                pending_for(polls).await;
                Words::update().seen([word])
            }
        };
        node.into_node()
    }
}

type Build = fn(&Effects) -> StateGraph<Words>;

fn sequence(effects: &Effects) -> StateGraph<Words> {
    StateGraph::new()
        .node("a", effects.node("a", 1))
        .node("b", effects.node("b", 0))
        .node("c", effects.node("c", 2))
        .edge(START, "a")
        .edge("a", "b")
        .edge("b", "c")
}

fn fan_out(effects: &Effects) -> StateGraph<Words> {
    StateGraph::new()
        .node("a", effects.node("a", 3))
        .node("b", effects.node("b", 0))
        .node("c", effects.node("c", 1))
        .node("join", effects.node("join", 0))
        .edge(START, "a")
        .edge(START, "b")
        .edge(START, "c")
        .edge(["a", "b", "c"], "join")
}

fn interrupt(effects: &Effects) -> StateGraph<Words> {
    let effects_of_ask = effects.clone();
    let ask = move |ctx: Ctx| {
        let effects = effects_of_ask.clone();
        async move {
            pending_for(1).await;
            let first: String = ctx.interrupt("first?")?;
            let second: String = ctx.interrupt("second?")?;
            effects.add("<asked>");
            pending_for(1).await;
            Ok::<_, agentgraph::BoxError>(Words::update().seen(["<asked>".to_owned(), first, second]))
        }
    };
    StateGraph::new()
        .node("ask", ask)
        .node("beside", effects.node("beside", 2))
        .node("after", effects.node("after", 1))
        .edge(START, "ask")
        .edge(START, "beside")
        .edge("ask", "after")
}

fn dispatch(effects: &Effects) -> StateGraph<Words> {
    async fn split() -> Command<Words> {
        pending_for(1).await;
        Command::new().goto([2_u32, 0, 1].map(|n| Dispatch::new("work", n).into_goto()).to_vec())
    }
    let effects_of_work = effects.clone();
    let work = move |Input(n): Input<u32>| {
        let effects = effects_of_work.clone();
        async move {
            pending_for(n).await;
            effects.add(&format!("<work{n}>"));
            Words::update().seen([format!("<work{n}>")])
        }
    };
    let graph = StateGraph::new().node("split", split).node("work", work).node("end", effects.node("end", 0));
    graph.edge(START, "split").edge("work", "end")
}

fn retry(effects: &Effects) -> StateGraph<Words> {
    let effects_of_flaky = effects.clone();
    let flaky = move |ctx: Ctx| {
        let effects = effects_of_flaky.clone();
        async move {
            pending_for(1).await;
            if ctx.attempt() < 3 {
                return Err("not yet".into());
            }
            effects.add("<flaky>");
            Ok::<_, agentgraph::BoxError>(Words::update().seen(["<flaky>"]))
        }
    };
    StateGraph::new()
        .node("flaky", flaky.retry(RetryPolicy::attempts(3).initial(Duration::from_secs(60))))
        .node("beside", effects.node("beside", 1))
        .node("after", effects.node("after", 0))
        .edge(START, "flaky")
        .edge(START, "beside")
        .edge(["flaky", "beside"], "after")
}

fn subgraph(effects: &Effects) -> StateGraph<Words> {
    let child = StateGraph::new()
        .node("c", effects.node("c", 1))
        .node("d", effects.node("d", 0))
        .node("e", effects.node("e", 1))
        .edge(START, "c")
        .edge(START, "d")
        .edge(["c", "d"], "e");
    StateGraph::new()
        .node("a", effects.node("a", 0))
        .node("sub", child.compile().unwrap())
        .node("beside", effects.node("beside", 2))
        .node("after", effects.node("after", 0))
        .edge(START, "a")
        .edge("a", "sub")
        .edge("a", "beside")
        .edge(["sub", "beside"], "after")
}

/// Three levels of graphs. The inner two interrupt. The innermost is embedded with mappings and has a memory.
fn subgraphs(effects: &Effects) -> StateGraph<Words> {
    async fn ask(ctx: Ctx) -> agentgraph::Result<WordsUpdate> {
        pending_for(1).await;
        let answer: String = ctx.interrupt("?")?;
        Ok(Words::update().seen([answer]))
    }
    let inner = StateGraph::new()
        .node("f", effects.node("f", 1))
        .node("ask", ask)
        .node("g", effects.node("g", 0))
        .edge(START, "f")
        .edge("f", "ask")
        .edge("ask", "g");
    let inner = inner.compile().unwrap().embed(
        |words: Snapshot<Words>| Words::update().seen(words.seen.clone()),
        |words: Words| Words::update().seen([words.seen.join("_")]),
    );
    let middle = StateGraph::new()
        .node("ask", ask)
        .node("inner", inner.memory(Memory::PerThread))
        .node("h", effects.node("h", 1))
        .edge(START, "ask")
        .edge("ask", "inner")
        .edge("inner", "h");
    StateGraph::new()
        .node("middle", middle.compile().unwrap())
        .node("after", effects.node("after", 0))
        .edge(START, "middle")
        .edge("middle", "after")
}

/// Returns the graph of a new process on the shared saver.
fn process(build: Build, effects: &Effects) -> CompiledGraph<Words> {
    build(effects).compile().unwrap().services(Clock::default()).checkpointer(effects.saver.clone())
}

/// Makes calls until the run finishes, each in a new process, and drops call number `cut` after `polls`
/// polls. Returns the words, and whether that call was dropped.
async fn run_with_drop(build: Build, effects: &Effects, cut: usize, polls: u32) -> (String, bool) {
    let mut dropped = false;
    for call in 0..20 {
        let graph = process(build, effects);
        let Some(run) = next_call(&graph).await else { break };
        let run = run.thread("t");
        if call == cut {
            dropped = at_most(Box::pin(run.into_future()), polls).await.is_none();
        } else {
            run.await.unwrap();
        }
    }
    let end = process(build, effects).history("t").limit(1).await.unwrap().remove(0);
    assert!(end.next.is_empty(), "the run has not finished");
    (text(&end.values), dropped)
}

/// Returns the next call that the thread needs, or `None` if its run has finished.
async fn next_call(graph: &CompiledGraph<Words>) -> Option<RunBuilder<Words>> {
    let Some(state) = graph.state("t").await.unwrap() else { return Some(graph.invoke(Words::update())) };
    if let Some(open) = state.interrupts.first() {
        return Some(graph.resume(format!("yes to {}", open.value)));
    }
    // `state.next` omits tasks that have finished but are not merged, so the newest checkpoint decides.
    let newest = graph.history("t").limit(1).await.unwrap();
    (!newest[0].next.is_empty()).then(|| graph.proceed())
}

/// Drops each call at each of its polls. Asserts that the run ends as without drops and that an effect
/// happens at most twice.
async fn drop_at_every_poll(build: Build, saver: impl AsyncFn() -> NotingSaver) {
    let effects = |saver| Effects { seen: Arc::default(), saver };
    let whole = effects(saver().await);
    let (expected, _) = run_with_drop(build, &whole, usize::MAX, 0).await;
    let once = whole.counts();
    assert!(once.values().all(|count| *count == 1), "{once:?}");
    let mut drops = 0;
    for cut in 0.. {
        let mut reached = false;
        for polls in 1.. {
            let effects = effects(saver().await);
            let (end, dropped) = run_with_drop(build, &effects, cut, polls).await;
            assert_eq!(end, expected, "call {cut} dropped after {polls} polls");
            let counts = effects.counts();
            assert!(counts.keys().eq(once.keys()) && counts.values().all(|count| *count <= 2), "{counts:?}");
            if !dropped {
                break;
            }
            reached = true;
            drops += 1;
        }
        if !reached {
            break;
        }
    }
    assert!(drops >= 8, "only {drops} drops");
}

const GRAPHS: [Build; 7] = [sequence, fan_out, interrupt, dispatch, retry, subgraph, subgraphs];

#[tokio::test]
async fn in_memory() {
    for build in GRAPHS {
        drop_at_every_poll(build, async || NotingSaver::memory()).await;
    }
}

#[tokio::test]
async fn in_sqlite() {
    let folder = Folder::new();
    let files = AtomicUsize::new(0);
    let saver = async || {
        let file = format!("{}.db", files.fetch_add(1, Ordering::SeqCst));
        NotingSaver::new(SqliteSaver::open(folder.file(&file)).await.unwrap())
    };
    for build in GRAPHS {
        drop_at_every_poll(build, &saver).await;
    }
}

#[tokio::test]
async fn no_static_interrupt_is_passed_before_it_was_reported() {
    for after in [false, true] {
        let mut dropped_after_report = false;
        for polls in 1.. {
            let effects = Effects { seen: Arc::default(), saver: NotingSaver::memory() };
            let graph = if after {
                sequence(&effects).interrupt_after(["a"])
            } else {
                sequence(&effects).interrupt_before(["b"])
            };
            let graph = graph.compile().unwrap().checkpointer(effects.saver.clone());
            let run = graph.invoke(Words::update()).thread("t");
            if at_most(Box::pin(run.into_future()), polls).await.is_some() {
                break;
            }
            let reported = !effects.saver.writes().is_empty();
            dropped_after_report |= reported;
            let Some(next) = next_call(&graph).await else { panic!("the run cannot have finished") };
            let outcome = next.thread("t").await.unwrap();
            assert_eq!(
                matches!(outcome, Outcome::Interrupted { .. }),
                !reported,
                "dropped after {polls} polls"
            );
        }
        assert!(dropped_after_report, "no drop came after the interrupt was reported");
    }
}
