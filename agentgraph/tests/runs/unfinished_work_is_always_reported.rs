//! A run reports what it did not reach: by an error if the caller accepts only a finished run, and in
//! the outcome, from every depth and after every stop.

use std::sync::Arc;

use agentgraph::checkpoint::Retention;
use agentgraph::prelude::*;
use agentgraph::run::NotFinished;
use agentgraph::{BoxError, Code, Durability, Error, Memory, Outcome, RetryPolicy};

use crate::common::clock::Clock;
use crate::common::poll::{at_most, pending_for};
use crate::common::words::{Words, WordsUpdate, says, text};

/// Builds a graph in which `b` never runs, so the join into `c` never fires.
fn with_stuck_join() -> StateGraph<Words> {
    StateGraph::new()
        .node("a", says("a"))
        .node("b", says("b"))
        .node("c", says("c"))
        .branch(START, |_: &Words| "a", ["a", "b"])
        .edge(["a", "b"], "c")
}

#[tokio::test]
async fn a_stuck_join_is_an_error_with_the_state_for_callers_of_into_finished() {
    for graph in [with_stuck_join(), with_stuck_join().eager()] {
        let outcome = graph.compile().unwrap().invoke(Words::update()).await.unwrap();
        let error = outcome.into_finished().unwrap_err();
        assert_eq!(error.code(), Code::StuckJoin);
        assert_eq!(error.state::<Words>().unwrap().seen, ["a"]);
        assert!(error.state::<String>().is_none(), "another type");
        assert_eq!(
            error.to_string(),
            "E_STUCK_JOIN: the run is over and the join into `c` still waits for `b` after `a`: make sure that every source runs, \
             or let the join wait for fewer with `any`, `n_of` or a timeout"
        );
    }
}

#[tokio::test]
async fn an_interrupted_or_stopped_run_is_an_error_with_code_and_state_for_into_finished() {
    async fn asks(ctx: Ctx) -> Result<WordsUpdate> {
        let answer: String = ctx.interrupt("who?")?;
        Ok(Words::update().seen([answer]))
    }
    let graph = StateGraph::new()
        .node("a", says("a"))
        .node("asks", asks)
        .edge(START, "a")
        .edge("a", "asks")
        .compile()
        .unwrap();
    let waits = graph.invoke(Words::update()).await.unwrap().into_finished().unwrap_err();
    assert_eq!((waits.code(), &*waits.state::<Words>().unwrap().seen[0]), (Code::NotFinished, "a"));
    assert!(waits.to_string().starts_with("E_NOT_FINISHED: the run is interrupted at `asks`: "), "{waits}");
    let stopped = graph.invoke(Words::update()).max_supersteps(1).await.unwrap().into_finished().unwrap_err();
    assert_eq!((stopped.code(), &*stopped.state::<Words>().unwrap().seen[0]), (Code::NotFinished, "a"));
    assert!(stopped.to_string().contains("the limit of supersteps was reached"), "{stopped}");
}

#[tokio::test]
async fn the_error_converts_into_an_engine_error_and_a_box_error() {
    async fn run() -> Result<Words, Error> {
        let graph = with_stuck_join().compile().map_err(|error| Error::new(Code::Host, error.to_string()))?;
        Ok(graph.invoke(Words::update()).await?.into_finished()?)
    }
    let error = run().await.unwrap_err();
    assert_eq!((error.code(), text(error.state::<Words>().unwrap()).as_str()), (Code::StuckJoin, "a"));
    let in_a_node: BoxError = {
        let outcome = with_stuck_join().compile().unwrap().invoke(Words::update()).await.unwrap();
        outcome.into_finished().unwrap_err().into()
    };
    assert!(in_a_node.is::<NotFinished>());
}

#[tokio::test]
async fn the_error_holds_the_mapped_state_of_the_outcome() {
    struct Count(usize);
    let outcome = with_stuck_join().compile().unwrap().invoke(Words::update()).await.unwrap();
    let error = outcome.map(|words| Count(words.seen.len())).into_finished().map(drop).unwrap_err();
    assert_eq!(error.state::<Count>().unwrap().0, 1);
}

/// Builds a graph with a join whose round is open when the run stops before `late`.
fn with_open_round(sources: &[&'static str], to: &'static str) -> StateGraph<Words> {
    StateGraph::new()
        .node("a", says("a"))
        .node("late", says("late"))
        .node("more", says("more"))
        .node("j", says("j"))
        .node("k", says("k"))
        .edge(START, "a")
        .edge("a", "late")
        .edge(START, "more")
        .interrupt_before(["late"])
        .edge(sources.to_vec(), to)
}

#[tokio::test]
async fn a_join_that_changed_while_its_round_was_open_is_refused_with_names_and_remedy() {
    for eager in [false, true] {
        let shaped = |graph: StateGraph<Words>| if eager { graph.eager() } else { graph };
        let changed: [(&[&'static str], &'static str, &str); 4] = [
            (&["a", "late", "more"], "j", "a source was added"),
            (&["a", "more"], "j", "a source was replaced"),
            (&["late", "more"], "j", "the source that arrived was removed"),
            (&["a", "late"], "k", "the target was replaced"),
        ];
        for (sources, to, case) in changed {
            let saver = Arc::new(MemorySaver::new());
            let before = shaped(with_open_round(&["a", "late"], "j"))
                .compile()
                .unwrap()
                .checkpointer(Arc::clone(&saver));
            let waits = before.invoke(Words::update()).thread("t").await.unwrap();
            assert!(matches!(waits, Outcome::Interrupted { .. }));
            let after = shaped(with_open_round(sources, to)).compile().unwrap().checkpointer(saver);
            let error = after.proceed().thread("t").await.unwrap_err();
            assert_eq!((error.code(), error.thread()), (Code::GraphChanged, Some("t")), "{case}");
            let names = ["the join a + late -> `j`", "bring the name back", "`.abandon()`"];
            for name in names {
                assert!(error.to_string().contains(name), "{case}: {error}");
            }
            let today = format!("(today it waits for {})", sources.join(" + "));
            assert_eq!(error.to_string().contains(&today), to == "j", "{case}: {error}");
            let done = before.proceed().thread("t").await.unwrap().into_finished().unwrap();
            assert_eq!(done.seen.last().unwrap(), "j", "{case}: nothing is lost");
        }
    }
}

#[tokio::test]
async fn a_join_whose_sources_were_only_reordered_continues() {
    for eager in [false, true] {
        let shaped = |graph: StateGraph<Words>| if eager { graph.eager() } else { graph };
        let saver = Arc::new(MemorySaver::new());
        let before =
            shaped(with_open_round(&["a", "late"], "j")).compile().unwrap().checkpointer(Arc::clone(&saver));
        before.invoke(Words::update()).thread("t").await.unwrap();
        let after = shaped(with_open_round(&["late", "a"], "j")).compile().unwrap().checkpointer(saver);
        let done = after.proceed().thread("t").await.unwrap().into_finished().unwrap();
        assert_eq!(done.seen.last().unwrap(), "j");
    }
}

/// Whether the root and the subgraph are eager, and the memory of the subgraph.
#[derive(Clone, Copy, Debug)]
struct Shape {
    eager: bool,
    eager_inside: bool,
    memory: Memory,
}

fn shapes() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for eager in [false, true] {
        for eager_inside in [false, true] {
            for memory in [Memory::PerCall, Memory::PerThread, Memory::None] {
                shapes.push(Shape { eager, eager_inside, memory });
            }
        }
    }
    shapes
}

impl Shape {
    /// Compiles the subgraph, whose join into `c` never fires.
    fn child(self) -> CompiledGraph<Words> {
        let graph = with_stuck_join();
        if self.eager_inside { graph.eager().compile().unwrap() } else { graph.compile().unwrap() }
    }

    fn root(self) -> StateGraph<Words> {
        let graph = StateGraph::new().node("sub", self.child().memory(self.memory));
        if self.eager { graph.eager() } else { graph }
    }
}

/// Returns the stuck joins of an outcome, each with the node names of its namespace.
fn stuck(outcome: &Outcome<Words>) -> Vec<String> {
    let Outcome::Finished { stuck, .. } = outcome else { panic!("{outcome:?}") };
    let path = |namespace: &str| {
        let names = namespace.split('|').map(|part| part.split(':').next().unwrap_or_default());
        names.collect::<Vec<_>>().join("/")
    };
    let line = |join: &agentgraph::run::StuckJoin| {
        format!(
            "{} {} after {} lacks {}",
            path(&join.namespace),
            join.to,
            join.arrived.join("+"),
            join.missing.join("+")
        )
    };
    stuck.iter().map(line).collect()
}

const INSIDE: &str = "sub c after a lacks b";

#[tokio::test]
async fn the_root_reports_a_stuck_join_of_a_subgraph_with_its_namespace() {
    for shape in shapes() {
        let graph = shape.root().edge(START, "sub").node("after", says("after")).edge("sub", "after");
        let bare = graph.compile().unwrap();
        let outcome = bare.invoke(Words::update()).await.unwrap();
        assert_eq!(stuck(&outcome), [INSIDE], "{shape:?}");
        let error = outcome.into_finished().unwrap_err();
        assert_eq!(error.code(), Code::StuckJoin, "{shape:?}");
        assert!(error.to_string().contains("in the subgraph `sub"), "{error}");
        for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
            let kept = bare.clone().checkpointer(MemorySaver::new());
            let outcome = kept.invoke(Words::update()).thread("t").durability(durability).await.unwrap();
            assert_eq!(stuck(&outcome), [INSIDE], "{shape:?} {durability:?}");
        }
    }
}

#[tokio::test]
async fn a_stuck_join_of_a_subgraph_is_reported_after_every_stop_and_in_every_process() {
    async fn asks(ctx: Ctx) -> Result<WordsUpdate> {
        let answer: String = ctx.interrupt("?")?;
        Ok(Words::update().seen([answer]))
    }
    for shape in shapes() {
        for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
            let saver = Arc::new(MemorySaver::new());
            // A sibling asks while the subgraph ends, and the run stops once more after both.
            let graph = || {
                let graph = shape.root().node("asks", asks).node("late", says("late"));
                let graph = graph.edge(START, "sub").edge(START, "asks").edge("asks", "late");
                graph.interrupt_before(["late"]).compile().unwrap().checkpointer(Arc::clone(&saver))
            };
            let waits = graph().invoke(Words::update()).thread("t").durability(durability).await.unwrap();
            assert!(matches!(waits, Outcome::Interrupted { .. }), "{shape:?} {durability:?}");
            let waits = graph().resume("yes").thread("t").durability(durability).await.unwrap();
            assert!(matches!(waits, Outcome::Interrupted { .. }), "{shape:?} {durability:?}");
            let done = graph().proceed().thread("t").durability(durability).await.unwrap();
            assert_eq!(stuck(&done), [INSIDE], "{shape:?} {durability:?}");
        }
    }
}

#[tokio::test]
async fn a_stuck_join_is_reported_once_wherever_the_run_was_dropped() {
    for shape in shapes() {
        let slow = |word: &'static str| {
            move || async move {
                pending_for(2).await;
                Words::update().seen([word])
            }
        };
        let graph = || {
            let child = StateGraph::new().node("a", slow("a")).node("b", says("b")).node("c", says("c"));
            let child = child.branch(START, |_: &Words| "a", ["a", "b"]).edge(["a", "b"], "c");
            let child = if shape.eager_inside { child.eager() } else { child };
            let graph = StateGraph::new().node("sub", child.compile().unwrap().memory(shape.memory));
            let graph = graph.node("beside", slow("beside")).node("after", slow("after"));
            let graph = graph.edge(START, "sub").edge(START, "beside").edge("sub", "after");
            if shape.eager { graph.eager() } else { graph }
        };
        for polls in 1..40 {
            let saver = Arc::new(MemorySaver::new());
            let compiled = || graph().compile().unwrap().checkpointer(Arc::clone(&saver));
            let call = std::future::IntoFuture::into_future(compiled().invoke(Words::update()).thread("t"));
            let outcome = match at_most(Box::pin(call), polls).await {
                Some(done) => done.unwrap(),
                None => match compiled().state("t").await.unwrap() {
                    None => continue,
                    Some(state) if state.next.is_empty() => continue,
                    Some(_) => compiled().proceed().thread("t").await.unwrap(),
                },
            };
            assert_eq!(stuck(&outcome), [INSIDE], "{shape:?}, {polls} polls");
        }
    }
}

#[tokio::test]
async fn nested_subgraphs_report_stuck_joins_once_per_call() {
    for shape in shapes() {
        let middle = shape.root().edge(START, "sub").node("m", says("m")).edge(["sub", "m"], "sub2");
        let middle = middle.node("sub2", says("sub2")).compile().unwrap();
        let twice = |words: &Words| {
            let rounds = words.seen.iter().filter(|word| *word == "again").count();
            if rounds < 2 { vec!["outer"] } else { vec![] }
        };
        let graph = StateGraph::new()
            .node("outer", middle.memory(shape.memory))
            .node("again", says("again"))
            .edge(START, "outer")
            .edge("outer", "again")
            .branch("again", twice, ["outer"]);
        let graph = if shape.eager { graph.eager() } else { graph };
        let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
        let outcome = graph.invoke(Words::update()).thread("t").await.unwrap();
        let once = ["outer sub2 after sub lacks m", "outer/sub c after a lacks b"];
        assert_eq!(stuck(&outcome), [once, once].concat(), "{shape:?}");
    }
}

#[tokio::test]
async fn a_root_that_fails_on_stuck_joins_fails_on_those_of_its_subgraphs() {
    for shape in shapes() {
        let graph = shape.root().edge(START, "sub").fail_on_stuck_joins().compile().unwrap();
        let error = graph.invoke(Words::update()).await.unwrap_err();
        assert_eq!(error.code(), Code::StuckJoin, "{shape:?}");
        assert!(error.state::<Words>().is_some());
    }
}

#[tokio::test]
async fn a_subgraph_that_fails_on_stuck_joins_fails_again_on_every_retry() {
    for shape in shapes() {
        let child = with_stuck_join().fail_on_stuck_joins();
        let child = if shape.eager_inside { child.eager() } else { child }.compile().unwrap();
        let sub = child.memory(shape.memory).retry(RetryPolicy::attempts(3));
        let graph = StateGraph::new().node("sub", sub).node("after", says("after"));
        let graph = if shape.eager { graph.eager() } else { graph };
        let graph = graph.edge(START, "sub").edge("sub", "after").compile().unwrap();
        let graph = graph.checkpointer(MemorySaver::new()).services(Clock::default());
        let first = graph.invoke(Words::update()).thread("t").await.unwrap_err().to_string();
        assert!(first.contains("E_STUCK_JOIN"), "{shape:?}: {first}");
        for _ in 0..2 {
            let again = graph.proceed().thread("t").await.unwrap_err().to_string();
            assert_eq!(again, first, "{shape:?}");
        }
    }
}

/// Asks, and says the answer.
async fn asks(ctx: Ctx) -> Result<WordsUpdate> {
    let answer: String = ctx.interrupt("?")?;
    Ok(Words::update().seen([answer]))
}

#[tokio::test]
async fn a_call_with_memory_does_not_report_stuck_joins_of_the_call_before() {
    for shape in shapes() {
        let middle = shape.root().node("asks", asks);
        let way = |words: &Words| if words.seen.len() == 1 { "sub" } else { "asks" };
        let middle = middle.branch(START, way, ["sub", "asks"]).compile().unwrap().embed(
            // Too long to be stored in full each time.
            |words: Snapshot<Words>| {
                Words::update().seen(words.seen.is_empty().then(|| "long ".repeat(2_000)))
            },
            |_: Words| Words::update().seen(["called"]),
        );
        let graph = StateGraph::new().node("outer", middle.memory(Memory::PerThread)).edge(START, "outer");
        let again = |words: &Words| if words.seen.len() < 2 { "outer" } else { END };
        let graph = graph.branch("outer", again, ["outer", END]);
        let graph = if shape.eager { graph.eager() } else { graph }.compile().unwrap();
        let graph = graph.checkpointer(MemorySaver::new());
        let waits = graph.invoke(Words::update()).thread("t").await.unwrap();
        assert_eq!(waits.interrupts().len(), 1, "{shape:?}");
        let done = graph.resume("x").thread("t").await.unwrap();
        assert_eq!(stuck(&done), ["outer/sub c after a lacks b"], "{shape:?}");
    }
}

#[tokio::test]
async fn an_edit_that_replaces_a_call_removes_its_stuck_joins() {
    for memory in [Memory::PerCall, Memory::PerThread, Memory::None] {
        let child = with_stuck_join().compile().unwrap();
        let graph =
            StateGraph::new().node("sub", child.memory(memory)).node("asks", asks).node("end", says("end"));
        let graph =
            graph.edge(START, "sub").edge(START, "asks").edge(["sub", "asks"], "end").compile().unwrap();
        let graph = graph.checkpointer(MemorySaver::new());
        graph.invoke(Words::update()).thread("t").await.unwrap();
        let edit = graph.update_state("t").as_node("sub", Words::update());
        edit.as_node("asks", Words::update()).await.unwrap();
        let done = graph.proceed().thread("t").await.unwrap();
        assert_eq!(stuck(&done), Vec::<String>::new(), "{memory:?}");
    }
}

#[tokio::test]
async fn a_call_whose_task_fails_afterwards_reports_no_stuck_joins() {
    for eager in [false, true] {
        let child = with_stuck_join().compile().unwrap();
        let fails = child.embed(Words::update, |_: Words| Err::<WordsUpdate, BoxError>("no".into()));
        let graph =
            StateGraph::new().node("sub", fails.on_error("fix")).node("fix", says("fix")).edge(START, "sub");
        let graph = if eager { graph.eager() } else { graph };
        let outcome = graph.compile().unwrap().invoke(Words::update()).await.unwrap();
        assert_eq!(stuck(&outcome), Vec::<String>::new(), "eager: {eager}");
    }
}

#[tokio::test]
async fn edits_forks_and_pruning_keep_stuck_joins_and_the_next_run_begins_without() {
    for shape in shapes() {
        let first_only = |words: &Words| if words.seen.len() < 2 { vec!["sub"] } else { vec!["late"] };
        let graph = shape.root().node("late", says("late")).interrupt_before(["late"]);
        let graph = graph.branch(START, first_only, ["sub", "late"]).edge("sub", "late");
        let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
        graph.invoke(Words::update()).thread("t").await.unwrap();
        let stopped = graph.state("t").await.unwrap().unwrap().id;
        let edited = graph.update_state("t").update(Words::update().seen(["edit"])).await.unwrap();
        graph.prune(Retention::keep(move |one| one.id == stopped || one.id == edited)).await.unwrap();
        let done = run_to_end(&graph, graph.proceed().thread("t").await.unwrap()).await;
        assert_eq!(stuck(&done), [INSIDE], "{shape:?}: edited and pruned");
        let next = graph.invoke(Words::update()).thread("t").await.unwrap();
        let next = run_to_end(&graph, next).await;
        assert_eq!(stuck(&next), Vec::<String>::new(), "{shape:?}: another run");
        let fork = graph.proceed().thread("t").from(stopped).await.unwrap();
        let fork = run_to_end(&graph, fork).await;
        assert_eq!(stuck(&fork), [INSIDE], "{shape:?}: forked");
    }
}

/// Proceeds past static interrupts until the run ends.
async fn run_to_end(graph: &CompiledGraph<Words>, mut outcome: Outcome<Words>) -> Outcome<Words> {
    while let Outcome::Interrupted { .. } = outcome {
        outcome = graph.proceed().thread("t").await.unwrap();
    }
    outcome
}

#[tokio::test]
async fn a_stuck_join_is_still_reported_after_a_thousand_supersteps() {
    for eager in [false, true] {
        let shape = Shape { eager, eager_inside: false, memory: Memory::PerCall };
        let round = |words: &Words| if words.seen.len() < 1_200 { vec!["round"] } else { vec![] };
        let graph = shape.root().node("round", says("r")).edge(START, "sub").edge("sub", "round");
        let graph =
            graph.branch("round", round, ["round"]).compile().unwrap().checkpointer(MemorySaver::new());
        let mut outcome = graph.invoke(Words::update()).thread("t").max_supersteps(1_100).await.unwrap();
        while let Outcome::Stopped { .. } = outcome {
            outcome = graph.proceed().thread("t").max_supersteps(30).await.unwrap();
        }
        assert_eq!(stuck(&outcome), [INSIDE], "eager: {eager}");
    }
}
