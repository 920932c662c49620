//! The request of an agent to its model, as middleware sees it.

use std::sync::Arc;

use agentgraph::Ctx;

use crate::model::{ChatModel, ChatRequest};

/// A request of an agent to its model. Middleware may change both.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ModelRequest {
    /// The model to ask.
    pub model: Arc<dyn ChatModel>,
    /// The request: the whole conversation, the tools and the settings.
    pub request: ChatRequest,
    ctx: Option<Ctx>,
}

impl ModelRequest {
    /// A request outside of a graph. For tests and scripts.
    pub fn new(model: Arc<dyn ChatModel>, request: ChatRequest) -> Self {
        ModelRequest { model, request, ctx: None }
    }

    /// The same request in a node.
    #[must_use]
    pub fn with_ctx(mut self, ctx: Ctx) -> Self {
        self.ctx = Some(ctx);
        self
    }

    /// The same request to another model.
    #[must_use]
    pub fn with_model(mut self, model: Arc<dyn ChatModel>) -> Self {
        self.model = model;
        self
    }

    /// The context of the agent's node: for the store, the thread and the budget. `None` outside of a graph.
    pub fn ctx(&self) -> Option<&Ctx> {
        self.ctx.as_ref()
    }
}
