//! What most programs need: `use agentgraph_llm::prelude::*;`

pub use crate::anthropic::AnthropicModel;
pub use crate::json::RawJson;
pub use crate::message::{Block, Message, Role, ToolResult, ToolUse};
pub use crate::model::{
    ChatEvent, ChatModel, ChatRequest, ChatResponse, ChatStream, StopReason, ToolChoice, Usage,
};
pub use crate::scripted::{Reply, ScriptedModel};
pub use crate::tool::{FnTool, Tool, ToolError, ToolOutput, ToolSpec};
pub use crate::tool_loop::{Ended, ToolLoop, ToolLoopOutcome};
