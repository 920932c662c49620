//! A thread goes on in the newest deployment from one invocation to the next. If its graph does not fit, it
//! is refused with the remedy, and goes on where it fits.

use std::collections::BTreeMap;
use std::sync::Arc;

use agentgraph::prelude::*;
use agentgraph::{Code, Error, StopReason};
use agentgraph_restate::{RemoteGraph, RestateClient, RestateWorker, Serving};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::common::server::{self, Server};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Count {
    #[reduce(append)]
    seen: Vec<String>,
}

/// A loop of twelve supersteps. Each step shows the version that made it, and needs a permit.
fn graph(version: &'static str, may_go_on: &Arc<Semaphore>, node: &'static str) -> CompiledGraph<Count> {
    let may_go_on = Arc::clone(may_go_on);
    let step = move || {
        let may_go_on = Arc::clone(&may_go_on);
        async move {
            may_go_on.acquire().await?.forget();
            Ok::<_, agentgraph::BoxError>(Count::update().seen([version]))
        }
    };
    StateGraph::new()
        .node(node, step)
        .edge(START, node)
        .branch(node, move |count: &Count| if count.seen.len() < 12 { node } else { END }, [node, END])
        .compile()
        .unwrap()
}

/// Serves a version under an address of its own, which makes it another deployment.
async fn deploy(server: &Server, name: &str, graph: CompiledGraph<Count>) -> Serving {
    let worker = RestateWorker::new().graph(name, graph).steps_per_invocation(3);
    worker.register(&server.admin).start("127.0.0.1:0".parse().unwrap()).await.unwrap()
}

fn remote(server: &Server, name: &str) -> RemoteGraph<Count> {
    RestateClient::connect(&server.ingress).unwrap().graph(name)
}

type Call = tokio::task::JoinHandle<Result<Outcome<Count>, Error>>;

fn invoke(graph: &RemoteGraph<Count>) -> Call {
    tokio::spawn(graph.invoke(Count::update()).thread("t").into_future())
}

/// Waits until the thread has made these steps.
async fn has_made(graph: &RemoteGraph<Count>, steps: usize) {
    loop {
        let state = graph.state("t").await.unwrap();
        if state.is_some_and(|state| state.values.seen.len() >= steps) {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_in_the_new_deployment_between_two_supersteps() {
    let server = server::shared().await;
    let permits = Arc::new(Semaphore::new(4));
    let _old = deploy(server, "migrates", graph("old", &permits, "step")).await;
    let remote = remote(server, "migrates");
    let call = invoke(&remote);
    has_made(&remote, 4).await;
    let _new = deploy(server, "migrates", graph("new", &permits, "step")).await;
    permits.add_permits(100);
    let seen = call.await.unwrap().unwrap().into_finished().unwrap().seen;
    // The invocation that was under way ends with the code that it began with: its journal belongs to it.
    let expected = [["old"; 6], ["new"; 6]].concat();
    assert_eq!(seen, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_graph_that_does_not_fit_is_refused_and_the_thread_goes_on_where_it_fits() {
    let server = server::shared().await;
    let permits = Arc::new(Semaphore::new(4));
    let _old = deploy(server, "refused", graph("old", &permits, "step")).await;
    let remote = remote(server, "refused");
    let call = invoke(&remote);
    has_made(&remote, 4).await;
    let _new = deploy(server, "refused", graph("new", &permits, "renamed")).await;
    permits.add_permits(100);
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(error.code(), Code::GraphChanged);
    assert!(error.message().contains("`step`"), "{error}");

    let again = remote.proceed().thread("t").await.unwrap_err();
    assert_eq!(again.code(), Code::GraphChanged);
    let _mended = deploy(server, "refused", graph("mended", &permits, "step")).await;
    let seen = remote.proceed().thread("t").await.unwrap().into_finished().unwrap().seen;
    assert_eq!(seen, [["old"; 6], ["mended"; 6]].concat());
}

/// The rows of the object of callers are cleared one after the other when they have moved. Between two clears
/// a reader finds some of them, with the mark that comes first.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_between_two_clears_of_moved_rows_reads_the_thread_where_it_is() {
    let server = server::shared().await;
    let permits = Arc::new(Semaphore::new(2));
    let _worker = deploy(server, "cleared", graph("only", &permits, "step")).await;
    let remote = remote(server, "cleared");
    let call = invoke(&remote);
    has_made(&remote, 2).await;
    let mut state = state_of(server, "cleared").await;
    permits.add_permits(100);
    assert_eq!(call.await.unwrap().unwrap().into_finished().unwrap().seen.len(), 12);

    let journal = "select entry_type, entry_json from sys_journal journal join sys_invocation invocation on \
         invocation.id = journal.id where target_service_name = 'cleared' and target_handler_name = 'call' \
         order by index";
    let entries = server.query(journal).await;
    let first = |kind: &str, key: &str| {
        let is_it = |entry: &serde_json::Value| {
            entry["entry_type"] == kind && entry["entry_json"].to_string().contains(key)
        };
        entries.iter().position(is_it).unwrap_or_else(|| panic!("no {kind} of {key}: {entries:?}"))
    };
    assert!(first("Command: SetState", "moved") < first("Command: ClearState", "r0"));

    // As it is between the clears: the mark is there, and so are rows.
    assert!(state.keys().any(|key| key.starts_with('r')), "{state:?}");
    state.insert("moved".to_owned(), Vec::new());
    let change = serde_json::json!({ "object_key": "t", "new_state": &state });
    let url = format!("{}/services/cleared/state", server.admin);
    server::http().post(url).json(&change).send().await.unwrap().error_for_status().unwrap();
    let begun = std::time::Instant::now();
    while state_of(server, "cleared").await != state {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60));
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(remote.state("t").await.unwrap().unwrap().values.seen.len(), 12);
    let again = remote.invoke(Count::update()).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(again.seen.len(), 13);
}

/// What the object of the callers of thread `t` has.
async fn state_of(server: &Server, service: &str) -> BTreeMap<String, Vec<u8>> {
    let rows = server.query(&format!("select key, value from state where service_name = '{service}'")).await;
    let value = |row: &serde_json::Value| {
        let (key, hex) = (row["key"].as_str().unwrap(), row["value"].as_str().unwrap());
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (key.to_owned(), (0..hex.len()).step_by(2).map(byte).collect())
    };
    rows.iter().map(value).collect()
}

/// Requests under way when a worker stops end or go to the next one; no task is cut off.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_stopped_ends_its_task_and_another_goes_on() {
    let server = server::shared().await;
    let permits = Arc::new(Semaphore::new(2));
    let first = deploy(server, "stopped", graph("first", &permits, "step")).await;
    let addr = first.addr();
    let remote = remote(server, "stopped");
    let call = invoke(&remote);
    has_made(&remote, 2).await;
    let stopping = tokio::spawn(first.stop());
    tokio::task::yield_now().await;
    // The third task is under way. It ends in the first worker, and is the last one there.
    permits.add_permits(1);
    stopping.await.unwrap();
    permits.add_permits(100);
    let second =
        RestateWorker::new().graph("stopped", graph("second", &permits, "step")).steps_per_invocation(3);
    let _second = second.start(addr).await.unwrap();
    let seen = call.await.unwrap().unwrap().into_finished().unwrap().seen;
    assert_eq!(seen, [vec!["first"; 3], vec!["second"; 9]].concat());
}

/// A limit of the caller holds over all invocations of the call.
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_holds_over_all_invocations_of_a_call() {
    let server = server::shared().await;
    let permits = Arc::new(Semaphore::new(100));
    let _worker = deploy(server, "limited", graph("only", &permits, "step")).await;
    let remote = remote(server, "limited");
    let outcome = remote.invoke(Count::update()).thread("t").max_supersteps(7).await.unwrap();
    assert!(matches!(outcome, Outcome::Stopped { reason: StopReason::Limit, .. }), "{outcome:?}");
    assert_eq!(outcome.output().seen.len(), 7);
    let rest = remote.proceed().thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(rest.seen.len(), 12);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loop_of_ten_thousand_steps_is_twenty_invocations() {
    #[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
    struct Rounds {
        made: u64,
    }
    async fn turn(rounds: Snapshot<Rounds>) -> RoundsUpdate {
        Rounds::update().made(rounds.made + 1)
    }
    let next = |rounds: &Rounds| if rounds.made < 10_000 { "turn" } else { END };
    let graph = StateGraph::new().node("turn", turn).edge(START, "turn").branch("turn", next, ["turn", END]);
    let server = server::shared().await;
    let worker = RestateWorker::new().graph("rounds", graph.compile().unwrap()).register(&server.admin);
    let _worker = worker.start("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let graph = RestateClient::connect(&server.ingress).unwrap().graph::<Rounds>("rounds");
    let outcome = graph.invoke(Rounds::update()).thread("t").max_supersteps(20_000).await.unwrap();
    assert_eq!(outcome.into_finished().unwrap().made, 10_000);
    let invocations = "select id from sys_invocation where target_service_name = 'rounds.steps' and target_handler_name = 'drive'";
    assert_eq!(server.query(invocations).await.len() + 1, 20);
}

/// A short call takes three entries more than a handler that keeps its state in one value: its status at the
/// beginning and at the end, and its input.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_twelve_steps_is_one_invocation_with_nearly_the_fewest_entries() {
    let server = server::shared().await;
    let graph = graph("only", &Arc::new(Semaphore::new(100)), "step");
    let worker = RestateWorker::new().graph("short", graph).register(&server.admin);
    let _worker = worker.start("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let remote = remote(server, "short");
    let seen = remote.invoke(Count::update()).thread("t").await.unwrap().into_finished().unwrap().seen;
    assert_eq!(seen.len(), 12);
    let sql = "select journal.id, entry_type from sys_journal journal join sys_invocation invocation \
         on invocation.id = journal.id where target_service_name in ('short', 'short.steps') \
         and entry_type not like '%Sleep%'";
    let begun = std::time::Instant::now();
    let entries = loop {
        let entries = server.query(sql).await;
        if entries.iter().any(|entry| entry["entry_type"] == "Command: Output") {
            break entries;
        }
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{entries:?}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    // Input, answer and the state, and of each step its beginning, its end and the state.
    let fewest = 3 + 12 * 3;
    assert!(entries.len() <= fewest + 3, "{} entries: {entries:?}", entries.len());
    assert!(entries.iter().all(|entry| entry["id"] == entries[0]["id"]), "{entries:?}");
}
