//! A worker that is killed at any entry of a journal, or at random, loses nothing: every run ends as it ends
//! locally, and no finished task runs again.

use std::future::IntoFuture;
use std::time::Duration;

use agentgraph_restate::RestateClient;

use crate::common::graphs::{Kind, Work, input};
use crate::common::marks::MarkFile;
use crate::common::meter::Meter;
use crate::common::rules;
use crate::common::server::{self, Server, fresh_folder};
use crate::common::stories::{Ended, Remote, local, same_end};
use crate::common::worker_process::{Orders, WorkerProcess, register};

/// Kills the worker at every frame that it sends, until a run has no further frame.
async fn kill_at_every_entry(kind: Kind, share: Option<u64>) {
    let server = server::shared().await;
    let folder = fresh_folder();
    let marks = MarkFile::new(&folder);
    let name = format!("killed-{kind:?}-{}", share.unwrap_or_default());
    let mut orders = Orders::new([(name.clone(), kind)]).marks(marks.path());
    // Rows that are lost as they move would be read from a history.
    if share.is_none() {
        orders = orders.saver(&folder.join("history.db"));
    }
    // The beginning of a node that waits is a frame of its own.
    orders.pause_ms = 1;
    orders.share = share;
    let mut worker = WorkerProcess::start(&orders);
    let meter = Meter::start(orders.port).await;
    register(&server.admin, &meter.address).await;
    let graph = Remote::new(&RestateClient::connect(&server.ingress).unwrap(), &name, kind);
    let here = local(kind).await;

    let mut kills = 0;
    for frame in 1.. {
        // The frame passes, or it is lost with the worker.
        let passes = frame % 2 == 0;
        let thread = format!("{frame}");
        meter.cut_at(frame, passes);
        let mut run = std::pin::pin!(graph.run(&thread));
        let last = tokio::select! {
            last = &mut run => last,
            () = meter.is_cut() => {
                worker.kill();
                worker = WorkerProcess::start(&orders);
                meter.mend();
                kills += 1;
                run.await
            }
        };
        let was_cut = kills == frame;
        meter.mend();
        let history = match share {
            None => graph.history(&thread).await,
            Some(_) => here.history.clone(),
        };
        let there = Ended { last, history };
        assert!(same_end(kind, &there, &here), "killed at frame {frame}, which passes: {passes}: {there:?}");
        rules::check(kind, &marks.of(&thread), usize::from(was_cut));
        if !was_cut {
            break;
        }
    }
    assert!(kills > 6, "{kind:?} was killed only {kills} times");
    std::fs::remove_dir_all(folder).unwrap();
}

macro_rules! kill_at_every_entry {
    ($($name:ident: $kind:ident,)*) => {$(
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            kill_at_every_entry(Kind::$kind, None).await;
        }
    )*};
}

kill_at_every_entry! {
    at_every_entry_of_a_chain: Chain,
    at_every_entry_of_a_fan: Fan,
    at_every_entry_of_an_eager_graph: Eager,
    at_every_entry_of_a_pass: Pass,
    at_every_entry_of_graphs_in_graphs: Nested,
    at_every_entry_of_an_edited_graph: Edited,
    at_every_entry_of_a_graph_that_asks: Asking,
    at_every_entry_of_a_graph_that_tries_again: Retried,
    at_every_entry_of_a_session: Session,
    at_every_entry_of_durable_steps: Durable,
}

/// Each superstep is of another invocation, and after the first one the rows move.
#[tokio::test(flavor = "multi_thread")]
async fn at_every_entry_of_a_call_of_several_invocations() {
    kill_at_every_entry(Kind::Chain, Some(1)).await;
}

/// A worker that runs threads of all kinds is killed again and again.
async fn kill_at_random(server: &Server, prefix: &str) {
    const KILLS: usize = 6;
    let folder = fresh_folder();
    let marks = MarkFile::new(&folder);
    let name = |kind: Kind| format!("{prefix}-{kind:?}");
    let mut orders = Orders::new(Kind::ALL.map(|kind| (name(kind), kind)));
    orders.pause_ms = 30;
    let orders = orders.saver(&folder.join("history.db")).marks(marks.path());
    let mut worker = WorkerProcess::start(&orders);
    register(&server.admin, &orders.address()).await;
    let client = RestateClient::connect(&server.ingress).unwrap();

    let mut runs = tokio::task::JoinSet::new();
    for (kind, n) in Kind::ALL.into_iter().flat_map(|kind| (0..3).map(move |n| (kind, n))) {
        let graph = Remote::new(&client, &name(kind), kind);
        runs.spawn(async move {
            let thread = format!("{kind:?}-{n}");
            let last = graph.run(&thread).await;
            let history = graph.history(&thread).await;
            (kind, thread, Ended { last, history })
        });
    }
    for kill in 0..KILLS {
        tokio::time::sleep(Duration::from_millis(150 + 67 * kill as u64 % 200)).await;
        worker.kill();
        worker = WorkerProcess::start(&orders);
    }
    while let Some(run) = runs.join_next().await {
        let (kind, thread, end) = run.unwrap();
        assert!(same_end(kind, &end, &local(kind).await), "{thread}: {end:?}");
        rules::check(kind, &marks.of(&thread), KILLS);
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn at_random() {
    kill_at_random(server::shared().await, "random").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_random_when_every_await_is_replayed() {
    kill_at_random(server::that_suspends_at_once().await, "random-replayed").await;
}

/// A node that ends its process would end one worker after the other.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_ends_its_process_is_given_up() {
    let server = server::shared().await;
    let folder = fresh_folder();
    let marks = MarkFile::new(&folder);
    let mut orders = Orders::new([]).marks(marks.path());
    orders.deadly = true;
    let mut worker = WorkerProcess::start(&orders);
    register(&server.admin, &orders.address()).await;
    let graph = RestateClient::connect(&server.ingress).unwrap().graph::<Work>("deadly");
    let run = tokio::spawn(graph.invoke(input()).thread("t").into_future());
    while !run.is_finished() {
        if worker.has_ended() {
            worker = WorkerProcess::begin(&orders);
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let end = run.await.unwrap().unwrap().into_finished().unwrap();
    assert_eq!(end.lines[1..], ["E_WORKER_LOST@1"; 2]);
    for node in ["here", "far"] {
        let begun = marks.of("t").into_iter().filter(|mark| mark.node == node).count();
        // The first death may come before the server has stored that the node began.
        assert!((3..=4).contains(&begun), "{node} has cost {begun} workers");
    }
    std::fs::remove_dir_all(folder).unwrap();
}
