//! Chat models of four wires, tools, agents with middleware, and nodes that call models, for graphs of
//! `agentgraph`.
//!
//! ```
//! use agentgraph::prelude::*;
//! use agentgraph_llm::prelude::*;
//! use serde_json::json;
//!
//! /// Adds two numbers.
//! #[tool]
//! async fn add(a: i64, b: i64) -> Result<String, ToolError> {
//!     let total = a.checked_add(b).ok_or(ToolError::failed("the sum is too large"))?;
//!     Ok(total.to_string())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<()> {
//! // In a program: `AnthropicModel::from_env()?.model("claude-...").build()?`
//! let model = ScriptedModel::new([Reply::tool_call("add", json!({"a": 2, "b": 3})), Reply::text("It is 5.")]);
//!
//! let agent = Agent::new(model).tool(add()).compile()?;
//! let answer = agent.invoke("2 + 3?").finish().await?;
//! assert_eq!(answer.text(), "It is 5.");
//! assert_eq!(answer.state.messages[2].results().next().unwrap().as_text(), "5");
//! # Ok(())
//! # }
//! ```
//!
//! # What is here
//!
//! | | |
//! |---|---|
//! | [`message`] | [`Message`] and its [`Block`]s: what a state keeps and a checkpoint stores; [`Messages`], a conversation that clones share |
//! | [`model`] | [`ChatModel`], the contract: [`ChatRequest`] in, [`ChatStream`] out; [`AskExt`] for whole answers and typed ones |
//! | [`tool`](mod@tool) | [`Tool`], [`FnTool`] over an async closure, [`ToolError`]: who gets to see a failure |
//! | [`#[tool]`](macro@tool) | makes a function a tool: arguments and injected values from its parameters |
//! | `mcp` | with the feature `mcp`: `McpClient`, tools of MCP servers; with `mcp-oauth`: `McpOAuth`, a login at them; with `mcp-server`: `McpServer`, one for your own |
//! | [`agent`] | [`Agent`]: a model, tools and middleware as a compiled graph; [`AgentAnswer`]; a state of your own; [`supervisor`] and [`hand_off`] for several agents |
//! | [`middleware`] | [`Middleware`]: hooks between the steps of an agent, and wraps of its calls; built in: people decide, limits, retries, summaries, money, rates, and with the feature `pii` personal data |
//! | [`conversation`] | which calls are open, and a conversation that a provider accepts |
//! | [`tool_loop`] | [`ToolLoop`]: ask, call, answer, until the model is done or the limit is reached |
//! | [`anthropic`] | [`AnthropicModel`] and the pure codec of the Messages API under it |
//! | [`openai`] | [`OpenAiModel`] over the Responses API, [`OpenAiChatModel`] over Chat Completions for OpenAI and every compatible server, [`OpenAiEmbedder`]; the pure codecs under them |
//! | [`gemini`] | [`GeminiModel`] and the pure codec of `generateContent`; [`GeminiEmbedder`] |
//! | [`http`], [`sse`] | the driver of all wires: a provider of your own is a codec on it |
//! | [`named`] | [`ModelName`]: `openai:gpt-...`, for programs whose user chooses the model |
//! | `node` | with the feature `nodes`: `LlmNode`, a node of a dependency graph that asks, checks and asks again; `JsonCheck`, `CheckedAnswer`, `Meter` |
//! | `json_in_text`, `template` | with the feature `nodes`: the JSON in the prose of an answer; prompts with places for values of a database |
//! | [`schema`] | JSON Schemas in the forms that providers accept |
//! | [`retry`] | [`Backoff`](retry::Backoff) and the reader of `Retry-After`, for any HTTP client |
//! | [`telemetry`] | [`ContentCapture`]: messages and arguments in spans, off unless switched on |
//! | [`scripted`] | [`ScriptedModel`], for tests without a model |
//! | [`recording`] | [`Recording`]: exchanges with a model, recorded once and replayed in tests |
//! | [`Error`], [`Code`] | one error with a stable code, and whether a retry can help |
//!
//! # What is promised
//!
//! - *No content is lost.* Blocks and fields that have no name here are kept as raw text, thinking blocks
//!   with their signatures, arguments with their spelling. They survive a checkpoint byte for byte and go
//!   back to the provider unchanged.
//! - *Malformed arguments are never run.* They are kept, and the model gets an error as the result of the
//!   call.
//! - *A stream ends with exactly one last event*: the whole response, or an error. A stream that breaks off
//!   is an error.
//! - *Only an end that the provider calls an end is one.* An unknown reason to stop is an error with what
//!   came, and no call of that message is run.
//! - *Nothing comes twice.* What a server says in deltas and again as a whole is one message, or an error if
//!   the two contradict each other.
//! - *A refused answer leaves no trace.* The edits, changes and texts of the node's code for that answer are
//!   undone, and only those.
//! - *A partial answer is not accepted.* If the JSON broke off or a token limit cut the answer, the model is
//!   asked again.
//! - *A retry never repeats output that was shown.* Calls are retried by the provider's rules, streams only
//!   until their first event.
//! - *No key is in any log, error or checkpoint*, and no conversation in any span unless the program
//!   [asks for it](ContentCapture): see [below](#traces).
//!
//! # What is not here
//!
//! A [`ToolLoop`] is not a graph: its rounds are checkpointed only as durable steps. An [`Agent`] is one.
//!
//! # Traces
//!
//! Each model call is a `tracing` span `chat`, each tool call a span `execute_tool`. Their fields have the
//! names of the OpenTelemetry GenAI conventions: model, tokens, stop reason, error code. The application
//! chooses the exporter. Tokens and times of model calls are also events of the target
//! `agentgraph_llm::metrics`, at the level trace, which the metrics layer of `tracing-opentelemetry` turns
//! into the histograms of the conventions. Messages, arguments and results are recorded only after
//! [`ContentCapture::install`].

#![warn(clippy::too_many_lines)]

// # Rooms
//
// The modules, from the top of the house to the bottom. A file imports from its own module and from modules
// further down; a test of `agentgraph` (`tests/sources`) checks it.
//
// - `recording`: exchanges with a model, recorded and replayed
// - `scripted`: a model that follows a script
// - `node`: a node of a dependency graph that asks, checks and asks again
// - `template`: prompts with places for values
// - `json_in_text`: the JSON in the prose of an answer
// - `named`: models by name: the table of providers
// - `mcp`: tools of MCP servers, and a server of one's own
// - `openai`: two wires, and the profiles of compatible servers
// - `gemini`: a wire, and Google's credentials
// - `anthropic`: a wire
// - `embed`: what the embedders share
// - `agent`: a model, tools and middleware as a graph
// - `tool_node`: the calls of an answer as a node
// - `tool_loop`: ask, call, answer
// - `middleware`: code around the model and the tools
// - `execution`: one call of a tool, with its span and its checks
// - `http`: the driver of all wires
// - `retry`: waits between attempts
// - `telemetry`: spans and metrics
// - `mask`: texts that are never written
// - `sent_key`: the key of an attempt, which is never shown
// - `sse`: the parser of server-sent events
// - `conversation`: calls and their results in order
// - `model`: the contract of a model; requests, answers, streams
// - `schema`: JSON Schemas in the forms that providers accept
// - `tool_macro`: what `#[tool]` writes
// - `tool`: the contract of a tool
// - `error`: the one error
// - `usage`: tokens as data
// - `message`: messages and blocks as data
// - `info`: what a model says about itself
// - `json`: raw JSON
// - `shared`: fields that clones share

pub mod agent;
pub mod anthropic;
pub mod conversation;
pub mod embed;
mod error;
mod execution;
pub mod gemini;
pub mod http;
mod info;
mod json;
#[cfg(feature = "nodes")]
pub mod json_in_text;
mod mask;
#[cfg(any(feature = "mcp", feature = "mcp-server"))]
pub mod mcp;
pub mod message;
pub mod middleware;
pub mod model;
pub mod named;
#[cfg(feature = "nodes")]
pub mod node;
pub mod openai;
pub mod prelude;
pub mod recording;
pub mod retry;
pub mod schema;
pub mod scripted;
mod sent_key;
mod shared;
pub mod sse;
pub mod telemetry;
#[cfg(feature = "nodes")]
pub mod template;
pub mod tool;
pub mod tool_loop;
mod tool_macro;
mod tool_node;
mod usage;

pub use agent::{
    Agent, AgentAnswer, AgentChannels, AgentRunExt, AgentState, AgentStream, CompiledAgent, Worker, hand_off,
    supervisor,
};
pub use anthropic::{AnthropicModel, AnthropicModelBuilder};
pub use error::{BoxError, Code, Error, Result};
pub use gemini::{GeminiEmbedder, GeminiEmbedderBuilder, GeminiModel, GeminiModelBuilder};
pub use http::{Authentication, Clock, KeyProvider, SystemClock, http_client_builder};
pub use json::{Extra, RawJson};
pub use message::{
    Block, Media, MediaSource, Message, MessageFields, MessageIds, Messages, Origin, RedactedThinking, Role,
    TextBlock, Thinking, ToolInput, ToolResult, ToolUse,
};
pub use middleware::{Hooks, Jump, Middleware, ModelRequest, NextModel, NextTool, Slot, Turn};
pub use model::{
    AskExt, Asked, Capabilities, ChatEvent, ChatModel, ChatRequest, ChatResponse, ChatStream, Effort,
    ModelInfo, OutputSpec, Quota, RateLimits, StopReason, TokenCount, ToolChoice, ToolMode, Usage,
};
pub use named::{ModelName, NamedModel, Provider};
#[cfg(feature = "nodes")]
pub use node::{
    Answer, Attempt, CheckedAnswer, Composition, Database, Exchange, Feedback, JsonCheck, JsonKind, LlmNode,
    Meter, MeterReading, Refusal, RefusedAnswers,
};
pub use openai::{OpenAiChatModel, OpenAiEmbedder, OpenAiModel};
pub use recording::Recording;
pub use scripted::{Reply, ScriptedModel};
pub use telemetry::ContentCapture;
#[cfg(feature = "nodes")]
pub use template::Template;
pub use tool::{
    AnyCommand, FnTool, LimitedTool, NoContext, StateType, Tool, ToolCall, ToolError, ToolExt, ToolFields,
    ToolOutput, ToolSpec,
};
pub use tool_loop::{LoopEnd, ToolLoop, ToolLoopOutcome};
pub use tool_macro::{FromToolCall, IntoTool};
pub use tool_node::{IsToolNode, MessageChannels, ToolNode};

pub use agentgraph_llm_macros::tool;

#[doc(hidden)]
pub use tool_macro::written as __private;

/// The type of an API key. It is wiped when dropped and cannot be printed.
#[doc(no_inline)]
pub use secrecy::{ExposeSecret, SecretString};

/// The HTTP client that a model can be given.
#[doc(no_inline)]
pub use reqwest::Client as HttpClient;
