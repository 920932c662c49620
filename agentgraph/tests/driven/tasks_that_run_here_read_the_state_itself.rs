//! A driver that runs tasks in the process of their run hands them the state as it is: nothing is encoded,
//! and the merge does not copy it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::UNIX_EPOCH;

use agentgraph::Code;
use agentgraph::host::{FarSide, Ground, HostedGraph, NeedKind, Reply, RunCall, TaskCall};
use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

static COPIES: AtomicUsize = AtomicUsize::new(0);

/// Text that counts its copies.
#[derive(Serialize, Deserialize, Debug, Default)]
struct Text(String);

impl Clone for Text {
    fn clone(&self) -> Self {
        COPIES.fetch_add(1, Ordering::SeqCst);
        Text(self.0.clone())
    }
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Book {
    text: Text,
    turns: u64,
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Desk {
    turns: u64,
    #[channel(untracked)]
    light: bool,
}

fn book() -> CompiledGraph<Book> {
    async fn turn(book: Snapshot<Book>) -> BookUpdate {
        assert_eq!(book.text.0, "text");
        Book::update().turns(book.turns + 1)
    }
    let graph = StateGraph::new().node("turn", turn).edge(START, "turn");
    let next = |book: &Book| if book.turns < 20 { "turn" } else { END };
    graph.branch("turn", next, ["turn", END]).compile().unwrap()
}

fn ground() -> Ground {
    Ground::new("t", 1, UNIX_EPOCH).journaled().tasks_run_here()
}

/// The first task that a run asks for.
fn first_task(graph: &dyn HostedGraph, call: RunCall) -> TaskCall {
    let mut run = graph.drive(call, ground()).unwrap();
    loop {
        for need in run.needs().unwrap() {
            match need.kind {
                NeedKind::Task(call) => return *call,
                _ => run.give(need.id, Reply::Stored(Ok(()))).unwrap(),
            }
        }
    }
}

#[tokio::test]
async fn no_step_copies_the_state() {
    let graph = book();
    let input = RunCall::invoke::<Book>(&(), &Book::update().text(Text("text".to_owned()))).unwrap();
    let mut run = graph.drive(input, ground()).unwrap();
    let mut copies = Vec::new();
    while run.end().is_none() {
        for need in run.needs().unwrap() {
            let reply = match need.kind {
                NeedKind::Task(call) => {
                    assert!(call.state().is_none());
                    copies.push(COPIES.load(Ordering::SeqCst));
                    Reply::Task(HostedGraph::run_task(&graph, *call, FarSide::new()).await.unwrap())
                }
                _ => Reply::Stored(Ok(())),
            };
            run.give(need.id, reply).unwrap();
        }
    }
    assert!(run.end().unwrap().is_finished());
    assert_eq!(copies, [copies[0]; 20]);
}

#[tokio::test]
async fn a_call_for_another_process_has_its_state_encoded() {
    let input = RunCall::invoke::<Book>(&(), &Book::update().text(Text("text".to_owned()))).unwrap();
    let (here, elsewhere) = (book(), book());
    let mut call = first_task(&here, input);
    assert!(HostedGraph::run_task(&elsewhere, call.clone(), FarSide::new()).await.unwrap().is_done());
    let unencoded: TaskCall = rmp_serde::from_slice(&rmp_serde::to_vec_named(&call).unwrap()).unwrap();
    let error = HostedGraph::run_task(&elsewhere, unencoded, FarSide::new()).await.unwrap_err();
    assert_eq!(error.code(), Code::Host);
    assert!(error.message().contains("has no state"), "{error}");
    call.encode_state().unwrap();
    let hash = call.state_hash();
    let sent: TaskCall = rmp_serde::from_slice(&rmp_serde::to_vec_named(&call).unwrap()).unwrap();
    assert_eq!(sent.state_hash(), hash);
    assert!(HostedGraph::run_task(&elsewhere, sent, FarSide::new()).await.unwrap().is_done());
}

/// A node would see the channel that is never stored here, and not elsewhere.
#[test]
fn a_state_with_untracked_channels_is_encoded() {
    async fn turn(desk: Snapshot<Desk>) -> DeskUpdate {
        Desk::update().turns(desk.turns + 1).light(true)
    }
    let graph = StateGraph::new().node("turn", turn).edge(START, "turn").compile().unwrap();
    let call = first_task(&graph, RunCall::invoke::<Desk>(&(), &Desk::update()).unwrap());
    assert!(call.state().is_some());
}
