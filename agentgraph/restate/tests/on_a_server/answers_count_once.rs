//! An answer counts once, however often it is sent. A thread that waits has no invocation, and outlives
//! everything.

use agentgraph::prelude::*;
use agentgraph::{Code, Error};
use agentgraph_restate::{RemoteGraph, RestateClient, RestateWorker};
use serde::{Deserialize, Serialize};

use crate::common::graphs::{Kind, Work, input};
use crate::common::server::{self, Server};
use crate::common::worker_process::{Orders, WorkerProcess, register};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Order {
    #[reduce(append)]
    paid: Vec<String>,
}

async fn pay(ctx: Ctx) -> Result<OrderUpdate> {
    let answer: String = ctx.interrupt("pay?")?;
    Ok(Order::update().paid([answer]))
}

fn order() -> CompiledGraph<Order> {
    StateGraph::new().node("pay", pay).edge(START, "pay").compile().unwrap()
}

async fn serve(server: &Server, name: &str) -> (agentgraph_restate::Serving, RemoteGraph<Order>) {
    let worker = RestateWorker::new().graph(name, order()).register(&server.admin);
    let serving = worker.start("127.0.0.1:0".parse().unwrap()).await.unwrap();
    (serving, RestateClient::connect(&server.ingress).unwrap().graph(name))
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_answers_the_first_one_counts() {
    let (_worker, graph) = serve(server::shared().await, "twice").await;
    assert_eq!(graph.invoke(Order::update()).thread("t").await.unwrap().interrupts().len(), 1);
    let answers = ["a", "b", "c", "d"].map(|answer| graph.resume(answer).thread("t").into_future());
    let ends: Vec<Result<Outcome<Order>, Error>> = futures_util::future::join_all(answers).await;
    let (counted, refused): (Vec<_>, Vec<_>) = ends.into_iter().partition(Result::is_ok);
    assert_eq!((counted.len(), refused.len()), (1, 3));
    for error in refused {
        assert_eq!(error.unwrap_err().code(), Code::NothingToResume);
    }
    assert_eq!(graph.state("t").await.unwrap().unwrap().values.paid.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_answer_sent_again_has_the_same_outcome() {
    let (_worker, graph) = serve(server::shared().await, "again").await;
    graph.invoke(Order::update()).thread("t").await.unwrap();
    let send = || graph.resume("yes").thread("t").idempotency_key("the answer").into_future();
    let (one, other) = tokio::join!(send(), send());
    let later = send().await.unwrap().into_finished().unwrap();
    assert_eq!(one.unwrap().into_finished().unwrap(), later);
    assert_eq!(other.unwrap().into_finished().unwrap(), later);
    assert_eq!(later.paid, ["yes"]);
}

/// A program may derive its keys from what it works on, and has one for the question and for its answer.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_with_the_idempotency_key_of_its_question_counts() {
    let (_worker, graph) = serve(server::shared().await, "same-key").await;
    let asks = graph.invoke(Order::update()).thread("t").idempotency_key("order-7").await.unwrap();
    assert_eq!(asks.interrupts().len(), 1);
    let paid = graph.resume("card").thread("t").idempotency_key("order-7").finish().await.unwrap();
    assert_eq!(paid.paid, ["card"]);
}

/// 1,000 threads wait while the server and the worker are killed. Nothing of them runs, and each goes on.
#[tokio::test(flavor = "multi_thread")]
async fn waiting_threads_outlive_everything_and_have_no_invocation() {
    const THREADS: usize = 1_000;
    let mut server = Server::start().await;
    let orders = Orders::new([("waiting".to_owned(), Kind::Asking)]);
    let mut worker = WorkerProcess::start(&orders);
    register(&server.admin, &orders.address()).await;
    let graph: RemoteGraph<Work> = RestateClient::connect(&server.ingress).unwrap().graph("waiting");
    for_all(THREADS, |thread| {
        let call = graph.invoke(input()).thread(thread);
        async move { assert_eq!(call.await.unwrap().interrupts().len(), 2) }
    })
    .await;

    // A call is answered a moment before its invocation is completed.
    server.until_nothing_is_open().await;
    worker.kill();
    server.kill();
    server.restart().await;
    assert_eq!(server.open_invocations().await, 0);
    let _worker = WorkerProcess::start(&orders);
    for_all(THREADS, |thread| {
        let graph = graph.clone();
        async move {
            let mut waits = graph.state(&thread).await.unwrap().unwrap().interrupts;
            while !waits.is_empty() {
                let answers: Vec<_> = waits.iter().map(|one| (one.id.unwrap(), "yes")).collect();
                let outcome = graph.resume_many(answers).thread(&*thread).await.unwrap();
                waits = outcome.interrupts().to_vec();
                if waits.is_empty() {
                    assert!(outcome.into_finished().unwrap().lines.len() > 6);
                }
            }
        }
    })
    .await;
}

/// Does something with each of many threads, 50 at a time.
async fn for_all<F: Future<Output = ()> + Send + 'static>(threads: usize, make: impl Fn(String) -> F) {
    use futures_util::StreamExt;
    let each = (0..threads).map(|n| tokio::spawn(make(format!("t-{n}"))));
    let mut all = futures_util::stream::iter(each).buffer_unordered(50);
    while let Some(done) = all.next().await {
        done.unwrap();
    }
}
