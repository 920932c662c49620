//! The builder of an agent.

use std::sync::Arc;
use std::time::SystemTime;

use agentgraph::store::{MemoryStore, Store};
use agentgraph::{Checkpointer, CompiledGraph, MemorySaver};
use agentgraph_llm::{ChatModel, ScriptedModel};
use uuid::Uuid;

use super::place::Place;
use super::{AgentError, Settings, UpgradeAgent};
use crate::actions::simulations::MOST_STUDENTS;
use crate::client::UpgradeClient;
use crate::graph::graph;
use crate::state::ConversationState;

const CONFIDENCE: f64 = 0.7;
const MAX_TOKENS: u32 = 4096;
const HISTORY_WINDOW: usize = 20;
const STUDENTS_AT_ONCE: usize = 8;

/// The settings of an [`UpgradeAgent`].
#[must_use = "a builder does nothing until `build()`"]
pub struct UpgradeAgentBuilder {
    model: Option<Arc<dyn ChatModel>>,
    client: Option<UpgradeClient>,
    checkpointer: Option<Arc<dyn Checkpointer>>,
    store: Option<Arc<dyn Store>>,
    settings: Settings,
}

impl UpgradeAgentBuilder {
    pub(super) fn new() -> Self {
        UpgradeAgentBuilder {
            model: None,
            client: None,
            checkpointer: None,
            store: None,
            settings: default_settings(),
        }
    }

    /// Sets the chat model.
    pub fn model(mut self, model: impl ChatModel + 'static) -> Self {
        self.model = Some(Arc::new(model));
        self
    }

    /// Sets the client of the UpGrade server.
    pub fn client(mut self, client: UpgradeClient) -> Self {
        self.client = Some(client);
        self
    }

    /// Sets the store of the threads; in memory if not set. An `Arc` of a store can be shared.
    pub fn checkpointer(mut self, checkpointer: impl Checkpointer) -> Self {
        self.checkpointer = Some(Arc::new(checkpointer));
        self
    }

    /// Sets the store that all threads share, in memory if not set: for notes about plans that have a status
    /// to restore, so that other threads can say so, and [`UpgradeAgent::threads_to_restore`] finds them
    /// after a restart.
    ///
    /// ```
    /// use agentgraph::store::MemoryStore;
    /// use upgrade_agent::UpgradeAgent;
    ///
    /// let builder = UpgradeAgent::builder().store(MemoryStore::new());
    /// # let _ = builder;
    /// ```
    pub fn store(mut self, store: impl Store) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// Sets the lowest accepted confidence of the analyzer, from 0 to 1; 0.7 if not set. Below it the agent
    /// asks what is meant.
    pub fn confidence(mut self, confidence: f64) -> Self {
        self.settings.confidence = confidence;
        self
    }

    /// Sets the temperature of requests to the model; none is sent if not set, since newer models reject it.
    pub fn temperature(mut self, temperature: impl Into<Option<f32>>) -> Self {
        self.settings.temperature = temperature.into();
        self
    }

    /// Limits the tokens of one answer of the model; 4,096 if not set.
    pub fn max_tokens(mut self, tokens: u32) -> Self {
        self.settings.max_tokens = Some(tokens);
        self
    }

    /// Limits the messages of the history that the model sees; 20 if not set, and at least the person's own
    /// message.
    pub fn history_window(mut self, messages: usize) -> Self {
        self.settings.history_window = messages.max(1);
        self
    }

    /// Limits the simulated students that call the server at the same time; 8 if not set. 0 counts as 1.
    pub fn students_at_once(mut self, students: usize) -> Self {
        self.settings.students_at_once = students.max(1);
        self
    }

    /// Limits the simulated students of a balance test or journey; 1,000 if not set. A larger number is
    /// refused before the question. 0 counts as 1, because a simulation needs a student.
    ///
    /// ```
    /// use upgrade_agent::agent::UpgradeAgent;
    ///
    /// let builder = UpgradeAgent::builder().max_students(50).students_at_once(4);
    /// # let _ = builder;
    /// ```
    pub fn max_students(mut self, students: u32) -> Self {
        self.settings.max_students = students.max(1);
        self
    }

    /// Sets the source of the keys of approvals; random if not set. Keys must be unique: a created experiment
    /// has its key as its id.
    pub fn ids(mut self, ids: impl Fn() -> Uuid + Send + Sync + 'static) -> Self {
        self.settings.ids = Arc::new(ids);
        self
    }

    /// Sets the clock of the execution log; the system's clock if not set.
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.settings.clock = Arc::new(clock);
        self
    }

    /// Builds the agent. Sends nothing.
    ///
    /// # Errors
    /// `E_AGENT_CONFIG` if the model or the client is missing or a number is out of its range.
    pub fn build(self) -> Result<UpgradeAgent, AgentError> {
        let store = self.store.clone().unwrap_or_else(|| Arc::new(MemoryStore::new()));
        let (graph, checkpointer) = self.graph()?;
        let graph = graph.store(Arc::clone(&store));
        let graph = graph.checkpointer(checkpointer.unwrap_or_else(|| Arc::new(MemorySaver::new())));
        Ok(UpgradeAgent {
            place: Place::Here(graph.clone()),
            graph,
            threads: Arc::default(),
            store: Some(store),
        })
    }

    /// Builds a worker, which runs the turns of [`UpgradeAgent::on_restate`]. Conversations are stored in the
    /// Restate server. A checkpointer, which must be one that all workers reach, stores their history too.
    ///
    /// All workers of a server must have the same settings, since one continues what another has begun.
    ///
    /// ```no_run
    /// use upgrade_agent::{UpgradeAgent, client::UpgradeClient, offline::OfflineModel};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let client = UpgradeClient::builder("https://upgrade.example.org/api").build()?;
    /// let worker = UpgradeAgent::builder().model(OfflineModel::new()).client(client).worker()?;
    /// worker.register("http://127.0.0.1:9070").serve("127.0.0.1:9080".parse()?).await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`build`](Self::build).
    #[cfg(feature = "restate")]
    pub fn worker(self) -> Result<agentgraph_restate::RestateWorker, AgentError> {
        let store = self.store.clone();
        let (mut graph, checkpointer) = self.graph()?;
        if let Some(kept) = checkpointer {
            graph = graph.checkpointer(kept);
        }
        if let Some(store) = store {
            graph = graph.store(store);
        }
        Ok(agentgraph_restate::RestateWorker::new().graph(super::GRAPH, graph))
    }

    /// The graph without its checkpointer, and the checkpointer.
    fn graph(self) -> Result<GraphAndStore, AgentError> {
        let wrong = |what: &str| AgentError::Config(what.to_owned());
        let mut settings = self.settings;
        settings.model = self.model.ok_or_else(|| wrong("the agent needs a model: call `.model(..)`"))?;
        let client = self.client.ok_or_else(|| wrong("the agent needs a client: call `.client(..)`"))?;
        if !(0.0..=1.0).contains(&settings.confidence) {
            return Err(wrong("the confidence limit is a number from 0 to 1"));
        }
        if settings.temperature.is_some_and(|temperature| !temperature.is_finite() || temperature < 0.0) {
            return Err(wrong("the temperature is a number from 0 up"));
        }
        Ok((graph(settings, client)?, self.checkpointer))
    }
}

type GraphAndStore = (CompiledGraph<ConversationState>, Option<Arc<dyn Checkpointer>>);

impl std::fmt::Debug for UpgradeAgentBuilder {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("UpgradeAgentBuilder")
            .field("confidence", &self.settings.confidence)
            .finish_non_exhaustive()
    }
}

/// The graph over a silent model and an unreachable server, for drawings.
pub(super) fn without_world() -> Result<CompiledGraph<ConversationState>, AgentError> {
    let nowhere = UpgradeClient::builder("http://localhost").build();
    let nowhere = nowhere.map_err(|error| AgentError::Config(error.to_string()))?;
    Ok(graph(default_settings(), nowhere)?)
}

fn default_settings() -> Settings {
    Settings {
        model: Arc::new(ScriptedModel::new(Vec::<String>::new())),
        confidence: CONFIDENCE,
        temperature: None,
        max_tokens: Some(MAX_TOKENS),
        history_window: HISTORY_WINDOW,
        students_at_once: STUDENTS_AT_ONCE,
        max_students: MOST_STUDENTS,
        ids: Arc::new(Uuid::new_v4),
        clock: Arc::new(SystemTime::now),
    }
}
