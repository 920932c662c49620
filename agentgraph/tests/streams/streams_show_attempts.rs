//! A retried node reports each failed attempt, the wait for the next one, and its start; every event of a
//! task has the number of its attempt.

use std::sync::Arc;
use std::time::Duration;

use agentgraph::host::{Host, TaskCall, TaskReply};
use agentgraph::prelude::*;
use agentgraph::run::TaskEnd;
use agentgraph::{BoxError, Code, Event, RetryPolicy, RunBuilder, View};
use futures_util::StreamExt;

use crate::common::clock::{Clock, TokioClock};
use crate::common::poll::poll_once;
use crate::common::words::{Words, WordsUpdate, says};

/// Emits its attempt, and succeeds with the third.
async fn flaky(ctx: Ctx) -> Result<WordsUpdate> {
    ctx.emit(ctx.attempt()).await;
    ctx.message(ctx.attempt());
    match ctx.attempt() {
        1 => Err("not yet".into()),
        2 => Err(BoxError::from(std::io::Error::other("the line is dead"))),
        _ => Ok(Words::update().seen(["at last"])),
    }
}

async fn fails() -> Result<WordsUpdate> {
    Err("no".into())
}

/// Doubles its wait from one second on; the clock's random number takes nothing off.
fn retried(attempts: u32) -> RetryPolicy {
    RetryPolicy::attempts(attempts).initial(Duration::from_secs(1))
}

/// An event as `attempt` and what happened.
fn word<S: State>(event: &Event<S>) -> String {
    let attempt = event.task.map_or_else(|| "-".to_owned(), |task| task.attempt.to_string());
    let node = event.node().unwrap_or_default();
    let what = match &event.kind {
        EventKind::TaskStarted { .. } => format!("+{node}"),
        EventKind::TaskEnded { end: TaskEnd::Done, .. } => format!("-{node}"),
        EventKind::TaskEnded { end, .. } => format!("-{node} {end:?}"),
        EventKind::AttemptStarted { .. } => format!("again {node}"),
        EventKind::AttemptFailed { code, message, next_in, .. } => match next_in {
            Some(wait) => format!("{node} {code} {message}, next in {wait:?}"),
            None => format!("{node} {code} {message}, the last"),
        },
        EventKind::Custom { value, .. } => format!("custom {value}"),
        EventKind::Message { piece, .. } => format!("message {piece}"),
        EventKind::Update { .. } | EventKind::UpdateInside { .. } => format!("update {node}"),
        EventKind::Ended(outcome) => outcome.as_ref().map_or("failed", Outcome::status).to_owned(),
        other => other.type_name().to_owned(),
    };
    let inside = if event.namespace.is_empty() { "" } else { "> " };
    format!("{inside}{attempt} {what}")
}

async fn words<S: State>(run: RunBuilder<S>) -> Vec<String> {
    run.stream().map(|event| word(&event)).collect().await
}

fn graph(of: StateGraph<Words>) -> CompiledGraph<Words> {
    of.compile().unwrap().services(Clock::default()).checkpointer(MemorySaver::new())
}

const FLAKY: [&str; 7] = [
    "1 +flaky",
    "1 flaky E_NODE_FAILED not yet, next in 1s",
    "2 again flaky",
    "2 flaky E_NODE_FAILED the line is dead, next in 2s",
    "3 again flaky",
    "3 -flaky",
    "- finished",
];

#[tokio::test]
async fn each_attempt_in_every_discipline() {
    let flaky_graph = || StateGraph::new().node("flaky", flaky.retry(retried(5))).edge(START, "flaky");
    for of in [flaky_graph(), flaky_graph().eager()] {
        let run = graph(of).invoke(Words::update()).thread("t").views([View::Tasks]);
        assert_eq!(words(run).await, FLAKY);
    }
    async fn in_a_pass(ctx: Ctx) -> Result<String> {
        flaky(ctx).await.map(|_| "done".to_owned())
    }
    let node = DependencyNode::of(in_a_pass).retry(retried(5));
    let pass = DependencyGraph::<String>::new().node("flaky", node).compile().unwrap();
    let pass = pass.services(Clock::default());
    assert_eq!(words(pass.invoke(()).views([View::Tasks])).await, FLAKY);
    let kept = pass.checkpointer(MemorySaver::new());
    assert_eq!(words(kept.invoke(()).thread("t").views([View::Tasks])).await, FLAKY);
}

#[tokio::test]
async fn beside_what_the_node_emits_and_the_checkpoints() {
    let of = StateGraph::new().node("flaky", flaky.retry(retried(3))).edge(START, "flaky");
    let run = graph(of).invoke(Words::update()).thread("t");
    let all = run.views([View::Debug, View::Updates, View::Custom, View::Messages]);
    assert_eq!(
        words(all).await,
        [
            "- checkpoint",
            "1 +flaky",
            "1 custom 1",
            "1 message 1",
            "1 flaky E_NODE_FAILED not yet, next in 1s",
            "2 again flaky",
            "2 custom 2",
            "2 message 2",
            "2 flaky E_NODE_FAILED the line is dead, next in 2s",
            "3 again flaky",
            "3 custom 3",
            "3 message 3",
            "3 update flaky",
            "3 -flaky",
            "- checkpoint",
            "- finished",
        ]
    );
}

#[tokio::test]
async fn an_update_has_its_attempt_in_a_stream_of_updates_alone() {
    for of in [StateGraph::new(), StateGraph::new().eager()] {
        let of = of.node("flaky", flaky.retry(retried(3))).node("next", says("next")).edge(START, "flaky");
        let run = graph(of.edge("flaky", "next")).invoke(Words::update()).thread("t").views([View::Updates]);
        assert_eq!(words(run).await, ["3 update flaky", "1 update next", "- finished"]);
    }
}

#[tokio::test]
async fn the_last_failure_waits_for_nothing_and_a_handler_counts_from_one() {
    for (of, handled) in
        [(StateGraph::new(), false), (StateGraph::new(), true), (StateGraph::new().eager(), true)]
    {
        let node = fails.retry(retried(2));
        let of = match handled {
            true => of.node("a", node.on_error("h")).node("h", flaky.retry(retried(3))),
            false => of.node("a", node),
        };
        let run = graph(of.edge(START, "a")).invoke(Words::update()).thread("t").views([View::Tasks]);
        let start = [
            "1 +a",
            "1 a E_NODE_FAILED no, next in 1s",
            "2 again a",
            "2 a E_NODE_FAILED no, the last",
            "2 -a Failed(NodeFailed, \"no\")",
        ];
        let end: Vec<_> = match handled {
            true => FLAKY.iter().map(|line| line.replace("flaky", "h")).collect(),
            false => vec!["- failed".to_owned()],
        };
        let expected: Vec<_> = start.into_iter().map(str::to_owned).chain(end).collect();
        assert_eq!(words(run).await, expected);
    }
}

#[tokio::test]
async fn one_attempt_is_no_retry_and_a_question_is_no_failure() {
    let asks = |ctx: Ctx| async move {
        let word: String = ctx.interrupt("which?")?;
        Ok::<_, BoxError>(Words::update().seen([word]))
    };
    let of = StateGraph::new().node("a", fails).node("asks", asks.retry(retried(3)));
    let of = of.edge(START, "asks").edge("asks", "a");
    let graph = graph(of);
    let asked = graph.invoke(Words::update()).thread("t").views([View::Tasks]);
    assert_eq!(words(asked).await, ["1 +asks", "1 -asks Interrupted", "- interrupted"]);
    let answered = graph.resume("x").thread("t").views([View::Tasks]);
    assert_eq!(
        words(answered).await,
        ["1 +asks", "1 -asks", "1 +a", "1 -a Failed(NodeFailed, \"no\")", "- failed"]
    );
}

#[tokio::test]
async fn of_subgraphs_if_the_stream_includes_them() {
    let child = StateGraph::new().node("flaky", flaky.retry(retried(3))).edge(START, "flaky");
    let of = StateGraph::new().node("sub", child.compile().unwrap().services(Clock::default()));
    let graph = graph(of.edge(START, "sub"));
    let run = |thread| graph.invoke(Words::update()).thread(thread).views([View::Tasks]);
    assert_eq!(words(run("1")).await, ["1 +sub", "1 -sub", "- finished"]);
    let inside = FLAKY[..6].iter().map(|line| format!("> {line}"));
    let expected: Vec<_> = ["1 +sub".to_owned()].into_iter().chain(inside).collect();
    assert_eq!(words(run("2").subgraphs()).await[..7], expected);
}

/// Sends its tasks through JSON to the same graph.
struct Elsewhere(CompiledGraph<Words>);

#[async_trait::async_trait]
impl Host for Elsewhere {
    async fn run(&self, call: TaskCall) -> Result<TaskReply, BoxError> {
        let call = serde_json::from_slice(&serde_json::to_vec(&call)?)?;
        let reply = self.0.run_task(call).await?;
        Ok(serde_json::from_slice(&serde_json::to_vec(&reply)?)?)
    }
}

/// A call of a host is one attempt, and the run waits between them.
#[tokio::test]
async fn of_a_task_on_a_host_as_of_a_local_one() {
    let of = || {
        let of = StateGraph::new().node("flaky", flaky.retry(retried(3))).node("a", fails.retry(retried(2)));
        of.edge(START, "flaky").edge("flaky", "a").compile().unwrap().services(Clock::default())
    };
    let graph = of().host(Elsewhere(of()));
    let of_a = ["1 +a", "1 a E_NODE_FAILED no, next in 1s", "2 again a", "2 a E_NODE_FAILED no, the last"];
    let last = ["2 -a Failed(NodeFailed, \"no\")", "- failed"];
    let expected = [&FLAKY[..6], &of_a, &last].concat();
    assert_eq!(words(graph.invoke(Words::update()).views([View::Tasks])).await, expected);
    assert_eq!(words(of().invoke(Words::update()).views([View::Tasks])).await, expected);
    let error = graph.invoke(Words::update()).await.unwrap_err();
    assert_eq!((error.failures()[0].attempt(), error.failures()[0].code()), (2, Code::NodeFailed));
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_seen_when_it_begins_and_a_run_that_is_dropped_in_it_starts_again_from_one() {
    let saver = Arc::new(MemorySaver::new());
    let of = StateGraph::new().node("flaky", flaky.retry(retried(3))).edge(START, "flaky");
    let graph = of.compile().unwrap().services(TokioClock::default()).checkpointer(Arc::clone(&saver));
    let run = |run: RunBuilder<Words>| run.thread("t").views([View::Tasks]).stream();

    let mut events = run(graph.invoke(Words::update()));
    let mut seen = Vec::new();
    {
        let mut reads = Box::pin(async {
            while let Some(event) = events.next().await {
                seen.push((event.seq, event.step));
                if matches!(event.kind, EventKind::AttemptFailed { next_in: Some(_), .. }) {
                    break;
                }
            }
        });
        assert!(poll_once(&mut reads).is_ready(), "the wait has only begun");
    }
    assert_eq!(seen, [(0, 1), (1, 1)]);
    drop(events);

    let again: Vec<_> = run(graph.proceed()).map(|event| word(&event)).collect().await;
    assert_eq!(again.len(), FLAKY.len());
    assert_eq!(
        (again[0].as_str(), again[2].as_str(), again[5].as_str()),
        ("1 +flaky", "2 again flaky", "3 -flaky")
    );
}
