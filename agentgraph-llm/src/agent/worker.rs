//! [`supervisor`]: an agent whose tools are other agents.

use std::fmt;

use agentgraph::node::{IntoNode, Node, Step};
use agentgraph::state::StoredState;
use agentgraph::{CompiledGraph, Dispatch};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::answer::AgentAnswer;
use super::plan::{self, Team};
use super::state::{AgentChange, AgentChannels, RecordChange};
use super::{Agent, CompiledAgent};
use crate::conversation;
use crate::error::{Code, Error, Result};
use crate::json::RawJson;
use crate::message::{Message, ToolResult, ToolUse};
use crate::middleware::Bill;
use crate::model::Usage;
use crate::tool::{Tool, ToolCall, ToolError, ToolOutput, ToolSpec};
use crate::tool_loop::LoopEnd;

/// Makes a supervisor: the graph of an agent that gives tasks to workers.
///
/// The model of the supervisor calls a worker as it calls a tool, under the worker's
/// [name](Agent::name) and [description](Agent::description), and writes the task. The worker starts with
/// that task alone and works with its own model, tools and middleware. Its answer is the result of the call.
/// Only this answer is added to the supervisor's conversation.
///
/// - Each call is a subgraph of its own. Workers that are called in one answer run side by side, the same one
///   twice as well, and beside the supervisor's own tools.
/// - Questions of a worker to persons reach the caller of the supervisor. Each answer of a worker's model and
///   each of its calls is stored, so a worker goes on where it was.
/// - A worker that ends at a limit, in a refusal or with a cut answer is a failed call: the supervisor reads
///   why. An error of a worker ends the run, as a [fatal](crate::ToolError::Fatal) error of a tool does.
/// - [`max_rounds`](Agent::max_rounds) limits the supervisor and each call of a worker for themselves. The
///   tokens of workers count in [`AgentAnswer::usage`], and their money in the supervisor's
///   [`Budget`](crate::middleware::Budget). A [`Budget`](agentgraph::Budget) of the run
///   holds over all of them: of the units `tokens` and `rounds`.
/// - [`wrap_tool`](crate::Middleware::wrap_tool) is not called around workers. Hooks see their calls.
///
/// The result is an agent, so it can be the worker of another supervisor.
///
/// ```
/// use agentgraph::prelude::*;
/// use agentgraph_llm::prelude::*;
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let research = Agent::new(ScriptedModel::new([Reply::text("12 degrees")]))
///     .name("research")
///     .description("Finds facts.")
///     .compile()?;
/// let poet = Agent::new(ScriptedModel::new([Reply::text("Oh Oslo!")]))
///     .name("poet")
///     .description("Writes verses.")
///     .compile()?;
///
/// let both = Reply::tool_call("research", json!({"task": "The temperature of Oslo today."}))
///     .and_tool_call("poet", json!({"task": "A verse on Oslo."}));
/// let model = ScriptedModel::new([both, Reply::text("Oh Oslo, at 12 degrees!")]);
/// let agent = supervisor(Agent::new(model).system("You lead a team."), [research, poet])?;
///
/// let answer = agent.invoke("A verse with the temperature of Oslo, please.").finish().await?;
/// assert_eq!(answer.text(), "Oh Oslo, at 12 degrees!");
/// let results: Vec<_> = answer.state.messages.iter().flat_map(Message::results).map(|result| result.as_text()).collect();
/// assert_eq!(results, ["12 degrees", "Oh Oslo!"]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Those of [`Agent::compile`]. `E_LLM_CONFIG` if there are no workers, and `E_LLM_BAD_TOOL` if a name
/// cannot be sent or belongs to two workers, or to a worker and a tool.
pub fn supervisor<T, S: AgentChannels, W: Into<Worker<S>>>(
    agent: Agent<T, S>,
    workers: impl IntoIterator<Item = W>,
) -> Result<CompiledAgent<T, S>> {
    let workers: Vec<Worker<S>> = workers.into_iter().map(Into::into).collect();
    if workers.is_empty() {
        let message = format!("the supervisor `{}` has no workers: give it at least one", agent.name);
        return Err(Error::new(Code::Config, message));
    }
    plan::compile(agent, Team { workers, ..Team::default() })
}

/// A worker of a [`supervisor`] over the state `S`. A [`CompiledAgent`] becomes one by `.into()`, which
/// workers of several types need: `[Worker::from(research), Worker::from(poet)]`.
pub struct Worker<S: AgentChannels> {
    pub(super) tool: WorkerTool,
    pub(super) node: Node<S>,
}

impl<S: AgentChannels> Worker<S> {
    /// Any graph as a worker. `input` makes the input of its run from the task, `output` its answer from the
    /// last state. Both must be pure: they are called again when a run continues.
    ///
    /// ```
    /// use agentgraph::prelude::*;
    /// use agentgraph_llm::agent::Worker;
    /// use agentgraph_llm::prelude::*;
    /// # use serde_json::json;
    /// #[derive(State, Clone, Debug, Default)]
    /// struct Count {
    ///     text: String,
    ///     letters: usize,
    /// }
    ///
    /// async fn count(count: Snapshot<Count>) -> CountUpdate {
    ///     Count::update().letters(count.text.chars().count())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new().node("count", count).edge(START, "count").compile()?;
    /// let counter = Worker::of(
    ///     "counter",
    ///     "Counts the letters of a text.",
    ///     graph,
    ///     |text| Count::update().text(text),
    ///     |count: Count| count.letters.to_string(),
    /// );
    ///
    /// let call = Reply::tool_call("counter", json!({"task": "Oslo"}));
    /// let model = ScriptedModel::new([call, Reply::text("Four.")]);
    /// let answer = supervisor(Agent::new(model), [counter])?.invoke("How long is Oslo?").finish().await?;
    /// assert_eq!(answer.state.messages[2].results().next().unwrap().as_text(), "4");
    /// # Ok(())
    /// # }
    /// ```
    pub fn of<C: StoredState, U: Into<C::Update>, O: Into<ToolOutput>>(
        name: impl Into<String>,
        description: impl Into<String>,
        graph: CompiledGraph<C>,
        input: impl Fn(String) -> U + Send + Sync + 'static,
        output: impl Fn(C) -> O + Send + Sync + 'static,
    ) -> Self {
        let done = move |state| Done {
            output: Ok(output(state).into()),
            usage: Usage::default(),
            bill: Bill::default(),
        };
        Worker::over(
            name.into(),
            description.into(),
            graph,
            move |call: &WorkerCall| input(call.task.clone()),
            done,
        )
    }

    fn over<C: StoredState, U: Into<C::Update>>(
        name: String,
        description: String,
        graph: CompiledGraph<C>,
        input: impl Fn(&WorkerCall) -> U + Send + Sync + 'static,
        done: impl Fn(C) -> Done + Send + Sync + 'static,
    ) -> Self {
        let node =
            graph.embed_dispatched(input, move |call: WorkerCall, state: C| call.end::<S>(done(state)));
        Worker { tool: WorkerTool { name, description }, node: IntoNode::<S, _>::into_node(node) }
    }
}

impl<T: 'static, W: AgentChannels + StoredState, S: AgentChannels> From<CompiledAgent<T, W>> for Worker<S> {
    fn from(agent: CompiledAgent<T, W>) -> Self {
        let (name, description) = (agent.name().to_owned(), agent.description().to_owned());
        let input = |call: &WorkerCall| {
            // An id that follows from the call, so that a call that begins again changes nothing.
            let task = Message::user(&call.task).with_id(format!("{}:{}:task", call.answer, call.id));
            W::change(AgentChange { put: vec![task], ..AgentChange::default() })
        };
        Worker::over(name, description, agent.into_graph(), input, |state| {
            Done::of(&AgentAnswer::<T, W>::from(state))
        })
    }
}

impl<S: AgentChannels> fmt::Debug for Worker<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Worker").field("tool", &self.tool).finish_non_exhaustive()
    }
}

/// What a worker has done.
struct Done {
    output: Result<ToolOutput, String>,
    usage: Usage,
    bill: Bill,
}

impl Done {
    fn of<T, W: AgentChannels>(answer: &AgentAnswer<T, W>) -> Self {
        let text = match &answer.state.run_record().output {
            Some(value) => value.get().to_owned(),
            None => answer.text(),
        };
        let failed = |why: &str| Err(format!("{why}. Its last words: {text}"));
        let output = match answer.end() {
            LoopEnd::LimitReached => failed("the worker reached its limit of answers before it was done"),
            LoopEnd::Refused => failed("the worker's model refused the task"),
            LoopEnd::Truncated => failed("the worker's answer was cut by its token limit"),
            LoopEnd::Finished | LoopEnd::ReturnedDirectly | LoopEnd::Jumped => Ok(ToolOutput::text(text)),
        };
        Done { output, usage: answer.usage(), bill: answer.state.run_record().bill.clone() }
    }
}

/// A call of a worker, as it is dispatched.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct WorkerCall {
    /// The id of the message with the call.
    answer: String,
    id: String,
    task: String,
}

impl WorkerCall {
    /// The result of the call, and what the worker used.
    fn end<S: AgentChannels>(self, done: Done) -> Step<S> {
        let result = match done.output {
            Ok(output) => {
                let mut result = ToolResult::new(&self.id, output.content);
                result.artifact = output.artifact.map(Into::into);
                result
            }
            Err(why) => ToolResult::error(&self.id, why),
        };
        let used = RecordChange::used_by_worker(done.usage);
        let mut change = AgentChange {
            put: vec![conversation::result_of(&self.answer, result)],
            thread: Some(used.clone()),
            run: Some(used),
            ..AgentChange::default()
        };
        change.bill(done.bill);
        Step::Update(S::change(change))
    }
}

/// The tool as which a worker is offered to the model. Only calls that no worker can take reach it.
#[derive(Clone, Debug)]
pub(super) struct WorkerTool {
    pub(super) name: String,
    description: String,
}

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// What to do, with everything that is needed to do it. The worker sees nothing else of the conversation.
    task: String,
}

impl WorkerTool {
    /// The dispatch of a call with arguments that fit.
    pub(super) fn dispatch(answer: &str, call: &ToolUse) -> Option<Dispatch> {
        let Arguments { task } = call.input.json().and_then(read)?;
        let worker = WorkerCall { answer: answer.to_owned(), id: call.id.clone(), task };
        Some(Dispatch::new(call.name.clone(), worker))
    }
}

fn read<A: DeserializeOwned>(input: &RawJson) -> Option<A> {
    input.is_object().then(|| input.parse().ok()).flatten()
}

#[async_trait]
impl Tool for WorkerTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec::of::<Arguments>(&self.name, &self.description)
    }

    async fn call(&self, input: &RawJson, _: &ToolCall) -> Result<ToolOutput, ToolError> {
        match input.parse::<Arguments>() {
            Err(error) => Err(ToolError::invalid_arguments(error)),
            Ok(_) => Err(ToolError::failed("the call was not given to the worker; make it again")),
        }
    }
}
