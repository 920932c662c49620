//! The switch that puts the content of calls into their spans.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use super::content::Content;

/// What the program has installed. Subscribers of `tracing` are a matter of the whole program, and so is
/// this.
static INSTALLED: RwLock<Option<Arc<ContentCapture>>> = RwLock::new(None);

/// Puts the content of model and tool calls into their spans, in the form of the OpenTelemetry GenAI
/// conventions. Nothing of it is recorded until [`install`](Self::install) is called.
///
/// | span | attribute | what |
/// |---|---|---|
/// | `chat` | `gen_ai.system_instructions` | the instructions of the request |
/// | `chat` | `gen_ai.input.messages` | the conversation |
/// | `chat` | `gen_ai.output.messages` | the answer |
/// | `execute_tool` | `gen_ai.tool.call.arguments` | the arguments, if they are an object |
/// | `execute_tool` | `gen_ai.tool.call.result` | the output, if the call succeeded |
///
/// Each is a JSON text. Every subscriber of the program sees it, logs included: what people write to a model
/// is personal, so capture it where the traces are protected like the conversations themselves.
///
/// The key of the model's own connection is masked, and so are words that look like the key of a well-known
/// service. Name further secrets with [`mask`](Self::mask).
///
/// ```
/// use agentgraph_llm::ContentCapture;
///
/// // In `main`, beside the subscriber:
/// ContentCapture::new().mask("the password of the database").install();
/// # ContentCapture::remove();
/// ```
#[derive(Clone, Default)]
#[must_use = "nothing is captured before `install()`"]
pub struct ContentCapture {
    secrets: Vec<String>,
    has_media: bool,
}

impl ContentCapture {
    /// Captures texts, arguments and results. Images and other media appear with their type, without data.
    pub fn new() -> Self {
        ContentCapture::default()
    }

    /// Writes `[masked]` for a text, wherever it appears. An empty text is ignored.
    pub fn mask(mut self, secret: impl Into<String>) -> Self {
        self.secrets.push(secret.into());
        self.secrets.retain(|secret| !secret.is_empty());
        // A secret that contains another one is masked as a whole.
        self.secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        self
    }

    /// Captures the data of media, too, in base64.
    pub fn with_media(mut self) -> Self {
        self.has_media = true;
        self
    }

    /// Captures the content of all calls that begin from now on, in the whole program. It replaces what was
    /// installed before.
    pub fn install(self) {
        ContentCapture::set(Some(Arc::new(self)));
    }

    /// Captures no content of calls that begin from now on.
    pub fn remove() {
        ContentCapture::set(None);
    }

    fn set(capture: Option<Arc<ContentCapture>>) {
        *INSTALLED.write().unwrap_or_else(PoisonError::into_inner) = capture;
    }

    pub(super) fn installed() -> Option<Arc<ContentCapture>> {
        INSTALLED.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The writer of content, which also masks the key of a connection.
    pub(super) fn content(&self, key: Option<&str>) -> Content {
        let mut secrets = self.secrets.clone();
        secrets.extend(key.map(str::to_owned));
        Content { secrets, has_media: self.has_media }
    }
}

/// Without the secrets.
impl fmt::Debug for ContentCapture {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ContentCapture").field("has_media", &self.has_media).finish_non_exhaustive()
    }
}
