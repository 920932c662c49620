//! Workers may be away for as long as it takes: calls under way and new ones go on when they are back,
//! although the server pauses what fails too often.

use std::time::{Duration, Instant};

use agentgraph_restate::RestateClient;

use crate::common::graphs::Kind;
use crate::common::marks::MarkFile;
use crate::common::server::{Server, fresh_folder};
use crate::common::stories::{Ended, Remote, local, same_end};
use crate::common::worker_process::{Orders, WorkerProcess, register};

/// The attempts after which the server pauses an invocation, unless its handler says otherwise.
const ATTEMPTS: u32 = 3;

#[tokio::test(flavor = "multi_thread")]
async fn calls_go_on_by_themselves_when_workers_are_back() {
    let server = Server::that_pauses_after(ATTEMPTS).await;
    let folder = fresh_folder();
    let marks = MarkFile::new(&folder);
    let mut orders = Orders::new([("outage".to_owned(), Kind::Fan)]);
    orders.pause_ms = 50;
    let orders = orders.saver(&folder.join("history.db")).marks(marks.path());
    let mut worker = WorkerProcess::start(&orders);
    register(&server.admin, &orders.address()).await;
    let graph = || Remote::new(&RestateClient::connect(&server.ingress).unwrap(), "outage", Kind::Fan);
    let run = |thread: &'static str| {
        let graph = graph();
        tokio::spawn(async move {
            let last = graph.run(thread).await;
            Ended { last, history: graph.history(thread).await }
        })
    };
    let mut runs = vec![run("before")];
    while marks.read().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    worker.kill();
    runs.push(run("meanwhile"));
    let begun = Instant::now();
    let tried = format!("select id from sys_invocation where retry_count > {}", 2 * ATTEMPTS);
    while server.query(&tried).await.len() < 2 {
        let paused = server.query("select id from sys_invocation where status = 'paused'").await;
        assert!(paused.is_empty(), "the server has paused {} invocations", paused.len());
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", server.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let _worker = WorkerProcess::start(&orders);
    for run in runs {
        let end = run.await.unwrap();
        assert!(same_end(Kind::Fan, &end, &local(Kind::Fan).await), "{end:?}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}
