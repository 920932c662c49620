//! A small model chooses the tools that the large one sees.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::retry::OnFailure;
use super::{BilledModel, Hooks, Middleware, ModelRequest, NextModel};
use crate::error::Result;
use crate::message::{Message, Role};
use crate::model::{AskExt, ChatModel, ChatRequest, ChatStream, ToolMode};
use crate::tool::ToolSpec;

/// Shows the model only the tools that another model finds useful for the last message of the user. For
/// agents with many tools.
///
/// Names that no tool has are left out, and so are those beyond the limit. If only such names are chosen, the
/// model sees the tools that are [always shown](ToolSelector::always_include). Server tools and a tool that
/// the request demands are always shown.
///
/// ```
/// use agentgraph_llm::middleware::{Middleware, ModelRequest, NextModel, ToolSelector};
/// use agentgraph_llm::prelude::*;
/// use serde_json::json;
/// use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agentgraph_llm::Result<()> {
/// let small = ScriptedModel::new([Reply::tool_call("Selection", json!({"tools": ["weather"]}))]);
/// let selector = ToolSelector::new(small, 1).always_include(["help"]);
///
/// let large = ScriptedModel::new(["sunny"]);
/// let tools = ["weather", "mail", "help"].map(|name| ToolSpec::new(name, "", json!({"type": "object"})));
/// let request = ModelRequest::new(Arc::new(large.clone()), ChatRequest::user("Rain?").with_tools(tools));
/// selector.wrap_model(request, NextModel::direct()).await?;
/// let seen: Vec<_> = large.requests()[0].tools.iter().map(|tool| tool.name.clone()).collect();
/// assert_eq!(seen, ["weather", "help"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ToolSelector {
    model: Arc<dyn ChatModel>,
    max_tools: usize,
    always: BTreeSet<String>,
    on_failure: OnFailure,
}

#[derive(Deserialize, JsonSchema)]
struct Selection {
    /// Names of tools, the most useful first.
    tools: Vec<String>,
}

impl ToolSelector {
    /// Lets this model choose at most `max_tools` tools. If it fails, the run fails with its error; if its
    /// answer is no choice, with `E_LLM_ANSWER_REJECTED`.
    pub fn new(model: impl ChatModel + 'static, max_tools: usize) -> Self {
        ToolSelector {
            model: Arc::new(model),
            max_tools,
            always: BTreeSet::new(),
            on_failure: OnFailure::Error,
        }
    }

    /// Always shows these tools, beside the chosen ones.
    pub fn always_include<T: Into<String>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.always.extend(tools.into_iter().map(Into::into));
        self
    }

    /// Sets what happens when the choice fails: with [`OnFailure::Continue`], the model sees all tools.
    pub fn on_failure(mut self, action: OnFailure) -> Self {
        self.on_failure = action;
        self
    }

    /// Server tools, tools that are always shown, and a tool that the request demands are not chosen.
    fn is_chosen_from(&self, tool: &ToolSpec, request: &ChatRequest) -> bool {
        let is_demanded = matches!(&request.tool_choice.mode, ToolMode::Tool(name) if *name == tool.name);
        !is_demanded && tool.raw.is_none() && !self.always.contains(&tool.name)
    }

    async fn select(
        &self,
        model: &BilledModel,
        request: &ChatRequest,
        tools: &[&ToolSpec],
    ) -> Result<BTreeSet<String>> {
        let list: String =
            tools.iter().map(|tool| format!("- {}: {}\n", tool.name, tool.description)).collect();
        let system = format!(
            "Choose the tools, at most {}, that help most to answer the user's message. The tools:\n{list}",
            self.max_tools
        );
        let of_user = |message: &&Message| message.role == Role::User && !message.text().is_empty();
        let said = request.messages.iter().rev().find(of_user).map(Message::text).unwrap_or_default();
        let asked = model.ask::<Selection>(ChatRequest::user(said).with_system(system)).await?;
        let names = asked.value.tools.into_iter().filter(|name| tools.iter().any(|tool| tool.name == *name));
        let mut chosen = BTreeSet::new();
        // A name may be given twice.
        for name in names {
            if chosen.len() < self.max_tools {
                chosen.insert(name);
            }
        }
        Ok(chosen)
    }
}

#[async_trait]
impl Middleware for ToolSelector {
    fn name(&self) -> &str {
        "tool_selector"
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE
    }

    async fn wrap_model(&self, mut request: ModelRequest, next: NextModel<'_>) -> Result<ChatStream> {
        let asked = &request.request;
        let tools: Vec<_> = asked.tools.iter().filter(|tool| self.is_chosen_from(tool, asked)).collect();
        if tools.len() <= self.max_tools {
            return next.run(request).await;
        }
        let chosen = match self.select(&next.billed(&self.model), asked, &tools).await {
            Ok(chosen) => chosen,
            Err(_) if self.on_failure == OnFailure::Continue => return next.run(request).await,
            Err(error) => return Err(error),
        };
        let shown = |tool: &ToolSpec| !self.is_chosen_from(tool, asked) || chosen.contains(&tool.name);
        let tools = asked.tools.iter().filter(|tool| shown(tool)).cloned().collect();
        request.request.tools = tools;
        next.run(request).await
    }
}
