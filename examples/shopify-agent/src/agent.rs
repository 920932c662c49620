//! The agent: eight nodes on an eager graph, and the turns that run on it.
//!
//! ```text
//!  message -> Routing -+-> TaskDescriptionResponse            (a side branch: the waiting sentence)
//!                ^     +-> ChooseTool -> IdentifyToolParams -> ExecuteTool <- click
//!                |     +-> CustomerResponse                        |
//!                +---- ConvertNaturalLanguage <--------------------+-> Widget   (a side branch)
//! ```

mod nodes;
mod prompt;
mod state;
mod task;

use std::sync::Arc;
use std::time::Duration;

use agentgraph::policy::{OnEnd, Siblings};
use agentgraph::prelude::*;
use agentgraph_llm::{ChatModel, Tool};

use crate::session::ShopSession;
use crate::shop::Shop;
use crate::tools;

pub use prompt::tools_text;
pub use state::{ToolRun, ToolUse, Turn, TurnUpdate};
pub use task::{CancelAnswer, Frames, Item, RunningTask, TaskReport, TaskStatus};

use state::Step;

/// The name of each node.
pub mod node {
    /// Decides what is next.
    pub const ROUTING: &str = "Routing";
    /// Says that the answer takes a moment.
    pub const TASK_DESCRIPTION_RESPONSE: &str = "TaskDescriptionResponse";
    /// Chooses a tool.
    pub const CHOOSE_TOOL: &str = "ChooseTool";
    /// Finds its arguments.
    pub const IDENTIFY_TOOL_PARAMS: &str = "IdentifyToolParams";
    /// Runs it.
    pub const EXECUTE_TOOL: &str = "ExecuteTool";
    /// Shows its result.
    pub const WIDGET: &str = "Widget";
    /// Puts its result into words, for the next decision.
    pub const CONVERT_NATURAL_LANGUAGE: &str = "ConvertNaturalLanguage";
    /// Answers the customer.
    pub const CUSTOMER_RESPONSE: &str = "CustomerResponse";
}

/// What an agent may take.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The nodes of a turn.
    pub nodes: u64,
    /// The time of a node: of its call of the model with repairs, or of its tool.
    pub node_time: Duration,
    /// The time of a whole turn.
    pub turn_time: Duration,
    /// How long the end of a turn waits for a widget.
    pub widget_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            nodes: 40,
            node_time: Duration::from_secs(30),
            turn_time: Duration::from_secs(180),
            widget_time: Duration::from_secs(2),
        }
    }
}

/// What the nodes share.
pub(crate) struct Brain {
    pub(crate) model: Arc<dyn ChatModel>,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
}

/// The agent. Clones share everything.
#[derive(Clone)]
pub struct ShopAgent {
    graph: CompiledGraph<Turn>,
    saver: Arc<dyn Checkpointer>,
    shop: Shop,
    limits: Limits,
    running: task::Running,
}

impl ShopAgent {
    /// An agent for a shop, which keeps its turns in a store.
    ///
    /// # Errors
    /// If the graph cannot be compiled, or the store cannot keep it.
    pub fn new(
        model: Arc<dyn ChatModel>,
        shop: Shop,
        saver: Arc<dyn Checkpointer>,
        limits: Limits,
    ) -> Result<Self> {
        let brain = Brain { model, tools: tools::all() };
        let graph =
            graph(brain, &limits)?.agent_name("shopify-agent").try_checkpointer(Arc::clone(&saver))?;
        Ok(ShopAgent { graph, saver, shop, limits, running: task::Running::default() })
    }

    /// The graph, for drawings and looks at its threads.
    pub fn graph(&self) -> &CompiledGraph<Turn> {
        &self.graph
    }
}

fn graph(brain: Brain, limits: &Limits) -> Result<CompiledGraph<Turn>> {
    let shown = OnEnd::Await(limits.widget_time);
    let graph = StateGraph::new()
        .eager()
        .session::<ShopSession>("session")
        .dep(brain)
        .default_timeout(limits.node_time)
        .siblings(Siblings::Cancel)
        .node(node::ROUTING, nodes::routing)
        .node(node::TASK_DESCRIPTION_RESPONSE, nodes::task_description_response.detached())
        .node(node::CHOOSE_TOOL, nodes::choose_tool)
        .node(node::IDENTIFY_TOOL_PARAMS, nodes::identify_tool_params)
        .node(node::EXECUTE_TOOL, nodes::execute_tool)
        .node(node::WIDGET, nodes::widget.detached().on_end(shown))
        .node(node::CONVERT_NATURAL_LANGUAGE, nodes::convert_natural_language)
        .node(node::CUSTOMER_RESPONSE, nodes::customer_response)
        .route(START, |turn: &Turn| if turn.click.is_some() { Entry::ExecuteTool } else { Entry::Routing })
        .route(node::ROUTING, after_routing)
        .route(node::CHOOSE_TOOL, |turn: &Turn| {
            if turn.tool.is_empty() { AfterChoice::CustomerResponse } else { AfterChoice::IdentifyToolParams }
        })
        .edge(node::IDENTIFY_TOOL_PARAMS, node::EXECUTE_TOOL)
        .edge(node::EXECUTE_TOOL, node::WIDGET)
        .edge(node::EXECUTE_TOOL, node::CONVERT_NATURAL_LANGUAGE)
        .edge(node::CONVERT_NATURAL_LANGUAGE, node::ROUTING)
        .on_limit(node::CUSTOMER_RESPONSE);
    Ok(graph.compile()?)
}

#[derive(Route)]
enum Entry {
    #[route("Routing")]
    Routing,
    #[route("ExecuteTool")]
    ExecuteTool,
}

#[derive(Route)]
enum AfterRouting {
    #[route("TaskDescriptionResponse")]
    TaskDescriptionResponse,
    #[route("ChooseTool")]
    ChooseTool,
    #[route("CustomerResponse")]
    CustomerResponse,
}

#[derive(Route)]
enum AfterChoice {
    #[route("IdentifyToolParams")]
    IdentifyToolParams,
    #[route("CustomerResponse")]
    CustomerResponse,
}

/// The waiting sentence comes before the first tool of a turn only.
fn after_routing(turn: &Turn) -> Vec<AfterRouting> {
    match turn.next {
        Step::RespondToCustomer => vec![AfterRouting::CustomerResponse],
        Step::CallTool if turn.uses.is_empty() => {
            vec![AfterRouting::TaskDescriptionResponse, AfterRouting::ChooseTool]
        }
        Step::CallTool => vec![AfterRouting::ChooseTool],
    }
}
