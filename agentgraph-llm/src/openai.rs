//! OpenAI and compatible servers: two wires, a model on top of each, and an embedder.
//!
//! | | |
//! |---|---|
//! | [`OpenAiModel`], [`responses`] | the Responses API |
//! | [`OpenAiChatModel`], [`chat`] | Chat Completions, which OpenAI and every compatible server speak; [`Profile`] says what a server does in its own way |
//! | [`OpenAiEmbedder`] | vectors of texts, for the search in a store |
//!
//! The codecs are pure and public, for tests and for programs with their own HTTP client.
//!
//! For OpenAI's own models, take [`OpenAiModel`]: only the Responses API gives thinking back between tool
//! calls, runs the provider's own tools and counts tokens.

mod builder;
pub mod chat;
mod chat_model;
mod connection;
mod embedder;
mod failure;
mod media;
mod model;
mod profile;
pub mod responses;
mod schema;
mod usage;
mod wire;

pub use builder::{OpenAiBuilder, OpenAiChatModelBuilder, OpenAiModelBuilder};
pub use chat_model::OpenAiChatModel;
pub use embedder::{OpenAiEmbedder, OpenAiEmbedderBuilder};
pub use model::OpenAiModel;
pub use profile::Profile;

const PROVIDER: &str = "openai";
