use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentgraph::Code;
use agentgraph::checkpoint::Services;
use agentgraph::prelude::*;
use agentgraph::testing::{Probe, TestGraph, VirtualTime};
use futures_util::future::join_all;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{Words, WordsUpdate, note, say};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

proptest! {
    #[test]
    fn waits_end_by_their_length_then_by_their_beginning(waits in proptest::collection::vec(0_u64..6, 1..20)) {
        let time = VirtualTime::new();
        let ended = Mutex::new(Vec::new());
        let sleeps = waits.iter().enumerate().map(|(at, wait)| {
            let (time, ended) = (&time, &ended);
            async move {
                time.sleep(Duration::from_secs(*wait)).await;
                ended.lock().unwrap().push((*wait, at));
            }
        });
        block_on(time.run(join_all(sleeps)));
        let mut sorted: Vec<_> = waits.iter().copied().enumerate().map(|(at, wait)| (wait, at)).collect();
        sorted.sort_unstable();
        prop_assert_eq!(ended.into_inner().unwrap(), sorted);
        prop_assert_eq!(time.elapsed(), Duration::from_secs(waits.iter().copied().max().unwrap()));
    }
}

#[tokio::test]
async fn a_clock_moved_by_hand_ends_what_is_due() {
    let time = VirtualTime::new();
    let mut hour = std::pin::pin!(time.sleep(Duration::from_secs(3600)));
    assert!(futures_util::poll!(&mut hour).is_pending());
    time.advance(Duration::from_secs(3599));
    assert!(futures_util::poll!(&mut hour).is_pending());
    time.advance(Duration::from_secs(1));
    assert!(futures_util::poll!(&mut hour).is_ready());
    assert_eq!(time.waits(), [Duration::from_secs(3600)]);
    assert!(!time.advance_to_next(), "nothing waits");
    assert_eq!(time.now().duration_since(std::time::UNIX_EPOCH).unwrap(), Duration::from_secs(3600));
}

#[tokio::test]
async fn a_dropped_wait_does_not_move_the_clock() {
    let time = VirtualTime::new();
    drop(time.sleep(Duration::from_secs(3600)));
    time.run(time.sleep(Duration::from_secs(1))).await;
    assert_eq!(time.elapsed(), Duration::from_secs(1));
}

fn limited() -> CompiledGraph<Words> {
    async fn slow(probe: Probe) -> WordsUpdate {
        probe.wait(Duration::from_secs(20)).await;
        say("slow")
    }
    let slow = slow.timeout(Duration::from_secs(30)).retry(RetryPolicy::attempts(2));
    StateGraph::new().node("slow", slow).edge(START, "slow").compile().unwrap()
}

#[tokio::test]
async fn a_timeout_fires_after_what_takes_less_and_before_what_takes_more() {
    let trace = TestGraph::of(limited()).trace(Words::update()).await;
    assert_eq!((trace.ran(), trace.elapsed()), (vec!["slow"], Duration::from_secs(20)));

    let trace = TestGraph::of(limited()).delay("slow", Duration::from_secs(11)).trace(Words::update()).await;
    assert_eq!(trace.outcome().unwrap_err().code(), Code::NodeTimeout);
    assert_eq!(trace.attempts("slow"), 2);
    assert_eq!(trace.elapsed(), Duration::from_millis(30_000 + 500 + 30_000));
}

/// A server that answers after the runtime has had many turns.
async fn serve(listener: tokio::net::TcpListener) {
    let (mut socket, _) = listener.accept().await.unwrap();
    for _ in 0..10_000 {
        tokio::task::yield_now().await;
    }
    socket.write_all(b"real").await.unwrap();
}

#[tokio::test]
async fn time_can_be_held_while_a_node_waits_for_a_socket() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(serve(listener));
    let fetch = move || async move {
        let mut text = String::new();
        tokio::net::TcpStream::connect(address).await?.read_to_string(&mut text).await?;
        Ok::<_, agentgraph::BoxError>(say(text))
    };
    let graph = StateGraph::new().node("fetch", fetch.timeout(Duration::from_secs(5))).edge(START, "fetch");
    let graph = graph.node("beside", note).edge(START, "beside").compile().unwrap();
    let test = TestGraph::of(graph).delay("beside", Duration::from_secs(3)).hold_time_for_io();
    let trace = test.trace(Words::update()).await;
    assert_eq!(trace.state().said, ["real", "beside"]);
    server.await.unwrap();
}

#[tokio::test]
async fn work_in_another_task_is_done_before_time_moves() {
    async fn spawned() -> Result<WordsUpdate> {
        let work = tokio::spawn(async {
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            "done"
        });
        Ok(say(work.await?))
    }
    let graph = StateGraph::new().node("spawned", spawned.timeout(Duration::from_secs(1)));
    let trace = TestGraph::of(graph.edge(START, "spawned").compile().unwrap()).trace(Words::update()).await;
    assert_eq!((trace.state().said.clone(), trace.elapsed()), (vec!["done".to_owned()], Duration::ZERO));
}

#[test]
fn the_clock_is_shared_by_its_clones() {
    let time = Arc::new(VirtualTime::new());
    time.clone().advance(Duration::from_secs(5));
    assert_eq!(time.elapsed(), Duration::from_secs(5));
    assert_eq!((time.random(), time.random()), (1, 2));
}
