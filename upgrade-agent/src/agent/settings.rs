//! The settings that all nodes share.

use std::sync::Arc;
use std::time::SystemTime;

use agentgraph_llm::{ChatModel, ChatRequest};
use uuid::Uuid;

/// The settings of an agent, a dependency of the nodes.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) model: Arc<dyn ChatModel>,
    /// The agent asks back below this confidence.
    pub(crate) confidence: f64,
    pub(crate) temperature: Option<f32>,
    pub(crate) max_tokens: Option<u32>,
    /// The limit of history messages for a model.
    pub(crate) history_window: usize,
    /// The source of the keys of approvals.
    pub(crate) ids: Arc<dyn Fn() -> Uuid + Send + Sync>,
    /// The limit of simulated students that act at the same time.
    pub(crate) students_at_once: usize,
    /// The limit of simulated students of one plan.
    pub(crate) max_students: u32,
    pub(crate) clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
}

impl Settings {
    /// Adds the common settings to a request.
    pub(crate) fn tuned(&self, mut request: ChatRequest) -> ChatRequest {
        request.temperature = self.temperature;
        request.max_tokens = self.max_tokens;
        request
    }
}
