//! What the nodes share and no conversation changes.

use std::sync::Arc;
use std::time::SystemTime;

use agentgraph_llm::{ChatModel, ChatRequest};
use uuid::Uuid;

/// Settings of an agent, a dependency of the nodes.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) model: Arc<dyn ChatModel>,
    /// Below it the agent asks back.
    pub(crate) confidence: f64,
    pub(crate) temperature: Option<f32>,
    pub(crate) max_tokens: Option<u32>,
    /// How many messages of the history a model sees.
    pub(crate) history_window: usize,
    /// The keys of approvals.
    pub(crate) ids: Arc<dyn Fn() -> Uuid + Send + Sync>,
    /// How many simulated students act at once.
    pub(crate) students_at_once: usize,
    /// How many simulated students one plan may play.
    pub(crate) max_students: u32,
    pub(crate) clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
}

impl Settings {
    /// The request with what is set for all of them.
    pub(crate) fn tuned(&self, mut request: ChatRequest) -> ChatRequest {
        request.temperature = self.temperature;
        request.max_tokens = self.max_tokens;
        request
    }
}
