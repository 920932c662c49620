//! [`hand_off`]: agents that hand one conversation to each other.

use std::collections::BTreeSet;

use agentgraph::node::{IntoNode, Node};
use agentgraph::state::StoredState;
use agentgraph::{Command, END, START, Snapshot, StateGraph};
use async_trait::async_trait;
use serde_json::json;

use super::plan::{self, Team};
use super::state::{AgentChange, AgentChannels, RecordChange};
use super::{Agent, CompiledAgent};
use crate::conversation;
use crate::error::{Code, Error, Result};
use crate::json::RawJson;
use crate::message::ToolInput;
use crate::tool::{StateType, Tool, ToolCall, ToolError, ToolOutput, ToolSpec};

/// Makes a graph of agents that share one conversation. One of them has it; its model hands it over by a
/// call of `transfer_to_<name>`. The agent that has the conversation at the end of a run has it in the next
/// run of the thread ([`AgentRecord::active`](super::AgentRecord::active)); the first agent begins.
///
/// - Each agent sees the whole conversation, under its own system text. The thinking of another model is
///   removed from what a model gets ([`Message::for_model`](crate::Message::for_model)).
/// - Agents hand over to all others, or to those that [`hand_off_to`](Agent::hand_off_to) names.
/// - All calls of an answer are run and answered before the conversation is handed over. Of several hand-offs
///   in one answer the first counts; the others are answered as failed calls.
/// - [`max_rounds`](Agent::max_rounds) counts the answers of all agents in the run, so agents that
///   hand over to each other for ever end.
/// - Middleware of one name in several agents shares what it keeps, so its limits hold over these agents too.
///
/// ```
/// use agentgraph::prelude::*;
/// use agentgraph_llm::prelude::*;
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let ask = ScriptedModel::new([Reply::tool_call("transfer_to_refunds", json!({}))]);
/// let pay = ScriptedModel::new([Reply::text("Which order?"), Reply::text("Paid back.")]);
///
/// let agent = hand_off([
///     Agent::new(ask).name("desk").description("Greets, and knows who can help."),
///     Agent::new(pay).name("refunds").description("Pays back."),
/// ])?;
/// let agent = agent.checkpointer(MemorySaver::new());
///
/// let answer = agent.invoke("I want my money back.").thread("ada").finish().await?;
/// assert_eq!(answer.text(), "Which order?");
/// let answer = agent.invoke("Order 7.").thread("ada").finish().await?;
/// assert_eq!(answer.text(), "Paid back.");
/// assert_eq!(answer.state.thread_record.active.as_deref(), Some("refunds"));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Those of [`Agent::compile`] for each agent. `E_LLM_CONFIG` if there are no agents, if two have one name,
/// or if one names another that is not among them.
pub fn hand_off<T: 'static, S: AgentChannels + StoredState>(
    agents: impl IntoIterator<Item = Agent<T, S>>,
) -> Result<CompiledAgent<T, S>> {
    let agents: Vec<_> = agents.into_iter().collect();
    let members: Vec<Member> = agents.iter().map(Member::of).collect();
    check(&members)?;
    let names: Vec<String> = members.iter().map(|member| member.name.clone()).collect();
    let Some(first) = names.first().cloned() else { return Err(no_agents()) };
    let mut graph = StateGraph::<S>::with_schema(S::Schema::default());
    for agent in agents {
        let hand_off = HandOff::of(&agent, &members);
        let (name, others) = (agent.name.clone(), hand_off.agents());
        let targets = others.iter().cloned().chain([END.to_owned()]).collect::<Vec<_>>();
        let team = Team { hand_off: Some(hand_off), ..Team::default() };
        graph = graph.node(name.clone(), plan::compile(agent, team)?);
        let next = move |state: &S| active(state, &others).unwrap_or(END).to_owned();
        graph = graph.branch(name, next, targets);
    }
    let known = names.clone();
    let start = move |state: &S| active(state, &known).unwrap_or(&first).to_owned();
    let compiled = graph.branch(START, start, names.clone()).compile();
    let title = names.join(", ");
    let graph = compiled.map_err(|problems| plan::graph_problems(&title, problems))?;
    Ok(CompiledAgent::new(graph.agent_name("hand_off"), "hand_off", ""))
}

/// The agent that has the conversation, if it is one of these.
fn active<'a, S: AgentChannels>(state: &'a S, names: &[String]) -> Option<&'a str> {
    let active = state.thread_record().active.as_deref()?;
    names.iter().any(|name| name == active).then_some(active)
}

/// An agent as the others see it.
struct Member {
    name: String,
    description: String,
    hand_off_to: Option<Vec<String>>,
}

impl Member {
    fn of<T, S: AgentChannels>(agent: &Agent<T, S>) -> Self {
        Member {
            name: agent.name.clone(),
            description: agent.description.clone(),
            hand_off_to: agent.hand_off_to.clone(),
        }
    }
}

fn check(members: &[Member]) -> Result<()> {
    let mut names = BTreeSet::new();
    if let Some(twice) = members.iter().find(|member| !names.insert(member.name.as_str())) {
        let message = format!(
            "two agents are named `{}`: give each one a name of its own with `Agent::name`",
            twice.name
        );
        return Err(Error::new(Code::Config, message));
    }
    for member in members {
        let named = member.hand_off_to.iter().flatten();
        if let Some(unknown) =
            named.into_iter().find(|name| !names.contains(name.as_str()) || **name == member.name)
        {
            let message = format!(
                "agent `{}` hands over to `{unknown}`, which is not another agent of the graph: there are {}",
                member.name,
                names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
            );
            return Err(Error::new(Code::Config, message));
        }
    }
    Ok(())
}

fn no_agents() -> Error {
    Error::new(Code::Config, "there are no agents to hand a conversation to: give at least one")
}

/// The agents to which an agent hands over.
#[derive(Clone)]
pub(super) struct HandOff {
    to: Vec<Target>,
}

#[derive(Clone)]
struct Target {
    agent: String,
    description: String,
}

impl Target {
    fn tool(&self) -> String {
        format!("transfer_to_{}", self.agent)
    }
}

impl HandOff {
    fn of<T, S: AgentChannels>(agent: &Agent<T, S>, members: &[Member]) -> Self {
        let is_target = |member: &&Member| match &agent.hand_off_to {
            None => member.name != agent.name,
            Some(names) => names.contains(&member.name),
        };
        let target =
            |member: &Member| Target { agent: member.name.clone(), description: member.description.clone() };
        HandOff { to: members.iter().filter(is_target).map(target).collect() }
    }

    fn agents(&self) -> Vec<String> {
        self.to.iter().map(|target| target.agent.clone()).collect()
    }

    pub(super) fn tools<S: AgentChannels>(&self) -> Vec<impl Tool + 'static> {
        let names: Vec<String> = self.to.iter().map(Target::tool).collect();
        let tool = |target: &Target| HandOffTool::<S> {
            target: target.clone(),
            tools: names.clone(),
            of: std::marker::PhantomData,
        };
        self.to.iter().map(tool).collect()
    }

    /// The node after the calls of an answer: it ends the agent if the conversation was handed over. A
    /// route could not, since each call is a task of its own and sees only its own result.
    pub(super) fn node<S: AgentChannels>(&self, round: &str, end: &str) -> Node<S> {
        let names = self.agents();
        let (then, done) = (round.to_owned(), end.to_owned());
        let node = move |state: Snapshot<S>| {
            let is_handed_over = active(&*state, &names).is_some();
            let next = if is_handed_over { done.clone() } else { then.clone() };
            async move { Command::<S>::to(next) }
        };
        IntoNode::<S, _>::targets(node, [round.to_owned(), end.to_owned()])
    }
}

/// The tool with which a model hands the conversation to another agent.
struct HandOffTool<S> {
    target: Target,
    /// All such tools of the agent.
    tools: Vec<String>,
    of: std::marker::PhantomData<fn() -> S>,
}

#[async_trait]
impl<S: AgentChannels> Tool for HandOffTool<S> {
    fn spec(&self) -> ToolSpec {
        let Target { agent, description } = &self.target;
        let about = format!(
            "Hands the conversation over to the agent `{agent}`, who answers from then on. {description}"
        );
        ToolSpec::new(self.target.tool(), about.trim_end(), json!({"type": "object", "properties": {}}))
    }

    fn state(&self) -> Option<StateType> {
        Some(StateType::of::<S>())
    }

    async fn call(&self, _: &RawJson, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        let open =
            call.state::<S>().map(|state| conversation::open_calls(state.messages())).unwrap_or_default();
        let is_hand_off = |name: &String, input: &ToolInput| {
            self.tools.contains(name) && input.json().is_some_and(RawJson::is_object)
        };
        if let Some(first) = open.into_iter().find(|open| is_hand_off(&open.name, &open.input))
            && first.id != call.id()
        {
            let why =
                format!("not handed over: one answer hands over once, and `{}` was called first", first.name);
            return Err(ToolError::failed(why));
        }
        let handed = RecordChange::handed_to(&self.target.agent);
        let change = S::change(AgentChange { thread: Some(handed), ..AgentChange::default() });
        let told = format!("The agent `{}` has the conversation now.", self.target.agent);
        Ok(ToolOutput::text(told).with_command(Command::<S>::update(change)))
    }
}
