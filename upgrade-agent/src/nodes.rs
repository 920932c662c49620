//! The five nodes, one file each. A node reads a snapshot of the state and returns an update; no node knows
//! which node runs next.

pub mod confirmation_handler;
pub(crate) mod conversation_analyzer;
pub(crate) mod failure;
pub(crate) mod information_gatherer;
pub(crate) mod response_generator;
pub(crate) mod tool_executor;

/// The name of the node `conversation_analyzer`.
pub const CONVERSATION_ANALYZER: &str = "conversation_analyzer";
/// The name of the node `information_gatherer`.
pub const INFORMATION_GATHERER: &str = "information_gatherer";
/// The name of the node `confirmation_handler`.
pub const CONFIRMATION_HANDLER: &str = "confirmation_handler";
/// The name of the node `tool_executor`.
pub const TOOL_EXECUTOR: &str = "tool_executor";
/// The name of the node `response_generator`.
pub const RESPONSE_GENERATOR: &str = "response_generator";

use agentgraph::Ctx;
use serde_json::json;

use crate::state::{ConversationState, ConversationStateUpdate};

/// Reports the start of a node and returns its empty update.
pub(crate) async fn begin(ctx: &Ctx) -> ConversationStateUpdate {
    if ctx.has_listener() {
        ctx.emit(json!({ "node": ctx.node() })).await;
    }
    ConversationState::update().path([ctx.node().to_owned()])
}
