//! The views of tasks, checkpoints and debugging: when tasks start, how they end, and what is committed.

use std::collections::HashSet;

use agentgraph::checkpoint::Source;
use agentgraph::prelude::*;
use agentgraph::run::{TaskEnd, TaskRef};
use agentgraph::{Event, RunBuilder};
use futures_util::StreamExt;
use serde_json::json;

use crate::common::clock::Clock;
use crate::common::poll::pending_for;
use crate::common::words::{Words, WordsUpdate, says};

async fn all(run: RunBuilder<Words>) -> Vec<Event<Words>> {
    run.stream().collect().await
}

/// Returns an event as a short text.
fn word(event: &Event<Words>) -> String {
    let step = event.step;
    match &event.kind {
        EventKind::TaskStarted { node, input: None } => format!("{step}+{node}"),
        EventKind::TaskStarted { node, input: Some(input) } => format!("{step}+{node}({input})"),
        EventKind::AttemptStarted { node } => format!("{step}^{node}"),
        EventKind::AttemptFailed { node, .. } => format!("{step}~{node}"),
        EventKind::TaskEnded { node, end: TaskEnd::Done } => format!("{step}-{node}"),
        EventKind::TaskEnded { node, end: TaskEnd::Failed(code, _) } => format!("{step}!{node}:{code}"),
        EventKind::TaskEnded { node, end } => format!("{step}?{node}:{end:?}"),
        EventKind::Checkpoint { id, source, next } => format!("{step}@{id}:{source:?}:{}", next.join(",")),
        EventKind::Update { node, .. } => format!("{step}u{node}"),
        EventKind::Values(_) => format!("{step}v"),
        EventKind::Ended(_) => "end".into(),
        other => format!("{other:?}"),
    }
}

async fn words(run: RunBuilder<Words>) -> String {
    all(run).await.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn a_to_b() -> CompiledGraph<Words> {
    let graph = StateGraph::new().node("a", says("a")).node("b", says("b")).edge(START, "a").edge("a", "b");
    graph.compile().unwrap()
}

#[tokio::test]
async fn tasks_begin_and_end_and_checkpoints_follow_their_superstep() {
    let graph = a_to_b().checkpointer(MemorySaver::new());
    let run = |thread| graph.invoke(Words::update()).thread(thread);
    assert_eq!(words(run("1").views([View::Tasks])).await, "1+a 1-a 2+b 2-b end");
    assert_eq!(
        words(run("2").views([View::Checkpoints])).await,
        "0@0.0:Input:a 1@0.1:Loop:b 2@0.2:Loop: end"
    );
    assert_eq!(
        words(run("3").views([View::Debug])).await,
        "0@0.0:Input:a 1+a 1-a 1@0.1:Loop:b 2+b 2-b 2@0.2:Loop: end"
    );
    assert_eq!(
        words(run("4").views([View::Values, View::Updates, View::Tasks, View::Checkpoints])).await,
        "0v 0@0.0:Input:a 1+a 1ua 1-a 1v 1@0.1:Loop:b 2+b 2ub 2-b 2v 2@0.2:Loop: end"
    );
    assert_eq!(words(a_to_b().invoke(Words::update()).views([View::Debug])).await, "1+a 1-a 2+b 2-b end");
}

#[tokio::test]
async fn the_stream_shows_failed_and_waiting_tasks() {
    async fn fails() -> Result<WordsUpdate> {
        Err("no".into())
    }
    async fn asks(ctx: Ctx) -> Result<WordsUpdate> {
        let answer: String = ctx.interrupt("?")?;
        Ok(Words::update().seen([answer]))
    }
    let graph = |node: agentgraph::node::Node<Words>| {
        let graph = StateGraph::new().node("a", node).edge(START, "a").compile().unwrap();
        graph.checkpointer(MemorySaver::new()).services(Clock::default())
    };
    let tasks = |run: RunBuilder<Words>| words(run.thread("t").views([View::Tasks]));
    let failing = graph(fails.retry(RetryPolicy::attempts(3)));
    assert_eq!(tasks(failing.invoke(Words::update())).await, "1+a 1~a 1^a 1~a 1^a 1~a 1!a:E_NODE_FAILED end");
    let asking = graph(asks.into_node());
    assert_eq!(tasks(asking.invoke(Words::update())).await, "1+a 1?a:Interrupted end");
    assert_eq!(tasks(asking.resume(1)).await, "1+a 1!a:E_BAD_ANSWER end");
    assert_eq!(tasks(asking.resume("yes")).await, "1+a 1-a end");
}

#[tokio::test]
async fn an_error_handler_is_a_task_of_its_own_that_starts_after_the_failed_one() {
    async fn fails() -> Result<WordsUpdate> {
        pending_for(1).await;
        Err("no".into())
    }
    let graph = StateGraph::new().node("a", fails.on_error("h")).node("b", says("b")).node("h", says("h"));
    let graph = graph.edge(START, "a").edge(START, "b").compile().unwrap();
    let events = all(graph.invoke(Words::update()).views([View::Tasks])).await;
    let seen: Vec<String> = events.iter().map(word).collect();
    assert_eq!(seen, ["1+a", "1+b", "1-b", "1!a:E_NODE_FAILED", "1+h", "1-h", "end"]);
    let of = |at: usize| events[at].task.unwrap();
    assert_eq!((of(0), of(4).index), (of(3), of(0).index));
    assert_ne!(of(0).id, of(4).id);
    assert_eq!(of(4), of(5));
}

#[tokio::test]
async fn events_name_their_task_and_its_attempt() {
    async fn flaky(ctx: Ctx) -> Result<WordsUpdate> {
        ctx.emit(ctx.attempt()).await;
        if ctx.attempt() < 3 { Err("no".into()) } else { Ok(Words::update()) }
    }
    let graph = StateGraph::new().node("a", says("a")).node("b", flaky.retry(RetryPolicy::attempts(3)));
    let graph = graph.edge(START, "a").edge(START, "b").compile().unwrap().services(Clock::default());
    let events = all(graph.invoke(Words::update()).views([View::Custom, View::Updates, View::Values])).await;
    let attempts: Vec<_> =
        events.iter().filter(|event| matches!(event.kind, EventKind::Custom { .. })).collect();
    assert_eq!(attempts.iter().map(|event| event.task.unwrap().attempt).collect::<Vec<_>>(), [1, 2, 3]);
    let ids: HashSet<_> =
        attempts.iter().map(|event| (event.task.unwrap().id, event.task.unwrap().index)).collect();
    assert_eq!((ids.len(), attempts[0].task.unwrap().index), (1, 1));
    for event in &events {
        let belongs = matches!(event.kind, EventKind::Custom { .. } | EventKind::Update { .. });
        assert_eq!(event.task.is_some(), belongs, "{event:?}");
    }
}

#[tokio::test]
async fn dispatches_show_their_inputs_and_have_different_ids() {
    async fn send() -> Command<Words> {
        Command::to(vec![Dispatch::new("work", 1), Dispatch::new("work", "two")])
    }
    async fn work(ctx: Ctx) -> WordsUpdate {
        pending_for(1).await;
        Words::update().seen([ctx.node()])
    }
    let graph =
        StateGraph::new().node("send", send).node("work", work).edge(START, "send").compile().unwrap();
    let events = all(graph.invoke(Words::update()).views([View::Tasks])).await;
    let inputs: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::TaskStarted { input, .. } if event.step == 2 => {
                Some((event.task.unwrap(), input.clone()))
            }
            _ => None,
        })
        .collect();
    let values: Vec<_> = inputs.iter().map(|(_, input)| input.clone().unwrap()).collect();
    assert_eq!(values, [json!(1), json!("two")]);
    assert_ne!(inputs[0].0.id, inputs[1].0.id);
    assert_eq!((inputs[0].0.index, inputs[1].0.index), (0, 1));
}

#[tokio::test]
async fn a_task_has_the_id_of_its_interrupt_and_keeps_it_when_it_is_resumed() {
    async fn asks(ctx: Ctx) -> Result<WordsUpdate> {
        let answer: String = ctx.interrupt("?")?;
        Ok(Words::update().seen([answer]))
    }
    let graph = StateGraph::new().node("a", asks).edge(START, "a").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    let started = |events: &[Event<Words>]| -> TaskRef { events[0].task.unwrap() };
    let first = all(graph.invoke(Words::update()).thread("t").views([View::Tasks])).await;
    let interrupt = graph.state("t").await.unwrap().unwrap().interrupts[0].id.unwrap();
    assert!(interrupt.to_string().starts_with(&started(&first).id.to_string()));
    let second = all(graph.resume("yes").thread("t").views([View::Tasks])).await;
    assert_eq!(started(&first).id, started(&second).id);
}

#[tokio::test]
async fn exit_shows_its_only_checkpoint_and_each_checkpoint_shows_its_source() {
    let graph = a_to_b().checkpointer(MemorySaver::new());
    let run = graph.invoke(Words::update()).thread("t").durability(agentgraph::Durability::Exit);
    assert_eq!(words(run.views([View::Checkpoints])).await, "2@0.0:Loop: end");
    let run = graph.invoke(Words::update()).thread("u").views([View::Checkpoints]);
    let sources: Vec<Source> = all(run)
        .await
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::Checkpoint { source, .. } => Some(source),
            _ => None,
        })
        .collect();
    assert_eq!(sources, [Source::Input, Source::Loop, Source::Loop]);
}
