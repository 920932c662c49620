//! Common practices of LangGraph users that no other test covers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use agentgraph::BoxError;
use agentgraph::node::{NodeCall, NodeService, Step};
use agentgraph::prelude::*;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tower_service::Service;

use crate::common::poll::pending_for;
use crate::common::words::{Words, WordsUpdate, said, text, words_of};

#[tokio::test]
async fn a_dispatch_gives_one_node_an_input_that_is_not_in_the_state() {
    async fn tells() -> Command<Words> {
        said("tells").goto(Dispatch::new("hears", 7_u32))
    }
    async fn hears(Input(secret): Input<u32>) -> WordsUpdate {
        Words::update().seen([(secret * 2).to_string()])
    }
    let graph = StateGraph::new().node("tells", tells).node("hears", hears).edge(START, "tells");
    assert_eq!(words_of(&graph.compile().unwrap()).await, "tells 14");
}

fn add_to_sum(sum: &mut i64, more: i64) {
    *sum += more;
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Sum {
    #[reduce(with = add_to_sum)]
    n: i64,
}

#[tokio::test]
async fn a_state_may_be_one_number() {
    async fn five() -> SumUpdate {
        Sum::update().n(5)
    }
    async fn double(sum: Snapshot<Sum>) -> SumUpdate {
        Sum::update().n(sum.n)
    }
    let graph = StateGraph::new()
        .node("a", five)
        .node("b", double)
        .edge(START, "a")
        .edge("a", "b")
        .compile()
        .unwrap();
    assert_eq!(graph.invoke(Sum::update().n(1)).await.unwrap().output().n, 12);
}

#[tokio::test]
async fn dispatches_finish_in_any_order_and_merge_in_the_order_of_the_command() {
    async fn split() -> Command<Words> {
        Command::to([3_u32, 2, 1].map(|polls| Dispatch::new("work", polls)).to_vec())
    }
    async fn work(Input(polls): Input<u32>) -> WordsUpdate {
        pending_for(polls * 3).await;
        Words::update().seen([polls.to_string()])
    }
    let graph = StateGraph::new().node("split", split).node("work", work).edge(START, "split");
    let graph = graph.compile().unwrap();
    let mut events = graph.invoke(Words::update()).views([View::Updates]).stream();
    let mut finished = Vec::new();
    let mut merged = String::new();
    while let Some(event) = events.next().await {
        match event.kind {
            EventKind::Update { update: Some(update), .. } => {
                finished.push(graph.update_json(&update).unwrap().to_string())
            }
            EventKind::Ended(outcome) => merged = text(outcome.unwrap().output()),
            _ => {}
        }
    }
    let numbers: Vec<char> =
        finished.iter().flat_map(|one| one.chars().filter(char::is_ascii_digit)).collect();
    assert_eq!((numbers, &*merged), (vec!['1', '2', '3'], "3 2 1"));
}

#[tokio::test]
async fn a_call_stops_after_a_thousand_supersteps_by_default() {
    async fn one() -> SumUpdate {
        Sum::update().n(1)
    }
    let graph = StateGraph::new().node("one", one).edge(START, "one").edge("one", "one").compile().unwrap();
    let outcome = graph.invoke(Sum::update()).await.unwrap();
    assert!(matches!(outcome, Outcome::Stopped { reason: StopReason::Limit, .. }), "{outcome:?}");
    assert_eq!(outcome.output().n, 1000);
}

/// A tower service around a node, which keeps the update of the node for each state.
#[derive(Clone)]
struct Cached {
    inner: NodeService<Words>,
    known: Arc<Mutex<BTreeMap<String, WordsUpdate>>>,
}

impl Service<NodeCall<Words>> for Cached {
    type Response = Step<Words>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Step<Words>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: NodeCall<Words>) -> Self::Future {
        let mut inner = self.inner.clone();
        let known = Arc::clone(&self.known);
        Box::pin(async move {
            let key = text(&*Snapshot::<Words>::from_task(&call.task())?);
            if let Some(hit) = known.lock().unwrap().get(&key) {
                return Ok(Step::Update(hit.clone()));
            }
            let step = inner.call(call).await?;
            if let Step::Update(update) = &step {
                known.lock().unwrap().insert(key, update.clone());
            }
            Ok(step)
        })
    }
}

#[tokio::test]
async fn a_cache_is_a_layer_and_its_hits_do_not_run_the_node() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let node = move || {
        let run = counted.fetch_add(1, Ordering::SeqCst) + 1;
        async move { if run == 1 { Err("not this time".into()) } else { Ok(Words::update().seen(["answer"])) } }
    };
    let node = move || -> BoxFuture<'static, Result<WordsUpdate>> { Box::pin(node()) };
    let known = Arc::new(Mutex::new(BTreeMap::new()));
    let layer = {
        let known = Arc::clone(&known);
        tower::layer::layer_fn(move |inner| Cached { inner, known: Arc::clone(&known) })
    };
    let graph = StateGraph::new().node("a", node.layer(layer)).edge(START, "a").compile().unwrap();
    let mut seen = Vec::new();
    for question in ["q", "q", "q", "other"] {
        let outcome = graph.invoke(Words::update().seen([question])).await;
        seen.push((outcome.ok().map(|one| text(one.output())), runs.load(Ordering::SeqCst)));
    }
    known.lock().unwrap().clear();
    graph.invoke(Words::update().seen(["q"])).await.unwrap();
    let answered = |question: &str| Some(format!("{question} answer"));
    assert_eq!(seen, [(None, 1), (answered("q"), 2), (answered("q"), 2), (answered("other"), 3)]);
    assert_eq!(runs.load(Ordering::SeqCst), 4, "the node runs again once the cache is empty");
}
