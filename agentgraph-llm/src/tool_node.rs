//! [`ToolNode`]: the calls of a model's answer as a node of a graph.

use std::collections::BTreeSet;
use std::fmt;
use std::iter;
use std::pin::pin;
use std::sync::Arc;

use agentgraph::node::{IntoNode, Node, TargetName};
use agentgraph::{Command, Ctx, Dispatch, Input, Snapshot, State};
use futures_util::{FutureExt, StreamExt, stream};

use crate::conversation;
use crate::error::{Code, Error, Result};
use crate::execution::{self, CallOutcome, Toolbox};
use crate::message::{Message, ToolUse};
use crate::middleware::{Chain, Middleware, NextTool};
use crate::tool::{AnyCommand, Tool, ToolCall, ToolError, ToolOutput};
use crate::tool_loop::DEFAULT_MAX_CONCURRENCY;

/// A state that holds a conversation.
///
/// [`agent_channels!`](crate::agent_channels) implements it for a state that can also be the state of an
/// [`Agent`](crate::Agent).
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say where its messages are",
    label = "needs `MessageChannels`",
    note = "implement `MessageChannels` over a field `#[reduce(by_id)] messages: Messages`"
)]
pub trait MessageChannels: State<Schema: Default> {
    /// The conversation.
    fn messages(&self) -> &[Message];

    /// An update that replaces messages by their ids, and adds the others at the end.
    fn add_messages(messages: Vec<Message>) -> Self::Update;

    /// An update with the results of calls. `direct` has the ids of the calls whose output is the answer.
    fn add_results(results: Vec<Message>, direct: Vec<String>) -> Self::Update {
        let _ = direct;
        Self::add_messages(results)
    }
}

/// A node that runs the calls of the model's last answer and adds their results to the conversation.
///
/// Reached by an edge, it runs all open calls at once and adds one message with their results, in the order
/// of the calls. Reached by a [`dispatch`](ToolNode::dispatch), it runs one call. Then each call is a task of
/// its own: its result is stored when it is done, and a finished call never runs again.
///
/// - An unknown tool, arguments that do not fit, a failed tool and a panic are results that the model reads.
///   [`ToolError::Fatal`](crate::ToolError::Fatal) fails the node, after the other calls have ended; a
///   question to a person stops the run.
/// - Calls of an answer that a token limit or a refusal ended are not run, and the model reads why.
/// - The [command](crate::ToolOutput::command) of a tool is applied with the result of its call. The node
///   adds the result, the command need not.
/// - If all calls that were run return [directly](crate::ToolOutput::return_direct), the node goes to
///   [`direct_to`](ToolNode::direct_to) in the place of its edges.
///
/// ```
/// use agentgraph::prelude::*;
/// use agentgraph_llm::prelude::*;
/// use agentgraph_llm::{MessageChannels, ToolNode, conversation};
/// # use schemars::JsonSchema;
/// # use serde::Deserialize;
/// # use serde_json::json;
///
/// #[derive(State, Clone, Debug, Default)]
/// struct Chat {
///     #[reduce(by_id)]
///     messages: Messages,
/// }
///
/// impl MessageChannels for Chat {
///     fn messages(&self) -> &[Message] {
///         &self.messages
///     }
///     fn add_messages(messages: Vec<Message>) -> ChatUpdate {
///         Chat::update().messages(messages)
///     }
/// }
///
/// async fn ask(chat: Snapshot<Chat>, model: Dep<ScriptedModel>) -> Result<ChatUpdate> {
///     let response = model.chat(ChatRequest::new(conversation::complete(&chat.messages))).await?;
///     Ok(Chat::update().messages([response.message]))
/// }
///
/// #[derive(Deserialize, JsonSchema)]
/// struct City {
///     city: String,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let weather = FnTool::new("weather", "The weather of today.", async |place: City| {
///     Ok::<_, ToolError>(format!("snow in {}", place.city))
/// });
/// let oslo = Reply::tool_call("weather", json!({"city": "Oslo"}));
/// let model = ScriptedModel::new([
///     oslo.and_tool_call("weather", json!({"city": "Bergen"})),
///     Reply::text("Take a coat."),
/// ]);
///
/// let graph = StateGraph::new()
///     .node("ask", ask)
///     .node("tools", ToolNode::new([weather])?)
///     .edge(START, "ask")
///     .branch("ask", |chat: &Chat| ToolNode::dispatch("tools", &chat.messages), ["tools"])
///     .edge("tools", "ask")
///     .dep(model)
///     .compile()?;
///
/// let chat =
///     graph.invoke(Chat::update().messages([Message::user("A coat or not?")])).finish().await?;
/// let results: Vec<_> =
///     chat.messages.iter().flat_map(Message::results).map(|result| result.as_text()).collect();
/// assert_eq!(results, ["snow in Oslo", "snow in Bergen"]);
/// assert_eq!(chat.messages.last().unwrap().text(), "Take a coat.");
/// # Ok(())
/// # }
/// ```
pub struct ToolNode {
    toolbox: Arc<Toolbox<'static>>,
    chain: Chain,
    max_concurrency: usize,
    direct_to: String,
}

impl ToolNode {
    /// A node over these tools.
    ///
    /// # Errors
    /// `E_LLM_BAD_TOOL` if two tools have one name, or a name or schema cannot be sent.
    pub fn new(tools: impl IntoIterator<Item = impl Tool + 'static>) -> Result<Self> {
        let tools = tools.into_iter().map(|tool| Arc::new(tool) as Arc<dyn Tool>);
        Ok(ToolNode::of(Arc::new(Toolbox::new(tools)?), Arc::from([])))
    }

    pub(crate) fn of(toolbox: Arc<Toolbox<'static>>, chain: Chain) -> Self {
        let direct_to = agentgraph::END.to_owned();
        ToolNode { toolbox, chain, max_concurrency: DEFAULT_MAX_CONCURRENCY, direct_to }
    }

    /// Wraps each call in these: [`Middleware::wrap_tool`]. The first is the outermost. Their hooks are not
    /// called.
    pub fn middleware(mut self, middleware: impl IntoIterator<Item = impl Middleware + 'static>) -> Self {
        let added = middleware.into_iter().map(|added| Arc::new(added) as Arc<dyn Middleware>);
        self.chain = self.chain.iter().cloned().chain(added).collect();
        self
    }

    /// Limits the number of calls that run at the same time in one task (16 if not set, at least 1).
    pub fn max_concurrency(mut self, calls: usize) -> Self {
        self.max_concurrency = calls.max(1);
        self
    }

    /// Sets the node to which calls that return directly go (`END` if not set).
    pub fn direct_to(mut self, target: impl Into<String>) -> Self {
        self.direct_to = target.into();
        self
    }

    /// Checks that the tools can work on the state `S`. A call of a tool for another state fails the node.
    ///
    /// # Errors
    /// `E_LLM_BAD_TOOL` with the name of the tool and the two states.
    pub fn check_state<S: State>(&self) -> Result<()> {
        self.toolbox.check_state::<S>()
    }

    /// One dispatch to `node` for each open call of a conversation, for a branch or a command. Empty if the
    /// last answer has no open calls, and then a branch ends.
    pub fn dispatch(node: &str, messages: &[Message]) -> Vec<Dispatch> {
        ToolNode::dispatch_to(node.to_owned(), messages)
    }

    pub(crate) fn dispatch_to(node: impl TargetName + Clone, messages: &[Message]) -> Vec<Dispatch> {
        let dispatch = |call: &ToolUse| Dispatch::new(node.clone(), call.id.clone());
        let mut open = conversation::each_open_call(messages);
        match (open.next(), open.next()) {
            (None, _) => Vec::new(),
            // Most answers: a single call needs no list.
            (Some(only), None) => vec![dispatch(only)],
            _ => first_of_each_id(conversation::open_calls(messages)).0.into_iter().map(dispatch).collect(),
        }
    }

    async fn run<S: MessageChannels>(
        &self,
        ctx: Ctx,
        state: Snapshot<S>,
        only: Option<Input<String>>,
    ) -> Result<Command<S>> {
        let single = {
            let is_meant = |call: &&ToolUse| only.as_ref().is_none_or(|Input(id)| call.id == *id);
            let mut meant = conversation::each_open_call(state.messages()).filter(is_meant);
            let (first, is_twice) = (meant.next(), meant.next().is_some());
            first.filter(|_| !is_twice || only.is_some()).map(|call| (call, is_twice))
        };
        if let Some((asked, is_twice)) = single {
            let done = self.run_one(asked, is_twice, &ctx, &state).await?;
            return self.command(state.messages(), &[asked], &mut iter::once(done), only.is_some());
        }
        if let Some(Input(id)) = &only {
            return Err(no_such_call(id));
        }
        let (calls, twice) = first_of_each_id(conversation::open_calls(state.messages()));
        let is_twice = |call: &ToolUse| twice.contains(call.id.as_str());
        // In a box: the task of one call needs no room for a queue.
        let running = calls.iter().map(|call| self.run_one(call, is_twice(call), &ctx, &state));
        let running: Vec<_> = running.collect();
        let ended = stream::iter(running).buffered(self.max_concurrency).collect::<Vec<_>>().boxed().await;
        let done = ended.into_iter().collect::<Result<Vec<_>>>()?;
        self.command(state.messages(), &calls, &mut done.into_iter(), false)
    }

    async fn run_one<S: MessageChannels>(
        &self,
        asked: &ToolUse,
        is_twice: bool,
        ctx: &Ctx,
        state: &Snapshot<S>,
    ) -> Result<CallOutcome> {
        if is_twice {
            return execution::outcome(asked, Err(same_id(&asked.id)));
        }
        let shared = Arc::<S>::from(state.clone());
        let call = match conversation::answer_with(state.messages(), &asked.id) {
            Some(answer) if answer.is_incomplete => return execution::outcome(asked, Err(incomplete())),
            Some(answer) => ToolCall::of(asked, answer, Some(ctx.clone()), Some(shared)),
            None => return Err(no_such_call(&asked.id)),
        };
        let inside = pin!(NextTool::first(&self.chain, &self.toolbox).run(&call));
        match execution::run(asked, inside).await {
            Ok(mut output) => {
                let (return_direct, command) = (output.return_direct, output.command.take());
                let kept = ToolOutput { return_direct, command, ..ToolOutput::default() };
                Ok((execution::result(asked, output), Some(kept)))
            }
            failed => execution::outcome(asked, failed),
        }
    }

    /// The results, then the commands of the tools in the order of the calls.
    fn command<S: MessageChannels>(
        &self,
        messages: &[Message],
        calls: &[&ToolUse],
        done: &mut dyn Iterator<Item = CallOutcome>,
        is_dispatched: bool,
    ) -> Result<Command<S>> {
        let (mut direct, mut commands) = (Vec::new(), Vec::new());
        let message = {
            let mut results = calls.iter().zip(done).map(|(call, (result, output))| {
                if let Some(output) = output {
                    direct.extend(output.return_direct.then(|| call.id.clone()));
                    commands.extend(output.command);
                }
                result
            });
            if is_dispatched {
                results.next().map(|only| conversation::result_message(messages, only))
            } else {
                let results: Vec<_> = results.collect();
                (!results.is_empty()).then(|| Message::tool_results(results))
            }
        };
        let all_direct = !calls.is_empty() && direct.len() == calls.len();
        let mut command = Command::update(S::add_results(Vec::from_iter(message), direct));
        for added in commands.into_iter().map(AnyCommand::into_command::<S>) {
            command = command.and(added?).map_err(|error| {
                Error::new(Code::BadTool, "the commands of two tools cannot be combined").with_source(error)
            })?;
        }
        if all_direct && !command.replaces_edges() {
            command = command.goto(self.direct_to.clone());
        }
        Ok(command)
    }
}

/// The first call of each id, and the ids of several calls: results are found by the id, so calls that share
/// one cannot be told apart.
fn first_of_each_id(mut calls: Vec<&ToolUse>) -> (Vec<&ToolUse>, BTreeSet<&str>) {
    let (mut ids, mut twice) = (BTreeSet::new(), BTreeSet::new());
    if calls.len() > 1 {
        calls.retain(|call| {
            let is_first = ids.insert(call.id.as_str());
            if !is_first {
                twice.insert(call.id.as_str());
            }
            is_first
        });
    }
    (calls, twice)
}

fn same_id(id: &str) -> ToolError {
    ToolError::failed(format!(
        "not run: several calls of the answer have the id `{id}`; make them again, one at a time"
    ))
}

/// The rule of [`ToolLoop`](crate::ToolLoop) and [`Agent`](crate::Agent).
fn incomplete() -> ToolError {
    ToolError::failed(
        "not run: the answer reached the token limit or ended in a refusal, so its calls may be incomplete; make them \
         again, one at a time or with shorter arguments",
    )
}

fn no_such_call(id: &str) -> Error {
    let message = format!(
        "a tool node was dispatched for the call `{id}`, which is not open in the last answer of the conversation: \
         dispatch it with `ToolNode::dispatch`"
    );
    Error::new(Code::BadTool, message)
}

/// Marks the implementation of [`IntoNode`] for [`ToolNode`].
#[derive(Debug)]
pub struct IsToolNode;

impl<S: MessageChannels> IntoNode<S, IsToolNode> for ToolNode {
    fn into_node(self) -> Node<S> {
        let fits = self.check_state::<S>().is_ok();
        let tools = Arc::new(self);
        IntoNode::<S, _>::into_node(move |ctx: Ctx, state: Snapshot<S>, only: Option<Input<String>>| {
            let tools = Arc::clone(&tools);
            async move {
                if !fits {
                    tools.check_state::<S>()?;
                }
                tools.run(ctx, state, only).await
            }
        })
    }
}

impl fmt::Debug for ToolNode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools: Vec<_> = self.toolbox.specs().map(|spec| spec.name.clone()).collect();
        let mut parts = out.debug_struct("ToolNode");
        parts.field("tools", &tools).field("max_concurrency", &self.max_concurrency).finish_non_exhaustive()
    }
}
