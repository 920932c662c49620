//! With a key ring nothing that a caller or a node says is in the server in clear. Without one a graph with
//! secret channels is refused.

use agentgraph::checkpoint::{EncryptionKey, KeyRing};
use agentgraph::prelude::*;
use agentgraph::{BoxError, Code};
use agentgraph_restate::{RemoteGraph, RestateClient, RestateWorker, ServeError, Serving};
use serde::{Deserialize, Serialize};

use crate::common::server::{self, Server};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Login {
    user: String,
    #[channel(secret)]
    token: String,
}

async fn check(login: Snapshot<Login>) -> LoginUpdate {
    Login::update().user(format!("{}, who knows {}", login.user, login.token))
}

async fn ask(ctx: Ctx) -> Result<LoginUpdate> {
    let answer: String = ctx.interrupt("what is the password?")?;
    Ok(Login::update().token(answer))
}

async fn fail(login: Snapshot<Login>) -> Result<LoginUpdate> {
    Err(format!("{} is wrong", login.token).into())
}

fn login() -> CompiledGraph<Login> {
    StateGraph::new()
        .node("check", check)
        .node("again", check.remote())
        .node("ask", ask)
        .node("fail", fail)
        .edge(START, "check")
        .edge(START, "ask")
        .edge("check", "again")
        .edge(["again", "ask"], "fail")
        .compile()
        .unwrap()
}

fn keys(name: &str, byte: u8) -> KeyRing {
    KeyRing::new(name, EncryptionKey::from_bytes([byte; 32])).unwrap()
}

fn loopback() -> std::net::SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

async fn serve(server: &Server, name: &str, keys: KeyRing) -> (Serving, RemoteGraph<Login>) {
    let worker = RestateWorker::new().graph(name, login()).encryption(keys.clone()).register(&server.admin);
    let client = RestateClient::connect(&server.ingress).unwrap().encryption(keys);
    (worker.start(loopback()).await.unwrap(), client.graph(name))
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_in_the_server_in_clear() {
    let server = Server::start().await;
    let (_worker, graph) = serve(&server, "login", keys("k1", 1)).await;
    let secret = |what: &str| format!("{what}-{}", uuid::Uuid::new_v4());
    let (user, token, answer, header) = (secret("user"), secret("token"), secret("answer"), secret("header"));
    let outcome =
        graph.invoke(Login::update().user(&*user).token(&*token)).thread("t-1").header("x-user", &*header);
    assert_eq!(outcome.await.unwrap().interrupts()[0].value, "what is the password?");
    let error = graph.resume(&*answer).thread("t-1").await.unwrap_err();
    assert!(error.message().contains(&*answer), "{error}");
    assert!(graph.state("t-1").await.unwrap().unwrap().values.user.contains(&*token));
    assert!(server.data_contains(b"login.steps"), "names stay readable, and the search finds them");
    for secret in [&user, &token, &answer, &header, "what is the password?"] {
        assert!(!server.data_contains(secret.as_bytes()), "{secret} is in the server");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_changed_while_threads_wait() {
    let server = server::shared().await;
    let (worker, graph) = serve(server, "rotated", keys("k1", 1)).await;
    graph.invoke(Login::update().user("Ada").token("t")).thread("t-1").await.unwrap();
    drop(worker);
    let newer = keys("k2", 2).older("k1", EncryptionKey::from_bytes([1; 32])).unwrap();
    let (_worker, graph) = serve(server, "rotated", newer).await;
    let error = graph.resume("hunter2").thread("t-1").await.unwrap_err();
    assert_eq!(error.code(), Code::NodeFailed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_side_without_the_key_is_told_so() {
    let server = server::shared().await;
    let (_worker, _) = serve(server, "locked", keys("k1", 1)).await;
    let client = RestateClient::connect(&server.ingress).unwrap();
    let call = |client: RestateClient| {
        client.graph::<Login>("locked").invoke(Login::update().user("Ada")).thread("t").into_future()
    };
    assert_eq!(call(client.clone()).await.unwrap_err().code(), Code::NotEncrypted);
    assert_eq!(call(client.encryption(keys("k9", 9))).await.unwrap_err().code(), Code::UnknownKey);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_graph_with_secrets_is_refused_without_keys() {
    let error = RestateWorker::new().graph("login", login()).start(loopback()).await.unwrap_err();
    assert!(matches!(error, ServeError::SecretNeedsKey { .. }), "{error}");
    assert_eq!(error.code(), Code::SecretNeedsKey);
    assert!(error.to_string().contains(".encryption(keys)"), "{error}");
}

/// A context is made where a task runs, from the headers of the call and the thread; the caller's gateway may
/// add headers of its own.
#[tokio::test(flavor = "multi_thread")]
async fn contexts_are_made_by_the_worker_and_never_sent() {
    struct Caller {
        user: String,
        thread: String,
    }
    async fn greet(ctx: Ctx, caller: CallContext<Caller>) -> LoginUpdate {
        Login::update().user(format!("{} in {} at {}", caller.user, caller.thread, ctx.node()))
    }
    let inner = StateGraph::new().node("deep", greet).edge(START, "deep").compile().unwrap();
    let graph = StateGraph::new()
        .node("here", greet)
        .node("far", greet.remote())
        .node("inner", inner)
        .edge(START, "here")
        .edge("here", "far")
        .edge("far", "inner")
        .compile()
        .unwrap();
    let server = server::shared().await;
    let worker = RestateWorker::new().graph("greets", graph).encryption(keys("k1", 1)).context_from(
        |headers, thread| -> Result<Caller, BoxError> {
            let user = headers.get("x-user").ok_or("the header x-user is missing")?.to_owned();
            Ok(Caller { user, thread: thread.to_owned() })
        },
    );
    let _worker = worker.register(&server.admin).start(loopback()).await.unwrap();
    let client = RestateClient::connect(&server.ingress).unwrap().encryption(keys("k1", 1));
    let graph = client.graph::<Login>("greets");
    let outcome = graph.invoke(Login::update()).thread("t").header("X-User", "ada").await.unwrap();
    assert_eq!(outcome.into_finished().unwrap().user, "ada in t at deep");

    let error = graph.invoke(Login::update()).thread("u").await.unwrap_err();
    assert_eq!(error.code(), Code::Host);
    assert!(error.message().contains("x-user is missing"), "{error}");
    let outcome = graph.proceed().thread("u").header("x-user", "bob").await.unwrap();
    assert_eq!(outcome.into_finished().unwrap().user, "bob in u at deep");
}
