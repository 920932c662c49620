//! Marks what Anthropic shall keep in its prompt cache.

use async_trait::async_trait;
use serde_json::json;

use super::{Hooks, Middleware, ModelRequest, NextModel};
use crate::error::Result;
use crate::json::{Extra, RawJson};
use crate::message::{Block, Message, Role, TextBlock};
use crate::model::{ChatRequest, ChatStream};

const FIELD: &str = "cache_control";

/// Sets `cache_control` on the system prompt, on the last tool, and on the last two messages of the user,
/// which is where the next request of a loop has the same beginning. These are the four places that Anthropic
/// allows; a request that has one already is left as it is. Requests to other providers are not changed: they
/// cache by themselves.
///
/// ```
/// use agentgraph_llm::middleware::PromptCaching;
/// use agentgraph_llm::{ChatRequest, anthropic};
///
/// let mut request = ChatRequest::user("Hi").with_system("Be brief.");
/// PromptCaching::new().mark(&mut request);
/// let body = anthropic::encode("claude-test", &request, false);
/// assert_eq!(body.get().matches(r#""cache_control":{"type":"ephemeral"}"#).count(), 2);
/// ```
#[derive(Clone, Debug, Default)]
pub struct PromptCaching {
    for_an_hour: bool,
}

impl PromptCaching {
    /// Caches for 5 minutes, again with each use.
    pub fn new() -> Self {
        PromptCaching::default()
    }

    /// Caches for an hour, which costs more to write.
    pub fn for_an_hour(mut self) -> Self {
        self.for_an_hour = true;
        self
    }

    /// Marks a request to Anthropic. Middleware does it in an agent; this is for one's own nodes.
    pub fn mark(&self, request: &mut ChatRequest) {
        if is_marked(request) {
            return;
        }
        if let Some(system) = request.system.take() {
            let mut block = TextBlock::new(system);
            self.set(&mut block.extra);
            request.messages.insert(0, Message::new(Role::System, [block]));
        }
        if let Some(tool) = request.tools.iter_mut().rev().find(|tool| tool.raw.is_none()) {
            self.set(&mut tool.extra);
        }
        let of_user = request.messages.iter_mut().rev().filter(|message| message.role == Role::User);
        for message in of_user.take(2) {
            if let Some(extra) = message.content.iter_mut().rev().find_map(markable) {
                self.set(extra);
            }
        }
    }

    fn set(&self, extra: &mut Extra) {
        let mark: RawJson = match self.for_an_hour {
            true => json!({"type": "ephemeral", "ttl": "1h"}).into(),
            false => json!({"type": "ephemeral"}).into(),
        };
        extra.insert(FIELD, mark);
    }
}

fn is_marked(request: &ChatRequest) -> bool {
    let has = |extra: &Extra| extra.get(FIELD).is_some();
    let mut messages = request.messages.clone();
    let mut blocks = messages.iter_mut().flat_map(|message| message.content.iter_mut());
    has(&request.extra)
        || request.tools.iter().any(|tool| has(&tool.extra))
        || blocks.any(|block| markable(block).is_some_and(|extra| has(extra)))
}

/// Empty texts and thinking cannot be cached.
fn markable(block: &mut Block) -> Option<&mut Extra> {
    match block {
        Block::Text(block) if !block.text.trim().is_empty() => Some(&mut block.extra),
        Block::ToolResult(block) => Some(&mut block.extra),
        Block::ToolUse(block) => Some(&mut block.extra),
        Block::Image(media) | Block::Document(media) => Some(&mut media.extra),
        _ => None,
    }
}

#[async_trait]
impl Middleware for PromptCaching {
    fn name(&self) -> &str {
        "prompt_caching"
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE
    }

    async fn wrap_model(&self, mut request: ModelRequest, next: NextModel<'_>) -> Result<ChatStream> {
        if request.model.info().provider == "anthropic" {
            self.mark(&mut request.request);
        }
        next.run(request).await
    }
}
