//! An eager run is stored activation by activation. After any stop, finished activations do not run again,
//! and unfinished ones read the same state as before.

use std::collections::BTreeMap;
use std::future::IntoFuture;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentgraph::checkpoint::Retention;
use agentgraph::checkpoint::Source;
use agentgraph::prelude::*;
use agentgraph::run::InterruptKind;
use agentgraph::{BoxError, Code, Durability, Memory, RunBuilder, StopReason};

use crate::common::clock::{Clock, TokioClock};
use crate::common::poll::{at_most, pending_for};
use crate::common::saver::NotingSaver;
use crate::common::words::{Words, WordsUpdate, said, says, text};

fn eager() -> StateGraph<Words> {
    StateGraph::new().eager()
}

fn with_saver(graph: StateGraph<Words>) -> CompiledGraph<Words> {
    graph.compile().unwrap().checkpointer(MemorySaver::new())
}

async fn asks(ctx: Ctx, words: Snapshot<Words>) -> Result<WordsUpdate> {
    let answer: String = ctx.interrupt(format!("{}?", ctx.node()))?;
    Ok(Words::update().seen([format!("{}={answer}({})", ctx.node(), text(&words))]))
}

async fn start(graph: &CompiledGraph<Words>) -> Outcome<Words> {
    graph.invoke(Words::update()).thread("t").await.unwrap()
}

/// Returns the history as text, newest first.
async fn history_lines(graph: &CompiledGraph<Words>) -> Vec<String> {
    let history = graph.history("t").await.unwrap();
    let line = |one: &agentgraph::Checkpoint<Words>| {
        format!("{} {:?} [{}] -> {}", one.id, one.source, text(&one.values), one.next.join(" "))
    };
    history.iter().map(line).collect()
}

#[tokio::test]
async fn each_finished_task_is_a_checkpoint() {
    let graph = with_saver(
        eager()
            .node("a", says("a"))
            .node("b", says("b"))
            .node("c", says("c"))
            .edge(START, "a")
            .edge(START, "b")
            .edge("a", "c")
            .edge("b", "c"),
    );
    start(&graph).await;
    let expected = [
        "0.4 Loop [a b c c] -> ",
        "0.3 Loop [a b c] -> c",
        "0.2 Loop [a b] -> c c",
        "0.1 Loop [a] -> b c",
        "0.0 Input [] -> a b",
    ];
    assert_eq!(history_lines(&graph).await, expected);
}

/// Returns a graph in which `asks` runs beside a chain of nodes.
fn one_asks() -> StateGraph<Words> {
    eager()
        .node("asks", asks)
        .node("a", says("a"))
        .node("b", says("b"))
        .node("c", says("c"))
        .node("after", says("after"))
        .edge(START, "asks")
        .edge(START, "a")
        .edge("a", "b")
        .edge("b", "c")
        .edge("asks", "after")
}

#[tokio::test]
async fn an_interrupt_stops_only_its_own_branch_which_reads_the_same_state_again() {
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let graph = with_saver(one_asks());
        let run = graph.invoke(Words::update().seen(["i"])).thread("t").durability(durability);
        let outcome = run.await.unwrap();
        assert_eq!(text(outcome.output()), "i a b c");
        let [open] = outcome.interrupts() else { panic!("{outcome:?}") };
        assert_eq!((open.node.as_str(), &open.value), ("asks", &"asks?".into()));
        let state = graph.state("t").await.unwrap().unwrap();
        assert_eq!((state.next, &state.interrupts[..]), (vec!["asks".to_owned()], outcome.interrupts()));
        let outcome = graph.resume("yes").thread("t").durability(durability).await.unwrap();
        assert_eq!(text(&outcome.into_finished().unwrap()), "i a b c asks=yes(i) after", "{durability:?}");
    }
}

#[tokio::test]
async fn a_state_that_a_branch_still_reads_is_not_pruned() {
    let graph = with_saver(one_asks());
    let run = graph.invoke(Words::update().seen(["i"])).thread("t");
    assert_eq!(text(run.await.unwrap().output()), "i a b c");
    graph.prune(Retention::keep_latest_per_thread()).thread("t").await.unwrap();
    assert_eq!(history_lines(&graph).await.len(), 2, "the newest state and the one that `asks` reads");
    let outcome = graph.resume("yes").thread("t").await.unwrap();
    assert_eq!(text(&outcome.into_finished().unwrap()), "i a b c asks=yes(i) after");
}

#[tokio::test]
async fn a_state_that_no_checkpoint_holds_is_kept_over_several_calls() {
    let graph = with_saver(one_asks().node("asks_too", asks).edge("a", "asks_too"));
    let outcome = graph.invoke(Words::update()).thread("t").durability(Durability::Exit).await.unwrap();
    let ids: Vec<_> = outcome.interrupts().iter().map(|open| (open.node.clone(), open.id.unwrap())).collect();
    assert_eq!(ids.iter().map(|(node, _)| node.as_str()).collect::<Vec<_>>(), ["asks", "asks_too"]);
    let outcome =
        graph.resume_many([(ids[0].1, "1")]).thread("t").durability(Durability::Exit).await.unwrap();
    assert_eq!(outcome.interrupts()[0].id, Some(ids[1].1));
    let words = graph.resume("2").thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(text(&words), "a b c asks=1() after asks_too=2(a)");
}

#[tokio::test]
async fn several_interrupts_are_answered_one_by_one() {
    let graph = with_saver(one_asks().node("asks_too", asks).edge("b", "asks_too"));
    let outcome = start(&graph).await;
    let ids: Vec<_> = outcome.interrupts().iter().map(|open| open.id.unwrap()).collect();
    assert_eq!(ids.len(), 2);
    let error = graph.resume("who?").thread("t").await.unwrap_err();
    assert_eq!(error.code(), Code::AmbiguousAnswer);
    // `proceed` without an answer returns the same questions.
    let outcome = graph.proceed().thread("t").await.unwrap();
    assert_eq!(outcome.interrupts().iter().map(|open| open.id.unwrap()).collect::<Vec<_>>(), ids);
    let outcome = graph.resume_many([(ids[1], "2")]).thread("t").await.unwrap();
    assert_eq!(outcome.interrupts().iter().map(|open| open.id.unwrap()).collect::<Vec<_>>(), ids[..1]);
    assert_eq!(text(outcome.output()), "a b c asks_too=2(a b)");
    let error = graph.resume_many([(ids[1], "3")]).thread("t").await.unwrap_err();
    assert_eq!(error.code(), Code::UnknownInterrupt);
    let words = graph.resume("1").thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(text(&words), "a b c asks_too=2(a b) asks=1() after");
}

#[tokio::test]
async fn an_answer_stays_while_other_tasks_commit_and_a_bad_answer_is_discarded() {
    async fn twice(ctx: Ctx) -> Result<WordsUpdate> {
        let first: String = ctx.interrupt("first?")?;
        // The other tasks commit meanwhile.
        pending_for(5).await;
        let second: u32 = ctx.interrupt("second?")?;
        Ok(Words::update().seen([format!("{first}{second}")]))
    }
    let graph = with_saver(
        eager()
            .node("twice", twice)
            .node("asks", asks)
            .node("b", says("b"))
            .edge(START, "twice")
            .edge(START, "asks")
            .edge("asks", "b"),
    );
    let ids: Vec<_> = start(&graph).await.interrupts().iter().map(|open| open.id.unwrap()).collect();
    let outcome = graph.resume_many([(ids[0], "x"), (ids[1], "y")]).thread("t").await.unwrap();
    assert_eq!((text(outcome.output()).as_str(), outcome.interrupts().len()), ("asks=y() b", 1));
    let error = graph.resume("no number").thread("t").await.unwrap_err();
    assert_eq!((error.code(), error.node()), (Code::BadAnswer, Some("twice")));
    let open = outcome.interrupts()[0].id.unwrap().to_string();
    assert!(error.to_string().contains(&open), "{error}");
    assert_eq!(graph.state("t").await.unwrap().unwrap().interrupts, outcome.interrupts());
    let words = graph.resume(2).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(text(&words), "asks=y() b x2");
}

#[tokio::test]
async fn static_interrupts_stop_only_their_own_branch_and_are_passed_once_reported() {
    let graph = |graph: StateGraph<Words>| {
        let graph = graph.node("a", says("a")).node("b", says("b")).node("x", says("x")).node("y", says("y"));
        graph.edge(START, "a").edge("a", "b").edge(START, "x").edge("x", "y")
    };
    for (graph, kind, node) in [
        (graph(eager()).interrupt_before(["b"]), InterruptKind::Before, "b"),
        (graph(eager()).interrupt_after(["a"]), InterruptKind::After, "a"),
    ] {
        let graph = with_saver(graph);
        let outcome = start(&graph).await;
        let [open] = outcome.interrupts() else { panic!("{outcome:?}") };
        assert_eq!((open.node.as_str(), open.kind, open.id), (node, kind, None));
        assert_eq!(text(outcome.output()), "a x y");
        let words = graph.proceed().thread("t").await.unwrap().into_finished().unwrap();
        assert_eq!(text(&words), "a x y b");
    }
}

#[tokio::test]
async fn a_partly_full_join_and_a_partly_finished_group_survive_a_stop() {
    async fn split() -> Command<Words> {
        Command::to(vec![Dispatch::new("work", 1_u32), Dispatch::new("work", 2), Dispatch::new("work", 3)])
    }
    async fn work(ctx: Ctx, Input(n): Input<u32>) -> Result<WordsUpdate> {
        if n == 2 {
            let _: bool = ctx.interrupt("go on?")?;
        }
        Ok(Words::update().seen([n.to_string()]))
    }
    let graph = with_saver(
        eager()
            .node("split", split.targets(["work"]))
            .node("work", work)
            .node("end", says("end"))
            .node("both", says("both"))
            .edge(START, "split")
            .edge(["work"], "end")
            .edge(["split", "end"], "both"),
    );
    let outcome = start(&graph).await;
    assert_eq!(text(outcome.output()), "1 3");
    let outcome = graph.resume(true).thread("t").await.unwrap();
    let Outcome::Finished { output, stuck, .. } = outcome else { panic!("{outcome:?}") };
    // The command of `split` replaces its edges, so `split` never arrives at the second join.
    assert_eq!((text(&output).as_str(), stuck.len()), ("1 3 2 end", 1));
}

#[derive(State, serde::Serialize, serde::Deserialize, Clone, Debug, Default)]
struct Answer {
    text: String,
}

#[tokio::test]
async fn the_writers_of_channels_are_known_after_a_stop() {
    for durability in [Durability::Sync, Durability::Exit] {
        async fn asks(ctx: Ctx) -> Result<AnswerUpdate> {
            let text: String = ctx.interrupt("?")?;
            Ok(Answer::update().text(text))
        }
        let graph = StateGraph::new()
            .eager()
            .node("asks", asks)
            .node("writes", || async { Answer::update().text("written") })
            .edge(START, "asks")
            .edge(START, "writes")
            .compile()
            .unwrap()
            .checkpointer(MemorySaver::new());
        let run = graph.invoke(Answer::update()).thread("t").durability(durability);
        assert_eq!(run.await.unwrap().interrupts().len(), 1);
        let error = graph.resume("mine").thread("t").await.unwrap_err();
        assert_eq!((error.code(), error.node()), (Code::ConcurrentUpdate, Some("asks")));
        assert!(error.to_string().contains("`writes` has written"), "{error}");
        // After an edit of the thread the task reads the edited state.
        graph.update_state("t").update(Answer::update().text("edited")).await.unwrap();
        let outcome = graph.proceed().thread("t").await.unwrap();
        assert_eq!(outcome.into_finished().unwrap().text, "mine");
    }
}

#[tokio::test]
async fn open_tasks_read_an_edit_of_the_state_and_keep_their_questions() {
    let graph = with_saver(one_asks());
    start(&graph).await;
    graph.update_state("t").update(Words::update().seen(["edited"])).await.unwrap();
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!((state.interrupts.len(), state.source), (1, Source::Update));
    let words = graph.resume("yes").thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(text(&words), "a b c edited asks=yes(a b c edited) after");
}

#[tokio::test]
async fn an_edit_as_a_node_ends_only_the_task_of_that_node() {
    let graph = with_saver(one_asks().node("asks_too", asks).edge("b", "asks_too"));
    start(&graph).await;
    graph.update_state("t").as_node("asks", Words::update().seen(["edited"])).await.unwrap();
    let outcome = graph.proceed().thread("t").await.unwrap();
    assert_eq!(text(outcome.output()), "a b c edited after");
    assert_eq!(outcome.interrupts()[0].node, "asks_too");
    graph.update_state("t").as_end(Words::update()).await.unwrap();
    assert_eq!(graph.proceed().thread("t").await.unwrap_err().code(), Code::NothingToResume);
    graph.update_state("t").as_start(Words::update().seen(["anew"])).await.unwrap();
    let outcome = graph.proceed().thread("t").await.unwrap();
    assert_eq!(text(outcome.output()), "a b c edited after anew a b c");
}

#[tokio::test]
async fn a_failed_task_runs_again_and_finished_tasks_do_not() {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let flaky = {
        let calls = Arc::clone(&calls);
        move |words: Snapshot<Words>| {
            let mut calls = calls.lock().unwrap();
            calls.push(text(&words));
            let good = calls.len() > 1;
            async move {
                pending_for(3).await;
                if good { Ok(Words::update().seen(["flaky"])) } else { Err::<_, BoxError>("broken".into()) }
            }
        }
    };
    let graph = with_saver(
        eager()
            .node("flaky", flaky)
            .node("a", says("a"))
            .node("b", says("b"))
            .edge(START, "flaky")
            .edge(START, "a")
            .edge("a", "b"),
    );
    let error = graph.invoke(Words::update().seen(["i"])).thread("t").await.unwrap_err();
    assert_eq!((error.code(), text(error.state().unwrap()).as_str()), (Code::NodeFailed, "i a b"));
    let words = graph.proceed().thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(text(&words), "i a b flaky");
    assert_eq!(*calls.lock().unwrap(), ["i", "i"]);
}

#[tokio::test]
async fn an_error_handler_can_ask_and_is_resumed() {
    async fn fails() -> Result<WordsUpdate> {
        Err("broken".into())
    }
    async fn handles(ctx: Ctx, failure: agentgraph::Failure) -> Result<WordsUpdate> {
        let word: String = ctx.interrupt(failure.message())?;
        Ok(Words::update().seen([word]))
    }
    let graph = with_saver(
        eager()
            .node("fails", fails.on_error("handles"))
            .node("handles", handles)
            .node("a", says("a"))
            .node("b", says("b"))
            .edge(START, "fails")
            .edge(START, "a")
            .edge("a", "b"),
    );
    let outcome = start(&graph).await;
    assert_eq!((text(outcome.output()).as_str(), outcome.interrupts()[0].node.as_str()), ("a b", "handles"));
    assert_eq!(graph.state("t").await.unwrap().unwrap().interrupts, outcome.interrupts());
    let words = graph.resume("mended").thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(text(&words), "a b mended");
}

#[tokio::test]
async fn a_run_that_was_stopped_by_its_limit_can_proceed() {
    let graph = with_saver(one_asks());
    let outcome = graph.invoke(Words::update()).thread("t").max_supersteps(2).await.unwrap();
    assert!(matches!(outcome, Outcome::Stopped { reason: StopReason::Limit, .. }), "{outcome:?}");
    assert_eq!(text(outcome.output()), "a");
    let outcome = graph.proceed().thread("t").await.unwrap();
    assert_eq!((text(outcome.output()).as_str(), outcome.interrupts().len()), ("a b c", 1));
}

#[tokio::test]
async fn detached_tasks_of_a_suspended_run_run_again() {
    let graph = with_saver(
        one_asks().edge(START, "side").node(
            "side",
            (|| async {
                pending_for(1).await;
                Words::update().seen(["side"])
            })
            .detached(),
        ),
    );
    let outcome = start(&graph).await;
    assert_eq!(outcome.interrupts().len(), 1);
    let outcome = graph.resume("yes").thread("t").await.unwrap();
    let Outcome::Finished { output, cancelled, .. } = outcome else { panic!("{outcome:?}") };
    assert!(output.seen.contains(&"side".to_owned()) != cancelled.contains(&"side".to_owned()), "{output:?}");
    let end = graph.state("t").await.unwrap().unwrap();
    assert_eq!((end.next.len(), end.values.seen.len()), (0, output.seen.len()));
}

#[tokio::test]
async fn an_unfinished_eager_run_is_refused_by_a_graph_with_supersteps() {
    let saver = Arc::new(MemorySaver::new());
    let graph = |graph: StateGraph<Words>| graph.node("asks", asks).edge(START, "asks").compile().unwrap();
    let one = graph(eager()).checkpointer(Arc::clone(&saver));
    let other = graph(StateGraph::new()).checkpointer(saver);
    start(&one).await;
    assert_eq!(other.resume("x").thread("t").await.unwrap_err().code(), Code::GraphChanged);
    let outcome = other.invoke(Words::update()).thread("t").abandon().await.unwrap();
    assert_eq!(outcome.interrupts().len(), 1);
    assert_eq!(one.resume("x").thread("t").await.unwrap_err().code(), Code::GraphChanged);
    assert_eq!(text(other.resume("x").thread("t").await.unwrap().output()), "asks=x()");
    assert_eq!(one.invoke(Words::update()).thread("t").await.unwrap().interrupts().len(), 1);
}

#[tokio::test]
async fn a_record_is_no_larger_than_the_change() {
    let mut sizes = Vec::new();
    for width in [100_u32, 1000] {
        let split = move || {
            let dispatches: Vec<_> = (0..width).map(|n| Dispatch::new("work", n)).collect();
            std::future::ready(Command::<Words>::to(dispatches))
        };
        let graph = eager().node("split", split.targets(["work"])).node("work", || async {});
        let graph =
            graph.node("end", says("end")).edge(START, "split").edge(["work"], "end").compile().unwrap();
        let saver = NotingSaver::memory().at_once();
        let graph = graph.checkpointer(saver.clone());
        let run = graph.invoke(Words::update()).thread("t").max_supersteps(u64::MAX);
        assert_eq!(text(run.await.unwrap().output()), "end");
        assert_eq!(saver.puts(), u64::from(width) + 3);
        sizes.push(saver.put_bytes() / u64::from(width));
    }
    assert!(sizes[1] < sizes[0] * 3 / 2, "bytes a task: {sizes:?}");
}

#[tokio::test]
async fn history_of_many_activations_is_read_back_from_any_checkpoint() {
    let again = |words: &Words| if words.seen.len() < 2500 { vec!["a"] } else { vec![END] };
    let graph = eager().node("a", says("a")).node("asks", asks).edge(START, "asks").edge(START, "a");
    let graph = with_saver(graph.branch("a", again, ["a", END]));
    let run = graph.invoke(Words::update()).thread("t").max_supersteps(u64::MAX);
    assert_eq!(run.await.unwrap().interrupts().len(), 1);
    for step in [0, 1, 700, 1024, 1500, 2048, 2049] {
        let state = graph.state_at("t", agentgraph::CheckpointId::new(0, step)).await.unwrap().unwrap();
        assert_eq!(
            (state.values.seen.len() as u64, state.next),
            (step, vec!["asks".to_owned(), "a".to_owned()])
        );
    }
    let words = graph.resume("yes").thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(words.seen[2500], "asks=yes()");
}

fn child(eager: bool) -> CompiledGraph<Words> {
    let graph = StateGraph::new().node("ask", asks).node("c", says("c")).node("d", says("d"));
    let graph = graph.edge(START, "ask").edge(START, "c").edge("c", "d");
    if eager { graph.eager().compile().unwrap() } else { graph.compile().unwrap() }
}

#[tokio::test]
async fn subgraphs_ask_at_the_root_whatever_the_disciplines() {
    for (inside, outside) in [(true, true), (true, false), (false, true)] {
        for memory in [Memory::PerCall, Memory::PerThread] {
            let graph = StateGraph::new()
                .node("a", says("a"))
                .node("child", child(inside).memory(memory))
                .node("beside", says("beside"))
                .node("after", says("after"))
                .edge(START, "a")
                .edge("a", "child")
                .edge("a", "beside")
                .edge("child", "after");
            let graph = with_saver(if outside { graph.eager() } else { graph });
            let outcome = start(&graph).await;
            let [open] = outcome.interrupts() else { panic!("{outcome:?}") };
            assert_eq!(open.value, "ask?");
            let state = graph.state("t").await.unwrap().unwrap();
            assert_eq!((&state.interrupts[..], state.children.len()), (outcome.interrupts(), 1));
            let words = graph.resume("yes").thread("t").await.unwrap().into_finished().unwrap();
            let mut seen = words.seen.clone();
            seen.sort_unstable();
            assert_eq!(seen.join(" "), "a after ask=yes(a) beside c d", "{inside} {outside} {memory:?}");
        }
    }
}

#[tokio::test]
async fn a_command_to_the_parent_leaves_an_eager_child() {
    async fn leaves() -> Command<Words> {
        Command::parent("b").parent_update(Words::update().seen(["left"]))
    }
    let child = StateGraph::new().eager().node("leaves", leaves).node("c", says("c"));
    let child = child.edge(START, "c").edge("c", "leaves").compile().unwrap();
    let graph = eager()
        .node("child", child.memory(Memory::PerCall).targets(["b"]))
        .node("a", says("a"))
        .node("b", says("b"))
        .edge(START, "child")
        .edge("child", "a");
    assert_eq!(text(start(&with_saver(graph)).await.output()), "left b");
}

#[tokio::test]
async fn parallel_calls_of_one_memory_are_refused() {
    let child = child(true).memory(Memory::PerThread);
    let graph = eager().node("child", child).node("a", says("a")).node("b", says("b"));
    let graph = graph.edge(START, "a").edge(START, "b").edge("a", "child").edge("b", "child");
    // The second call comes while the first one waits for an answer.
    let error = with_saver(graph).invoke(Words::update()).thread("t").await.unwrap_err();
    assert_eq!((error.code(), error.node()), (Code::ConcurrentSubgraph, Some("child")));
}

/// The effects of tasks on the outside world. Each effect is checked against the store.
#[derive(Clone)]
struct Effects {
    seen: Arc<Mutex<Vec<String>>>,
    /// The text of the state that each node read in its first execution.
    read: Arc<Mutex<BTreeMap<String, String>>>,
    saver: NotingSaver,
}

impl Effects {
    fn record(&self, task: &str) {
        assert!(!self.saver.has_stored_marked(task), "`{task}` has its effect although its result is stored");
        self.seen.lock().unwrap().push(task.to_owned());
    }

    /// Returns a node that has an effect and writes its name. It is pending for `polls` polls before the
    /// effect and after it.
    fn node(&self, name: &'static str, polls: u32) -> agentgraph::node::Node<Words> {
        let effects = self.clone();
        let node = move || {
            let effects = effects.clone();
            let word = format!("<{name}>");
            async move {
                pending_for(polls).await;
                effects.record(&word);
                pending_for(polls).await;
                Words::update().seen([word])
            }
        };
        node.into_node()
    }

    /// Returns a node that asserts that it reads the same state in each execution. `asks` also asks.
    fn reader(&self, name: &'static str, polls: u32) -> agentgraph::node::Node<Words> {
        let effects = self.clone();
        let node = move |ctx: Ctx, words: Snapshot<Words>| {
            let effects = effects.clone();
            async move {
                let read = text(&words);
                let first = effects.read.lock().unwrap().entry(name.into()).or_insert(read.clone()).clone();
                assert_eq!((name, read), (name, first));
                pending_for(polls).await;
                let answer: String = if name == "asks" { ctx.interrupt("?")? } else { String::new() };
                pending_for(polls).await;
                Ok::<_, BoxError>(Words::update().seen([format!("<{name}{answer}>")]))
            }
        };
        node.into_node()
    }
}

type Build = fn(&Effects) -> StateGraph<Words>;

fn branches(effects: &Effects) -> StateGraph<Words> {
    eager()
        .node("slow", effects.reader("slow", 9))
        .node("a", effects.node("a", 1))
        .node("b", effects.node("b", 0))
        .node("c", effects.node("c", 2))
        .node("join", effects.node("join", 1))
        .edge(START, "slow")
        .edge(START, "a")
        .edge("a", "b")
        .edge("b", "c")
        .edge(["slow", "c"], "join")
}

fn groups(effects: &Effects) -> StateGraph<Words> {
    async fn split() -> Command<Words> {
        pending_for(1).await;
        said("<split>").also_goto(vec![
            Dispatch::new("work", 2_u32),
            Dispatch::new("work", 0),
            Dispatch::new("work", 1),
        ])
    }
    let effects_of_work = effects.clone();
    let work = move |Input(n): Input<u32>| {
        let effects = effects_of_work.clone();
        async move {
            pending_for(n).await;
            effects.record(&format!("<work{n}>"));
            Words::update().seen([format!("<work{n}>")])
        }
    };
    eager()
        .node("split", split.targets(["work"]))
        .node("work", work)
        .node("end", effects.node("end", 1))
        .node("late", effects.node("late", 0).defer())
        .edge(START, "split")
        .edge("split", "late")
        .edge(["work"], "end")
}

fn question(effects: &Effects) -> StateGraph<Words> {
    eager()
        .node("asks", effects.reader("asks", 1))
        .node("a", effects.node("a", 2))
        .node("b", effects.node("b", 1))
        .node("after", effects.node("after", 0))
        .edge(START, "asks")
        .edge(START, "a")
        .edge("a", "b")
        .edge("asks", "after")
}

fn handler(effects: &Effects) -> StateGraph<Words> {
    async fn fails() -> Result<()> {
        pending_for(2).await;
        Err("broken".into())
    }
    eager()
        .node("fails", fails.on_error("handles"))
        .node("handles", effects.node("handles", 1))
        .node("a", effects.node("a", 1))
        .node("b", effects.node("b", 1))
        .edge(START, "fails")
        .edge(START, "a")
        .node("c", effects.node("c", 1))
        .edge("a", "b")
        .edge(["handles"], "c")
}

fn nested(effects: &Effects) -> StateGraph<Words> {
    let child = eager()
        .node("c", effects.node("c", 1))
        .node("d", effects.node("d", 3))
        .node("e", effects.node("e", 1))
        .edge(START, "c")
        .edge(START, "d")
        .edge("c", "e");
    eager()
        .node("child", child.compile().unwrap())
        .node("a", effects.node("a", 1))
        .node("b", effects.node("b", 1))
        .edge(START, "child")
        .edge(START, "a")
        .edge("a", "b")
}

/// Returns the call that follows from the stored thread alone, or `None` if its run has finished.
async fn next_call(graph: &CompiledGraph<Words>) -> Option<RunBuilder<Words>> {
    let Some(state) = graph.state("t").await.unwrap() else { return Some(graph.invoke(Words::update())) };
    match state.interrupts.first() {
        Some(_) => Some(graph.resume("yes")),
        None => (!state.next.is_empty()).then(|| graph.proceed()),
    }
}

/// Makes calls until the run has finished, each with a new graph. The call with the number `cut` is dropped
/// after `polls` polls. Returns the words in alphabetical order, and whether the call was dropped.
async fn run_to_end(
    build: Build,
    effects: &Effects,
    durability: Durability,
    cut: usize,
    polls: u32,
) -> (Vec<String>, bool) {
    let mut dropped = false;
    for call in 0..20 {
        let graph =
            build(effects).compile().unwrap().services(Clock::default()).checkpointer(effects.saver.clone());
        let Some(run) = next_call(&graph).await else { break };
        let run = run.thread("t").durability(durability);
        if call == cut {
            dropped = at_most(Box::pin(run.into_future()), polls).await.is_none();
        } else {
            run.await.unwrap();
        }
    }
    let graph = build(effects).compile().unwrap().checkpointer(effects.saver.clone());
    let end = graph.history("t").limit(1).await.unwrap().remove(0);
    assert!(end.next.is_empty(), "the run has not finished");
    let mut seen = end.values.seen;
    seen.sort_unstable();
    (seen, dropped)
}

async fn drop_at_every_poll(build: Build, durability: Durability) {
    let effects = || Effects { seen: Arc::default(), read: Arc::default(), saver: NotingSaver::memory() };
    let (expected, _) = run_to_end(build, &effects(), durability, usize::MAX, 0).await;
    let mut drops = 0;
    for cut in 0.. {
        let mut reached = false;
        for polls in 1.. {
            let effects = effects();
            let (end, dropped) = run_to_end(build, &effects, durability, cut, polls).await;
            assert_eq!(end, expected, "call {cut} dropped after {polls} polls");
            let seen = effects.seen.lock().unwrap();
            for word in seen.iter() {
                assert!(seen.iter().filter(|other| *other == word).count() <= 2, "{word}: {seen:?}");
            }
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
    let least = if durability == Durability::Sync { 8 } else { 3 };
    assert!(drops >= least, "a call was dropped only {drops} times");
}

#[tokio::test]
async fn a_run_that_is_dropped_at_any_poll_can_be_finished() {
    for build in [branches, groups, question, handler, nested] as [Build; 5] {
        drop_at_every_poll(build, Durability::Sync).await;
    }
    // `nested` is left out: a dropped call with `Exit` leaves the thread as it was, so the subgraph runs
    // again.
    for build in [branches, groups, question, handler] as [Build; 4] {
        drop_at_every_poll(build, Durability::Exit).await;
    }
}

#[tokio::test]
async fn sessions_and_spending_are_stored_with_each_task() {
    #[derive(Default, serde::Serialize, serde::Deserialize)]
    struct Cart(Vec<String>);
    let pick = |ctx: Ctx, cart: Session<Cart>| async move {
        cart.with(|cart| cart.0.push("tea".into()));
        ctx.spend("tokens", 3);
    };
    let pay = |ctx: Ctx, cart: Session<Cart>| async move {
        let paid: bool = ctx.interrupt("pay?")?;
        let items = cart.with(|cart| cart.0.join("+"));
        Ok::<_, BoxError>(Words::update().seen([format!("{items} {paid} {}", ctx.spent("tokens"))]))
    };
    let graph = eager().session::<Cart>("cart").node("pick", pick).node("pay", pay);
    let graph = with_saver(graph.edge(START, "pick").edge("pick", "pay").edge(START, "pay"));
    let outcome = start(&graph).await;
    assert_eq!(outcome.interrupts().len(), 2);
    let ids: Vec<_> = outcome.interrupts().iter().map(|open| (open.id.unwrap(), true)).collect();
    let outcome = graph.resume_many(ids).thread("t").await.unwrap();
    assert_eq!((text(outcome.output()).as_str(), outcome.spent("tokens")), ("tea true 3 tea true 3", 3));
}

#[tokio::test(start_paused = true)]
async fn a_join_with_a_timeout_fires_in_time_after_a_stop() {
    let slow = || async { tokio::time::sleep(Duration::from_secs(1000)).await };
    let graph = eager()
        .node("a", says("a"))
        .node("slow", slow)
        .node("answer", says("answer"))
        .edge(START, "a")
        .edge(START, "slow")
        .edge(agentgraph::all(["a", "slow"]).timeout(Duration::from_secs(60)), "answer");
    let graph = with_saver(graph).services(TokioClock::default());
    let limit = Duration::from_secs(1);
    let outcome = graph.invoke(Words::update()).thread("t").deadline(limit).await.unwrap();
    assert!(matches!(outcome, Outcome::Stopped { reason: StopReason::Deadline, .. }), "{outcome:?}");
    assert_eq!(graph.state("t").await.unwrap().unwrap().next, ["slow"]);
    tokio::time::advance(Duration::from_secs(58)).await;
    let outcome = graph.proceed().thread("t").deadline(limit / 2).await.unwrap();
    assert_eq!(text(outcome.output()), "a");
    let outcome = graph.proceed().thread("t").deadline(limit).await.unwrap();
    assert_eq!(text(outcome.output()), "a answer");
}

/// Returns a graph with two parallel nodes, which are pending for `polls`, and a join of both.
fn timed_graph(polls: &Arc<Mutex<[u32; 2]>>) -> StateGraph<Words> {
    let node = |word: &'static str, at: usize| {
        let polls = Arc::clone(polls);
        move || {
            let polls = polls.lock().unwrap()[at];
            async move {
                pending_for(polls).await;
                said(word)
            }
        }
    };
    eager()
        .node("a", node("a", 0).targets([END]))
        .node("b", node("b", 1).targets([END]))
        .node("c", says("c"))
        .node("d", says("d"))
        .edge(START, "a")
        .edge(START, "b")
        .edge("b", "d")
        .edge(["a", "b"], "c")
}

/// Returns the words of a replay, and the expected node of each divergence from the recorded order.
async fn replay(run: RunBuilder<Words>) -> (String, Vec<Option<String>>) {
    use futures_util::StreamExt;
    let mut events = run.stream();
    let mut divergences = Vec::new();
    while let Some(event) = events.next().await {
        match event.kind {
            EventKind::ReplayDiverged { expected } => divergences.push(expected),
            EventKind::Ended(outcome) => return (text(outcome.unwrap().output()), divergences),
            _ => {}
        }
    }
    unreachable!("a stream ends with its outcome")
}

#[tokio::test]
async fn a_replay_merges_in_the_recorded_order_whatever_the_timing() {
    let polls = Arc::new(Mutex::new([1, 9]));
    let graph = with_saver(timed_graph(&polls));
    assert_eq!(text(start(&graph).await.output()), "a b d c");
    *polls.lock().unwrap() = [9, 1];
    let free = graph.invoke(Words::update()).thread("other").await.unwrap();
    assert_eq!(text(free.output()), "b d a c");
    for step in 0..4 {
        let from = agentgraph::CheckpointId::new(0, step);
        let run = graph.proceed().thread("t").from(from).max_concurrency(1 + step as usize);
        assert_eq!(replay(run).await, ("a b d c".to_owned(), Vec::new()), "from {from}");
    }
    // A replay is recorded like any other run, so it can be replayed too.
    *polls.lock().unwrap() = [1, 9];
    let branches = graph.history("t").limit(1).await.unwrap()[0].id.branch;
    let from = agentgraph::CheckpointId::new(branches, 4);
    assert_eq!(replay(graph.proceed().thread("t").from(from)).await, ("a b d c".to_owned(), Vec::new()));
}

#[tokio::test]
async fn a_replay_waits_for_a_detached_task_that_was_merged() {
    let polls = Arc::new(Mutex::new([1, 9]));
    let node = |word: &'static str, at: usize| {
        let polls = Arc::clone(&polls);
        move || {
            let polls = polls.lock().unwrap()[at];
            async move {
                pending_for(polls).await;
                Words::update().seen([word])
            }
        }
    };
    let graph = eager().node("side", node("side", 0).detached()).node("main", node("main", 1));
    let graph = with_saver(
        graph.node("end", says("end")).edge(START, "side").edge(START, "main").edge("main", "end"),
    );
    assert_eq!(text(start(&graph).await.output()), "side main end");
    *polls.lock().unwrap() = [9, 1];
    let from = agentgraph::CheckpointId::new(0, 0);
    let again = replay(graph.proceed().thread("t").from(from)).await;
    assert_eq!(again, ("side main end".to_owned(), Vec::new()));
}

#[tokio::test]
async fn a_call_that_was_stored_at_its_end_can_be_replayed() {
    let polls = Arc::new(Mutex::new([2, 9]));
    let graph = with_saver(timed_graph(&polls).node("asks", asks).edge(START, "asks").edge("asks", "d"));
    let stopped = graph.invoke(Words::update()).thread("t").durability(Durability::Exit).max_supersteps(1);
    assert!(matches!(stopped.await.unwrap(), Outcome::Stopped { .. }));
    let from = graph.state("t").await.unwrap().unwrap().id;
    let outcome = graph.proceed().thread("t").durability(Durability::Exit).await.unwrap();
    assert_eq!(text(outcome.output()), "a b d c");
    *polls.lock().unwrap() = [9, 2];
    assert_eq!(replay(graph.proceed().thread("t").from(from)).await.0, "a b d c");
}

#[tokio::test]
async fn a_replay_that_diverges_reports_it_and_continues_freely() {
    let goes_on = Arc::new(Mutex::new(true));
    let choice = Arc::clone(&goes_on);
    let graph = with_saver(
        eager()
            .node("a", says("a"))
            .node("b", says("b"))
            .node("c", says("c"))
            .edge(START, "a")
            .branch("a", move |_: &Words| if *choice.lock().unwrap() { "b" } else { "c" }, ["b", "c"])
            .edge("b", "c"),
    );
    assert_eq!(text(start(&graph).await.output()), "a b c");
    *goes_on.lock().unwrap() = false;
    let from = agentgraph::CheckpointId::new(0, 0);
    let expected = ("a c".to_owned(), vec![Some("b".to_owned())]);
    assert_eq!(replay(graph.proceed().thread("t").from(from)).await, expected);
}

#[tokio::test]
async fn a_replay_continues_freely_after_the_last_recorded_commit() {
    let polls = Arc::new(Mutex::new([1, 9]));
    let graph = with_saver(timed_graph(&polls));
    let stopped = graph.invoke(Words::update()).thread("t").max_supersteps(2).await.unwrap();
    assert_eq!(text(stopped.output()), "a b");
    *polls.lock().unwrap() = [9, 1];
    graph.update_state("t").update(Words::update().seen(["edited"])).await.unwrap();
    let from = agentgraph::CheckpointId::new(0, 0);
    let again = graph.proceed().thread("t").from(from);
    assert_eq!(replay(again).await, ("a b d c".to_owned(), Vec::new()));
    // After this checkpoint only the edit is recorded, so the timing decides.
    let from = agentgraph::CheckpointId::new(0, 2);
    assert_eq!(replay(graph.proceed().thread("t").from(from)).await.0, "a b d c");
}

#[tokio::test(start_paused = true)]
async fn a_replayed_join_times_out_at_its_recorded_place() {
    let seconds = Arc::new(Mutex::new(100));
    let of_slow = Arc::clone(&seconds);
    let slow = move || {
        let seconds = *of_slow.lock().unwrap();
        async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Words::update().seen(["slow"])
        }
    };
    let graph = eager()
        .node("a", says("a"))
        .node("slow", slow)
        .node("answer", says("answer"))
        .edge(START, "a")
        .edge(START, "slow")
        .edge(agentgraph::all(["a", "slow"]).timeout(Duration::from_secs(60)), "answer");
    let graph = with_saver(graph).services(TokioClock::default());
    assert_eq!(text(start(&graph).await.output()), "a answer slow");
    *seconds.lock().unwrap() = 1;
    let from = agentgraph::CheckpointId::new(0, 0);
    assert_eq!(
        replay(graph.proceed().thread("t").from(from)).await,
        ("a answer slow".to_owned(), Vec::new())
    );
}
