//! The bounded tool loop: call the model, run the tool calls of its response, send the results, until the
//! model is done.
//!
//! The loop runs inside one node. A node that runs again (after a retry, a kill, or an interrupt in a
//! tool) runs its loop from the start. With [`ToolLoop::durable`] it gets the stored responses of the
//! model and the stored outputs of finished tools, and continues where it was. Without it the model is
//! called again and may ask for other calls, so tools have to tolerate being called twice. A tool that
//! asks a person gives the question a key derived from the call (`ctx.interrupt_as(key, question)`), so
//! that each of several concurrent calls gets its own answer. If the model makes a different call after a
//! restart, the earlier answer is voided and the new call asks. A question that must not be asked twice
//! belongs in a node of its own, behind the node that stores the calls in the state.
//!
//! Invariants:
//! - The calls of one assistant message run concurrently, up to a limit. Their results are in one user
//!   message, in the order of the calls. A failed call does not stop the others.
//! - Only a complete call to a known tool with a JSON object as arguments is run. Every other call gets an
//!   error as its result, which the model reads, and the loop continues.
//! - A [`ToolChoice`](crate::ToolChoice) that forces a call holds for the first round only. If it held for
//!   all rounds, no model could finish.
//! - However the loop ends, each call has a result, so the conversation can be sent again. After an error,
//!   [`Error::messages`](crate::Error::messages) has the messages so far.
//! - A tool that panics has failed; the other calls go on.

pub(crate) mod after;
mod calls;
mod durable;

use std::fmt;
use std::sync::Arc;

use agentgraph::Ctx;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use serde::{Deserialize, Serialize};

use crate::conversation;
use crate::error::{Error, Result};
use crate::execution::{self, Toolbox};
use crate::message::{Message, MessageIds, ToolResult};
use crate::model::end::{empty_answer, is_empty};
use crate::model::stream::truncated;
use crate::model::{ChatEvent, ChatModel, ChatRequest, ChatResponse, ChatStream, ToolMode, Usage};
use crate::tool::{Tool, ToolOutput};
use crate::tool_macro::IntoTool;
use after::After;
use calls::Calls;
use durable::DurableSteps;

/// The default limit of rounds.
pub const DEFAULT_MAX_ROUNDS: usize = 10;

/// The default limit of concurrent calls.
pub const DEFAULT_MAX_CONCURRENCY: usize = 16;

/// A bounded tool loop. The [module](crate::tool_loop) lists its invariants.
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
/// let model = ScriptedModel::new([
///     Reply::tool_call("weather", json!({"city": "Oslo"})),
///     Reply::text("Take a coat."),
/// ]);
/// let weather = FnTool::new("weather", "The weather of today.", async |place: City| {
///     Ok::<_, ToolError>(format!("snow in {}", place.city))
/// });
///
/// let outcome =
///     ToolLoop::new(&model).tool(weather).max_rounds(5).run(ChatRequest::user("A coat or not?")).await?;
/// assert_eq!(outcome.text(), "Take a coat.");
/// assert_eq!((outcome.ended, outcome.rounds, outcome.messages.len()), (LoopEnd::Finished, 2, 3));
/// # Ok(())
/// # }
/// ```
pub struct ToolLoop<'a> {
    model: &'a dyn ChatModel,
    tools: Vec<Arc<dyn Tool + 'a>>,
    max_rounds: usize,
    max_concurrency: usize,
    ids: MessageIds,
    handler: Option<EventHandler<'a>>,
    ctx: Option<Ctx>,
    steps: Option<DurableSteps>,
}

type EventHandler<'a> = Box<dyn Fn(ChatEvent) -> BoxFuture<'a, ()> + Send + Sync + 'a>;

/// The outcome of a tool loop.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolLoopOutcome {
    /// The messages that the loop added to the conversation, in order: assistant, results, assistant ... The
    /// conversation can be sent again with these at its end, however the loop ended.
    pub messages: Vec<Message>,
    /// The last response of the model.
    pub response: ChatResponse,
    /// The output that ended the loop with [`LoopEnd::ReturnedDirectly`]: the first in the order of the
    /// calls.
    pub direct: Option<ToolOutput>,
    /// The usage of all rounds.
    pub usage: Usage,
    /// The number of model calls.
    pub rounds: usize,
    /// The reason for the end of the loop.
    pub ended: LoopEnd,
}

/// The reason for the end of a tool loop, or of a run of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LoopEnd {
    /// The model finished its answer.
    Finished,
    /// A token limit cut the model's answer.
    Truncated,
    /// The model refused.
    Refused,
    /// The last allowed round ended with tool calls or a pause. Those calls were not run.
    LimitReached,
    /// The output of a tool is the answer.
    ReturnedDirectly,
    /// A middleware of the agent ended the run.
    Jumped,
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
            handler: None,
            ctx: None,
            steps: None,
        }
    }

    /// Adds a tool.
    pub fn tool<Form>(mut self, tool: impl IntoTool<Form, Tool: 'a>) -> Self {
        self.tools.push(Arc::new(tool.into_tool()));
        self
    }

    /// Adds tools, such as a `&Vec<Arc<dyn Tool>>`.
    pub fn tools(mut self, tools: impl IntoIterator<Item = impl Tool + 'a>) -> Self {
        self.tools.extend(tools.into_iter().map(|tool| Arc::new(tool) as Arc<dyn Tool + 'a>));
        self
    }

    /// Limits the number of model calls (10 if not set, at least 1).
    pub fn max_rounds(mut self, rounds: usize) -> Self {
        self.max_rounds = rounds.max(1);
        self
    }

    /// Limits the number of calls of one message that run at the same time (16 if not set, at least 1). The
    /// other calls wait, in order.
    pub fn max_concurrency(mut self, calls: usize) -> Self {
        self.max_concurrency = calls.max(1);
        self
    }

    /// Sets the source of the ids of result messages.
    pub fn message_ids(mut self, ids: MessageIds) -> Self {
        self.ids = ids;
        self
    }

    /// Streams the model's responses and passes each event to `handler`, awaiting it. In a node, `ctx.emit`
    /// can be the handler:
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
    pub fn on_event<Fut>(mut self, handler: impl Fn(ChatEvent) -> Fut + Send + Sync + 'a) -> Self
    where
        Fut: Future<Output = ()> + Send + 'a,
    {
        self.handler = Some(Box::new(move |event| handler(event).boxed()));
        self
    }

    /// Makes every model call and every tool call a [durable step](agentgraph::Ctx::once) of the node: when
    /// the node runs again, the loop neither asks the model again for a response that is stored nor runs a
    /// finished tool again. A tool that failed fatally, such as one that waits for an answer, runs again.
    ///
    /// `name` tells the loops of one node apart. A response from the store is not streamed again.
    ///
    /// ```
    /// use agentgraph::prelude::*;
    /// use agentgraph_llm::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Chat { answer: String }
    ///
    /// async fn answer(ctx: Ctx, model: Dep<ScriptedModel>) -> Result<ChatUpdate> {
    ///     let reply = ToolLoop::new(&*model).durable(&ctx, "answer").run(ChatRequest::user("hello")).await?;
    ///     let _: bool = ctx.interrupt("send it?")?; // the node runs again with the answer
    ///     Ok(Chat::update().answer(reply.text()))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// // A second request would find no reply.
    /// let model = ScriptedModel::new([Reply::text("Good morning.")]);
    /// let graph = StateGraph::new().node("answer", answer).edge(START, "answer").dep(model);
    /// let graph = graph.compile()?.checkpointer(MemorySaver::new());
    /// graph.invoke(Chat::update()).thread("t-1").await?;
    /// let chat = graph.resume(true).thread("t-1").finish().await?;
    /// assert_eq!(chat.answer, "Good morning.");
    /// # Ok(())
    /// # }
    /// ```
    pub fn durable(mut self, ctx: &Ctx, name: impl Into<String>) -> Self {
        self.steps = Some(DurableSteps::new(ctx.clone(), name.into()));
        self.ctx(ctx)
    }

    /// Gives the tools the context of the node in which the loop runs: see
    /// [`ToolCall::ctx`](crate::ToolCall::ctx).
    pub fn ctx(mut self, ctx: &Ctx) -> Self {
        self.ctx = Some(ctx.clone());
        self
    }

    /// Runs the loop. Tools that the request itself offers belong to the caller: a call to one of them gets
    /// the result "unknown tool".
    ///
    /// # Errors
    /// `E_LLM_BAD_TOOL` before the first call if two tools have one name, or a name or schema cannot be sent,
    /// and after a call whose output has a command. `E_LLM_TOOL_FAILED` if a tool failed fatally, with the
    /// tool's error as [`cause`](crate::Error::cause), after all calls of that message ended.
    /// `E_LLM_DURABLE_STEP` if a [durable](Self::durable) loop cannot store or find its results. The model's
    /// own errors. [`Error::usage`](crate::Error::usage) has the usage of the rounds before the error, and
    /// [`Error::messages`](crate::Error::messages) what the loop added to the conversation.
    pub async fn run(self, mut request: ChatRequest) -> Result<ToolLoopOutcome> {
        let toolbox = Toolbox::new(self.tools.iter().cloned())?;
        for spec in toolbox.specs() {
            if request.tools.iter().any(|offered| offered.name == spec.name) {
                return Err(execution::same_name(&spec.name));
            }
            request.tools.push(spec.clone());
        }
        let mut progress = Progress::default();
        match self.rounds(&toolbox, request, &mut progress).await {
            Ok((response, step, ended)) => Ok(ToolLoopOutcome {
                messages: progress.added,
                response,
                direct: step.direct,
                usage: progress.usage,
                rounds: progress.rounds,
                ended,
            }),
            Err(error) => Err(error.with_usage(progress.usage).with_messages(progress.added)),
        }
    }

    async fn rounds(
        &self,
        toolbox: &Toolbox<'_>,
        mut request: ChatRequest,
        progress: &mut Progress,
    ) -> Result<(ChatResponse, RoundOutcome, LoopEnd)> {
        loop {
            progress.rounds += 1;
            request.messages.learn();
            let response = self.ask(&request).await?;
            progress.usage += response.usage;
            progress.add(&mut request, &response.message);
            let mut step = self.step(toolbox, &response, progress.rounds).await;
            if request.tool_choice.is_forced() {
                request.tool_choice.mode = ToolMode::Auto;
            }
            if !step.results.is_empty() {
                let results = Message::tool_results(std::mem::take(&mut step.results));
                progress.add(&mut request, &results.with_id(self.ids.next_id()));
            }
            if let Some(fatal) = step.fatal {
                return Err(fatal);
            }
            if let Some(ended) = step.ended {
                return Ok((response, step, ended));
            }
        }
    }

    async fn ask(&self, request: &ChatRequest) -> Result<ChatResponse> {
        DurableSteps::model(self.steps.as_ref(), self.ask_now(request)).await
    }

    async fn ask_now(&self, request: &ChatRequest) -> Result<ChatResponse> {
        let first = self.ask_once(request).await?;
        if !request.stop.is_empty() || !is_empty(&first) {
            return Ok(first);
        }
        if let Some(handler) = &self.handler {
            handler(ChatEvent::Restarted {}).await;
        }
        let mut second = self.ask_once(request).await.map_err(|error| error.with_usage(first.usage))?;
        second.usage += first.usage;
        if is_empty(&second) { Err(empty_answer(second)) } else { Ok(second) }
    }

    async fn ask_once(&self, request: &ChatRequest) -> Result<ChatResponse> {
        let events = self.model.stream(request.clone()).await?;
        let messages = request.messages.clone();
        let events = conversation::with_distinct_calls(events, move |id| messages.has_call(id));
        match &self.handler {
            None => events.into_response().await,
            Some(handler) => stream(events, handler).await,
        }
    }

    /// Handles one response.
    async fn step(&self, toolbox: &Toolbox<'_>, response: &ChatResponse, rounds: usize) -> RoundOutcome {
        let is_last = rounds >= self.max_rounds;
        match After::of(response) {
            After::End { end, refusal } => return RoundOutcome::refuse_calls(response, Some(end), refusal),
            _ if is_last => {
                let why = format!("not run: the limit of {} rounds was reached", self.max_rounds);
                return RoundOutcome::refuse_calls(response, Some(LoopEnd::LimitReached), &why);
            }
            After::AskAgain { refusal } => return RoundOutcome::refuse_calls(response, None, refusal),
            After::RunCalls => {}
        }
        let calls = Calls {
            toolbox,
            at_once: self.max_concurrency,
            ctx: self.ctx.as_ref(),
            steps: self.steps.as_ref(),
        };
        let outcome = calls.run(response).await;
        let direct = outcome
            .done
            .iter()
            .find_map(|(_, output)| output.as_ref().filter(|output| output.return_direct))
            .cloned();
        let ended = direct.is_some().then_some(LoopEnd::ReturnedDirectly);
        let fatal = outcome.fatal;
        let results = outcome.done.into_iter().map(|(result, _)| result).collect();
        RoundOutcome { results, direct, ended, fatal }
    }
}

/// What a loop has done so far.
#[derive(Default)]
struct Progress {
    added: Vec<Message>,
    usage: Usage,
    rounds: usize,
}

impl Progress {
    fn add(&mut self, request: &mut ChatRequest, message: &Message) {
        request.messages.push(message.clone());
        self.added.push(message.clone());
    }
}

async fn stream(mut events: ChatStream, handler: &EventHandler<'_>) -> Result<ChatResponse> {
    while let Some(event) = events.next().await {
        let event = event?;
        let finished = match &event {
            ChatEvent::Finished(response) => Some(response.clone()),
            _ => None,
        };
        handler(event).await;
        if let Some(response) = finished {
            return Ok(response);
        }
    }
    Err(truncated())
}

/// The outcome of one round: the results of its calls, and the end of the loop if it was the last.
struct RoundOutcome {
    results: Vec<ToolResult>,
    direct: Option<ToolOutput>,
    ended: Option<LoopEnd>,
    fatal: Option<Error>,
}

impl RoundOutcome {
    /// The end of a round whose calls, if it has any, are not run.
    fn refuse_calls(response: &ChatResponse, ended: Option<LoopEnd>, why: &str) -> Self {
        let results = response.message.tool_uses().map(|call| ToolResult::error(&call.id, why)).collect();
        RoundOutcome { results, direct: None, ended, fatal: None }
    }
}

impl ToolLoopOutcome {
    /// The answer: the model's text, or the tool's text after [`LoopEnd::ReturnedDirectly`].
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
        parts.field("model", &self.model.info().model).field("tools", &self.tools.len());
        parts.field("max_rounds", &self.max_rounds).field("max_concurrency", &self.max_concurrency);
        parts.finish_non_exhaustive()
    }
}
