//! The stream of a call that continues a run begins with the state and the checkpoint that it starts from.

use agentgraph::prelude::*;
use agentgraph::{BoxError, DependencyGraph, Event, RunBuilder};
use futures_util::StreamExt;

use crate::common::words::{Words, WordsUpdate, says, text};

const BOTH: [View; 2] = [View::Values, View::Checkpoints];

async fn asks(ctx: Ctx) -> Result<WordsUpdate> {
    let answer: String = ctx.interrupt("?")?;
    Ok(Words::update().seen([answer]))
}

fn word<S: State>(event: &Event<S>, values: impl Fn(&S) -> String) -> String {
    let at = format!("{}{}", if event.namespace.is_empty() { "" } else { "in " }, event.step);
    match &event.kind {
        EventKind::Values(state) => format!("{at}({})", values(&**state)),
        EventKind::ValuesInside(state) => format!("{at}({})", state["seen"]),
        EventKind::Checkpoint { id, source, next } => format!("{at}@{id} {source:?} [{}]", next.join(" ")),
        EventKind::Ended(outcome) => outcome.as_ref().map_or_else(|e| e.code().to_string(), |_| "end".into()),
        _ => panic!("an event of another view"),
    }
}

async fn heard(run: RunBuilder<Words>) -> Vec<String> {
    let events = run.thread("t").views(BOTH).stream();
    let events: Vec<_> = events.map(|event| (event.seq, word(&event, text))).collect().await;
    assert!((0..).zip(&events).all(|(at, (seq, _))| at == *seq), "{events:?}");
    events.into_iter().map(|(_, word)| word).collect()
}

fn graph(eager: bool) -> CompiledGraph<Words> {
    let graph = StateGraph::new().node("a", says("a")).node("ask", asks).edge(START, "a").edge("a", "ask");
    let graph = if eager { graph.eager() } else { graph };
    graph.compile().unwrap().checkpointer(MemorySaver::new())
}

#[tokio::test]
async fn an_answer_and_a_continuation() {
    for eager in [false, true] {
        let graph = graph(eager);
        graph.invoke(Words::update()).thread("t").await.unwrap();
        let start = ["0(a)", "0@0.1 Loop [ask]"];
        assert_eq!(heard(graph.proceed()).await, [&start[..], &["end"]].concat());
        let last = ["1(a yes)", "1@0.2 Loop []", "end"];
        assert_eq!(heard(graph.resume("yes")).await, [&start[..], &last].concat());
        assert_eq!(heard(graph.resume("yes")).await, ["E_NOTHING_TO_RESUME"]);
    }
}

#[tokio::test]
async fn a_refused_answer_shows_nothing() {
    let graph = graph(false);
    graph.invoke(Words::update()).thread("t").await.unwrap();
    let known = graph.state("t").await.unwrap().unwrap().interrupts[0].id.unwrap().to_string();
    let unknown: agentgraph::InterruptId = known.replace("-0", "-7").parse().unwrap();
    assert_eq!(heard(graph.resume_many([(unknown, "yes")])).await, ["E_UNKNOWN_INTERRUPT"]);
}

#[tokio::test]
async fn an_older_checkpoint_is_followed_by_that_of_its_branch() {
    let graph = graph(false);
    graph.invoke(Words::update()).thread("t").await.unwrap();
    graph.resume("yes").thread("t").await.unwrap();
    let first = graph.history("t").await.unwrap().last().unwrap().id;
    let heard = heard(graph.proceed().from(first)).await;
    assert_eq!(heard[..3], ["0()", "0@1.1 Fork [a]", "1(a)"]);
}

#[tokio::test]
async fn a_new_run_begins_with_its_input() {
    let graph = graph(false);
    assert_eq!(heard(graph.invoke(Words::update())).await[..2], ["0()", "0@0.0 Input [a]"]);
    let again = graph.invoke(Words::update().seen(["i"])).abandon();
    assert_eq!(heard(again).await[..2], ["0(a i)", "0@0.2 Input [a]"]);
}

#[tokio::test]
async fn a_subgraph_that_goes_on_begins_with_its_own() {
    let sub = StateGraph::new().node("a", says("a")).node("ask", asks).edge(START, "a").edge("a", "ask");
    let graph = StateGraph::new().node("sub", sub.compile().unwrap()).edge(START, "sub").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    graph.invoke(Words::update()).thread("t").await.unwrap();
    let heard = heard(graph.resume("yes").subgraphs()).await;
    assert_eq!(heard[..4], ["0()", "0@0.0 Input [sub]", "in 0([\"a\"])", "in 0@0.1 Loop [ask]"]);
}

#[tokio::test]
async fn a_pass_begins_with_the_outputs_of_its_finished_nodes() {
    let graph = DependencyGraph::<String>::new()
        .node("a", || "A".to_owned())
        .node("ask", async |ctx: Ctx| Ok::<_, BoxError>(ctx.interrupt::<String>("?")?))
        .edge("a", "ask")
        .compile()
        .unwrap()
        .checkpointer(MemorySaver::new());
    graph.invoke(()).thread("t").await.unwrap();
    let outputs = |outputs: &agentgraph::dependency::Outputs<String>| {
        outputs.iter().map(|(node, output)| format!("{node}={output}")).collect::<Vec<_>>().join(" ")
    };
    let events = graph.resume("yes").thread("t").views(BOTH).stream();
    let heard: Vec<String> = events.map(|event| word(&event, outputs)).collect().await;
    assert_eq!(heard[..3], ["0(a=A)", "0@0.0 Input [a]", "1(a=A ask=yes)"]);
}
