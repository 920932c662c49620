//! What most programs need: `use agentgraph_llm::prelude::*;`. Goes together with agentgraph's own prelude,
//! so [`StopReason`](crate::StopReason), which both crates have, is not in it.

pub use crate::agent::{Agent, AgentAnswer, AgentRunExt, AgentState, CompiledAgent, hand_off, supervisor};
pub use crate::anthropic::AnthropicModel;
pub use crate::json::RawJson;
pub use crate::message::{Block, Media, Message, Messages, Role, ToolResult, ToolUse};
pub use crate::middleware::{Jump, Middleware, Turn};
pub use crate::model::{
    AskExt, ChatEvent, ChatModel, ChatRequest, ChatResponse, ChatStream, ModelInfo, ToolChoice, Usage,
};
pub use crate::openai::{OpenAiChatModel, OpenAiModel};
pub use crate::scripted::{Reply, ScriptedModel};
pub use crate::tool::{FnTool, Tool, ToolCall, ToolError, ToolExt, ToolOutput, ToolSpec};
pub use crate::tool_loop::{LoopEnd, ToolLoop, ToolLoopOutcome};
pub use agentgraph_llm_macros::tool;
