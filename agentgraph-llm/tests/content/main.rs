//! The content of calls in their spans: absent by default, and in the form of the OpenTelemetry GenAI
//! conventions when a program asks for it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code, unreachable_pub)]

#[path = "../wires/anthropic_messages.rs"]
mod anthropic_messages;
#[path = "../wires/gemini.rs"]
mod gemini;
#[path = "../wires/openai_chat.rs"]
mod openai_chat;
#[path = "../wires/openai_responses.rs"]
mod openai_responses;
#[path = "../wires/server.rs"]
mod server;
mod spans;
#[path = "../wires/wire.rs"]
mod wire;

mod content_has_the_form_of_the_conventions;
mod nothing_is_captured_unless_asked_for;
mod secrets_are_masked;
