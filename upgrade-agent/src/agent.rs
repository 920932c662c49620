//! [`UpgradeAgent`]: takes a message, returns a turn.
//!
//! A thread is one conversation. If a turn did not end (its process was killed, the disk was full), the next
//! turn ends it first, so no confirmed action is lost and none runs twice. The agent knows nothing of
//! terminals and files.

mod builder;
mod error;
#[cfg(feature = "restate")]
mod pieces;
mod place;
#[cfg(feature = "restate")]
mod remote;
#[cfg(feature = "restate")]
mod restate;
mod settings;
mod stream;
mod threads;
mod turn;
mod under_way;

use std::sync::Arc;

use agentgraph::store::Store;
use agentgraph::{Code, CompiledGraph, Error, Outcome, StopReason};
use agentgraph_llm::Message;

use crate::restores;
use crate::state::{ConversationState, Pending};
pub use builder::UpgradeAgentBuilder;
pub use error::AgentError;
pub use place::LastState;
use place::{Call, Place};
#[cfg(feature = "restate")]
pub use restate::GRAPH;
pub(crate) use settings::Settings;
pub use stream::{TurnEvent, TurnStream};
use threads::{Arrival, ThreadGuard, Threads};
pub use turn::Turn;
use under_way::UnderWay;

/// The agent. Cheap to clone; clones share all state.
///
/// Turns of one thread are serialized within an agent and its clones. A message that had to wait, or whose
/// turn first ends an unfinished one, was written before the question that is then open. A yes in it is not
/// accepted, and the question is asked again. Two agents over one store do not share this queue; if their
/// turns overlap, the second gets `E_THREAD_BUSY`.
///
/// A yes is accepted only if its question was delivered. A caller that got a [`Turn`] from
/// [`turn`](Self::turn), from a stream or from [`recover`](Self::recover), and then calls the same agent
/// again, has received the question. If the next message may come to another agent (in another process, or
/// after a restart), call [`heard`](Self::heard) after the reply was delivered. Otherwise the other agent
/// does not accept the yes and asks again.
///
/// ```
/// use agentgraph_llm::{Reply, ScriptedModel};
/// use serde_json::json;
/// use upgrade_agent::agent::UpgradeAgent;
/// use upgrade_agent::client::UpgradeClient;
/// use upgrade_agent::server::EmbeddedServer;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let server = EmbeddedServer::builder().start().await?;
/// let model = ScriptedModel::new([
///     Reply::tool_call("analyze_user_request", json!({ "intent": "greeting", "confidence": 1.0,
///         "user_request_summary": "says hello", "reasoning": "a greeting" })),
///     Reply::text("Hello! I can explain, list, create and run experiments."),
/// ]);
/// let agent = UpgradeAgent::builder()
///     .model(model)
///     .client(UpgradeClient::builder(server.url()).build()?)
///     .build()?;
///
/// let turn = agent.turn("demo", "hi").await?;
/// assert_eq!(turn.reply, "Hello! I can explain, list, create and run experiments.");
/// assert_eq!(turn.path, ["conversation_analyzer", "response_generator"]);
/// # server.shutdown().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct UpgradeAgent {
    graph: CompiledGraph<ConversationState>,
    place: Place,
    threads: Arc<Threads>,
    /// The store of the notes about statuses to restore; none if turns run elsewhere.
    store: Option<Arc<dyn Store>>,
}

impl UpgradeAgent {
    /// Starts a builder. A model and a client are required.
    pub fn builder() -> UpgradeAgentBuilder {
        UpgradeAgentBuilder::new()
    }

    /// Runs one turn with the message `text` on `thread`. An unfinished turn of the thread is ended first,
    /// and its reply is in [`Turn::recovered`]. Dropping the future stops the turn.
    ///
    /// # Errors
    /// `E_AGENT_EMPTY` for a text without words, and the store's own errors. Errors of the server or the
    /// model are not returned here: the turn's reply reports them.
    pub fn turn(&self, thread: &str, text: &str) -> impl Future<Output = Result<Turn, AgentError>> + Send {
        // The message arrives now, not when the future is first polled.
        let arrival = self.threads.arrive(thread);
        async move {
            let (call, recovered, held) = self.begin(arrival, thread, text, None).await?;
            let under_way = UnderWay::new(&self.place, thread, held);
            let end = self.place.run(call, thread).await;
            let turn = end.map_err(AgentError::from).and_then(|end| self.ended(end));
            let turn = turn.map(|turn| self.given(thread, turn.recovering(recovered)));
            under_way.end();
            turn
        }
    }

    /// Runs a turn as a stream of its events. Dropping the stream stops the turn, and the next turn ends it.
    pub fn turn_stream(&self, thread: &str, text: &str) -> TurnStream {
        TurnStream::new(self.clone(), thread.to_owned(), text.to_owned(), None)
    }

    /// Runs a turn if several programs with a screen of their own share a thread. `shown` is the last turn
    /// whose reply this program showed ([`Turn::number`], or the `turns` of a
    /// [`conversation`](Self::conversation)), or 0 for none. A yes to a question of a later turn is not
    /// accepted, and the question is asked again.
    ///
    /// ```
    /// # use futures_util::StreamExt;
    /// # use upgrade_agent::{UpgradeAgent, agent::TurnEvent, client::UpgradeClient, offline::OfflineModel, server::EmbeddedServer};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = EmbeddedServer::builder().start().await?;
    /// # let client = UpgradeClient::builder(server.url()).build()?;
    /// let agent = UpgradeAgent::builder().model(OfflineModel::new()).client(client).build()?;
    /// let asked = agent.turn("t", "initialize user ada").await?;
    /// // A window that shows the turn before says yes to something else.
    /// let mut events = agent.turn_stream_after("t", asked.number - 1, "yes");
    /// while let Some(event) = events.next().await {
    ///     if let TurnEvent::Done(turn) = event {
    ///         assert!(turn?.asks_for_a_yes());
    ///     }
    /// }
    /// # server.shutdown().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn turn_stream_after(&self, thread: &str, shown: u64, text: &str) -> TurnStream {
        TurnStream::new(self.clone(), thread.to_owned(), text.to_owned(), Some(shown))
    }

    /// Ends an unfinished turn of a thread, or tries again to restore a status that a plan of it could not
    /// restore. `None` if there is neither.
    ///
    /// # Errors
    /// As [`turn`](Self::turn).
    pub async fn recover(&self, thread: &str) -> Result<Option<Turn>, AgentError> {
        let _held = self.threads.arrive(thread).hold().await;
        let ended = match self.end_unfinished(thread).await? {
            Some(turn) => Some(turn),
            None => self.settle_restores(thread).await?,
        };
        Ok(ended.map(|turn| self.given(thread, turn)))
    }

    /// The threads whose plans have a status to restore. [`recover`](Self::recover) tries it, unless the plan
    /// runs in this moment. Empty without a [store](UpgradeAgentBuilder::store) that outlives the program.
    ///
    /// ```
    /// # use upgrade_agent::{UpgradeAgent, client::UpgradeClient, offline::OfflineModel, server::EmbeddedServer};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = EmbeddedServer::builder().start().await?;
    /// # let client = UpgradeClient::builder(server.url()).build()?;
    /// let agent = UpgradeAgent::builder().model(OfflineModel::new()).client(client).build()?;
    /// for thread in agent.threads_to_restore().await {
    ///     agent.recover(&thread).await?;
    /// }
    /// assert!(agent.threads_to_restore().await.is_empty());
    /// # server.shutdown().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn threads_to_restore(&self) -> Vec<String> {
        match &self.store {
            Some(store) => restores::threads(store).await,
            None => Vec::new(),
        }
    }

    /// A turn without a message, if a plan of the thread could not restore a status.
    async fn settle_restores(&self, thread: &str) -> Result<Option<Turn>, AgentError> {
        match (self.place.state(thread).await?, &self.store) {
            (Some(last), _) if !last.values.restores.is_empty() => {
                let nothing = Call::Begin(Box::new(ConversationState::update().user_input("")));
                self.ended(self.place.run(nothing, thread).await?).map(Some)
            }
            (None, Some(store)) => {
                restores::forget(store, thread).await;
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// Records that the reply of a turn was delivered, so that any agent over the same store accepts a yes to
    /// its question. `turn` is [`Turn::number`], or the `turns` of the [`conversation`](Self::conversation)
    /// that was shown. Has no effect if the question of that turn is not open any more.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use agentgraph::MemorySaver;
    /// # use upgrade_agent::{UpgradeAgent, client::UpgradeClient, offline::OfflineModel, server::EmbeddedServer};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = EmbeddedServer::builder().start().await?;
    /// # let client = UpgradeClient::builder(server.url()).build()?;
    /// let store = Arc::new(MemorySaver::new());
    /// let agent = || UpgradeAgent::builder().model(OfflineModel::new()).client(client.clone()).checkpointer(store.clone()).build();
    /// let asked = agent()?.turn("t", "initialize user ada").await?;
    /// // The reply was lost on its way: another agent asks again.
    /// assert!(agent()?.turn("t", "yes").await?.reply.contains("Initialize user 'ada'"));
    ///
    /// let asked = agent()?.turn("other", "initialize user ada").await?;
    /// agent()?.heard("other", asked.number).await?;
    /// assert_eq!(agent()?.turn("other", "yes").await?.reply, "User 'ada' is initialized.");
    /// # server.shutdown().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// The store's own errors, and `E_THREAD_BUSY` while another agent runs a turn of the thread.
    pub async fn heard(&self, thread: &str, turn: u64) -> Result<(), AgentError> {
        let _held = self.threads.between_turns(thread).await;
        let Some(last) = self.place.state(thread).await?.filter(|last| !last.unfinished) else {
            return Ok(());
        };
        let state = &last.values;
        if let Pending::Confirm(asked) = &state.pending
            && state.heard < asked.asked_turn()
            && asked.asked_turn() <= turn
        {
            let heard = ConversationState::update().heard(asked.asked_turn());
            self.place.edit(thread, heard).await?;
        }
        Ok(())
    }

    /// The state of a thread; `None` if it has no messages.
    ///
    /// # Errors
    /// The store's own errors.
    pub async fn conversation(&self, thread: &str) -> Result<Option<ConversationState>, AgentError> {
        Ok(self.last(thread).await?.map(|last| last.values))
    }

    /// The state of a thread, its time, and whether its turn has ended; `None` if it has no messages.
    ///
    /// ```
    /// use upgrade_agent::{UpgradeAgent, client::UpgradeClient, offline::OfflineModel, server::EmbeddedServer};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let server = EmbeddedServer::builder().start().await?;
    /// let client = UpgradeClient::builder(server.url()).build()?;
    /// let agent = UpgradeAgent::builder().model(OfflineModel::new()).client(client).build()?;
    /// assert!(agent.last("ada").await?.is_none());
    ///
    /// agent.turn("ada", "hello").await?;
    /// let last = agent.last("ada").await?.expect("it has a message");
    /// assert_eq!((last.values.turns, last.unfinished), (1, false));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// The store's own errors.
    pub async fn last(&self, thread: &str) -> Result<Option<LastState>, AgentError> {
        Ok(self.place.state(thread).await?)
    }

    /// The graph, for drawings and, if turns run in this process, for the history of a thread.
    pub fn graph(&self) -> &CompiledGraph<ConversationState> {
        &self.graph
    }

    /// Prepares a turn: takes the lock, ends an unfinished turn, builds the input.
    async fn begin(
        &self,
        arrival: Arrival,
        thread: &str,
        text: &str,
        shown: Option<u64>,
    ) -> Result<StartedTurn, AgentError> {
        if text.trim().is_empty() {
            return Err(AgentError::Empty);
        }
        let held = arrival.hold().await;
        let recovered = self.end_unfinished(thread).await?.map(|turn| turn.reply);
        let input = ConversationState::update().user_input(text).history([Message::user(text)]).turns(1);
        let mut input = input.said_early(held.waited || recovered.is_some()).read_up_to(shown);
        if let Some(turn) = self.threads.given(thread) {
            input = input.heard(turn);
        }
        Ok((Call::Begin(Box::new(input)), recovered, held))
    }

    async fn end_unfinished(&self, thread: &str) -> Result<Option<Turn>, AgentError> {
        let Some(last) = self.place.state(thread).await?.filter(|last| last.unfinished) else {
            return Ok(None);
        };
        if last.values.has_plan() {
            // The mark is of this turn. It does not matter if the turn has run to its end meanwhile.
            let cut_off = ConversationState::update().cut_off(last.values.turns);
            self.place.edit(thread, cut_off).await?;
        }
        match self.place.run(Call::Continue, thread).await {
            Err(error) if error.code() == Code::NothingToResume => self.ended_elsewhere(thread, error).await,
            end => self.ended(end?),
        }
        .map(Some)
    }

    /// The turn that was not cut off but ran elsewhere, and has ended.
    async fn ended_elsewhere(&self, thread: &str, error: Error) -> Result<Turn, AgentError> {
        match self.place.state(thread).await? {
            Some(last) if !last.unfinished => Ok(Turn::of(last.values)),
            _ => Err(error.into()),
        }
    }

    /// Completes the turn for the caller.
    fn given(&self, thread: &str, turn: Turn) -> Turn {
        self.threads.give(thread, turn.number, turn.asks_for_a_yes());
        turn
    }

    fn ended(&self, outcome: Outcome<ConversationState>) -> Result<Turn, AgentError> {
        match outcome {
            Outcome::Finished { output, .. } => Ok(Turn::of(output)),
            Outcome::Interrupted { .. } => Err(AgentError::Waits),
            Outcome::Stopped { reason, .. } => Err(match reason {
                StopReason::Limit => AgentError::Endless,
                StopReason::Deadline => AgentError::Deadline,
                StopReason::Budget => AgentError::Budget,
                // By a token, and by whatever else will stop a run from outside.
                _ => AgentError::Stopped,
            }),
        }
    }
}

/// The call of the turn, the reply of the unfinished turn, and the lock of the thread.
type StartedTurn = (Call, Option<String>, ThreadGuard);

impl std::fmt::Debug for UpgradeAgent {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("UpgradeAgent").field("graph", &self.graph).finish_non_exhaustive()
    }
}

/// The graph as a Mermaid flowchart. Needs neither a model nor a server.
///
/// ```
/// assert!(upgrade_agent::agent::mermaid().contains("confirmation_handler"));
/// ```
pub fn mermaid() -> String {
    drawn(CompiledGraph::mermaid)
}

/// The graph drawn for a terminal, as [`mermaid`].
///
/// ```
/// assert!(upgrade_agent::agent::text().contains("│ confirmation_handler"));
/// ```
pub fn text() -> String {
    drawn(CompiledGraph::text)
}

/// The graph drawn for a browser, as [`mermaid`].
///
/// ```
/// assert!(upgrade_agent::agent::svg().starts_with("<svg"));
/// ```
pub fn svg() -> String {
    drawn(CompiledGraph::svg)
}

fn drawn(draw: fn(&CompiledGraph<ConversationState>) -> String) -> String {
    builder::without_world().map_or_else(|problem| problem.to_string(), |graph| draw(&graph))
}
