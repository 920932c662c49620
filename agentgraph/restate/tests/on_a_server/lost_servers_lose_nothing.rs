//! A server that is killed, or a node of a cluster that is lost, loses nothing: every run ends as it ends
//! locally, and only tasks in flight run again.

use std::time::Duration;

use agentgraph_restate::RestateClient;
use tokio::task::JoinSet;

use crate::common::graphs::Kind;
use crate::common::marks::{MarkFile, What};
use crate::common::rules;
use crate::common::server::{Server, fresh_folder};
use crate::common::stories::{Ended, Remote, local, same_end};
use crate::common::worker_process::{Orders, WorkerProcess, register};

/// Runs under way, and what their nodes do.
struct Bed {
    folder: std::path::PathBuf,
    marks: MarkFile,
    workers: Vec<WorkerProcess>,
    runs: JoinSet<(Kind, String, Ended)>,
}

impl Bed {
    /// Starts workers, each registered at the admin API, and runs of the kinds through the ingresses by
    /// turns.
    async fn start(admin: &str, ingresses: &[&str], kinds: &[Kind], each: usize, pause_ms: u64) -> Bed {
        let folder = fresh_folder();
        let marks = MarkFile::new(&folder);
        let mut orders = Orders::new(kinds.iter().map(|kind| (format!("lost-{kind:?}"), *kind)));
        orders.pause_ms = pause_ms;
        let orders = orders.saver(&folder.join("history.db")).marks(marks.path());
        let workers = vec![WorkerProcess::start(&orders)];
        register(admin, &orders.address()).await;
        let mut runs = JoinSet::new();
        for n in 0..each {
            for kind in kinds.iter().copied() {
                let client = RestateClient::connect(ingresses[n % ingresses.len()]).unwrap();
                let graph = Remote::new(&client, &format!("lost-{kind:?}"), kind);
                runs.spawn(async move {
                    let thread = format!("{kind:?}-{n}");
                    let last = graph.run(&thread).await;
                    let history = graph.history(&thread).await;
                    (kind, thread, Ended { last, history })
                });
            }
        }
        Bed { folder, marks, workers, runs }
    }

    /// Waits until this many tasks have ended.
    async fn ended(&self, tasks: usize) {
        while self.marks.read().iter().filter(|mark| mark.what == What::Ended).count() < tasks {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn all_end_as_locally(mut self, interruptions: usize) {
        while let Some(run) = self.runs.join_next().await {
            let (kind, thread, end) = run.unwrap();
            assert!(same_end(kind, &end, &local(kind).await), "{thread}: {end:?}");
            rules::check(kind, &self.marks.of(&thread), interruptions);
        }
        drop(self.workers);
        std::fs::remove_dir_all(self.folder).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed() {
    let mut server = Server::start().await;
    let bed = Bed::start(&server.admin, &[&server.ingress], &Kind::ALL, 2, 30).await;
    for tasks in [15, 60] {
        bed.ended(tasks).await;
        server.kill();
        server.restart().await;
    }
    bed.all_end_as_locally(2).await;
}

/// How often a cluster may elect leaders of its partitions until it has got over the loss of a node. Each
/// election interrupts what the leader before had in flight, and a busy machine needs more than one.
const ELECTIONS: usize = 4;

/// 100 runs with fan-outs, interrupts, subgraphs and edits are under way when the node is lost that has set
/// up the cluster.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_of_a_cluster_that_is_killed() {
    let mut nodes = Server::cluster(3).await;
    let ingresses = [&*nodes[1].ingress.clone(), &*nodes[2].ingress.clone()];
    let kinds = [Kind::Fan, Kind::Asking, Kind::Nested, Kind::Edited];
    let bed = Bed::start(&nodes[0].admin, &ingresses, &kinds, 25, 30).await;
    bed.ended(150).await;
    nodes[0].kill();
    bed.all_end_as_locally(ELECTIONS).await;
}
