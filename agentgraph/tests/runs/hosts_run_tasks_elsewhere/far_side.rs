//! What the far side gives to its tasks: a store for durable steps, and a receiver of events.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentgraph::Code;
use agentgraph::checkpoint::{Checkpointer, Services};
use agentgraph::host::{FarSide, TaskEvent, TaskEventKind, TaskEvents, forget_once};
use agentgraph::prelude::*;
use serde_json::{Value, json};

use super::far::Far;
use crate::common::clock::Clock;
use crate::common::words::{Words, WordsUpdate, text};

static PAID: AtomicU32 = AtomicU32::new(0);

/// Pays twice, then asks; the node runs again with the answer.
async fn pays(ctx: Ctx) -> Result<WordsUpdate> {
    let mut receipts = Vec::new();
    for _ in 0..2 {
        receipts.push(ctx.once("pay", async { Ok(PAID.fetch_add(1, Ordering::SeqCst)) }).await?);
    }
    if ctx.attempt() == 1 {
        return Err("the line broke".into());
    }
    let sent: bool = ctx.interrupt("send?")?;
    Ok(Words::update().seen([format!("{receipts:?} {sent}")]))
}

fn shop() -> CompiledGraph<Words> {
    let again = RetryPolicy::attempts(2).initial(std::time::Duration::ZERO);
    StateGraph::new().node("pays", pays.retry(again)).edge(START, "pays").compile().unwrap()
}

#[tokio::test]
async fn durable_steps_are_done_once_whatever_process_runs_the_task_again() {
    let results = Arc::new(MemorySaver::new());
    let store = Arc::clone(&results) as Arc<dyn Checkpointer>;
    let kept = Arc::new(MemorySaver::new());
    // Each call is another process with another run of the graph's code; they share the store.
    let process = |far: &Far| shop().checkpointer(Arc::clone(&kept)).host(far.clone());
    let far = Far::with(shop(), move |_| FarSide::new().once_in(Arc::clone(&store)));
    let asked = process(&far).invoke(Words::update()).thread("t").await.unwrap();
    assert_eq!(asked.interrupts().len(), 1);
    let end = process(&far).resume(true).thread("t").await.unwrap();
    assert_eq!(text(end.output()), "[0, 1] true");
    assert_eq!((PAID.load(Ordering::SeqCst), far.calls().len()), (2, 4));
    let task = far.calls()[0].task;
    assert_eq!(results.threads().await.unwrap(), [format!("once/{task}")]);
    forget_once(&*results, task).await.unwrap();
    assert!(results.threads().await.unwrap().is_empty());
}

#[tokio::test]
async fn without_a_store_a_durable_step_is_an_error_that_names_the_remedy() {
    let node = |ctx: Ctx| async move { ctx.once("draw", async { Ok(1) }).await.map(|_: u32| ()) };
    let build = || StateGraph::<Words>::new().node("node", node).edge(START, "node").compile().unwrap();
    let error = build().host(Far::of(build())).invoke(Words::update()).await.unwrap_err();
    assert_eq!(error.code(), Code::Once);
    assert!(error.to_string().contains("once_in"), "{error}");
}

#[tokio::test]
async fn a_sleep_on_a_host_says_when_it_ends_and_ends_then() {
    let naps = |ctx: Ctx| async move {
        ctx.sleep("nap", Duration::from_secs(60)).await?;
        Ok::<_, agentgraph::BoxError>(Words::update().seen(["awake"]))
    };
    let clock = Clock::default();
    let build = || {
        let graph = StateGraph::new().node("naps", naps).edge(START, "naps");
        graph.compile().unwrap().services(clock.clone())
    };
    let store = Arc::new(MemorySaver::new()) as Arc<dyn Checkpointer>;
    let far = Far::with(build(), move |_| FarSide::new().once_in(Arc::clone(&store)));
    let graph = build().checkpointer(MemorySaver::new()).host(far.clone());
    let asleep = graph.invoke(Words::update()).thread("t").await.unwrap();
    assert_eq!(asleep.sleeps_until(), Some(clock.now() + Duration::from_secs(60)));
    // Too early: no task is sent.
    let still = graph.proceed().thread("t").await.unwrap();
    assert_eq!((still.sleeps_until(), far.calls().len()), (asleep.sleeps_until(), 1));
    clock.advance(Duration::from_secs(60));
    assert_eq!(text(graph.proceed().thread("t").await.unwrap().output()), "awake");
}

#[derive(Default)]
struct Heard(Mutex<Vec<TaskEvent>>);

impl TaskEvents for Heard {
    fn event(&self, event: TaskEvent) {
        self.0.lock().unwrap().push(event);
    }
}

#[tokio::test]
async fn events_and_messages_of_a_far_task_reach_their_receiver_in_order() {
    let talks = |ctx: Ctx| async move {
        ctx.emit(json!({"at": 1})).await;
        Ctx::of_messages().unwrap().message("token");
        ctx.emit(2).await;
    };
    let build = || {
        let child = StateGraph::<Words>::new().node("talks", talks).edge(START, "talks").compile().unwrap();
        StateGraph::new().node("child", child).edge(START, "child").compile().unwrap()
    };
    let heard = Arc::new(Heard::default());
    let to = Arc::clone(&heard);
    let far = Far::with(build(), move |_| FarSide::new().events(Arc::clone(&to) as Arc<dyn TaskEvents>));
    build().host(far.clone()).invoke(Words::update()).await.unwrap();
    let heard = heard.0.lock().unwrap();
    let kinds: Vec<_> = heard.iter().map(|event| (event.seq, event.kind.clone())).collect();
    let custom = |value: Value| TaskEventKind::Custom(value);
    let token = TaskEventKind::Message(json!("token"));
    assert_eq!(kinds, [(1, custom(json!({"at": 1}))), (2, token), (3, custom(json!(2)))]);
    let call = &far.calls()[0];
    assert!(heard.iter().all(|event| (event.task, &event.namespace) == (call.task, &call.namespace)));
    assert_eq!((heard[0].node.as_str(), heard[0].attempt), ("talks", 1));
}
