//! Chat models, tools and a bounded tool loop for the nodes of an agent graph.

pub mod anthropic;
mod error;
mod json;
pub mod message;
pub mod model;
pub mod prelude;
pub mod scripted;
pub mod tool;
pub mod tool_loop;

pub use anthropic::AnthropicModel;
pub use error::{BoxError, Code, Error, Result};
pub use json::{Extra, RawJson};
pub use message::{
    Block, Image, ImageSource, Message, MessageIds, RedactedThinking, Role, TextBlock, Thinking, ToolInput, ToolResult,
    ToolUse,
};
pub use model::{ChatEvent, ChatModel, ChatRequest, ChatResponse, ChatStream, StopReason, ToolChoice, Usage};
pub use scripted::{Reply, ScriptedModel};
pub use tool::{FnTool, Tool, ToolError, ToolOutput, ToolSpec};
pub use tool_loop::{Ended, ToolLoop, ToolLoopOutcome};
