//! Support for the agent's tests: an agent with a scripted model in front of an embedded server, with every
//! HTTP call recorded.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub(crate) mod proxy;
pub(crate) mod script;
pub(crate) mod transcript;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use agentgraph::Checkpointer;
use proxy::Proxy;
use script::Script;
use upgrade_agent::agent::{UpgradeAgent, UpgradeAgentBuilder};
use upgrade_agent::client::{Dialect, ExperimentState, NewExperiment, UpgradeClient};
use upgrade_agent::server::{EmbeddedServer, ServerHandle};
use uuid::Uuid;

/// Returns the n-th key that an agent of a test gives to an approval.
pub(crate) fn key(n: u64) -> Uuid {
    Uuid::from_u128(0xaaaa_0000_0000_4000_8000_0000_0000_0000 + u128::from(n))
}

/// Returns the id of the n-th experiment that a test makes.
pub(crate) fn id(n: u64) -> String {
    Uuid::from_u128(0xeeee_0000_0000_4000_8000_0000_0000_0000 + u128::from(n)).to_string()
}

/// A server with a proxy in front of it.
pub(crate) struct World {
    pub(crate) server: ServerHandle,
    pub(crate) proxy: Proxy,
    made: AtomicU64,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::of(Dialect::V65).await
    }

    pub(crate) async fn of(dialect: Dialect) -> Self {
        let server = EmbeddedServer::builder().in_memory().dialect(dialect).seed(1).start().await.unwrap();
        let proxy = Proxy::before(server.url()).await;
        World { server, proxy, made: AtomicU64::new(0) }
    }

    /// Returns a client that bypasses the proxy.
    pub(crate) fn behind(&self) -> UpgradeClient {
        UpgradeClient::builder(self.server.url()).build().unwrap()
    }

    /// Returns a client through the proxy, whose first health call is already made and not recorded.
    pub(crate) async fn client(&self) -> UpgradeClient {
        let client = UpgradeClient::builder(self.proxy.url()).retries(0).build().unwrap();
        client.connect().await.unwrap();
        self.proxy.heard();
        client
    }

    /// Returns an agent whose model follows the script. Its keys are counted, and its clock does not
    /// advance.
    pub(crate) async fn agent(&self, script: &Script) -> UpgradeAgent {
        self.builder(script).await.build().unwrap()
    }

    pub(crate) async fn agent_over(&self, script: &Script, saver: impl Checkpointer) -> UpgradeAgent {
        self.builder(script).await.checkpointer(saver).build().unwrap()
    }

    pub(crate) async fn builder(&self, script: &Script) -> UpgradeAgentBuilder {
        let keys = AtomicU64::new(0);
        UpgradeAgent::builder()
            .model(script.model())
            .client(self.client().await)
            .students_at_once(1)
            .ids(move || key(keys.fetch_add(1, Ordering::Relaxed) + 1))
            .clock(|| UNIX_EPOCH + Duration::from_secs(1_800_000_000))
    }

    /// Creates an experiment in the context `assign-prog`, without the agent.
    pub(crate) async fn experiment(&self, name: &str, state: ExperimentState) -> String {
        let id = id(self.made.fetch_add(1, Ordering::Relaxed) + 1);
        let new = NewExperiment::new(name, "assign-prog")
            .id(&id)
            .point("SelectSection", "absolute_value_plot_equality")
            .condition("control", 50.0)
            .condition("variant", 50.0)
            .include_all();
        let client = self.behind();
        client.create(&new).await.unwrap();
        if state != ExperimentState::Inactive {
            client.set_state(&id, &state).await.unwrap();
        }
        id
    }

    /// Returns the experiments as `name: state`, in order of their names.
    pub(crate) async fn experiments(&self) -> Vec<String> {
        let all = self.behind().experiments().await.unwrap();
        let mut all: Vec<String> = all.iter().map(|one| format!("{}: {}", one.name, one.state)).collect();
        all.sort();
        all
    }
}
