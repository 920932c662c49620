//! The wires of the program `providers`, and its server.

#[path = "../wires/anthropic_messages.rs"]
pub mod anthropic_messages;
#[path = "../wires/gemini.rs"]
pub mod gemini;
#[path = "../wires/openai_chat.rs"]
pub mod openai_chat;
#[path = "../wires/openai_responses.rs"]
pub mod openai_responses;
#[path = "../wires/server.rs"]
pub mod server;
#[path = "../wires/wire.rs"]
pub mod wire;
