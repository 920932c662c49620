//! Clears old tool results when the conversation is long.

mod clear;

use std::collections::BTreeSet;

use async_trait::async_trait;

use super::{Hooks, Middleware, ModelRequest, NextModel};
use crate::error::Result;
use crate::model::{ChatStream, TokenCount};

/// Replaces the content of old tool results by a placeholder, in the request only: the stored conversation
/// keeps them. Calls and results stay pairs, and the calls keep their signatures.
///
/// ```
/// use agentgraph_llm::middleware::ContextEditing;
///
/// use agentgraph_llm::middleware::{Middleware, ModelRequest, NextModel};
/// use agentgraph_llm::prelude::*;
/// use serde_json::json;
/// use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agentgraph_llm::Result<()> {
/// let call = ToolUse::new("call-1", "read", json!({"path": "a.txt"}));
/// let result = ToolResult::text("call-1", "a long text ".repeat(100));
/// let messages = [Message::new(Role::Assistant, [call]), Message::tool_results([result])];
///
/// let model = ScriptedModel::new(["done"]);
/// let editing = ContextEditing::new().trigger(100).keep(0).exclude(["read_plan"]);
/// let request = ModelRequest::new(Arc::new(model.clone()), ChatRequest::new(messages));
/// editing.wrap_model(request, NextModel::direct()).await?;
/// assert_eq!(model.requests()[0].messages[1].results().next().unwrap().as_text(), "[cleared]");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ContextEditing {
    trigger: u64,
    keep: usize,
    clear_at_least: u64,
    exclude: BTreeSet<String>,
    clear_inputs: bool,
    placeholder: String,
}

impl ContextEditing {
    /// Clears all results but the last 3 when a request has more than 100 000 tokens.
    pub fn new() -> Self {
        ContextEditing {
            trigger: 100_000,
            keep: 3,
            clear_at_least: 0,
            exclude: BTreeSet::new(),
            clear_inputs: false,
            placeholder: "[cleared]".to_owned(),
        }
    }

    /// Sets the tokens of a request above which it clears.
    pub fn trigger(mut self, tokens: u64) -> Self {
        self.trigger = tokens;
        self
    }

    /// Sets the number of the last results that stay.
    pub fn keep(mut self, results: usize) -> Self {
        self.keep = results;
        self
    }

    /// Stops, from the oldest result on, when about this many tokens are gone. 0 clears all but those that
    /// stay.
    pub fn clear_at_least(mut self, tokens: u64) -> Self {
        self.clear_at_least = tokens;
        self
    }

    /// Never clears results of these tools.
    pub fn exclude<T: Into<String>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.exclude.extend(tools.into_iter().map(Into::into));
        self
    }

    /// Clears the arguments of the calls, too.
    pub fn clear_inputs(mut self) -> Self {
        self.clear_inputs = true;
        self
    }

    /// Sets the text in the place of a result.
    pub fn placeholder(mut self, text: impl Into<String>) -> Self {
        self.placeholder = text.into();
        self
    }
}

impl Default for ContextEditing {
    fn default() -> Self {
        ContextEditing::new()
    }
}

#[async_trait]
impl Middleware for ContextEditing {
    fn name(&self) -> &str {
        "context_editing"
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE
    }

    async fn wrap_model(&self, mut request: ModelRequest, next: NextModel<'_>) -> Result<ChatStream> {
        if TokenCount::estimate(&request.request).tokens > self.trigger {
            clear::clear_old_results(&mut request.request.messages, self);
        }
        next.run(request).await
    }
}
