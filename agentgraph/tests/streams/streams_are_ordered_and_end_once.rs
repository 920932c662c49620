//! A stream delivers events in order and ends once. It holds the run back for a slow reader and changes
//! nothing else about the run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agentgraph::prelude::*;
use agentgraph::{Code, Event, EventStream, RunBuilder};
use futures_util::StreamExt;

use crate::common::poll::pending_for;
use crate::common::words::{Words, WordsUpdate, said, says, text};

/// Returns an event as one word: its view and its content.
fn word(event: &Event<Words>) -> String {
    match &event.kind {
        EventKind::Values(words) => format!("values({})", text(words)),
        EventKind::Update { node, update: None } => format!("update({node}:-)"),
        EventKind::Update { node, .. } => format!("update({node})"),
        EventKind::Custom { node, value } => format!("custom({node}:{value})"),
        EventKind::Ended(Ok(outcome)) => match outcome {
            Outcome::Finished { .. } => "finished".into(),
            Outcome::Interrupted { .. } => "interrupted".into(),
            Outcome::Stopped { .. } => "stopped".into(),
        },
        EventKind::Ended(Err(error)) => format!("failed({})", error.code()),
        other => format!("{other:?}"),
    }
}

/// Returns the events of a run as text. Asserts that they are numbered without gaps and end once.
async fn events(run: RunBuilder<Words>) -> String {
    let seen: Vec<Event<Words>> = run.stream().collect().await;
    for (at, event) in seen.iter().enumerate() {
        assert_eq!(event.seq, at as u64, "numbered without gaps");
        let ends = matches!(event.kind, EventKind::Ended(_));
        assert_eq!(ends, at + 1 == seen.len(), "exactly one last event");
    }
    seen.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn a_to_b() -> StateGraph<Words> {
    StateGraph::new().node("a", says("a")).node("b", says("b")).edge(START, "a").edge("a", "b")
}

#[tokio::test]
async fn values_come_at_the_merge_and_updates_at_completion() {
    let graph = a_to_b().compile().unwrap();
    let run = || graph.invoke(Words::update().seen(["i"]));
    assert_eq!(events(run().views([View::Values])).await, "values(i) values(i a) values(i a b) finished");
    assert_eq!(events(run().views([View::Updates])).await, "update(a) update(b) finished");
    assert_eq!(
        events(run().views([View::Values, View::Updates])).await,
        "values(i) update(a) values(i a) update(b) values(i a b) finished"
    );
    assert_eq!(events(run().views([])).await, "finished");
}

#[tokio::test]
async fn a_node_without_changes_is_an_empty_update() {
    let graph = StateGraph::<Words>::new().node("a", || async {}).edge(START, "a").compile().unwrap();
    assert_eq!(events(graph.invoke(Words::update())).await, "update(a:-) finished");
}

#[tokio::test]
async fn no_node_runs_twice_whichever_views_are_chosen() {
    let all = [View::Values, View::Updates, View::Custom];
    for choice in 0..8_usize {
        let views: Vec<View> = all
            .into_iter()
            .enumerate()
            .filter(|(at, _)| choice >> at & 1 == 1)
            .map(|(_, view)| view)
            .collect();
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&runs);
        let node = move || {
            counted.fetch_add(1, Ordering::SeqCst);
            std::future::ready(())
        };
        let graph = StateGraph::<Words>::new().node("a", node).edge(START, "a").compile().unwrap();
        let graph = graph.checkpointer(MemorySaver::new());
        events(graph.invoke(Words::update()).thread("t").views(views.clone())).await;
        assert_eq!(runs.load(Ordering::SeqCst), 1, "{views:?}");
        assert_eq!(graph.history("t").await.unwrap().len(), 2, "{views:?}");
    }
}

#[tokio::test]
async fn updates_come_in_the_order_of_completion_and_merge_in_task_order() {
    async fn slow() -> WordsUpdate {
        pending_for(5).await;
        Words::update().seen(["slow"])
    }
    let graph = StateGraph::new()
        .node("slow", slow)
        .node("fast", says("fast"))
        .edge(START, "slow")
        .edge(START, "fast");
    let graph = graph.compile().unwrap();
    assert_eq!(
        events(graph.invoke(Words::update()).views([View::Values, View::Updates])).await,
        "values() update(fast) update(slow) values(slow fast) finished"
    );
}

#[tokio::test]
async fn custom_events_keep_their_order_and_name_their_node() {
    async fn chats(ctx: Ctx) -> Command<Words> {
        assert!(ctx.has_listener());
        for n in 0..3 {
            ctx.emit(n).await;
            pending_for(1).await;
        }
        said("chats")
    }
    let graph = StateGraph::new().node("chats", chats).edge(START, "chats").compile().unwrap();
    assert_eq!(
        events(graph.invoke(Words::update())).await,
        "custom(chats:0) custom(chats:1) custom(chats:2) update(chats) finished"
    );
}

#[tokio::test]
async fn without_a_listener_nothing_is_emitted() {
    async fn quiet(ctx: Ctx) -> WordsUpdate {
        ctx.emit("nobody hears").await;
        Words::update().seen([ctx.has_listener().to_string()])
    }
    let graph = StateGraph::new().node("quiet", quiet).edge(START, "quiet").compile().unwrap();
    assert_eq!(text(graph.invoke(Words::update()).await.unwrap().output()), "false");
    let outcome = graph.invoke(Words::update()).views([View::Updates]).stream().outcome().await.unwrap();
    assert_eq!(text(outcome.output()), "false");
}

#[tokio::test]
async fn errors_interrupts_limits_and_refused_calls_end_with_one_last_event_too() {
    async fn fails() -> Result<()> {
        Err("no".into())
    }
    async fn asks(ctx: Ctx) -> Result<WordsUpdate> {
        Ok(Words::update().seen([ctx.interrupt::<String>("?")?]))
    }
    let failing = StateGraph::<Words>::new().node("a", fails).edge(START, "a").compile().unwrap();
    assert_eq!(events(failing.invoke(Words::update())).await, "failed(E_NODE_FAILED)");
    let asking = StateGraph::new()
        .node("a", asks)
        .edge(START, "a")
        .compile()
        .unwrap()
        .checkpointer(MemorySaver::new());
    assert_eq!(events(asking.invoke(Words::update()).thread("t")).await, "interrupted");
    assert_eq!(events(asking.resume("yes").thread("t")).await, "update(a) finished");
    assert_eq!(events(asking.resume("yes").thread("t")).await, "failed(E_NOTHING_TO_RESUME)");
    let graph = a_to_b().compile().unwrap();
    assert_eq!(events(graph.invoke(Words::update()).max_supersteps(1)).await, "update(a) stopped");
}

#[tokio::test]
async fn the_outcome_of_a_stream_is_that_of_the_run() {
    let graph = a_to_b().compile().unwrap();
    let outcome = graph.invoke(Words::update()).stream().outcome().await.unwrap();
    assert_eq!(text(outcome.output()), "a b");
    let mut read: EventStream<Words> = graph.invoke(Words::update()).stream();
    while read.next().await.is_some() {}
    assert_eq!(read.outcome().await.unwrap_err().code(), Code::NothingToResume);
}

/// Returns a graph that runs a hundred supersteps and counts them in `steps`.
fn counting(steps: Arc<AtomicUsize>) -> CompiledGraph<Words> {
    let node = move || {
        steps.fetch_add(1, Ordering::SeqCst);
        std::future::ready(Words::update().seen(["x"]))
    };
    let more = |words: &Words| if words.seen.len() < 100 { "a" } else { END };
    StateGraph::new().node("a", node).edge(START, "a").branch("a", more, ["a", END]).compile().unwrap()
}

#[tokio::test]
async fn a_run_gets_no_further_ahead_of_its_reader_than_the_capacity() {
    for capacity in [0, 1, 8] {
        let steps = Arc::new(AtomicUsize::new(0));
        let mut events =
            counting(Arc::clone(&steps)).invoke(Words::update()).stream_capacity(capacity).stream();
        let mut read = 0;
        while let Some(event) = events.next().await {
            read += 1;
            let ahead = steps.load(Ordering::SeqCst).saturating_sub(read);
            assert!(ahead <= capacity.max(1), "{ahead} ahead with room for {capacity}");
            if matches!(event.kind, EventKind::Ended(_)) {
                break;
            }
        }
        assert_eq!((read, steps.load(Ordering::SeqCst)), (101, 100));
    }
}

#[tokio::test]
async fn a_node_that_emits_more_than_the_capacity_waits_for_the_reader() {
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    let chats = move |ctx: Ctx| {
        let sent = Arc::clone(&counted);
        async move {
            for n in 0..50 {
                ctx.emit(n).await;
                sent.fetch_add(1, Ordering::SeqCst);
            }
        }
    };
    let graph = StateGraph::<Words>::new().node("chats", chats).edge(START, "chats").compile().unwrap();
    let mut events = graph.invoke(Words::update()).stream_capacity(4).stream();
    let mut read = 0;
    while events.next().await.is_some() {
        read += 1;
        assert!(sent.load(Ordering::SeqCst) <= read + 4);
    }
    assert_eq!(read, 52);
}

#[tokio::test]
async fn an_unread_stream_does_not_run_and_a_dropped_stream_stops() {
    let steps = Arc::new(AtomicUsize::new(0));
    let graph = counting(Arc::clone(&steps)).checkpointer(MemorySaver::new());
    let mut events = graph.invoke(Words::update()).thread("t").stream_capacity(1).stream();
    assert_eq!(steps.load(Ordering::SeqCst), 0);
    events.next().await.unwrap();
    drop(events);
    let done = steps.load(Ordering::SeqCst);
    assert!(done < 5, "{done}");
    let outcome = graph.proceed().thread("t").await.unwrap();
    assert_eq!(outcome.output().seen.len(), 100);
    assert_eq!(steps.load(Ordering::SeqCst), 100, "committed supersteps are not run again");
}

#[tokio::test]
async fn an_event_from_a_spawned_task_wakes_the_reader() {
    let (answer, answered) = tokio::sync::oneshot::channel::<()>();
    let answered = Arc::new(std::sync::Mutex::new(Some(answered)));
    let node = move |ctx: Ctx| {
        let answered = answered.lock().unwrap().take().unwrap();
        async move {
            let inner = tokio::spawn(async move {
                pending_for(3).await;
                ctx.emit("ready").await;
                answered.await.unwrap();
            });
            inner.await.unwrap();
        }
    };
    let graph = StateGraph::<Words>::new().node("a", node).edge(START, "a").compile().unwrap();
    let mut events = graph.invoke(Words::update()).stream();
    assert_eq!(word(&events.next().await.unwrap()), "custom(a:\"ready\")");
    answer.send(()).unwrap();
    assert_eq!(word(&events.next().await.unwrap()), "update(a:-)");
}

#[tokio::test]
async fn no_event_follows_the_last_one_and_no_emit_waits_for_a_dropped_reader() {
    let (give, mut take) = tokio::sync::mpsc::unbounded_channel();
    let node = move |ctx: Ctx| {
        give.send(ctx).unwrap();
        std::future::ready(())
    };
    let graph = StateGraph::<Words>::new().node("a", node).edge(START, "a").compile().unwrap();
    let mut events = graph.invoke(Words::update()).stream_capacity(1).stream();
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        seen.push(word(&event));
    }
    let outlives = take.recv().await.unwrap();
    outlives.emit("late").await;
    assert!(events.next().await.is_none());
    assert_eq!(seen, ["update(a:-)", "finished"]);

    let mut full = graph.invoke(Words::update()).stream_capacity(1).stream();
    let mut open = Vec::new();
    full.next().await.unwrap();
    let ctx = take.recv().await.unwrap();
    for _ in 0..3 {
        let ctx = ctx.clone();
        open.push(tokio::spawn(async move { ctx.emit("into the void").await }));
    }
    tokio::task::yield_now().await;
    drop(full);
    for emitting in open {
        emitting.await.unwrap();
    }
}
