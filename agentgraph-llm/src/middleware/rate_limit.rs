//! Requests and tokens per minute, shared by models and agents.

mod limiter;
mod model;
mod window;

use async_trait::async_trait;

use super::{Hooks, Middleware, ModelRequest, NextModel};
use crate::error::Result;
use crate::model::ChatStream;

pub use limiter::{Permit, RateLimiter};
pub use model::RateLimitedModel;

/// As middleware, it waits before each request of the agent.
#[async_trait]
impl Middleware for RateLimiter {
    fn name(&self) -> &str {
        "rate_limiter"
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE
    }

    async fn wrap_model(&self, request: ModelRequest, next: NextModel<'_>) -> Result<ChatStream> {
        let permit = self.acquire(RateLimiter::tokens_of(&request.request)).await?;
        Ok(permit.watch(next.run(request).await?))
    }
}
