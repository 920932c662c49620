//! [`UpgradeAgent`]: a message in, a turn out.
//!
//! Threads are conversations. A turn that did not end (a killed process, a full disk) is ended first when the
//! next one begins, so nothing that was confirmed is lost and nothing is run twice. Knows nothing of
//! terminals and files.

mod builder;
mod error;
mod settings;
mod stream;
mod threads;
mod turn;

use std::sync::Arc;

use agentgraph::{CompiledGraph, Outcome, RunBuilder};
use agentgraph_llm::Message;

use crate::plan::EarlyEnd;
use crate::state::{ConversationState, Pending};
pub use builder::UpgradeAgentBuilder;
pub use error::AgentError;
pub(crate) use settings::Settings;
pub use stream::{TurnEvent, TurnStream};
use threads::{Arrival, ThreadGuard, Threads};
pub use turn::Turn;

/// Supersteps of the longest turn, and a few more: a turn that needs more does not end by itself. A plan
/// takes two a step.
const MAX_SUPERSTEPS: u64 = 64;

/// The agent. Cheap to clone; clones share everything.
///
/// Turns of one thread wait for each other within an agent and its clones. A message that had to wait, or
/// that first ends an unfinished turn, came before the question that is then open: a yes in it is not taken,
/// and the question is put again. Two agents over one store do not know of each other: one whose turn would
/// come between that of the other is told `E_THREAD_BUSY`.
///
/// A yes counts only if the question had reached whoever says it. Who has got a [`Turn`] from
/// [`turn`](Self::turn), from a stream or from [`recover`](Self::recover) and then calls the same agent again
/// has heard what it asks. Where the next message may come to another agent (another process, or this one
/// started anew), call [`heard`](Self::heard) once the reply was delivered; without it a yes there is not
/// taken, and the question is put again.
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
    threads: Arc<Threads>,
}

impl UpgradeAgent {
    /// Starts to describe an agent. It needs a model and a client.
    pub fn builder() -> UpgradeAgentBuilder {
        UpgradeAgentBuilder::new()
    }

    /// One turn: the person says `text` on `thread`. An unfinished turn of the thread is ended first; its
    /// reply is then in [`Turn::recovered`].
    ///
    /// # Errors
    /// `E_AGENT_EMPTY` for a text without words, and what the store failed with. A server or a model that
    /// fails is no error but a turn that says so.
    pub fn turn(&self, thread: &str, text: &str) -> impl Future<Output = Result<Turn, AgentError>> + Send {
        // The message has come now, whenever the future is polled.
        let arrival = self.threads.arrive(thread);
        async move {
            let (run, recovered, _held) = self.begin(arrival, thread, text, None).await?;
            Ok(self.given(thread, self.ended(run.await?)?.recovering(recovered)))
        }
    }

    /// The same turn as a stream of what happens in it. Dropping the stream stops the turn; the next one ends
    /// it.
    pub fn turn_stream(&self, thread: &str, text: &str) -> TurnStream {
        TurnStream::new(self.clone(), thread.to_owned(), text.to_owned(), None)
    }

    /// The same where several programs speak on one thread, each with a screen of its own: `shown` is the
    /// last turn whose reply this one showed ([`Turn::number`], or the `turns` of a
    /// [`conversation`](Self::conversation)), 0 if it showed none. A yes to a question of a later turn is not
    /// taken, and the question is put again.
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

    /// Ends an unfinished turn of a thread; `None` if there is none.
    ///
    /// # Errors
    /// As [`turn`](Self::turn).
    pub async fn recover(&self, thread: &str) -> Result<Option<Turn>, AgentError> {
        let _held = self.threads.arrive(thread).hold().await;
        Ok(self.end_unfinished(thread).await?.map(|turn| self.given(thread, turn)))
    }

    /// Says that the reply of a turn reached the person: what it asks can then be answered with a yes to any
    /// agent over the same store. `turn` is [`Turn::number`], or the `turns` of the
    /// [`conversation`](Self::conversation) that was shown. Does nothing if that turn's question is not open
    /// any more.
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
    /// What the store failed with, and `E_THREAD_BUSY` while another agent goes on with the thread.
    pub async fn heard(&self, thread: &str, turn: u64) -> Result<(), AgentError> {
        let _held = self.threads.between_turns(thread).await;
        let Some(checkpoint) = self.graph.state(thread).await?.filter(|last| last.next.is_empty()) else {
            return Ok(());
        };
        let state = &checkpoint.values;
        if let Pending::Confirm(asked) = &state.pending
            && state.heard < asked.asked_turn()
            && asked.asked_turn() <= turn
        {
            let heard = ConversationState::update().heard(asked.asked_turn());
            self.graph.update_state(thread).update(heard).await?;
        }
        Ok(())
    }

    /// The state of a thread; `None` if nobody has spoken on it.
    ///
    /// # Errors
    /// What the store failed with.
    pub async fn conversation(&self, thread: &str) -> Result<Option<ConversationState>, AgentError> {
        Ok(self.graph.state(thread).await?.map(|checkpoint| checkpoint.values))
    }

    /// The graph, to draw it or to look at a thread's history.
    pub fn graph(&self) -> &CompiledGraph<ConversationState> {
        &self.graph
    }

    /// Everything before the first node: the lock, the unfinished turn, the input.
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
        Ok((self.limited(self.graph.invoke(input), thread), recovered, held))
    }

    async fn end_unfinished(&self, thread: &str) -> Result<Option<Turn>, AgentError> {
        match self.graph.state(thread).await? {
            Some(checkpoint) if !checkpoint.next.is_empty() => {
                if let Some(going) = &checkpoint.values.plan {
                    // A plan that was cut off is ended, and not gone on with.
                    let ended = ConversationState::update().plan(Some(going.ending(EarlyEnd::Interrupted)));
                    self.graph.update_state(thread).update(ended).await?;
                }
                let outcome = self.limited(self.graph.proceed(), thread).await?;
                self.ended(outcome).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn limited(&self, run: RunBuilder<ConversationState>, thread: &str) -> RunBuilder<ConversationState> {
        run.thread(thread).max_supersteps(MAX_SUPERSTEPS)
    }

    /// The turn, on its way to the caller.
    fn given(&self, thread: &str, turn: Turn) -> Turn {
        self.threads.give(thread, turn.number, turn.asks_for_a_yes());
        turn
    }

    fn ended(&self, outcome: Outcome<ConversationState>) -> Result<Turn, AgentError> {
        match outcome {
            Outcome::Finished { output, .. } => Ok(Turn::of(output)),
            _ => Err(AgentError::Endless),
        }
    }
}

/// The run, the reply of the turn that was ended first, and the thread's lock.
type StartedTurn = (RunBuilder<ConversationState>, Option<String>, ThreadGuard);

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
    match builder::without_world() {
        Ok(graph) => graph.mermaid(),
        Err(problem) => problem.to_string(),
    }
}
