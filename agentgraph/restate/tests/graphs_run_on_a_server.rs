//! Graphs of all kinds on a real server: they end as they end locally, also when every await is replayed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::HashMap;

use agentgraph::prelude::*;
use agentgraph_restate::{RemoteGraph, RestateClient, RestateWorker, Serving};
use common::server::Server;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Trip {
    city: String,
    #[reduce(append)]
    seen: Vec<String>,
    #[reduce(merge)]
    prices: HashMap<String, u64>,
    count: u64,
}

/// A server with one worker, and the clients' view of its graphs.
struct Bed {
    server: Server,
    _worker: Serving,
}

impl Bed {
    async fn new(server: Server, worker: RestateWorker) -> Bed {
        let worker = worker.register(&server.admin).start("127.0.0.1:0".parse().unwrap()).await.unwrap();
        Bed { server, _worker: worker }
    }

    fn graph(&self, name: &str) -> RemoteGraph<Trip> {
        RestateClient::connect(&self.server.ingress).unwrap().graph(name)
    }
}

async fn flight(trip: Snapshot<Trip>) -> TripUpdate {
    let prices = (0..20).map(|n| (format!("{}-{n}", trip.city), n));
    Trip::update().seen(["flight"]).prices(prices.collect::<HashMap<_, _>>())
}

async fn hotel() -> TripUpdate {
    Trip::update().seen(["hotel"]).prices([("hotel".to_owned(), 90)])
}

async fn pay(trip: Snapshot<Trip>) -> TripUpdate {
    Trip::update().seen(["pay"]).count(trip.prices.values().sum::<u64>())
}

fn booking() -> StateGraph<Trip> {
    StateGraph::new()
        .node("flight", flight)
        .node("hotel", hotel)
        .node("pay", pay)
        .edge(START, "flight")
        .edge(START, "hotel")
        .edge(["flight", "hotel"], "pay")
}

#[tokio::test(flavor = "multi_thread")]
async fn first_steps() {
    let graph = booking().compile().unwrap();
    let local = graph.invoke(Trip::update().city("Oslo")).await.unwrap().into_finished().unwrap();
    let bed = Bed::new(Server::start().await, RestateWorker::new().graph("booking", graph)).await;
    let remote = bed.graph("booking");
    let outcome = remote.invoke(Trip::update().city("Oslo")).thread("t-1").await.unwrap();
    assert_eq!(outcome.into_finished().unwrap(), local);
    assert_eq!(remote.state("t-1").await.unwrap().unwrap().values, local);
}
