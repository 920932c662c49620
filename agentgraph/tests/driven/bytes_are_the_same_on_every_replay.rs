//! The same ground and the same replies lead to the same bytes, whatever the state contains.

use std::collections::HashSet;

use agentgraph::host::RunCall;
use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

use crate::driver::{Driver, Order};
use crate::graphs::{Work, busy, step, two_busy};

#[tokio::test]
async fn a_replay_does_not_depend_on_the_order_of_hash_maps() {
    let mut driver = Driver::new(busy(false), busy(false));
    let done = driver.call_once(RunCall::invoke::<Work>(&(), &step("input", 0)).unwrap()).await;
    for _ in 0..20 {
        // A new value of the graph and of every map in it.
        driver.near = std::sync::Arc::new(busy(false));
        driver.replay(&done, done.journal.replies.len());
    }
}

#[tokio::test]
async fn random_orders_are_replayed_as_they_were() {
    for seed in 0..6 {
        let mut driver = Driver::new(busy(false), busy(false));
        driver.order = Order::Random(seed);
        driver.journaled = seed % 2 == 0;
        driver.call(RunCall::invoke::<Work>(&(), &step("input", 0)).unwrap()).await;
    }
}

#[tokio::test]
async fn tasks_that_wait_for_places_of_other_graphs_start_in_the_same_order() {
    for seed in 0..6 {
        let mut driver = Driver::new(two_busy(), two_busy());
        driver.order = Order::Random(seed);
        driver.journaled = seed % 2 == 0;
        let call = RunCall::invoke::<Work>(&(), &step("input", 0)).unwrap();
        driver.call(call.max_concurrency(1 + seed as usize % 3)).await;
    }
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Seen {
    #[reduce(with = extend)]
    words: HashSet<String>,
    #[reduce(append)]
    sets: Vec<HashSet<u32>>,
}

fn extend(value: &mut HashSet<String>, write: HashSet<String>) {
    value.extend(write);
}

#[tokio::test]
async fn a_hash_set_is_found_and_named() {
    let build = |update: SeenUpdate| {
        let node = move || std::future::ready(update.clone());
        StateGraph::new().node("look", node).edge(START, "look").compile().unwrap()
    };
    let words: HashSet<String> = (0..9).map(|n| n.to_string()).collect();
    let sets = vec![(0..9).collect::<HashSet<u32>>()];
    for (update, channel) in [(Seen::update().words(words), "`words`"), (Seen::update().sets(sets), "`sets`")]
    {
        let mut driver = Driver::new(build(update.clone()), build(update));
        let done = driver.call_once(RunCall::invoke::<Seen>(&(), &Seen::update()).unwrap()).await;
        let error = done.end.into_result::<Seen>(&()).unwrap_err();
        assert_eq!(error.code(), agentgraph::Code::UnorderedValue);
        assert!(error.message().contains(channel) && error.message().contains("BTreeSet"), "{error}");
    }
}
