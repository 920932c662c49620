//! What is sent to providers, and what is made of their answers.
#![allow(missing_docs, unreachable_pub)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod anthropic;
mod gemini;
mod openai;
mod wires;

use openai::{requests, talk};
use wires::server;
