//! The graph of an agent: its nodes, and the ways between them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use agentgraph::node::{IntoNode, Node};
use agentgraph::{Command, CompiledGraph, Ctx, Dispatch, END, START, Snapshot, StateGraph};

use super::form::OutputForm;
use super::hand_off::HandOff;
use super::hook::{HookKind, HookNode};
use super::model_node;
use super::state::{AgentChange, AgentChannels};
use super::worker::{Worker, WorkerTool};
use super::{Agent, CompiledAgent, Limits};
use crate::conversation;
use crate::error::{BoxError, Code, Error, Result};
use crate::execution::{Toolbox, same_name};
use crate::message::{Message, ToolUse};
use crate::middleware::{Chain, Middleware};
use crate::model::{ChatModel, ChatRequest};
use crate::tool::Tool;
use crate::tool_node::ToolNode;

pub(super) const MODEL: &str = "model";
pub(super) const TOOLS: &str = "tools";
const HAND_OFF: &str = "hand_off";

/// An agent as its nodes share it.
pub(super) struct Plan {
    pub(super) name: String,
    pub(super) model: Arc<dyn ChatModel>,
    /// Has the tools of each request, too.
    pub(super) settings: ChatRequest,
    pub(super) toolbox: Arc<Toolbox<'static>>,
    pub(super) chain: Chain,
    pub(super) form: Option<OutputForm>,
    pub(super) limits: Limits,
    pub(super) ways: Ways,
    /// The names of the workers, which are also the names of their nodes.
    workers: Vec<String>,
}

/// The other agents of an agent.
pub(super) struct Team<S: AgentChannels> {
    pub(super) workers: Vec<Worker<S>>,
    pub(super) hand_off: Option<HandOff>,
}

impl<S: AgentChannels> Default for Team<S> {
    fn default() -> Self {
        Team { workers: Vec::new(), hand_off: None }
    }
}

/// The nodes to which the parts of an agent lead.
pub(super) struct Ways {
    /// The first hook before the model, or the model.
    pub(super) round: Cow<'static, str>,
    /// The first hook after the model, if there is one.
    pub(super) after_model: Option<String>,
    /// The first hook after the agent, or END.
    pub(super) end: Cow<'static, str>,
}

/// Where an agent goes after an answer and its hooks.
pub(super) enum Next {
    /// A task for each open call.
    Tools(Vec<Dispatch>),
    Model,
    Hook(String),
    End,
}

impl Plan {
    /// The update together with the way to go.
    pub(super) fn go<S: AgentChannels>(&self, change: AgentChange, next: Next) -> Command<S> {
        let command = Command::update(S::change(change));
        match next {
            Next::Model => command.goto(self.ways.round.clone()),
            Next::Hook(hook) => command.goto(hook),
            Next::End => command.goto(self.ways.end.clone()),
            Next::Tools(calls) => command.goto(calls),
        }
    }

    /// The way after an answer and what was added to it.
    pub(super) fn next(&self, messages: &[Message], is_ended: bool, goes_on: bool) -> Next {
        if is_ended {
            return Next::End;
        }
        let was_answered = messages.last().is_some_and(|message| message.results().next().is_some());
        let otherwise = if goes_on || was_answered { Next::Model } else { Next::End };
        self.tools_or(otherwise, messages)
    }

    /// The tools if there are open calls.
    pub(super) fn tools_or(&self, otherwise: Next, messages: &[Message]) -> Next {
        let calls = self.dispatches(messages);
        if calls.is_empty() { otherwise } else { Next::Tools(calls) }
    }

    /// A task for each open call: at a worker, or at the tools.
    fn dispatches(&self, messages: &[Message]) -> Vec<Dispatch> {
        if self.workers.is_empty() {
            return ToolNode::dispatch_to(TOOLS, messages);
        }
        let dispatch = |(answer, call): (&Message, _)| {
            let worker = self.worker_task(answer, call);
            worker.unwrap_or_else(|| Dispatch::new(TOOLS, call.id.clone()))
        };
        let open = conversation::open_calls(messages);
        let holder =
            |call: &ToolUse| messages.iter().rev().find(|message| message.tool_uses().any(|own| own == call));
        open.into_iter().filter_map(|call| Some((holder(call)?, call))).map(dispatch).collect()
    }

    fn worker_task(&self, answer: &Message, call: &ToolUse) -> Option<Dispatch> {
        self.workers.contains(&call.name).then(|| WorkerTool::dispatch(&answer.id, call)).flatten()
    }
}

/// One hook of one middleware.
struct Hook {
    kind: HookKind,
    middleware: Arc<dyn Middleware>,
    node: String,
}

/// The hooks of one kind, in the order in which they run.
fn hooks(chain: &Chain, kind: HookKind) -> Vec<Hook> {
    let all = chain.iter().filter(|middleware| kind.is_in(middleware.hooks()));
    let hook = |middleware: &Arc<dyn Middleware>| {
        let node = format!("{}.{}", middleware.name(), kind.name());
        Hook { kind, middleware: Arc::clone(middleware), node }
    };
    if kind.is_reversed() { all.rev().map(hook).collect() } else { all.map(hook).collect() }
}

pub(super) fn compile<T, S: AgentChannels>(agent: Agent<T, S>, team: Team<S>) -> Result<CompiledAgent<T, S>> {
    let Agent { name, description, model, mut settings, mut tools, server_tools, .. } = agent;
    let Agent { middleware, form, limits, .. } = agent;
    check_names(&middleware)?;
    let workers: Vec<String> = team.workers.iter().map(|worker| worker.tool.name.clone()).collect();
    if let Some(taken) = workers.iter().find(|name| [MODEL, TOOLS].contains(&name.as_str())) {
        let message =
            format!("a worker cannot be named `{taken}`, as a node of the agent: give it another name");
        return Err(Error::new(Code::Config, message));
    }
    tools.extend(team.workers.iter().map(|worker| Arc::new(worker.tool.clone()) as Arc<dyn Tool>));
    let hand_offs = team.hand_off.iter().flat_map(HandOff::tools::<S>);
    tools.extend(hand_offs.map(|tool| Arc::new(tool) as Arc<dyn Tool>));
    let toolbox = Toolbox::new(tools.into_iter().chain(middleware.iter().flat_map(|added| added.tools())))?;
    toolbox.check_state::<S>()?;
    settings.tools.extend(server_tools);
    let other_tools = settings.tools.iter().map(|spec| spec.name.as_str());
    let artificial = form.as_ref().and_then(OutputForm::tool);
    if let Some(tool) = other_tools.chain(artificial).find(|tool| toolbox.contains(tool)) {
        return Err(same_name(tool));
    }
    settings.tools.extend(toolbox.specs().cloned());
    let toolbox = Arc::new(toolbox);
    let chain: Chain = middleware.into();
    let hooks = Hooks::of(&chain);
    let ways = Ways {
        round: name_or(first(&hooks.before_model), MODEL),
        after_model: first(&hooks.after_model).map(str::to_owned),
        end: name_or(first(&hooks.after_agent), END),
    };
    let plan = Arc::new(Plan { name, model, settings, toolbox, chain, form, limits, ways, workers });
    let graph = build::<S>(&plan, hooks, team)?;
    Ok(CompiledAgent::new(graph, &plan.name, description))
}

/// The hooks of an agent, each list in the order in which it runs.
struct Hooks {
    before_agent: Vec<Hook>,
    before_model: Vec<Hook>,
    after_model: Vec<Hook>,
    after_agent: Vec<Hook>,
}

impl Hooks {
    fn of(chain: &Chain) -> Self {
        Hooks {
            before_agent: hooks(chain, HookKind::BeforeAgent),
            before_model: hooks(chain, HookKind::BeforeModel),
            after_model: hooks(chain, HookKind::AfterModel),
            after_agent: hooks(chain, HookKind::AfterAgent),
        }
    }
}

fn first(hooks: &[Hook]) -> Option<&str> {
    hooks.first().map(|hook| hook.node.as_str())
}

fn name_or(hook: Option<&str>, otherwise: &'static str) -> Cow<'static, str> {
    hook.map_or(Cow::Borrowed(otherwise), |name| Cow::Owned(name.to_owned()))
}

/// Nodes and slots are found by the names of middleware.
fn check_names(middleware: &[Arc<dyn Middleware>]) -> Result<()> {
    let mut names = BTreeSet::new();
    match middleware.iter().find(|middleware| !names.insert(middleware.name())) {
        None => Ok(()),
        Some(twice) => {
            let message =
                format!("two middleware are named `{}`: give one of them another name", twice.name());
            Err(Error::new(Code::Config, message))
        }
    }
}

fn build<S: AgentChannels>(plan: &Arc<Plan>, hooks: Hooks, team: Team<S>) -> Result<CompiledGraph<S>> {
    let ways = &plan.ways;
    let workers = plan.workers.iter().map(String::as_str);
    let decided: Vec<&str> = [&*ways.round, TOOLS, &*ways.end].into_iter().chain(workers).collect();
    let mut graph = StateGraph::<S>::with_schema(S::Schema::default());
    let mut start = ways.round.to_string();
    if let Some(first) = first(&hooks.before_agent) {
        start = first.to_owned();
    }
    graph = add_chain(graph, plan, hooks.before_agent, Some(&ways.round));
    graph = add_chain(graph, plan, hooks.before_model, Some(MODEL));
    graph = graph
        .node(MODEL, model_node::<S>(plan).targets(ways.after_model.as_deref().into_iter().chain(decided)));
    graph = add_chain(graph, plan, hooks.after_model, None);
    // A command of a tool ends the agent or asks the model again; it knows no other node of an agent.
    let tools = ToolNode::of(Arc::clone(&plan.toolbox), Arc::clone(&plan.chain)).direct_to(&*ways.end);
    let tools = IntoNode::<S, _>::targets(tools, [&*ways.round, &*ways.end, END]);
    let mut after_tools = ways.round.to_string();
    if let Some(hand_off) = &team.hand_off {
        graph = graph.node(HAND_OFF, hand_off.node::<S>(&ways.round, &ways.end));
        after_tools = HAND_OFF.to_owned();
    }
    for worker in team.workers {
        let name = worker.tool.name;
        graph = graph.node(name.clone(), worker.node).edge(name, after_tools.clone());
    }
    graph = graph.node(TOOLS, tools).edge(START, start).edge(TOOLS, after_tools);
    graph = add_chain(graph, plan, hooks.after_agent, Some(END));
    let compiled = graph.compile().map(|graph| graph.agent_name(&plan.name));
    compiled.map_err(|problems| graph_problems(&plan.name, problems))
}

pub(super) fn graph_problems(name: &str, problems: impl Into<BoxError>) -> Error {
    let problems = problems.into();
    Error::new(Code::Config, format!("the graph of agent `{name}` has problems: {problems}"))
        .with_source(problems)
}

/// Adds hooks, each leading to the next and the last to `then`. Without it, the state after the last hook
/// decides.
fn add_chain<S: AgentChannels>(
    mut graph: StateGraph<S>,
    plan: &Arc<Plan>,
    hooks: Vec<Hook>,
    then: Option<&str>,
) -> StateGraph<S> {
    let names: Vec<_> = hooks.iter().map(|hook| hook.node.clone()).collect();
    for (at, hook) in hooks.into_iter().enumerate() {
        let next = names.get(at + 1).map(String::as_str).or(then).map(str::to_owned);
        let targets = [next.as_deref(), Some(&plan.ways.round), Some(TOOLS), Some(&plan.ways.end)];
        let workers = plan.workers.iter().map(String::as_str);
        let targets: Vec<String> = targets.into_iter().flatten().chain(workers).map(str::to_owned).collect();
        let Hook { kind, middleware, node: name } = hook;
        let node = hook_node::<S>(HookNode { plan: Arc::clone(plan), middleware, kind, next });
        let node = if kind == HookKind::AfterAgent {
            node.targets(last_targets(&targets))
        } else {
            node.targets(targets)
        };
        // Calls that return directly reach the end while others may still go on.
        let node = if kind == HookKind::AfterAgent && at == 0 { node.defer() } else { node };
        graph = graph.node(name, node);
    }
    graph
}

/// The hooks after the agent do not jump.
fn last_targets(targets: &[String]) -> Vec<String> {
    targets.iter().take(1).cloned().collect()
}

fn hook_node<S: AgentChannels>(hook: HookNode) -> Node<S> {
    let hook = Arc::new(hook);
    IntoNode::<S, _>::into_node(move |ctx: Ctx, state: Snapshot<S>| {
        let hook = Arc::clone(&hook);
        async move { hook.run(ctx, state).await }
    })
}

fn model_node<S: AgentChannels>(plan: &Arc<Plan>) -> Node<S> {
    let plan = Arc::clone(plan);
    IntoNode::<S, _>::into_node(move |ctx: Ctx, state: Snapshot<S>| {
        let plan = Arc::clone(&plan);
        async move { model_node::run(&plan, ctx, state).await }
    })
}
