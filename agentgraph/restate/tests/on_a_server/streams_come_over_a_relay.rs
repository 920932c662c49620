//! The events of a call come over a relay, as those of a local stream. They are best effort: what is lost is
//! marked, and the end of the call is its own answer. Pieces of messages are never in the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agentgraph::prelude::*;
use agentgraph::{Code, EventKind, View};
use agentgraph_restate::{
    EventRelay, Relaying, RemoteEvent, RemoteGraph, RemoteStream, RestateClient, RestateWorker, Serving,
};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::common::graphs::{Kind, input};
use crate::common::server::{self, Server};
use crate::common::worker_process::{Orders, WorkerProcess, register};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Talk {
    #[reduce(append)]
    said: Vec<String>,
}

async fn speak(ctx: Ctx) -> TalkUpdate {
    for piece in ["Hel", "lo ", ctx.node()] {
        ctx.message(piece);
    }
    ctx.emit(serde_json::json!({ "percent": 50 })).await;
    Talk::update().said([ctx.node()])
}

fn talk() -> CompiledGraph<Talk> {
    StateGraph::new()
        .node("here", speak)
        .node("far", speak.remote())
        .node("last", speak)
        .edge(START, "here")
        .edge("here", "far")
        .edge("far", "last")
        .compile()
        .unwrap()
}

const VIEWS: [View; 5] = [View::Updates, View::Custom, View::Messages, View::Tasks, View::Values];

struct Bed {
    _relay: Relaying,
    _worker: Serving,
    graph: RemoteGraph<Talk>,
}

fn loopback() -> std::net::SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

async fn bed(server: &Server, name: &str) -> Bed {
    let relay = EventRelay::new().start(loopback()).await.unwrap();
    let url = format!("http://{}", relay.addr());
    let worker = RestateWorker::new().graph(name, talk()).relay(&*url).register(&server.admin);
    let worker = worker.start(loopback()).await.unwrap();
    let graph = RestateClient::connect(&server.ingress).unwrap().relay(url).graph(name);
    Bed { _relay: relay, _worker: worker, graph }
}

/// The type, the node and the content of each event, and the end.
async fn read(mut events: RemoteStream<Talk>) -> (Vec<String>, Talk) {
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        match event {
            RemoteEvent::Event(event) => seen.push(shown(event.json())),
            RemoteEvent::Ended(end) => {
                assert!(events.next().await.is_none(), "the end is the last event");
                return (seen, end.unwrap().into_finished().unwrap());
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("the stream has no end: {seen:?}")
}

fn shown(event: &serde_json::Value) -> String {
    let content = ["update", "value", "piece", "status", "values"].map(|field| &event[field]);
    let content = content.into_iter().find(|content| !content.is_null());
    format!("{} {} {}", event["type"], event["node"], content.unwrap_or(&serde_json::Value::Null))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_events_are_those_of_a_local_stream() {
    let bed = bed(server::shared().await, "talk").await;
    let mut local = Vec::new();
    let mut events = talk().invoke(Talk::update()).views(VIEWS).stream();
    while let Some(event) = events.next().await {
        if !matches!(event.kind, EventKind::Ended(_)) {
            local.push(shown(&serde_json::to_value(&event).unwrap()));
        }
    }
    let (there, talk) = read(bed.graph.invoke(Talk::update()).thread("t").views(VIEWS).stream()).await;
    assert_eq!(talk.said, ["here", "far", "last"]);
    // The loop and the tasks are two sources: each of them is in order.
    let split = |events: &[String]| -> (Vec<String>, Vec<String>) {
        let of_task = |event: &&String| event.starts_with("\"message") || event.starts_with("\"custom");
        (
            events.iter().filter(of_task).cloned().collect(),
            events.iter().filter(|one| !of_task(one)).cloned().collect(),
        )
    };
    assert_eq!(split(&there), split(&local));
    assert_eq!(there.len(), local.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_has_the_events_of_that_call_and_a_watcher_those_of_all() {
    let bed = bed(server::shared().await, "watched").await;
    let mut watched = bed.graph.watch("t");
    let watching = tokio::spawn(async move {
        let mut customs = 0;
        while customs < 6 {
            let event = watched.next().await.unwrap();
            customs += usize::from(event.event().is_some_and(|event| event.type_name() == "custom"));
        }
    });
    // The watcher may need a moment to be there, so calls are made until it has seen enough.
    while !watching.is_finished() {
        let (seen, _) =
            read(bed.graph.invoke(Talk::update()).thread("t").views([View::Custom]).stream()).await;
        assert_eq!(seen.len(), 3, "{seen:?}");
    }
    watching.await.unwrap();
}

/// As a caller does that was restarted while its call was under way.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_made_again_under_its_key_hears_what_still_comes() {
    let server = server::shared().await;
    let relay = EventRelay::new().start(loopback()).await.unwrap();
    let url = format!("http://{}", relay.addr());
    let is_over = Arc::new(AtomicBool::new(false));
    let step = async |ctx: Ctx| {
        tokio::time::sleep(Duration::from_millis(20)).await;
        ctx.emit("step").await;
        Talk::update().said(["step"])
    };
    let ends = Arc::clone(&is_over);
    let after = move |_: &Talk| if ends.load(Ordering::SeqCst) { END } else { "step" };
    let graph = StateGraph::new()
        .node("step", step)
        .edge(START, "step")
        .branch("step", after, ["step", END])
        .compile()
        .unwrap();
    let worker = RestateWorker::new().graph("made-again", graph).relay(&*url).register(&server.admin);
    let _worker = worker.start(loopback()).await.unwrap();
    let graph = RestateClient::connect(&server.ingress).unwrap().relay(url).graph::<Talk>("made-again");
    let call =
        || graph.invoke(Talk::update()).thread("t").idempotency_key("one").views([View::Custom]).stream();
    let mut first = call();
    assert!(first.next().await.unwrap().event().is_some());
    drop(first);
    let mut again = call();
    assert!(again.next().await.unwrap().event().is_some());
    is_over.store(true, Ordering::SeqCst);
    let said = again.outcome().await.unwrap().into_finished().unwrap().said.len();
    let kept = graph.state("t").await.unwrap().unwrap().values.said.len();
    assert_eq!(said, kept, "it is one call");
}

#[tokio::test(flavor = "multi_thread")]
async fn pieces_of_messages_are_never_in_the_server() {
    #[derive(Clone)]
    struct Secret(Arc<str>);
    async fn whisper(ctx: Ctx, secret: Dep<Secret>) -> TalkUpdate {
        ctx.message(&*secret.0);
        ctx.emit(format!("emitted {}", secret.0)).await;
        Talk::update().said(["done"])
    }
    let server = Server::start().await;
    let piece = Secret(uuid::Uuid::new_v4().to_string().into());
    let graph = StateGraph::new()
        .dep(piece.clone())
        .node("here", whisper)
        .node("far", whisper.remote())
        .edge(START, "here")
        .edge("here", "far")
        .compile()
        .unwrap();
    let relay = EventRelay::new().start(loopback()).await.unwrap();
    let url = format!("http://{}", relay.addr());
    let worker = RestateWorker::new().graph("whisper", graph).relay(&*url).register(&server.admin);
    let _worker = worker.start(loopback()).await.unwrap();
    let graph = RestateClient::connect(&server.ingress).unwrap().relay(url).graph::<Talk>("whisper");
    let (seen, _) = read(graph.invoke(Talk::update()).thread("t").views(VIEWS).stream()).await;
    assert_eq!(seen.iter().filter(|event| event.contains(&*piece.0)).count(), 4, "{seen:?}");
    assert!(server.data_contains(b"whisper"), "the search finds what is there");
    assert!(!server.data_contains(piece.0.as_bytes()));
}

/// A worker is killed while a task streams. Its pieces are void, and come again.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_runs_again_is_announced() {
    let server = server::shared().await;
    let relay = EventRelay::new().start(loopback()).await.unwrap();
    let mut orders = Orders::new([("restarted".to_owned(), Kind::Chatty)]);
    orders.relay = Some(format!("http://{}", relay.addr()));
    orders.pause_ms = 400;
    let mut worker = WorkerProcess::start(&orders);
    register(&server.admin, &orders.address()).await;
    let client = RestateClient::connect(&server.ingress).unwrap().relay(format!("http://{}", relay.addr()));
    let graph = client.graph::<crate::common::graphs::Work>("restarted");
    let mut events = graph.invoke(input()).thread("t").views([View::Messages]).stream();
    let (mut text, mut restarts) = (String::new(), 0);
    loop {
        match events.next().await.unwrap() {
            RemoteEvent::Event(event) => {
                text += event.text().unwrap();
                if restarts == 0 && text == "one " {
                    worker.kill();
                    worker = WorkerProcess::start(&orders);
                }
            }
            RemoteEvent::Restarted { .. } => {
                text.clear();
                restarts += 1;
            }
            RemoteEvent::Ended(end) => {
                assert!(end.is_ok());
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((&*text, restarts), ("one two ", 1));
}

/// The relay is lost in the middle of a call, and comes back without what it knew.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_relay_costs_events_and_the_gap_is_marked() {
    let server = server::shared().await;
    let relay = EventRelay::new().start(loopback()).await.unwrap();
    let addr = relay.addr();
    let url = format!("http://{addr}");
    let permits = Arc::new(Semaphore::new(1));
    let gate = Arc::clone(&permits);
    let step = move |ctx: Ctx| {
        let gate = Arc::clone(&gate);
        async move {
            gate.acquire().await.unwrap().forget();
            ctx.emit("step").await;
            Talk::update().said(["step"])
        }
    };
    let graph = StateGraph::new()
        .node("step", step)
        .edge(START, "step")
        .branch("step", |talk: &Talk| if talk.said.len() < 4 { "step" } else { END }, ["step", END])
        .compile()
        .unwrap();
    let worker = RestateWorker::new().graph("lost-relay", graph).relay(&*url).register(&server.admin);
    let _worker = worker.start(loopback()).await.unwrap();
    let client = RestateClient::connect(&server.ingress).unwrap().relay(url);
    let graph = client.graph::<Talk>("lost-relay");
    let mut events = graph.invoke(Talk::update()).thread("t").stream();
    // The first step is heard: what it emits, and its update.
    for _ in 0..2 {
        assert!(events.next().await.unwrap().event().is_some());
    }
    drop(relay);
    permits.add_permits(1);
    while graph.state("t").await.unwrap().unwrap().values.said.len() < 2 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // What the second step has posted is given up by then.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let relay = EventRelay::new().start(addr).await.unwrap();
    permits.add_permits(10);
    let (mut gaps, mut heard) = (0, 0);
    loop {
        match events.next().await.unwrap() {
            RemoteEvent::Gap { .. } => gaps += 1,
            RemoteEvent::Event(_) => heard += 1,
            RemoteEvent::Ended(end) => {
                assert_eq!(end.unwrap().into_finished().unwrap().said.len(), 4);
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(gaps > 0, "{heard} events were heard, and no gap");
    drop(relay);
}

/// A flush waits for half a second. Ten steps whose posts fail would wait for five.
#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_is_away_costs_no_time() {
    let server = server::shared().await;
    let step = async |ctx: Ctx| {
        ctx.emit("step").await;
        Talk::update().said(["step"])
    };
    let graph = StateGraph::new()
        .node("step", step)
        .edge(START, "step")
        .branch("step", |talk: &Talk| if talk.said.len() < 10 { "step" } else { END }, ["step", END])
        .compile()
        .unwrap();
    let [nothing] = server::free_ports();
    let worker = RestateWorker::new().graph("no-relay-there", graph).register(&server.admin);
    let worker = worker.relay(format!("http://127.0.0.1:{nothing}"));
    let _worker = worker.start(loopback()).await.unwrap();
    let graph = RestateClient::connect(&server.ingress).unwrap().graph::<Talk>("no-relay-there");
    let begun = std::time::Instant::now();
    let talk = graph.invoke(Talk::update()).thread("t").views(VIEWS).finish().await.unwrap();
    assert_eq!(talk.said.len(), 10);
    assert!(begun.elapsed() < Duration::from_millis(4500), "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_with_a_token_answers_those_who_know_it() {
    let server = server::shared().await;
    let relay = EventRelay::new().token("s3cret").start(loopback()).await.unwrap();
    let url = format!("http://{}", relay.addr());
    let worker = RestateWorker::new().graph("token", talk()).relay_with_token(&*url, "s3cret");
    let _worker = worker.register(&server.admin).start(loopback()).await.unwrap();
    let client = RestateClient::connect(&server.ingress).unwrap();
    let graph = client.clone().relay_with_token(&*url, "s3cret").graph::<Talk>("token");
    let (seen, _) = read(graph.invoke(Talk::update()).thread("t").stream()).await;
    assert_eq!(seen.len(), 6);

    let stranger = client.relay_with_token(&*url, "guess").graph::<Talk>("token");
    let (seen, talk) = read(stranger.invoke(Talk::update()).thread("u").stream()).await;
    assert_eq!((seen.len(), talk.said.len()), (0, 3));
    for request in ["threads/token/t", "events"] {
        let answer = server::http().get(format!("{url}/{request}")).send().await.unwrap();
        assert_eq!(answer.status(), 401, "{request}");
    }

    let open = EventRelay::new().start("0.0.0.0:0".parse().unwrap()).await.unwrap_err();
    assert!(open.to_string().contains(".token(..)"), "{open}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_relay_a_stream_is_an_error_that_says_so() {
    let server = server::shared().await;
    let worker = RestateWorker::new().graph("no-relay", talk()).register(&server.admin);
    let _worker = worker.start(loopback()).await.unwrap();
    let client = RestateClient::connect(&server.ingress).unwrap();
    assert!(client.clone().relay("http://127.0.0.1:9090").graph::<Talk>("no-relay").has_relay());
    let graph = client.graph::<Talk>("no-relay");
    assert!(!graph.has_relay());
    let error = graph.invoke(Talk::update()).thread("t").stream().outcome().await.unwrap_err();
    assert_eq!(error.code(), Code::Host);
    assert!(error.message().contains("RestateClient::relay"), "{error}");
    assert!(graph.state("t").await.unwrap().is_none(), "nothing was sent");
}
