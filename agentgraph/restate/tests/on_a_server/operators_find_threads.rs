//! Who operates a server finds its threads by what they do, page by page, whatever their names hold.

use std::time::{Duration, Instant, SystemTime};

use agentgraph::prelude::*;
use agentgraph_restate::{FoundThread, RestateClient, RestateWorker, ThreadSearch, ThreadStatus};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State as Shared};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

use crate::common::server::{Server, http};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Work {
    task: String,
}

async fn work(ctx: Ctx, work: Snapshot<Work>) -> Result<WorkUpdate> {
    match &*work.task {
        "ask" => Ok(Work::update().task(ctx.interrupt::<String>("which?")?)),
        "fail" => Err("no".into()),
        "hang" => std::future::pending().await,
        _ => Ok(Work::update()),
    }
}

async fn all(search: ThreadSearch) -> Vec<FoundThread> {
    let (mut found, mut search) = (Vec::new(), Some(search));
    while let Some(page) = search {
        let page = page.await.unwrap();
        found.extend(page.threads);
        assert!(found.len() < 100, "pages come again: {found:?}");
        search = page.next;
    }
    found
}

/// The first thread of a search, once it is as it should be. The server answers by and by.
async fn until(search: ThreadSearch, is_there: impl Fn(&FoundThread) -> bool) -> FoundThread {
    let begun = Instant::now();
    loop {
        let found = all(search.clone()).await;
        match found.into_iter().next() {
            Some(first) if is_there(&first) => return first,
            first => assert!(begun.elapsed() < Duration::from_secs(60), "{first:?}"),
        }
    }
}

fn names(found: &[FoundThread]) -> Vec<String> {
    found.iter().map(|found| format!("{}/{}", found.graph, found.thread)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn by_graph_status_name_and_time() {
    let server = Server::start().await;
    let graph = || StateGraph::new().node("work", work).edge(START, "work").compile().unwrap();
    let worker = RestateWorker::new().graph("one", graph()).graph("two", graph()).register(&server.admin);
    let worker = worker.start("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let client = RestateClient::builder().admin(&server.admin).connect(&server.ingress).unwrap();
    let task = |task: &str| Work::update().task(task.to_owned());
    let (one, two) = (client.graph::<Work>("one"), client.graph::<Work>("two"));
    let threads = [("a", "ask"), ("b", "done"), ("c", "fail"), ("o'clock", "ask"), ("%_", "done")];
    for (thread, what) in threads {
        let _ = one.invoke(task(what)).thread(thread).await;
    }
    let before = SystemTime::now() - Duration::from_secs(600);
    two.invoke(task("hang")).thread("a").send().await.unwrap();
    two.invoke(task("done")).thread("a").send().await.unwrap();

    let search = || client.search();
    let every = ["one/%_", "one/a", "one/b", "one/c", "one/o'clock"];
    assert_eq!(names(&all(search().graph("one")).await), every);
    for limit in [0, 1, 2, 5, 6] {
        assert_eq!(names(&all(search().graph("one").limit(limit)).await), every, "pages of {limit}");
    }
    let asking = all(search().status(ThreadStatus::Interrupted)).await;
    assert_eq!(names(&asking), ["one/a", "one/o'clock"]);
    // A call is answered a moment before its invocation is completed.
    let asked = until(search().status(ThreadStatus::Interrupted), |found| found.calls == 0).await;
    assert_eq!((asked.interrupts, asked.since), (1, None));
    let failed = all(search().status(ThreadStatus::Failed)).await;
    assert_eq!(
        (names(&failed), failed[0].code.as_deref()),
        (vec!["one/c".to_owned()], Some("E_NODE_FAILED"))
    );
    assert_eq!(names(&all(search().named("o'")).await), ["one/o'clock"]);
    assert_eq!(names(&all(search().named("%")).await), ["one/%_"]);
    assert_eq!(names(&all(search().graph("' or '1'='1")).await), [""; 0]);
    until(search().graph("two").since(before), |found| found.calls == 2).await;
    assert_eq!(all(search().since(before)).await.len(), 6);
    assert!(all(search().since(SystemTime::now() + Duration::from_secs(600))).await.is_empty());

    let running = until(search().status(ThreadStatus::Running), |found| found.calls == 2).await;
    assert_eq!((&*running.graph, &*running.thread), ("two", "a"));
    assert!(running.since.unwrap() > before && running.deployment.is_some());

    // The call behind it is not killed, and finds a run that has not ended.
    assert!(client.kill("two", "a").await.unwrap());
    let ended = |found: &FoundThread| found.calls == 0 && found.status == ThreadStatus::Failed;
    assert_eq!(until(search().graph("two"), ended).await.code.as_deref(), Some("E_RUN_UNFINISHED"));
    assert!(!client.kill("two", "a").await.unwrap());
    drop(worker);
    two.invoke(task("done")).thread("late").send().await.unwrap();
    let queued = until(search().status(ThreadStatus::Queued), |_| true).await;
    assert_eq!((&*queued.graph, &*queued.thread), ("two", "late"));
}

/// Passes requests on. A kill is sent until the server says that its invocation has ended, as if all answers
/// before that one were lost.
async fn losing_answers(to: &str) -> String {
    async fn pass(Shared(to): Shared<String>, request: Request) -> (StatusCode, Bytes) {
        let (parts, body) = request.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        let begun = Instant::now();
        loop {
            let request = http().request(parts.method.clone(), format!("{to}{}", parts.uri));
            let answer = request.headers(parts.headers.clone()).body(body.clone()).send().await.unwrap();
            if !parts.uri.path().ends_with("/kill") || answer.status() == StatusCode::CONFLICT {
                return (answer.status(), answer.bytes().await.unwrap());
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{answer:?}");
        }
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let router = Router::new().fallback(pass).with_state(to.to_owned());
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{addr}")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_ended_when_it_is_killed_is_killed() {
    let server = Server::start().await;
    let graph = StateGraph::new().node("work", work).edge(START, "work").compile().unwrap();
    let worker = RestateWorker::new().graph("hangs", graph).register(&server.admin);
    let _worker = worker.start("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let admin = losing_answers(&server.admin).await;
    let client = RestateClient::builder().admin(&admin).connect(&server.ingress).unwrap();
    let hangs = client.graph::<Work>("hangs");
    hangs.invoke(Work::update().task("hang")).thread("t").send().await.unwrap();
    until(client.search().status(ThreadStatus::Running), |found| found.calls == 1).await;
    assert!(client.kill("hangs", "t").await.unwrap());
}

#[tokio::test]
async fn a_client_without_the_admin_api_says_what_it_needs() {
    let client = RestateClient::connect("http://127.0.0.1:9").unwrap();
    let refused = client.search().await.unwrap_err();
    assert!(refused.message().contains(".admin(url)"), "{refused}");
    assert!(client.kill("one", "a").await.unwrap_err().message().contains(".admin(url)"));
    assert!(RestateClient::builder().admin("nowhere").connect("http://127.0.0.1:9").is_err());
}
