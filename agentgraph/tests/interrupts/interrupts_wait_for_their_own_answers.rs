//! Interrupts: a task that asks waits for its own answer, and no finished task runs again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agentgraph::prelude::*;
use agentgraph::run::InterruptKind;
use agentgraph::{Code, Interrupt, InterruptId};
use serde_json::json;
use tower::retry::{Policy, RetryLayer};
use tower::timeout::TimeoutLayer;

use crate::common::clock::Clock;
use crate::common::words::{Words, WordsUpdate, says, text};

async fn asks(ctx: Ctx) -> Result<WordsUpdate> {
    let answer: String = ctx.interrupt(json!({ "node": ctx.node() }))?;
    Ok(Words::update().seen([format!("{}={answer}", ctx.node())]))
}

async fn asks_twice(ctx: Ctx) -> Result<WordsUpdate> {
    let first: String = ctx.interrupt("first?")?;
    let second: u32 = ctx.interrupt("second?")?;
    Ok(Words::update().seen([format!("{first}/{second}")]))
}

fn with_saver(graph: StateGraph<Words>) -> CompiledGraph<Words> {
    graph.compile().unwrap().checkpointer(MemorySaver::new())
}

fn parallel() -> CompiledGraph<Words> {
    with_saver(
        StateGraph::new()
            .node("a", asks)
            .node("b", asks)
            .node("c", says("c"))
            .edge(START, "a")
            .edge(START, "b")
            .edge(START, "c"),
    )
}

async fn start(graph: &CompiledGraph<Words>) -> Vec<Interrupt> {
    graph.invoke(Words::update()).thread("t").await.unwrap().interrupts().to_vec()
}

fn ids(interrupts: &[Interrupt]) -> Vec<InterruptId> {
    interrupts.iter().filter_map(|interrupt| interrupt.id).collect()
}

#[tokio::test]
async fn a_bare_answer_goes_to_the_only_interrupt_and_its_node_runs_again_from_the_top() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let node = move |ctx: Ctx| {
        counted.fetch_add(1, Ordering::SeqCst);
        asks(ctx)
    };
    let graph =
        with_saver(StateGraph::new().node("a", node).node("b", says("b")).edge(START, "a").edge("a", "b"));
    let open = start(&graph).await;
    assert_eq!(
        (open[0].node.as_str(), open[0].kind, &open[0].value),
        ("a", InterruptKind::Asked, &json!({ "node": "a" }))
    );
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!((state.next, state.interrupts), (vec!["a".to_owned()], open));
    let outcome = graph.resume("yes").thread("t").await.unwrap();
    assert_eq!(text(outcome.output()), "a=yes b");
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn the_nth_call_gets_the_nth_answer_with_its_own_type() {
    let graph = with_saver(StateGraph::new().node("a", asks_twice).edge(START, "a"));
    assert_eq!(start(&graph).await[0].value, "first?");
    let second = graph.resume("one").thread("t").await.unwrap();
    assert_eq!(second.interrupts()[0].value, "second?");
    assert_eq!(text(graph.resume(2).thread("t").await.unwrap().output()), "one/2");
}

#[tokio::test]
async fn interrupt_ids_are_stable_and_round_trip_as_text() {
    let graph = parallel();
    let open = ids(&start(&graph).await);
    let again = ids(&graph.state("t").await.unwrap().unwrap().interrupts);
    assert_eq!(open, again);
    let parsed: InterruptId = open[0].to_string().parse().unwrap();
    assert_eq!(parsed, open[0]);
    let json = serde_json::to_string(&open[0]).unwrap();
    assert_eq!(serde_json::from_str::<InterruptId>(&json).unwrap(), open[0]);
    for wrong in
        ["", "-", "x-0", "0123-1", "0123456789abcdef0123456789abcdef-", "0123456789abcdef0123456789abcdef"]
    {
        assert!(wrong.parse::<InterruptId>().is_err(), "{wrong}");
    }
}

#[tokio::test]
async fn parallel_nodes_are_answered_by_id_in_one_call_in_any_order() {
    let graph = parallel();
    let open = ids(&start(&graph).await);
    let outcome = graph.resume_many([(open[1], "B"), (open[0], "A")]).thread("t").await.unwrap();
    assert_eq!(text(outcome.output()), "a=A b=B c");
}

#[tokio::test]
async fn parallel_nodes_are_answered_one_after_the_other_and_finished_ones_do_not_run_again() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let sibling = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        std::future::ready(Words::update().seen(["c"]))
    };
    let graph = StateGraph::new().node("a", asks).node("b", asks).node("c", sibling);
    let graph = with_saver(graph.edge(START, "a").edge(START, "b").edge(START, "c"));
    let open = start(&graph).await;
    assert_eq!(open.iter().map(|one| one.node.as_str()).collect::<Vec<_>>(), ["a", "b"], "in task order");
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!(
        (text(&state.values).as_str(), state.next.len()),
        ("c", 2),
        "the state shows the update of the finished sibling"
    );
    let second = graph.resume_many([(ids(&open)[1], "B")]).thread("t").await.unwrap();
    assert_eq!(ids(second.interrupts()), [ids(&open)[0]], "the other interrupt keeps its id");
    assert_eq!(text(&graph.state("t").await.unwrap().unwrap().values), "b=B c");
    let outcome = graph.resume("A").thread("t").await.unwrap();
    assert_eq!(text(outcome.output()), "a=A b=B c");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_unanswered_node_does_not_run_again() {
    let begun = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&begun);
    let patient = move |ctx: Ctx| {
        counted.fetch_add(1, Ordering::SeqCst);
        asks(ctx)
    };
    let graph =
        with_saver(StateGraph::new().node("a", asks).node("b", patient).edge(START, "a").edge(START, "b"));
    let open = ids(&start(&graph).await);
    graph.resume_many([(open[0], "A")]).thread("t").await.unwrap();
    for _ in 0..2 {
        assert_eq!(ids(graph.proceed().thread("t").await.unwrap().interrupts()), [open[1]]);
    }
    assert_eq!(begun.load(Ordering::SeqCst), 1);
    graph.resume("B").thread("t").await.unwrap();
    assert_eq!(begun.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn all_interrupts_are_reported_also_if_tasks_run_one_at_a_time() {
    let graph = parallel();
    let outcome = graph.invoke(Words::update()).thread("t").max_concurrency(1).await.unwrap();
    assert_eq!(outcome.interrupts().len(), 2);
}

#[tokio::test]
async fn answers_that_do_not_fit_are_errors_and_change_nothing() {
    let graph = parallel();
    let open = ids(&start(&graph).await);
    let unknown: InterruptId = "0123456789abcdef0123456789abcdef-0".parse().unwrap();
    let error = graph.resume("x").thread("t").await.unwrap_err();
    assert_eq!(error.code(), Code::AmbiguousAnswer);
    assert!(
        error.to_string().contains(&open[0].to_string()) && error.to_string().contains("resume_many"),
        "{error}"
    );
    for answers in [
        vec![(unknown, "x")],
        vec![],
        vec![(open[0], "x"), (open[0], "y")],
        vec![(open[0], "x"), (unknown, "y")],
    ] {
        let error = graph.resume_many(answers).thread("t").await.unwrap_err();
        assert_eq!(error.code(), Code::UnknownInterrupt, "{error}");
    }
    graph.resume_many([(open[0], "A")]).thread("t").await.unwrap();
    let used = graph.resume_many([(open[0], "again")]).thread("t").await.unwrap_err();
    assert_eq!(used.code(), Code::UnknownInterrupt, "{used}");
    let outcome = graph.resume_many([(open[1], "B")]).thread("t").await.unwrap();
    assert_eq!(text(outcome.output()), "a=A b=B c");
    assert_eq!(graph.resume("x").thread("t").await.unwrap_err().code(), Code::NothingToResume);
}

#[tokio::test]
async fn an_answer_of_the_wrong_type_is_refused_and_the_interrupt_stays_open() {
    let graph = with_saver(StateGraph::new().node("a", asks_twice).edge(START, "a"));
    start(&graph).await;
    let second = ids(graph.resume("one").thread("t").await.unwrap().interrupts());
    for _ in 0..2 {
        let error = graph.resume("my \"secret\", expected").thread("t").await.unwrap_err();
        assert_eq!((error.code(), error.node(), error.thread()), (Code::BadAnswer, Some("a"), Some("t")));
        let text = error.to_string();
        assert!(text.contains(&second[0].to_string()), "the error names the interrupt: {text}");
        assert!(
            text.contains("a string, expected") && !text.contains("secret"),
            "the error does not show the answer: {text}"
        );
        assert_eq!(ids(&graph.state("t").await.unwrap().unwrap().interrupts), second);
    }
    assert_eq!(ids(graph.proceed().thread("t").await.unwrap().interrupts()), second, "`proceed` asks again");
    assert_eq!(text(graph.resume(2).thread("t").await.unwrap().output()), "one/2");
}

#[tokio::test]
async fn an_interrupt_carries_the_schema_of_its_answer() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Choice {
        yes: bool,
    }
    async fn chooses(ctx: Ctx) -> Result<WordsUpdate> {
        let choice: Choice = ctx.interrupt_with_schema("go on?")?;
        Ok(Words::update().seen([choice.yes.to_string()]))
    }
    let graph = with_saver(StateGraph::new().node("a", chooses).edge(START, "a"));
    let open = start(&graph).await;
    assert_eq!(open[0].schema.as_ref().unwrap()["properties"]["yes"]["type"], "boolean");
    assert_eq!(graph.state("t").await.unwrap().unwrap().interrupts, open);
    assert_eq!(text(graph.resume(json!({ "yes": true })).thread("t").await.unwrap().output()), "true");
}

#[tokio::test]
async fn a_new_input_during_an_interrupt_is_refused_and_proceed_asks_again() {
    let graph = with_saver(StateGraph::new().node("a", asks).edge(START, "a"));
    let open = ids(&start(&graph).await);
    let error = graph.invoke(Words::update()).thread("t").await.unwrap_err();
    assert_eq!(error.code(), Code::RunUnfinished);
    assert!(error.to_string().contains(&open[0].to_string()), "{error}");
    assert_eq!(ids(graph.proceed().thread("t").await.unwrap().interrupts()), open);
    let fresh = graph.invoke(Words::update()).thread("t").abandon().await.unwrap();
    assert_ne!(ids(fresh.interrupts()), open, "the old answer cannot reach the new run");
    assert_eq!(
        graph.resume_many([(open[0], "old")]).thread("t").await.unwrap_err().code(),
        Code::UnknownInterrupt
    );
}

#[tokio::test]
async fn without_a_checkpointer_the_run_stops_and_cannot_be_resumed() {
    let graph = StateGraph::new().node("a", asks).edge(START, "a").compile().unwrap();
    let outcome = graph.invoke(Words::update()).await.unwrap();
    assert_eq!(outcome.interrupts()[0].value, json!({ "node": "a" }));
    assert_eq!(graph.resume("x").thread("t").await.unwrap_err().code(), Code::NoCheckpointer);
    let error = outcome.into_finished().unwrap_err();
    assert_eq!(error.code(), Code::NotFinished);
    assert!(error.to_string().contains("the run is interrupted at `a`"), "{error}");
}

#[tokio::test]
async fn an_interrupt_in_a_dispatched_task_keeps_its_input_and_order() {
    async fn split() -> Command<Words> {
        Command::new().goto([3, 1, 2].map(|n: u32| Dispatch::new("ask", n)).to_vec())
    }
    async fn ask(ctx: Ctx, Input(n): Input<u32>) -> Result<WordsUpdate> {
        let answer: String = ctx.interrupt(n)?;
        Ok(Words::update().seen([format!("{n}{answer}")]))
    }
    let graph = with_saver(StateGraph::new().node("split", split).node("ask", ask).edge(START, "split"));
    let open = start(&graph).await;
    assert_eq!(open.iter().map(|one| one.value.clone()).collect::<Vec<_>>(), [json!(3), json!(1), json!(2)]);
    let answers = ids(&open).into_iter().zip(["c", "a", "b"]);
    assert_eq!(text(graph.resume_many(answers).thread("t").await.unwrap().output()), "3c 1a 2b");
}

/// A policy that retries every error as often as its counter allows.
#[derive(Clone)]
struct Twice(u32);

impl<Req: Clone, Res, E> Policy<Req, Res, E> for Twice {
    type Future = std::future::Ready<()>;
    fn retry(&mut self, _: &mut Req, result: &mut std::result::Result<Res, E>) -> Option<Self::Future> {
        if result.is_ok() || self.0 == 0 {
            return None;
        }
        self.0 -= 1;
        Some(std::future::ready(()))
    }
    fn clone_request(&mut self, request: &Req) -> Option<Req> {
        Some(request.clone())
    }
}

/// Asserts that the node asks exactly one question, whatever the node and its layers do with the error.
async fn assert_asks_once<M>(node: impl IntoNode<Words, M>) {
    let graph = with_saver(StateGraph::new().node("a", node).edge(START, "a")).services(Clock::default());
    let open = start(&graph).await;
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].value, "?");
    assert_eq!(text(graph.resume("yes").thread("t").await.unwrap().output()), "yes");
}

#[tokio::test]
async fn no_layer_policy_or_careless_node_hides_an_interrupt() {
    let begun = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&begun);
    let node = move |ctx: Ctx| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, agentgraph::BoxError>(Words::update().seen([ctx.interrupt::<String>("?")?])) }
    };
    assert_asks_once(node.clone().layer(RetryLayer::new(Twice(2)))).await;
    assert_asks_once(node.clone().layer(TimeoutLayer::new(Duration::from_secs(9)))).await;
    assert_asks_once(node.clone().retry(RetryPolicy::attempts(3))).await;
    assert_asks_once(
        node.clone()
            .layer(RetryLayer::new(Twice(2)))
            .retry(RetryPolicy::attempts(3))
            .timeout(Duration::from_secs(9)),
    )
    .await;
    assert_eq!(begun.load(Ordering::SeqCst), 8, "two executions each: no retry while the interrupt is open");
    assert_asks_once(|ctx: Ctx| async move {
        let answer: String = ctx.interrupt("?").map_err(|_| "something else")?;
        Ok::<_, agentgraph::BoxError>(Words::update().seen([answer]))
    })
    .await;
    assert_asks_once(|ctx: Ctx| async move { Words::update().seen(ctx.interrupt::<String>("?").ok()) }).await;
    assert_asks_once(|ctx: Ctx| async move {
        let answer = ctx.interrupt::<String>("?");
        assert!(answer.is_ok(), "a careless node panics");
        Words::update().seen(answer.ok())
    })
    .await;
}

/// Builds a loop of `a` and `b` that ends after four words.
fn loops() -> StateGraph<Words> {
    let more = |words: &Words| if words.seen.len() < 4 { "a" } else { END };
    let graph = StateGraph::new().node("a", says("a")).node("b", says("b")).edge(START, "a").edge("a", "b");
    graph.branch("b", more, ["a", END])
}

/// Runs the graph and returns each stop: the words so far, and the kind and node of each interrupt.
async fn stops(graph: StateGraph<Words>, limit: u64) -> Vec<String> {
    let graph = with_saver(graph);
    let mut outcome = graph.invoke(Words::update()).thread("t").max_supersteps(limit).await.unwrap();
    let mut stops = Vec::new();
    loop {
        let at: Vec<String> =
            outcome.interrupts().iter().map(|stop| format!("{:?} {}", stop.kind, stop.node)).collect();
        match &outcome {
            Outcome::Finished { output, .. } => {
                stops.push(format!("{} | end", text(output)));
                return stops;
            }
            other => stops.push(format!("{} | {}", text(other.output()), at.join(", "))),
        }
        assert!(stops.len() < 20);
        outcome = graph.proceed().thread("t").max_supersteps(limit).await.unwrap();
    }
}

#[tokio::test]
async fn an_interrupt_before_a_node_stops_once_per_visit() {
    let expected = ["a | Before b", "a b a | Before b", "a b a b | end"];
    assert_eq!(stops(loops().interrupt_before(["b"]), 100).await, expected);
}

#[tokio::test]
async fn an_interrupt_after_a_node_stops_once_per_visit_and_not_at_the_end() {
    let expected = ["a | After a", "a b a | After a", "a b a b | end"];
    assert_eq!(stops(loops().interrupt_after(["a"]), 100).await, expected);
    assert_eq!(stops(loops().interrupt_after(["b"]), 100).await, ["a b | After b", "a b a b | end"]);
}

#[tokio::test]
async fn a_superstep_limit_does_not_bypass_an_interrupt_before_a_node() {
    let expected = ["a | Before b", "a b | ", "a b a | Before b", "a b a b | end"];
    assert_eq!(stops(loops().interrupt_before(["b"]), 1).await, expected);
}

#[tokio::test]
async fn a_static_interrupt_takes_no_answer() {
    let graph = with_saver(loops().interrupt_before(["a"]));
    let open = start(&graph).await;
    assert_eq!((open[0].id, open[0].kind), (None, InterruptKind::Before));
    let error = graph.resume("yes").thread("t").await.unwrap_err();
    assert_eq!(error.code(), Code::NothingToResume);
    assert!(error.to_string().contains("`proceed()`"), "{error}");
}
