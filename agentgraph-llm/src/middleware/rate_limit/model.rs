//! A model behind a limiter.

use std::sync::Arc;

use async_trait::async_trait;

use super::RateLimiter;
use crate::error::Result;
use crate::model::{ChatModel, ChatRequest, ChatStream, ModelInfo, TokenCount};

/// A model whose requests wait for a [`RateLimiter`], for nodes and scripts.
///
/// ```
/// use agentgraph_llm::middleware::{RateLimitedModel, RateLimiter};
/// use agentgraph_llm::prelude::*;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agentgraph_llm::Result<()> {
/// let limiter = RateLimiter::new().requests_per_minute(50);
/// let model = RateLimitedModel::new(ScriptedModel::new(["hello"]), limiter.clone());
/// assert_eq!(model.chat(ChatRequest::user("hi")).await?.message.text(), "hello");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct RateLimitedModel {
    model: Arc<dyn ChatModel>,
    limiter: RateLimiter,
}

impl RateLimitedModel {
    /// Puts the limiter before a model.
    pub fn new(model: impl ChatModel + 'static, limiter: RateLimiter) -> Self {
        RateLimitedModel { model: Arc::new(model), limiter }
    }
}

#[async_trait]
impl ChatModel for RateLimitedModel {
    fn info(&self) -> ModelInfo {
        self.model.info()
    }

    async fn stream(&self, request: ChatRequest) -> Result<ChatStream> {
        let permit = self.limiter.acquire(RateLimiter::tokens_of(&request)).await?;
        Ok(permit.watch(self.model.stream(request).await?))
    }

    async fn count_tokens(&self, request: &ChatRequest) -> Result<TokenCount> {
        self.model.count_tokens(request).await
    }
}
