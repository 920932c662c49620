//! What the table of behaviours has to know of a wire: how its servers write.

use std::sync::Arc;
use std::time::Duration;

use agentgraph_llm::prelude::*;
use agentgraph_llm::{Authentication, Error, MessageIds};

use super::anthropic_messages::AnthropicMessages;
use super::gemini::Gemini;
use super::openai_chat::OpenAiChat;
use super::openai_responses::OpenAiResponses;
use super::server::{Server, Waits};

pub const KEY: &str = "sk-hunter2-hunter2";
pub const MODEL: &str = "model-of-tests";

/// All wires. Every row of the table runs with each of them.
pub const WIRES: &[&dyn Wire] = &[&AnthropicMessages, &OpenAiChat, &OpenAiResponses, &Gemini];

/// How the servers of a wire write. An answer has 3 tokens of input and 2 of output.
pub trait Wire: Sync {
    fn name(&self) -> &'static str;

    fn model(&self, settings: &Settings) -> Result<Arc<dyn ChatModel>, Error>;

    /// The line of the request's head that has the key, in lower case.
    fn key_line(&self, key: &str) -> String;

    /// The events of a streamed text, each as text with the blank line at its end. The pieces are JSON
    /// strings.
    fn text(&self, pieces: &[String]) -> Vec<String>;

    /// The events of a streamed call of the tool `find`. The pieces of its arguments are JSON strings.
    fn call(&self, pieces: &[String]) -> Vec<String>;

    /// Whether arguments come in pieces. A wire that gets them as a whole writes the joined pieces in
    /// [`call`](Self::call).
    fn streams_arguments(&self) -> bool {
        true
    }

    /// How many of an answer's events there are at least in a complete answer.
    fn complete(&self, events: &[String]) -> usize {
        events.len()
    }

    /// How many events a server may send before the first one that the user sees.
    fn hidden(&self) -> usize;

    /// The answer as one JSON value.
    fn whole(&self, text: &str) -> String;

    /// An event without content in the middle of a stream, if the wire has one.
    fn ping(&self) -> Option<&'static str>;

    /// The body of an error. `message` is the server's text.
    fn error_body(&self, failure: Failure, message: &str) -> String;

    /// An error in a stream.
    fn error_event(&self, failure: Failure, message: &str) -> String;

    /// The status by which servers say that they have too much to do.
    fn overloaded_status(&self) -> u16;

    /// The header with the id of the request.
    fn request_id(&self) -> &'static str;

    /// Header lines: 50 requests with 49 left, full again in 7 s by the clock of [`Waits`]; 1000 tokens with
    /// 900 left. `None` if the wire has no such headers.
    fn limits(&self) -> Option<&'static str>;
}

/// The failures of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    BadRequest,
    Auth,
    Permission,
    NotFound,
    TooLarge,
    RateLimited,
    Money,
    Overloaded,
    Server,
}

/// The settings that all builders have.
#[derive(Clone)]
pub struct Settings {
    pub url: String,
    pub key: Option<String>,
    pub waits: Waits,
    pub timeout: Option<Duration>,
    pub idle_timeout: Option<Duration>,
    pub max_retries: u32,
    pub longest_wait: Option<Duration>,
    pub header: Option<(&'static str, &'static str)>,
    pub authentication: Option<Authentication>,
    pub keys: Option<Keys>,
    pub client: Option<agentgraph_llm::HttpClient>,
}

/// A source of keys.
pub type Keys = fn() -> Result<SecretString, Error>;

pub use agentgraph_llm::SecretString;

impl Settings {
    pub fn of(server: &Server) -> Self {
        Settings::at(&server.url)
    }

    pub fn at(url: &str) -> Self {
        Settings {
            url: url.to_owned(),
            key: Some(KEY.to_owned()),
            waits: Waits::default(),
            timeout: None,
            idle_timeout: None,
            max_retries: 2,
            longest_wait: None,
            header: None,
            authentication: None,
            keys: None,
            client: None,
        }
    }
}

/// Applies [`Settings`] to the builder of any wire.
macro_rules! configured {
    ($builder:expr, $settings:expr) => {{
        let settings: &$crate::wires::wire::Settings = $settings;
        let mut builder = $builder
            .model($crate::wires::wire::MODEL)
            .base_url(&settings.url)
            .clock(settings.waits.clone())
            .max_retries(settings.max_retries)
            .message_ids($crate::wires::wire::ids());
        if let Some(key) = &settings.key {
            builder = builder.api_key(key.clone());
        }
        if let Some(keys) = settings.keys {
            builder = builder.key_provider(move || async move { keys() });
        }
        if let Some(timeout) = settings.timeout {
            builder = builder.timeout(timeout);
        }
        if let Some(timeout) = settings.idle_timeout {
            builder = builder.idle_timeout(timeout);
        }
        if let Some(wait) = settings.longest_wait {
            builder = builder.longest_wait(wait);
        }
        if let Some((name, value)) = settings.header {
            builder = builder.header(name, value);
        }
        if let Some(kind) = &settings.authentication {
            builder = builder.authentication(kind.clone());
        }
        if let Some(client) = &settings.client {
            builder = builder.http_client(client.clone());
        }
        builder
    }};
}

pub(crate) use configured;

pub fn ids() -> MessageIds {
    MessageIds::sequence("m")
}

/// The JSON string of each piece.
pub fn quoted<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    pieces.into_iter().map(|piece| serde_json::to_string(piece).unwrap()).collect()
}

/// A streamed text, one piece for each word.
pub fn text(wire: &dyn Wire, text: &str) -> Vec<String> {
    wire.text(&quoted(text.split_inclusive(' ')))
}
