//! The stream of a run includes events of its subgraphs: emitted values and messages under the node of
//! the subgraph, or, on request, every event with its namespace.

use agentgraph::{Event, prelude::*};
use futures_util::StreamExt;

use crate::common::words::{Words, WordsUpdate, on, says};

async fn talks(ctx: Ctx) -> WordsUpdate {
    assert!(ctx.has_listener());
    ctx.emit("emitted").await;
    Ctx::of_messages().expect("messages have a listener").message("a model says");
    ctx.message("said");
    Words::update().seen(["talks"])
}

/// Returns a graph with `talks` nested in this many subgraphs.
fn nested(levels: u32) -> CompiledGraph<Words> {
    let graph = StateGraph::new().node("before", says("before"));
    let graph = match levels {
        0 => graph.node("inner", talks),
        _ => graph.node("inner", nested(levels - 1)),
    };
    graph.edge(START, "before").edge("before", "inner").compile().unwrap()
}

#[tokio::test]
async fn emitted_values_and_messages_of_any_depth_are_streamed() {
    for levels in 0..=2 {
        let graph = StateGraph::new().node("sub", nested(levels)).edge(START, "sub").compile().unwrap();
        for (thread, graph) in [(None, graph.clone()), (Some("t"), graph.checkpointer(MemorySaver::new()))] {
            let run = on(thread, graph.invoke(Words::update())).views([View::Custom, View::Messages]);
            let events: Vec<_> = run.stream().collect().await;
            let heard: Vec<_> = events
                .iter()
                .map(|event| match &event.kind {
                    EventKind::Custom { node, value } => format!("{}:{node}:{value}", event.step),
                    EventKind::Message { node, piece } => format!("{}:{node}:{piece}", event.step),
                    EventKind::Ended(Ok(_)) => "end".into(),
                    other => format!("{other:?}"),
                })
                .collect();
            assert_eq!(
                heard,
                ["1:sub:\"emitted\"", "1:sub:\"a model says\"", "1:sub:\"said\"", "end"],
                "{levels}"
            );
            assert!(events[0].task.is_some() && events[0].task == events[2].task);
        }
    }
}

/// Returns the namespace of an event without task ids.
fn path_of(event: &Event<Words>) -> String {
    let parts = event.namespace.split('|').map(|part| part.split(':').next().unwrap());
    parts.collect::<Vec<_>>().join("/")
}

fn describe(event: &Event<Words>) -> String {
    let what = match &event.kind {
        EventKind::Values(state) => format!("values {}", state.seen.len()),
        EventKind::Update { node, .. } => format!("update {node}"),
        EventKind::ValuesInside(values) => format!("values {}", values["seen"]),
        EventKind::UpdateInside { node, update } => {
            format!(
                "update {node} {}",
                update.as_ref().map_or("-".into(), |update| update["seen"].to_string())
            )
        }
        EventKind::TaskStarted { node, .. } => format!("start {node}"),
        EventKind::TaskEnded { node, end } => format!("end {node} {end:?}"),
        EventKind::Checkpoint { next, .. } => format!("checkpoint {}", next.join("+")),
        EventKind::Custom { node, value } => format!("custom {node} {value}"),
        EventKind::Message { node, piece } => format!("message {node} {piece}"),
        EventKind::Ended(outcome) => format!("over {}", outcome.is_ok()),
        other => format!("{other:?}"),
    };
    format!("[{}]{} {what}", path_of(event), event.step)
}

const ALL: [View; 6] =
    [View::Values, View::Updates, View::Custom, View::Tasks, View::Checkpoints, View::Messages];

#[tokio::test]
async fn every_view_shows_events_of_subgraphs_with_their_namespace_on_request() {
    let graph = StateGraph::new().node("sub", nested(0)).edge(START, "sub").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    let run = graph.invoke(Words::update()).thread("t").views(ALL).subgraphs();
    let events: Vec<_> = run.stream().collect().await;
    let heard: Vec<_> = events.iter().map(describe).collect();
    let expected = [
        "[]0 values 0",
        "[]0 checkpoint sub",
        "[]1 start sub",
        "[sub]0 values []",
        "[sub]0 checkpoint before",
        "[sub]1 start before",
        "[sub]1 update before [\"before\"]",
        "[sub]1 end before Done",
        "[sub]1 values [\"before\"]",
        "[sub]1 checkpoint inner",
        "[sub]2 start inner",
        "[sub]2 custom inner \"emitted\"",
        "[sub]2 message inner \"a model says\"",
        "[sub]2 message inner \"said\"",
        "[sub]2 update inner [\"talks\"]",
        "[sub]2 end inner Done",
        "[sub]2 values [\"before\",\"talks\"]",
        "[sub]2 checkpoint ",
        "[]1 update sub",
        "[]1 end sub Done",
        "[]1 values 2",
        "[]1 checkpoint ",
        "[]1 over true",
    ];
    assert_eq!(heard, expected);
    assert!(
        events.iter().enumerate().all(|(at, event)| event.seq == at as u64),
        "events are numbered in one order without gaps"
    );
    let run = events[0].run;
    let sub = &events[2];
    assert!(events.iter().all(|event| event.run == run));
    let inside: Vec<_> = events.iter().filter(|event| !event.namespace.is_empty()).collect();
    let task = sub.task.unwrap().id.to_string();
    assert!(
        inside.iter().all(|event| event.namespace.contains(&task)),
        "the namespace names the task around it"
    );
    let inner = &events[10];
    assert!(
        inner.task.is_some_and(|task| Some(task.id) != sub.task.map(|task| task.id)),
        "the inner task has an id of its own"
    );
}

#[tokio::test]
async fn events_of_parallel_and_nested_subgraphs_carry_their_namespace() {
    let graph = StateGraph::new().node("left", nested(2)).node("right", nested(1));
    let graph = graph.edge(START, "left").edge(START, "right").compile().unwrap();
    let run = graph.invoke(Words::update()).views([View::Custom, View::Updates, View::Messages]).subgraphs();
    let events: Vec<_> = run.stream().collect().await;
    let emitted: Vec<_> =
        events.iter().filter(|event| matches!(event.kind, EventKind::Custom { .. })).collect();
    let mut places: Vec<_> = emitted.iter().map(|event| path_of(event)).collect();
    places.sort();
    assert_eq!(places, ["left/inner/inner", "right/inner"]);
    let order = |place: &str| {
        let of_place = events.iter().filter(|event| path_of(event) == place).map(describe);
        of_place.map(|line| line.split(' ').take(3).collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    assert_eq!(order("left"), ["[left]1 update before", "[left]2 update inner"]);
    assert_eq!(order("left/inner"), ["[left/inner]1 update before", "[left/inner]2 update inner"]);
    let tasks: Vec<String> = events.iter().filter_map(|event| Some(event.task?.id.to_string())).collect();
    let mut around =
        events.iter().flat_map(|event| event.namespace.split('|')).filter(|part| !part.is_empty());
    assert!(
        around.all(|part| tasks.iter().any(|task| part.ends_with(task))),
        "the namespace names the tasks around it, in a run that stores nothing, too"
    );
}

#[tokio::test]
async fn a_slow_reader_slows_a_subgraph_down_and_a_dropped_stream_cancels_it() {
    let graph = StateGraph::new().node("sub", nested(1)).edge(START, "sub").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    let mut stream =
        graph.invoke(Words::update()).thread("t").views(ALL).subgraphs().stream_capacity(1).stream();
    let mut most = 0;
    while let Some(event) = stream.next().await {
        most = most.max(stream.unread());
        if describe(&event).contains("start inner") {
            break;
        }
    }
    assert!(most <= 10, "at most one superstep and the outer starts are unread: {most}");
    drop(stream);
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!((&state.next[..], state.children.len()), (&["sub".to_owned()][..], 2));
    let end =
        graph.proceed().thread("t").views(ALL).stream().outcome().await.unwrap().into_finished().unwrap();
    assert_eq!(end.seen, ["before", "before", "talks"]);
}

#[tokio::test]
async fn a_subgraph_over_another_state_streams_its_state_as_json() {
    #[derive(State, serde::Serialize, serde::Deserialize, Clone, Debug, Default)]
    struct Count {
        n: u32,
    }
    async fn count(count: Snapshot<Count>) -> CountUpdate {
        Count::update().n(count.n + 1)
    }
    let child = StateGraph::new().node("count", count).edge(START, "count").compile().unwrap();
    let child =
        child.embed(|| Count::update().n(41), |count: Count| Words::update().seen([count.n.to_string()]));
    let graph = StateGraph::new().node("child", child).edge(START, "child").compile().unwrap();
    let run = graph.invoke(Words::update()).views([View::Values, View::Updates]).subgraphs();
    let events: Vec<_> = run.stream().collect().await;
    let inside = events.iter().filter(|event| !event.namespace.is_empty()).map(|event| match &event.kind {
        EventKind::ValuesInside(values) => values.to_string(),
        EventKind::UpdateInside { update, .. } => format!("update {}", update.as_ref().unwrap()),
        other => format!("{other:?}"),
    });
    assert_eq!(inside.collect::<Vec<_>>(), ["{\"n\":41}", "update {\"n\":42}", "{\"n\":42}"]);
}
