//! Large values go by their hash to the graph's checkpointer, so that neither a message nor a journal nor the
//! state of a thread meets a limit of the server. Where there is no checkpointer, they are refused with the
//! remedy.

use std::sync::Arc;

use agentgraph::prelude::*;
use agentgraph::{Code, Error};
use agentgraph_restate::{RemoteGraph, RestateClient, RestateWorker, Serving};
use serde::{Deserialize, Serialize};

use crate::common::server::{self, Server};

const MIB: usize = 1024 * 1024;

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Book {
    text: String,
    #[reduce(append)]
    pages: Vec<String>,
    #[reduce(sum)]
    read: u64,
}

async fn serve(server: &Server, name: &str, graph: CompiledGraph<Book>) -> (Serving, RemoteGraph<Book>) {
    let worker = RestateWorker::new().graph(name, graph).register(&server.admin);
    let serving = worker.start("127.0.0.1:0".parse().unwrap()).await.unwrap();
    (serving, RestateClient::connect(&server.ingress).unwrap().graph(name))
}

/// 100 parallel tasks that read the same state.
fn readers() -> CompiledGraph<Book> {
    async fn split() -> Command<Book> {
        Command::to((0..100_u32).map(|page| Dispatch::new("read", page)).collect::<Vec<_>>())
    }
    async fn read(book: Snapshot<Book>) -> BookUpdate {
        Book::update().read(book.text.len() as u64)
    }
    let graph = StateGraph::new().node("split", split.targets(["read"])).node("read", read.remote());
    graph.edge(START, "split").compile().unwrap()
}

/// A node that returns a text of this many MiB.
fn writer(mib: usize) -> CompiledGraph<Book> {
    let write = move || async move { Book::update().text("x".repeat(mib * MIB)) };
    StateGraph::new().node("write", write).edge(START, "write").compile().unwrap()
}

/// 400 supersteps that each add a page of 100 KiB.
fn diary() -> CompiledGraph<Book> {
    async fn page(book: Snapshot<Book>) -> BookUpdate {
        let page = char::from(b'a' + (book.pages.len() % 26) as u8).to_string();
        Book::update().pages([page.repeat(100 * 1024)])
    }
    StateGraph::new()
        .node("page", page)
        .edge(START, "page")
        .branch("page", |book: &Book| if book.pages.len() < 400 { "page" } else { END }, ["page", END])
        .compile()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_state_of_a_fan_out_is_sent_once() {
    let server = Server::start().await;
    let graph = readers().checkpointer(MemorySaver::new());
    let (_worker, graph) = serve(&server, "readers", graph).await;
    let before = server.data_size();
    let input = Book::update().text("x".repeat(MIB));
    let book = graph.invoke(input).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(book.read, 100 * MIB as u64);
    let grown = server.data_size() - before;
    assert!(grown < 16 * MIB as u64, "the server's data grew by {grown} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_checkpointer_a_large_fan_out_is_refused_with_the_remedy() {
    let (_worker, graph) = serve(server::shared().await, "poor-readers", readers()).await;
    let input = Book::update().text("x".repeat(MIB));
    let error = graph.invoke(input).thread("t").await.unwrap_err();
    assert_eq!(error.code(), Code::Host);
    assert!(error.message().contains("attach a checkpointer"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_larger_than_any_message_is_stored_by_its_hash() {
    let graph = writer(40).checkpointer(MemorySaver::new());
    let (_worker, graph) = serve(server::shared().await, "writer", graph).await;
    let book = graph.invoke(Book::update()).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(book.text.len(), 40 * MIB);
    assert_eq!(graph.state("t").await.unwrap().unwrap().values.text.len(), 40 * MIB);
}

/// What fits into the thread fits into the answers about it, which say more than the state alone.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_checkpointer_the_largest_state_of_a_thread_is_answered() {
    const SIZE: usize = 16 * MIB - 300;
    let write = async || Book::update().text("x".repeat(SIZE));
    let graph = StateGraph::new().node("write", write).edge(START, "write").compile().unwrap();
    let (_worker, graph) = serve(server::shared().await, "full-writer", graph).await;
    let book = graph.invoke(Book::update()).thread("t").finish().await.unwrap();
    assert_eq!(book.text.len(), SIZE);
    assert_eq!(graph.state("t").await.unwrap().unwrap().values.text.len(), SIZE);
}

/// A call that goes on in the object of the steps gives it all rows in one message, beside the result and the
/// row that its journal has already.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_checkpointer_the_largest_state_moves_when_its_call_goes_on() {
    // The rows of the steps that follow need some room, too.
    const SIZE: usize = 16 * MIB - 2_000;
    let write = async || Book::update().text("x".repeat(SIZE));
    let read = async |book: Snapshot<Book>| Book::update().read(book.text.len() as u64);
    let graph = StateGraph::new().node("write", write).node("read", read).edge(START, "write");
    let graph = graph.edge("write", "read").compile().unwrap();
    let server = server::shared().await;
    let worker = RestateWorker::new().graph("mover", graph).steps_per_invocation(1).register(&server.admin);
    let _worker = worker.start("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let graph = RestateClient::connect(&server.ingress).unwrap().graph::<Book>("mover");
    let book = graph.invoke(Book::update()).thread("t").finish().await.unwrap();
    assert_eq!((book.text.len(), book.read), (SIZE, SIZE as u64));
    let state = graph.state("t").await.unwrap().unwrap().values;
    assert_eq!((state.text.len(), state.read), (SIZE, SIZE as u64));
    let moved = "select key from state where service_name = 'mover.steps' and starts_with(key, 'r')";
    assert!(!server.query(moved).await.is_empty());
}

/// An error beside a large state is answered, without the state, which the thread has.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_checkpointer_a_large_error_leaves_the_state_in_the_thread() {
    let write = async || Book::update().text("x".repeat(8 * MIB));
    let fail = async || -> Result<BookUpdate> { Err(format!("bad{}", "!".repeat(7 * MIB / 2)).into()) };
    let graph =
        StateGraph::new().node("write", write).node("fail", fail).edge(START, "write").edge("write", "fail");
    let (_worker, graph) = serve(server::shared().await, "large-error", graph.compile().unwrap()).await;
    let error = graph.invoke(Book::update()).thread("t").await.unwrap_err();
    assert_eq!((error.code(), error.state::<Book>().is_none()), (Code::NodeFailed, true));
    assert!(error.message().contains("bad!!!"));
    assert_eq!(graph.state("t").await.unwrap().unwrap().values.text.len(), 8 * MIB);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_checkpointer_a_large_result_is_an_error_of_its_node() {
    let (_worker, graph) = serve(server::shared().await, "poor-writer", writer(40)).await;
    let error: Error = graph.invoke(Book::update()).thread("t").await.unwrap_err();
    assert_eq!(error.code(), Code::Host);
    assert!(error.message().contains("attach a checkpointer"), "{error}");

    let input = Book::update().text("x".repeat(40 * MIB));
    let error = graph.invoke(input).thread("u").await.unwrap_err();
    assert_eq!(error.code(), Code::Encode);
    assert!(error.message().contains("send their names"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_grows_beyond_the_memory_of_an_invocation_goes_on() {
    let saver = Arc::new(MemorySaver::new());
    let (_worker, graph) = serve(server::shared().await, "diary", diary().checkpointer(saver)).await;
    let book = graph.invoke(Book::update()).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(book.pages.iter().map(String::len).sum::<usize>(), 400 * 100 * 1024);
    let again = graph.state("t").await.unwrap().unwrap().values;
    assert_eq!(again, book);
    // Results of 40 MB are in several journals, none of which grows beyond its share.
    let journals = "select id from sys_invocation where target_service_name = 'diary.steps' and target_handler_name = 'drive'";
    assert!(server::shared().await.query(journals).await.len() > 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_checkpointer_a_state_has_a_limit_with_a_remedy() {
    let (_worker, graph) = serve(server::shared().await, "poor-diary", diary()).await;
    let error = graph.invoke(Book::update()).thread("t").await.unwrap_err();
    assert!(error.message().contains("attach a checkpointer"), "{error}");
    // What was stored before is there.
    let pages = graph.state("t").await.unwrap().unwrap().values.pages.len();
    assert!(pages > 100, "{pages}");
}

/// Rows that nothing reads any more are removed from the object: those before a full, and pending writes.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_thread_has_few_rows() {
    async fn turn() -> BookUpdate {
        Book::update().read(1_u64)
    }
    async fn ask(ctx: Ctx) -> Result<BookUpdate> {
        Ok(Book::update().pages([ctx.interrupt::<String>("go on?")?]))
    }
    let server = Server::start().await;
    let graph = StateGraph::new()
        .node("turn", turn)
        .node("ask", ask)
        .node("beside", turn)
        .edge(START, "turn")
        .branch(
            "turn",
            |book: &Book| if book.read < 900 { vec!["turn"] } else { vec!["ask", "beside"] },
            ["turn", "ask", "beside"],
        )
        .compile()
        .unwrap();
    let (_worker, graph) = serve(&server, "turns", graph).await;
    graph.invoke(Book::update()).thread("t").await.unwrap();
    graph.resume("yes").thread("t").await.unwrap().into_finished().unwrap();
    let rows = rows_of(&server, "turns").await;
    assert!(!rows.is_empty() && !rows.iter().any(|row| row.contains(".w")), "{rows:?}");
}

/// Those of subgraph calls whose tasks are merged, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_thread_that_calls_subgraphs_has_few_rows() {
    async fn turn() -> BookUpdate {
        Book::update().read(1_u64)
    }
    let server = server::shared().await;
    let inside = StateGraph::new().node("first", turn).node("second", turn).edge(START, "first");
    let inside = inside.edge("first", "second").compile().unwrap();
    let graph = StateGraph::new()
        .node("chapter", inside)
        .edge(START, "chapter")
        .branch("chapter", |book: &Book| if book.read < 100 { "chapter" } else { END }, ["chapter", END])
        .compile()
        .unwrap();
    let (_worker, graph) = serve(server, "chapters", graph).await;
    let book = graph.invoke(Book::update()).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(book.read, 100);
    let rows = rows_of(server, "chapters").await;
    assert!(!rows.is_empty() && rows.iter().all(|row| row.starts_with('.')), "{rows:?}");
}

/// The keys of the rows that the threads of a graph have. There are fewer than 200 values.
async fn rows_of(server: &Server, graph: &str) -> Vec<String> {
    let sql = format!(
        "select key, value from state where service_name in ('{graph}', '{graph}.steps') and starts_with(key, 'r')"
    );
    let values = server.query(&sql).await;
    assert!((1..200).contains(&values.len()), "{} values", values.len());
    let heads: Vec<_> = values.iter().map(head_of).collect();
    let free = &heads.iter().max_by_key(|head| head.change).unwrap().free;
    heads.iter().filter(|head| !free.contains(&head.slot)).map(|head| head.row.clone()).collect()
}

/// The head of a value of the object.
#[derive(Debug)]
struct Head {
    slot: u32,
    row: String,
    change: u64,
    free: Vec<u32>,
}

/// The server shows bytes in hexadecimal.
fn head_of(value: &serde_json::Value) -> Head {
    let hex = value["value"].as_str().unwrap();
    let bytes: Vec<u8> =
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
    let (row, change, free) =
        Deserialize::deserialize(&mut rmp_serde::Deserializer::new(&bytes[..])).unwrap();
    let slot = value["key"].as_str().unwrap().strip_prefix('r').unwrap().parse().unwrap();
    Head { slot, row, change, free }
}
