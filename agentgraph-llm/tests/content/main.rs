//! The content of calls in their spans: absent by default, and in the form of the OpenTelemetry GenAI
//! conventions when a program asks for it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code, unreachable_pub)]

mod spans;
mod wires;

mod content_has_the_form_of_the_conventions;
mod nothing_is_captured_unless_asked_for;
mod secrets_are_masked;
