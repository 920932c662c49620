//! A worker that could not keep its promises does not serve, and says what to do.

use agentgraph::prelude::*;
use agentgraph::workflow::Workflow;
use agentgraph::{Code, MemorySaver};
use agentgraph_restate::{RestateClient, RestateWorker, ServeError};

use crate::common::graphs::{Built, Kind, Tools, Work, build};
use crate::common::server::{self, free_ports};

fn graph(kind: Kind) -> CompiledGraph<Work> {
    match build(kind, &Tools::none()) {
        Built::State(graph) => graph,
        Built::Pass(_) => unreachable!(),
    }
}

async fn refusal(worker: RestateWorker, addr: &str) -> ServeError {
    worker.start(addr.parse().unwrap()).await.unwrap_err()
}

#[tokio::test]
async fn an_address_that_others_reach_needs_an_identity_key() {
    let worker = RestateWorker::new().graph("chain", graph(Kind::Chain));
    let error = refusal(worker, "0.0.0.0:0").await;
    assert!(matches!(error, ServeError::OpenToAll { .. }), "{error}");
    assert!(error.to_string().contains(".identity_key(..)"), "{error}");
    let error = refusal(RestateWorker::new().identity_key("nonsense"), "0.0.0.0:0").await;
    assert!(matches!(error, ServeError::IdentityKey), "{error}");
}

/// A request without the server's signature is refused by a worker with an identity key.
#[tokio::test]
async fn an_identity_key_keeps_strangers_out() {
    let key = "publickeyv1_w7YHemBctH5Ck2nQRQ47iBBqhNHy4FV7t2Usbye2A6f";
    let worker = RestateWorker::new().graph("chain", graph(Kind::Chain)).identity_key(key);
    let serving = worker.start("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let stream = tokio::net::TcpStream::connect(serving.addr()).await.unwrap();
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut client, connection) =
        hyper::client::conn::http2::handshake(executor, hyper_util::rt::TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = hyper::Request::get(format!("http://{}/discover", serving.addr())).body(String::new());
    let answer = client.send_request(request.unwrap()).await.unwrap();
    assert_eq!(answer.status(), 401);
}

#[tokio::test]
async fn durable_steps_need_a_store_that_all_workers_reach() {
    let error = refusal(RestateWorker::new().graph("pays", graph(Kind::Durable)), "127.0.0.1:0").await;
    assert_eq!(error.code(), Code::NoCheckpointer);
    assert!(error.to_string().contains("`pay`") && error.to_string().contains("attach one"), "{error}");

    let workflow =
        || Workflow::new("order", |items: u32| async move { Ok::<_, Error>(items) }).compile().unwrap();
    let error = refusal(RestateWorker::new().graph("orders", workflow()), "127.0.0.1:0").await;
    assert!(matches!(&error, ServeError::StepsNeedStore { node, .. } if node == "order"), "{error}");
    let kept = workflow().checkpointer(MemorySaver::new());
    assert!(RestateWorker::new().graph("orders", kept).start("127.0.0.1:0".parse().unwrap()).await.is_ok());
}

type Error = std::io::Error;

/// A step that is not declared is found when it is made, and the thread goes on once there is a store.
#[tokio::test(flavor = "multi_thread")]
async fn an_undeclared_durable_step_is_an_error_of_its_node() {
    async fn pay(ctx: Ctx) -> Result<crate::common::graphs::WorkUpdate> {
        let receipt = ctx.once("pay", async { Ok("paid".to_owned()) }).await?;
        Ok(Work::update().lines([receipt]))
    }
    let graph = || StateGraph::new().node("pay", pay).edge(START, "pay").compile().unwrap();
    let server = server::shared().await;
    let loopback = "127.0.0.1:0".parse().unwrap();
    let worker = RestateWorker::new().graph("undeclared", graph()).register(&server.admin);
    let worker = worker.start(loopback).await.unwrap();
    let client = RestateClient::connect(&server.ingress).unwrap().graph::<Work>("undeclared");
    let error = client.invoke(Work::update()).thread("t").await.unwrap_err();
    assert_eq!(error.code(), Code::Once);
    drop(worker);
    let kept = graph().checkpointer(MemorySaver::new());
    let worker = RestateWorker::new().graph("undeclared", kept).register(&server.admin);
    let _worker = worker.start(loopback).await.unwrap();
    assert_eq!(client.proceed().thread("t").await.unwrap().into_finished().unwrap().lines, ["paid"]);
}

#[tokio::test]
async fn names_are_those_of_services_and_belong_to_one_graph() {
    for name in ["", "1st", "a b", "täglich", "a/b"] {
        let error = refusal(RestateWorker::new().graph(name, graph(Kind::Chain)), "127.0.0.1:0").await;
        assert!(matches!(error, ServeError::GraphName { .. }), "{name}: {error}");
    }
    let twice = RestateWorker::new().graph("chain", graph(Kind::Chain)).graph("chain", graph(Kind::Fan));
    assert!(matches!(refusal(twice, "127.0.0.1:0").await, ServeError::TwoGraphs { .. }));
}

#[tokio::test]
async fn an_address_in_use_is_an_error() {
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = held.local_addr().unwrap().to_string();
    assert!(matches!(refusal(RestateWorker::new(), &addr).await, ServeError::Address { .. }));
}

/// The server cannot reach the address under which the worker says that it serves.
#[tokio::test(flavor = "multi_thread")]
async fn a_registration_that_fails_says_why() {
    let server = server::shared().await;
    let [nothing] = free_ports();
    let worker = RestateWorker::new().graph("unreachable", graph(Kind::Chain));
    let worker = worker.register(&server.admin).advertise(format!("http://127.0.0.1:{nothing}"));
    let error = refusal(worker.patience(std::time::Duration::ZERO), "127.0.0.1:0").await;
    assert!(matches!(error, ServeError::Register { .. }), "{error}");
    assert!(error.to_string().contains(&server.admin), "{error}");
}
