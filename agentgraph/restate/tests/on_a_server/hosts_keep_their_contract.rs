//! The conformance kit of hosts: workers on a server hold every clause.

use std::path::PathBuf;
use std::sync::Mutex;

use agentgraph::BoxError;
use agentgraph::host::{RunCall, RunEnd, ThreadState};
use agentgraph_host_conformance::{self as conformance, Ability, HostUnderTest, Notes};
use agentgraph_restate::{RemoteThreads, RestateClient};

use crate::common::server::{self, Server, fresh_folder};
use crate::common::worker_process::{Orders, WorkerProcess, patient, register};

/// The graphs of the kit at a worker in a process of its own.
struct Cluster {
    client: RestateClient,
    orders: Orders,
    worker: Mutex<WorkerProcess>,
    folder: PathBuf,
}

impl Cluster {
    async fn start(server: &Server, share: Option<u64>) -> Self {
        let folder = fresh_folder();
        let mut orders = Orders::new([]).saver(&folder.join("history.db"));
        orders.notes = Some(folder.join("notes"));
        orders.share = share;
        let worker = WorkerProcess::start(&orders);
        register(&server.admin, &orders.address()).await;
        let client = RestateClient::connect(&server.ingress).unwrap();
        Cluster { client, orders, worker: Mutex::new(worker), folder }
    }

    fn threads(&self, graph: &str) -> RemoteThreads {
        self.client.threads(graph)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.worker.get_mut().unwrap().kill();
        std::fs::remove_dir_all(&self.folder).ok();
    }
}

#[async_trait::async_trait]
impl HostUnderTest for Cluster {
    async fn call(&self, graph: &str, thread: &str, call: RunCall) -> Result<RunEnd, BoxError> {
        Ok(self.threads(graph).call(thread, call).await?)
    }

    async fn state(&self, graph: &str, thread: &str) -> Result<Option<ThreadState>, BoxError> {
        Ok(self.threads(graph).state(thread).await?)
    }

    fn abilities(&self) -> Vec<Ability> {
        Ability::ALL.to_vec()
    }

    async fn history(&self, graph: &str, thread: &str) -> Result<Vec<ThreadState>, BoxError> {
        Ok(self.threads(graph).history(thread, None, None).await?)
    }

    async fn cancel(&self, graph: &str, thread: &str) -> Result<(), BoxError> {
        self.threads(graph).cancel(thread).await?;
        Ok(())
    }

    async fn kill_workers(&self) -> Result<(), BoxError> {
        let mut worker = self.worker.lock().unwrap();
        worker.kill();
        *worker = WorkerProcess::start(&self.orders);
        Ok(())
    }
}

async fn hold(server: &Server, share: Option<u64>) {
    let cluster = Cluster::start(server, share).await;
    let notes = patient(Notes::open(cluster.folder.join("notes")));
    let report = conformance::run(&cluster, &notes).await;
    assert!(report.holds(), "{report}");
    assert_eq!(report.lacking().count(), 0, "{report}");
    assert!(report.findings.len() > 60, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_on_a_server_hold_the_contract() {
    hold(server::shared().await, None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_hold_the_contract_when_every_await_is_replayed() {
    // An invocation of n supersteps is built again n times there.
    hold(server::that_suspends_at_once().await, Some(60)).await;
}
