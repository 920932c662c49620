//! Agents: a model, its tools and its middleware as a compiled graph.
//!
//! ```text
//! START -> before_agent .. -> before_model .. -> model -> .. after_model -> tools (one task per call) -> before_model ..
//!                                                                       \-> .. after_agent -> END
//! ```
//!
//! An agent is a graph of the engine, so it has what graphs have: checkpoints, streams, cancellation,
//! questions to persons, drawing, and it is a node of other graphs.
//!
//! Invariants:
//! - An answer of the model is stored before its calls run, and each call is a task of its own: its result is
//!   stored when it is done, and a finished call never runs again.
//! - Each hook of a [middleware](crate::middleware) is a node. Hooks may ask and jump; the model is not paid
//!   again for the answer.
//! - A request holds a complete conversation: calls that were left without a result by a cancelled, abandoned
//!   or limited run are answered as errors first.
//! - A run ends after [`max_rounds`](Agent::max_rounds) answers of the model, whatever middleware does.

mod answer;
mod best;
mod compiled;
mod form;
mod hand_off;
mod hook;
mod kept;
mod model_node;
mod plan;
mod state;
mod stream;
mod worker;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::error::Result;
use crate::middleware::Middleware;
use crate::model::{ChatModel, ChatRequest};
use crate::tool::{Tool, ToolSpec};
use crate::tool_macro::IntoTool;

#[doc(hidden)]
pub use agentgraph::State;
pub use answer::AgentAnswer;
pub use best::BestAnswer;
pub use compiled::{CompiledAgent, IsAgent};
use form::OutputForm;
pub use hand_off::hand_off;
pub use state::{AgentChange, AgentChannels, AgentRecord, AgentState, AgentStateUpdate, RecordChange};
pub use stream::{AgentRunExt, AgentStream};
pub use worker::{Worker, supervisor};

/// The default limit of the model's answers in a run.
pub const DEFAULT_MAX_ROUNDS: u64 = 25;

/// A builder of an agent. `T` is the type of its answer, `S` its state.
///
/// ```
/// use agentgraph::prelude::*;
/// use agentgraph_llm::prelude::*;
/// # use schemars::JsonSchema;
/// # use serde::Deserialize;
/// # use serde_json::json;
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
/// // In a program: `AnthropicModel::from_env()?.model("claude-...").build()?`
/// let model = ScriptedModel::new([Reply::tool_call("weather", json!({"city": "Oslo"})), Reply::text("Take a coat.")]);
///
/// let agent = Agent::new(model).tool(weather).system("Answer in one sentence.").compile()?;
/// let agent = agent.checkpointer(MemorySaver::new());
///
/// let answer = agent.invoke("A coat or not?").thread("ada").finish().await?;
/// assert_eq!(answer.text(), "Take a coat.");
/// assert_eq!(answer.state.messages.len(), 4);
/// # Ok(())
/// # }
/// ```
///
/// An answer with a form:
///
/// ```
/// # use agentgraph::prelude::*;
/// # use agentgraph_llm::prelude::*;
/// # use schemars::JsonSchema;
/// # use serde::Deserialize;
/// # use serde_json::json;
/// #[derive(Deserialize, JsonSchema, Debug, PartialEq)]
/// struct Advice {
///     coat: bool,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// # let model = ScriptedModel::new([Reply::tool_call("Advice", json!({"coat": true}))]);
/// let agent = Agent::new(model).output::<Advice>().compile()?;
/// let answer = agent.invoke("A coat or not?").finish().await?;
/// assert_eq!(answer.value()?, Advice { coat: true });
/// # Ok(())
/// # }
/// ```
#[must_use = "a builder does nothing until `compile()`"]
pub struct Agent<T = String, S: AgentChannels = AgentState> {
    name: String,
    description: String,
    hand_off_to: Option<Vec<String>>,
    model: Arc<dyn ChatModel>,
    settings: ChatRequest,
    tools: Vec<Arc<dyn Tool>>,
    server_tools: Vec<ToolSpec>,
    middleware: Vec<Arc<dyn Middleware>>,
    form: Option<OutputForm>,
    limits: Limits,
    of: PhantomData<fn() -> (T, S)>,
}

/// The limits of an agent.
#[derive(Clone, Copy, Debug)]
struct Limits {
    run_rounds: u64,
    thread_rounds: Option<u64>,
    misfits: u32,
}

impl Agent {
    /// An agent over this model.
    pub fn new(model: impl ChatModel + 'static) -> Self {
        Agent {
            name: "agent".to_owned(),
            description: String::new(),
            hand_off_to: None,
            model: Arc::new(model),
            settings: ChatRequest::default(),
            tools: Vec::new(),
            server_tools: Vec::new(),
            middleware: Vec::new(),
            form: None,
            limits: Limits { run_rounds: DEFAULT_MAX_ROUNDS, thread_rounds: None, misfits: 2 },
            of: PhantomData,
        }
    }
}

impl<T, S: AgentChannels> Agent<T, S> {
    /// Sets the name (`agent` if not set), for traces and errors, and for models that call the agent:
    /// letters, digits, `_` and `-`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets what the agent is for, for models that give it tasks ([`supervisor`]) or hand it the conversation
    /// ([`hand_off`]).
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// Sets the agents to which this one may hand the conversation in a graph made by [`hand_off`]: all
    /// others if not set. Elsewhere it has no effect.
    pub fn hand_off_to(mut self, agents: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.hand_off_to = Some(agents.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the instructions to the model.
    pub fn system(mut self, system: impl Into<String>) -> Self {
        self.settings.system = Some(system.into());
        self
    }

    /// Sets all settings of the requests: the limit of tokens, the temperature, fields of the provider. Its
    /// messages come before the conversation. A tool choice that forces a call holds for the first request of
    /// a run.
    pub fn settings(mut self, settings: ChatRequest) -> Self {
        let system = self.settings.system.take();
        self.settings = settings;
        self.settings.system = self.settings.system.take().or(system);
        self
    }

    /// Adds a tool.
    pub fn tool<Form>(mut self, tool: impl IntoTool<Form, Tool: 'static>) -> Self {
        self.tools.push(Arc::new(tool.into_tool()));
        self
    }

    /// Adds tools of one type, such as a `Vec<Arc<dyn Tool>>`.
    pub fn tools(mut self, tools: impl IntoIterator<Item = impl Tool + 'static>) -> Self {
        self.tools.extend(tools.into_iter().map(|tool| Arc::new(tool) as Arc<dyn Tool>));
        self
    }

    /// Adds a tool that the provider runs: see [`ToolSpec::server`]. Its calls never reach the tools here.
    pub fn server_tool(mut self, tool: ToolSpec) -> Self {
        self.server_tools.push(tool);
        self
    }

    /// Adds a middleware, inside those that were added before.
    pub fn middleware(mut self, middleware: impl Middleware + 'static) -> Self {
        self.middleware.push(Arc::new(middleware));
        self
    }

    /// Limits the number of the model's answers in a run (25 if not set, at least 1). At the limit the run
    /// ends with [`LoopEnd::LimitReached`](crate::LoopEnd::LimitReached), and calls of the last answer are
    /// not run.
    ///
    /// As a node of a graph over the same state, the agent counts in the record of that graph's run, together
    /// with the other agents that are nodes of it. To count for itself it is
    /// [embedded](agentgraph::CompiledGraph::embed), or a worker of a [`supervisor`].
    pub fn max_rounds(mut self, rounds: u64) -> Self {
        self.limits.run_rounds = rounds.max(1);
        self
    }

    /// Limits the number of the model's answers in a thread, over all its runs. Not limited if not set.
    pub fn max_thread_rounds(mut self, rounds: u64) -> Self {
        self.limits.thread_rounds = Some(rounds);
        self
    }

    /// Sets the type of the answer. A model with [structured output](crate::Capabilities::structured_output)
    /// gets its schema as the form of the answer, any other model as a tool that it calls to answer. An
    /// answer of another form goes back to the model with the error, up to
    /// [`max_misfits`](Agent::max_misfits) times.
    pub fn output<U: JsonSchema + DeserializeOwned>(self) -> Agent<U, S> {
        let form = OutputForm::of::<U>(self.model.info().capabilities.structured_output);
        Agent { form: Some(form), ..self.retyped() }
    }

    /// Limits the number of answers in a run that do not have the form (2 if not set). One more fails the run
    /// with `E_LLM_ANSWER_REJECTED`.
    pub fn max_misfits(mut self, answers: u32) -> Self {
        self.limits.misfits = answers;
        self
    }

    /// Sets the type of the state.
    pub fn state<S2: AgentChannels>(self) -> Agent<T, S2> {
        self.retyped()
    }

    fn retyped<U, S2: AgentChannels>(self) -> Agent<U, S2> {
        let Agent { name, description, hand_off_to, model, settings, tools, .. } = self;
        let Agent { server_tools, middleware, form, limits, .. } = self;
        let of = PhantomData;
        Agent {
            name,
            description,
            hand_off_to,
            model,
            settings,
            tools,
            server_tools,
            middleware,
            form,
            limits,
            of,
        }
    }

    /// Checks the agent and makes its graph.
    ///
    /// # Errors
    /// `E_LLM_BAD_TOOL` if two tools have one name, if a name or schema cannot be sent, or if a tool works on
    /// another state. `E_LLM_CONFIG` if two middleware have one name.
    pub fn compile(self) -> Result<CompiledAgent<T, S>> {
        plan::compile(self, plan::Team::default())
    }
}

impl<T, S: AgentChannels> fmt::Debug for Agent<T, S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools: Vec<_> = self.tools.iter().map(|tool| tool.spec().name.clone()).collect();
        let middleware: Vec<_> = self.middleware.iter().map(|middleware| middleware.name()).collect();
        let mut parts = out.debug_struct("Agent");
        parts.field("name", &self.name).field("model", &self.model.info().model);
        parts.field("tools", &tools).field("middleware", &middleware).field("limits", &self.limits);
        parts.finish_non_exhaustive()
    }
}
