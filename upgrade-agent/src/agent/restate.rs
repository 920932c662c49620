//! The agent on a Restate server: its client, and its worker.

use std::sync::Arc;

use agentgraph_restate::{RestateClient, RestateWorker};

use super::place::Place;
use super::{AgentError, UpgradeAgent, builder};

/// The name under which workers serve the agent's graph.
pub const GRAPH: &str = "upgrade-agent";

impl UpgradeAgent {
    /// The agent whose turns run in the workers of a Restate server. It needs neither a model nor a client of
    /// UpGrade, which the workers have, and nothing is sent yet. Pieces of replies are not streamed: a reply
    /// comes whole.
    ///
    /// ```no_run
    /// use agentgraph_restate::RestateClient;
    /// use upgrade_agent::UpgradeAgent;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let agent = UpgradeAgent::on_restate(&RestateClient::connect("http://127.0.0.1:8080")?)?;
    /// println!("{}", agent.turn("demo", "list the experiments").await?.reply);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// `E_AGENT_CONFIG` if the graph cannot be built, which is a mistake in this library.
    pub fn on_restate(client: &RestateClient) -> Result<Self, AgentError> {
        let place = Place::Restate(client.graph(GRAPH));
        Ok(UpgradeAgent { graph: builder::without_world()?, place, threads: Arc::default() })
    }

    /// A worker that serves this agent's graph, with its model, its client and its checkpointer. The
    /// checkpointer keeps the history of the threads.
    ///
    /// ```no_run
    /// # use upgrade_agent::{UpgradeAgent, client::UpgradeClient, offline::OfflineModel, server::EmbeddedServer};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = EmbeddedServer::builder().start().await?;
    /// # let client = UpgradeClient::builder(server.url()).build()?;
    /// let agent = UpgradeAgent::builder().model(OfflineModel::new()).client(client).build()?;
    /// agent.worker().register("http://127.0.0.1:9070").serve("127.0.0.1:9080".parse()?).await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn worker(&self) -> RestateWorker {
        RestateWorker::new().graph(GRAPH, self.graph.clone())
    }
}
