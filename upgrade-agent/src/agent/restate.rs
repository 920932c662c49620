//! The agent on a Restate server.

use std::sync::Arc;

use agentgraph_restate::RestateClient;

use super::place::Place;
use super::remote::Remote;
use super::{AgentError, UpgradeAgent, builder};

/// The name under which workers serve the agent's graph.
pub const GRAPH: &str = "upgrade-agent";

impl UpgradeAgent {
    /// The agent whose turns run in the [workers](super::UpgradeAgentBuilder::worker) of a Restate server. It
    /// needs neither a model nor a client of UpGrade, which the workers have. Nothing is sent yet.
    ///
    /// A reply is streamed if the client and the workers have a [relay](agentgraph_restate::EventRelay);
    /// otherwise it comes whole.
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
        let place = Place::Restate(Box::new(Remote::new(client.graph(GRAPH))));
        Ok(UpgradeAgent { graph: builder::without_world()?, place, threads: Arc::default(), store: None })
    }
}
