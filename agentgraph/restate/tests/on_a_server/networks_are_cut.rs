//! A network between server and worker that is cut for half a minute loses nothing.

use std::time::Duration;

use agentgraph_restate::RestateClient;
use tokio::task::JoinSet;

use crate::common::graphs::Kind;
use crate::common::marks::{MarkFile, What};
use crate::common::meter::Meter;
use crate::common::rules;
use crate::common::server::{self, fresh_folder};
use crate::common::stories::{Ended, Remote, local, same_end};
use crate::common::worker_process::{Orders, WorkerProcess, register};

/// How long the network is cut.
const CUT: Duration = Duration::from_secs(30);

/// How the network is cut.
#[derive(Clone, Copy, Debug)]
enum How {
    /// Nothing passes for a while, then everything that was sent arrives.
    Held,
    /// Connections break, and new ones are not answered for a while.
    Broken,
}

async fn cut(how: How, name: &str) {
    let server = server::shared().await;
    let folder = fresh_folder();
    let marks = MarkFile::new(&folder);
    let graph_name = |kind: Kind| format!("{name}-{kind:?}");
    let mut orders = Orders::new(Kind::ALL.map(|kind| (graph_name(kind), kind)));
    orders.pause_ms = 30;
    let orders = orders.saver(&folder.join("history.db")).marks(marks.path());
    let _worker = WorkerProcess::start(&orders);
    let meter = Meter::start(orders.port).await;
    register(&server.admin, &meter.address).await;
    let client = RestateClient::connect(&server.ingress).unwrap();
    let mut runs = JoinSet::new();
    for kind in Kind::ALL {
        let graph = Remote::new(&client, &graph_name(kind), kind);
        runs.spawn(async move {
            let thread = format!("{kind:?}");
            let last = graph.run(&thread).await;
            (kind, Ended { last, history: graph.history(&thread).await })
        });
    }
    while marks.read().iter().filter(|mark| mark.what == What::Ended).count() < 15 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    match how {
        How::Held => meter.hold(),
        How::Broken => meter.cut(),
    }
    tokio::time::sleep(CUT).await;
    meter.mend();
    while let Some(run) = runs.join_next().await {
        let (kind, end) = run.unwrap();
        assert!(same_end(kind, &end, &local(kind).await), "{kind:?}: {end:?}");
        rules::check(
            kind,
            &marks.of(&format!("{kind:?}")),
            match how {
                How::Held => 0,
                How::Broken => 1,
            },
        );
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_holds_everything_back_costs_time_only() {
    cut(How::Held, "held").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_breaks_has_tasks_in_flight_run_again() {
    cut(How::Broken, "broken").await;
}
