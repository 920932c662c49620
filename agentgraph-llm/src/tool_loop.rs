//! The bounded tool loop: ask the model, run the calls it asks for, give it the results, until it is done.
//!
//! It runs inside one node. The engine does not see its rounds: a node that is run again (after a retry, a
//! kill, an interrupt in a tool) runs its loop from the start: the model is asked again and may ask for other
//! calls, and tools must bear to be called twice. A tool that asks a person gives the question a key made of
//! what the call would do (`ctx.interrupt_as(key, question)`), so that calls that run side by side get their
//! own answers. If the model wants something else when it is asked again, its answer is voided and the new
//! call asks. A question that must not be asked twice belongs in a node of its own, behind the one that keeps
//! the calls in the state.
//!
//! What always holds:
//! - The calls of one assistant message run concurrently, a bounded number at a time; their results stand in
//!   the order of the calls, in one user message. A call that fails does not stop the others.
//! - Only a complete call to a known tool with a JSON object as arguments is run. Every other call is
//!   answered with an error that tells the model what was wrong, and the loop goes on.
//! - A [`ToolChoice`] that forces a call holds for the first round only; if it held for all, no model could
//!   ever finish.
//! - However the loop ends, no call is left without a result, so the conversation can be sent again.

mod calls;

use std::fmt;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};

use crate::error::Result;
use crate::listening;
use crate::message::{Message, MessageIds, ToolResult};
use crate::model::stream::truncated;
use crate::model::{
    ChatEvent, ChatModel, ChatRequest, ChatResponse, ChatStream, StopReason, ToolChoice, Usage,
};
use crate::tool::{Tool, ToolOutput};
use calls::Toolbox;

/// How many times a loop asks the model, unless told otherwise.
pub const DEFAULT_MAX_ROUNDS: usize = 10;

/// How many calls of one message run at the same time, unless told otherwise.
pub const DEFAULT_MAX_CONCURRENCY: usize = 16;

/// A bounded tool loop. See the [module](crate::tool_loop) for what it promises.
///
/// ```
/// use agentgraph_llm::prelude::*;
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use serde_json::json;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct City {
///     city: String,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agentgraph_llm::Result<()> {
/// let model = ScriptedModel::new([Reply::tool_call("weather", json!({"city": "Oslo"})), Reply::text("Take a coat.")]);
/// let weather = FnTool::new("weather", "The weather of today.", async |place: City| {
///     Ok::<_, ToolError>(format!("snow in {}", place.city))
/// });
///
/// let outcome = ToolLoop::new(&model).tool(weather).max_rounds(5).run(ChatRequest::user("A coat or not?")).await?;
/// assert_eq!(outcome.text(), "Take a coat.");
/// assert_eq!((outcome.ended, outcome.rounds, outcome.messages.len()), (LoopEnd::Finished, 2, 3));
/// # Ok(())
/// # }
/// ```
pub struct ToolLoop<'a> {
    model: &'a dyn ChatModel,
    tools: Vec<Box<dyn Tool + 'a>>,
    max_rounds: usize,
    max_concurrency: usize,
    ids: MessageIds,
    see: Option<EventHandler<'a>>,
}

type EventHandler<'a> = Box<dyn Fn(ChatEvent) -> BoxFuture<'a, ()> + Send + Sync + 'a>;

/// What a loop ended with.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolLoopOutcome {
    /// The messages the loop added to the conversation, in order: assistant, results, assistant ... With
    /// these at its end the conversation can be sent again however the loop ended.
    pub messages: Vec<Message>,
    /// The last answer of the model.
    pub response: ChatResponse,
    /// The output that ended the loop, after [`LoopEnd::ReturnedDirectly`]: the first in call order.
    pub direct: Option<ToolOutput>,
    /// The cost of all rounds.
    pub usage: Usage,
    /// How many times the model was asked.
    pub rounds: usize,
    /// Why the loop ended.
    pub ended: LoopEnd,
}

/// Why a tool loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoopEnd {
    /// The model gave its answer.
    Finished,
    /// The model's answer was cut by a token limit.
    Truncated,
    /// The model refused.
    Refused,
    /// The model still asked for calls, or paused, in the last allowed round. Those calls were not run.
    LimitReached,
    /// A tool's output is the answer.
    ReturnedDirectly,
}

impl<'a> ToolLoop<'a> {
    /// A loop over this model without tools.
    pub fn new(model: &'a dyn ChatModel) -> Self {
        ToolLoop {
            model,
            tools: Vec::new(),
            max_rounds: DEFAULT_MAX_ROUNDS,
            max_concurrency: DEFAULT_MAX_CONCURRENCY,
            ids: MessageIds::default(),
            see: None,
        }
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: impl Tool + 'a) -> Self {
        self.tools.push(Box::new(tool));
        self
    }

    /// Adds tools, such as a `&Vec<Arc<dyn Tool>>`.
    pub fn tools(mut self, tools: impl IntoIterator<Item = impl Tool + 'a>) -> Self {
        self.tools.extend(tools.into_iter().map(|tool| Box::new(tool) as Box<dyn Tool + 'a>));
        self
    }

    /// Asks the model at most this many times (10 if not set, at least once).
    pub fn max_rounds(mut self, rounds: usize) -> Self {
        self.max_rounds = rounds.max(1);
        self
    }

    /// Runs at most this many calls of one message at the same time (16 if not set, at least one). The others
    /// wait for their turn, in the order of the calls.
    pub fn max_concurrency(mut self, calls: usize) -> Self {
        self.max_concurrency = calls.max(1);
        self
    }

    /// Takes the ids of result messages from here.
    pub fn message_ids(mut self, ids: MessageIds) -> Self {
        self.ids = ids;
        self
    }

    /// Streams the model's answers and shows each event, waiting until it was taken. In a node, `ctx.emit`
    /// fits:
    ///
    /// ```
    /// use agentgraph::Ctx;
    /// use agentgraph_llm::prelude::*;
    ///
    /// async fn answer(ctx: &Ctx, model: &dyn ChatModel) -> agentgraph_llm::Result<String> {
    ///     let tools = ToolLoop::new(model).on_event(|event| ctx.emit(event));
    ///     Ok(tools.run(ChatRequest::user("hello")).await?.text())
    /// }
    /// ```
    pub fn on_event<Fut>(mut self, see: impl Fn(ChatEvent) -> Fut + Send + Sync + 'a) -> Self
    where
        Fut: Future<Output = ()> + Send + 'a,
    {
        self.see = Some(Box::new(move |event| see(event).boxed()));
        self
    }

    /// Runs the loop. Tools that the request itself offers are the caller's: a call of one is answered as
    /// unknown.
    ///
    /// # Errors
    /// `E_LLM_BAD_TOOL` before the first call when two tools have one name or a name or schema cannot be
    /// sent; `E_LLM_TOOL_FAILED` with the tool's own error as [`cause`](crate::Error::cause) when a tool
    /// failed fatally, after all calls of that message ended; and what the model failed with. What the rounds
    /// before have cost is [`Error::usage`](crate::Error::usage).
    pub async fn run(self, mut request: ChatRequest) -> Result<ToolLoopOutcome> {
        let toolbox = Toolbox::new(&self.tools, &mut request)?;
        let mut added = Vec::new();
        let mut usage = Usage::default();
        let mut rounds = 0;
        loop {
            rounds += 1;
            let response = self.ask(&request).await.map_err(|error| error.with_usage(usage))?;
            usage += response.usage;
            let mut push = |message: &Message| {
                request.messages.push(message.clone());
                added.push(message.clone());
            };
            push(&response.message);
            let step = self.step(&toolbox, &response, rounds).await;
            let step = step.map_err(|error| error.with_usage(usage))?;
            if matches!(request.tool_choice, ToolChoice::Any | ToolChoice::Tool(_)) {
                request.tool_choice = ToolChoice::Auto;
            }
            if !step.results.is_empty() {
                push(&Message::tool_results(step.results).with_id(self.ids.next_id()));
            }
            if let Some(ended) = step.ended {
                return Ok(ToolLoopOutcome {
                    messages: added,
                    response,
                    direct: step.direct,
                    usage,
                    rounds,
                    ended,
                });
            }
        }
    }

    async fn ask(&self, request: &ChatRequest) -> Result<ChatResponse> {
        match &self.see {
            None => listening::report_whole(self.model.chat(request.clone())).await,
            Some(see) => stream(self.model.stream(request.clone()).await?, see).await,
        }
    }

    /// What follows from one answer.
    async fn step(
        &self,
        toolbox: &Toolbox<'_>,
        response: &ChatResponse,
        rounds: usize,
    ) -> Result<RoundOutcome> {
        let last_round = rounds >= self.max_rounds;
        if response.message.tool_uses().next().is_none() {
            return Ok(RoundOutcome::without_calls(&response.stop, last_round));
        }
        if response.stop == StopReason::Refusal {
            return Ok(RoundOutcome::refuse_calls(
                response,
                LoopEnd::Refused,
                "not run: the answer ended in a refusal",
            ));
        }
        if last_round {
            let why = format!("not run: the limit of {} rounds was reached", self.max_rounds);
            return Ok(RoundOutcome::refuse_calls(response, LoopEnd::LimitReached, &why));
        }
        let outputs = toolbox.run_all(response, self.max_concurrency).await?;
        let direct = outputs
            .iter()
            .find_map(|(_, output)| output.as_ref().filter(|output| output.return_direct))
            .cloned();
        let ended = direct.is_some().then_some(LoopEnd::ReturnedDirectly);
        Ok(RoundOutcome { results: outputs.into_iter().map(|(result, _)| result).collect(), direct, ended })
    }
}

async fn stream(mut events: ChatStream, see: &EventHandler<'_>) -> Result<ChatResponse> {
    while let Some(event) = events.next().await {
        let event = event?;
        let finished = match &event {
            ChatEvent::Finished(response) => Some(response.clone()),
            _ => None,
        };
        see(event).await;
        if let Some(response) = finished {
            return Ok(response);
        }
    }
    Err(truncated())
}

/// What one answer leads to: results to give, and whether that was all.
struct RoundOutcome {
    results: Vec<ToolResult>,
    direct: Option<ToolOutput>,
    ended: Option<LoopEnd>,
}

impl RoundOutcome {
    fn without_calls(stop: &StopReason, last_round: bool) -> Self {
        let ended = match stop {
            StopReason::PauseTurn if !last_round => None,
            StopReason::PauseTurn => Some(LoopEnd::LimitReached),
            StopReason::Refusal => Some(LoopEnd::Refused),
            stop if stop.is_truncated() => Some(LoopEnd::Truncated),
            _ => Some(LoopEnd::Finished),
        };
        RoundOutcome { results: Vec::new(), direct: None, ended }
    }

    fn refuse_calls(response: &ChatResponse, ended: LoopEnd, why: &str) -> Self {
        let results = response.message.tool_uses().map(|call| ToolResult::error(&call.id, why)).collect();
        RoundOutcome { results, direct: None, ended: Some(ended) }
    }
}

impl ToolLoopOutcome {
    /// The answer: the model's text, or the tool's after [`LoopEnd::ReturnedDirectly`].
    pub fn text(&self) -> String {
        match &self.direct {
            Some(output) => output.content.iter().filter_map(crate::message::Block::as_text).collect(),
            None => self.response.message.text(),
        }
    }
}

impl fmt::Debug for ToolLoop<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = out.debug_struct("ToolLoop");
        parts.field("model", &self.model.name()).field("tools", &self.tools.len());
        parts.field("max_rounds", &self.max_rounds).field("max_concurrency", &self.max_concurrency);
        parts.finish_non_exhaustive()
    }
}
