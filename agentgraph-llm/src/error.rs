//! The error of model calls and tool loops: one opaque [`Error`] with a stable code.
//!
//! An error's message says what to do, and never contains a key or text of the conversation.
//! [`Error::is_retryable`] says whether the *same* request may succeed later. A node's retry policy follows
//! it: an error that is not retryable has an [`agentgraph::Terminal`] as its source, unless it has a cause of
//! its own.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use agentgraph::Terminal;
use agentgraph::checkpoint::engine::message_and_causes;
use agentgraph::node::Interrupted;

use crate::message::Message;
use crate::usage::Usage;

/// A boxed error of any type.
pub type BoxError = Box<dyn StdError + Send + Sync + 'static>;

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal, $retry:literal;)*) => {
        /// The kind of an [`Error`]. The text of a code never changes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])* $variant,)*
        }

        impl Code {
            /// All codes, in the order of declaration.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            /// The stable text, such as `E_LLM_RATE_LIMITED`.
            ///
            /// ```
            /// assert_eq!(agentgraph_llm::Code::RateLimited.as_str(), "E_LLM_RATE_LIMITED");
            /// ```
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Code::$variant => $text,)*
                }
            }

            const fn is_retryable(self) -> bool {
                match self {
                    $(Code::$variant => $retry,)*
                }
            }
        }
    };
}

codes! {
    /// The key is missing, wrong or revoked (HTTP 401).
    Auth = "E_LLM_AUTH", false;
    /// The key is good, but may not use this model or feature (HTTP 403).
    Permission = "E_LLM_PERMISSION", false;
    /// The account has no credit or reached its spending limit.
    Billing = "E_LLM_BILLING", false;
    /// Too many requests or tokens in the last minutes (HTTP 429).
    RateLimited = "E_LLM_RATE_LIMITED", true;
    /// The provider is overloaded (HTTP 529).
    Overloaded = "E_LLM_OVERLOADED", true;
    /// The provider failed (HTTP 5xx).
    Server = "E_LLM_SERVER", true;
    /// The request collided with another one (HTTP 409).
    Conflict = "E_LLM_CONFLICT", true;
    /// No response within the total, the connect or the idle timeout.
    Timeout = "E_LLM_TIMEOUT", true;
    /// No connection, or a connection that broke before the response.
    Connection = "E_LLM_CONNECTION", true;
    /// An answer that ended before the provider said so.
    Truncated = "E_LLM_TRUNCATED", true;
    /// An answer that ended for another reason than an end of a message;
    /// [`stop_reason`](Error::stop_reason) is that reason.
    StopReason = "E_LLM_STOP_REASON", false;
    /// An answer, and the one after it, that ended with neither text nor call.
    EmptyAnswer = "E_LLM_EMPTY_ANSWER", false;
    /// The provider refused the request as it is (HTTP 400 and other 4xx).
    BadRequest = "E_LLM_BAD_REQUEST", false;
    /// No such model or endpoint (HTTP 404).
    NotFound = "E_LLM_NOT_FOUND", false;
    /// The request has more bytes or tokens than the provider accepts (HTTP 413).
    TooLarge = "E_LLM_TOO_LARGE", false;
    /// A response that violates the wire format.
    Decode = "E_LLM_DECODE", false;
    /// The settings of a model are invalid.
    Config = "E_LLM_CONFIG", false;
    /// A tool's name or schema cannot be sent, or two tools have the same name.
    BadTool = "E_LLM_BAD_TOOL", false;
    /// A tool returned a fatal error; [`source`](std::error::Error::source) is that error.
    ToolFailed = "E_LLM_TOOL_FAILED", true;
    /// A middleware cannot do its work here, or waits for an answer.
    Middleware = "E_LLM_MIDDLEWARE", false;
    /// The result of a model call or of a tool cannot be stored as a durable step.
    DurableStep = "E_LLM_DURABLE_STEP", false;
    /// A prompt's template cannot be read.
    Template = "E_LLM_TEMPLATE", false;
    /// A prompt refers to a value that its database does not have.
    MissingValue = "E_LLM_MISSING_VALUE", false;
    /// All answers of a model were refused.
    AnswerRejected = "E_LLM_ANSWER_REJECTED", false;
    /// The answer of a person does not fit the question.
    AnswerMismatch = "E_LLM_ANSWER_MISMATCH", false;
    /// An agent reached its limit of calls.
    CallLimit = "E_LLM_CALL_LIMIT", false;
    /// An agent reached its limit of money.
    Budget = "E_LLM_BUDGET", false;
    /// A text contains personal data that must not pass.
    PiiFound = "E_LLM_PII", false;
    /// A scripted model has no replies left.
    ScriptExhausted = "E_LLM_SCRIPT_EXHAUSTED", false;
    /// A recording has no such exchange, or its file cannot be read or written.
    Recording = "E_LLM_RECORDING", false;
}

impl fmt::Display for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// The error of this crate. Opaque: match on its [`code`](Error::code) or use the predicates.
///
/// ```
/// use agentgraph_llm::{Code, Error};
///
/// let error = Error::new(Code::Overloaded, "the provider is overloaded, try again later").with_status(529);
/// assert!(error.is_retryable() && error.is_overloaded());
/// assert_eq!(error.to_string(), "E_LLM_OVERLOADED: the provider is overloaded, try again later (HTTP 529)");
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    code: Code,
    message: String,
    status: Option<u16>,
    request_id: Option<String>,
    retry_after: Option<Duration>,
    retryable: bool,
    usage: Usage,
    messages: Vec<Message>,
    partial: Option<Message>,
    stop_reason: Option<String>,
    source: Option<BoxError>,
    /// The source of an error that has no other one and is not retryable.
    terminal: Terminal,
}

impl Error {
    /// An error of the given code. `message` says what happened and what to do. For authors of models.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let retryable = code.is_retryable();
        Error(Box::new(Inner {
            code,
            message: message.into(),
            status: None,
            request_id: None,
            retry_after: None,
            retryable,
            usage: Usage::default(),
            messages: Vec::new(),
            partial: None,
            stop_reason: None,
            source: None,
            terminal: Terminal::new("the same request would fail again"),
        }))
    }

    /// Sets the HTTP status.
    pub fn with_status(mut self, status: u16) -> Self {
        self.0.status = Some(status);
        self
    }

    /// Sets the provider's id of the request, which its support asks for.
    pub fn with_request_id(mut self, id: impl Into<String>) -> Self {
        self.0.request_id = Some(id.into());
        self
    }

    /// Sets the wait that the provider asked for.
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.0.retry_after = Some(wait);
        self
    }

    /// Sets whether the error is retryable, whatever its code.
    pub fn with_retryable(mut self, retryable: bool) -> Self {
        self.0.retryable = retryable;
        self
    }

    /// Adds the usage of the calls before the error. For authors of models and loops; the caller counts it.
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.0.usage += usage;
        self
    }

    /// Sets the messages before the error. For authors of loops.
    pub fn with_messages(mut self, messages: Vec<Message>) -> Self {
        self.0.messages = messages;
        self
    }

    /// Sets what came of the answer before the error. For authors of models.
    pub fn with_partial(mut self, message: Message) -> Self {
        self.0.partial = Some(message);
        self
    }

    /// Sets the provider's word for the end of the answer. For authors of models.
    pub fn with_stop_reason(mut self, reason: impl Into<String>) -> Self {
        self.0.stop_reason = Some(reason.into());
        self
    }

    /// Sets the cause. If the cause is terminal, the error is not retryable.
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        let source = source.into();
        self.0.retryable &= !has_terminal(&*source);
        self.0.source = Some(source);
        self
    }

    /// Adds a text at the end of the message.
    pub(crate) fn with_note(mut self, note: &str) -> Self {
        self.0.message.push_str(note);
        self
    }

    /// Removes every occurrence of a text from the message.
    pub(crate) fn without_text(mut self, secret: &str) -> Self {
        if !secret.is_empty() {
            self.0.message = self.0.message.replace(secret, "[redacted]");
            self.0.request_id = self.0.request_id.map(|id| id.replace(secret, "[redacted]"));
        }
        self
    }

    /// The stable code.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The message, without code, status and request id.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The HTTP status, if there was a response.
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// The provider's id of the request.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// The wait that the provider asked for.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// The usage up to the error: of the answer that failed, as far as the provider said it, and of the calls
    /// before, such as the earlier rounds of a [`ToolLoop`](crate::ToolLoop).
    pub fn usage(&self) -> Usage {
        self.0.usage
    }

    /// The messages that a [`ToolLoop`](crate::ToolLoop) added to the conversation before the error. Each
    /// call in them has a result, so the conversation can be sent again with these at its end. They are not
    /// part of the error's texts.
    pub fn messages(&self) -> &[Message] {
        &self.0.messages
    }

    /// What came of the answer before the error, for a person to read. Its calls must not be run, and it is
    /// not part of the error's texts.
    pub fn partial(&self) -> Option<&Message> {
        self.0.partial.as_ref()
    }

    /// The provider's word for the end of the answer, if it is no end of a message.
    ///
    /// ```
    /// let body = br#"{"candidates": [{"content": {"parts": [{"text": "So"}]}, "finishReason": "MALFORMED_FUNCTION_CALL"}]}"#;
    /// let error = agentgraph_llm::gemini::decode(body).unwrap_err();
    /// assert_eq!(error.stop_reason(), Some("MALFORMED_FUNCTION_CALL"));
    /// assert_eq!(error.partial().unwrap().text(), "So");
    /// ```
    pub fn stop_reason(&self) -> Option<&str> {
        self.0.stop_reason.as_deref()
    }

    /// Whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.0.retryable
    }

    /// Whether the key is missing, wrong or not permitted to do this.
    pub fn is_auth(&self) -> bool {
        matches!(self.0.code, Code::Auth | Code::Permission)
    }

    /// Whether it is a billing error.
    pub fn is_billing(&self) -> bool {
        self.0.code == Code::Billing
    }

    /// Whether a rate limit was exceeded.
    pub fn is_rate_limited(&self) -> bool {
        self.0.code == Code::RateLimited
    }

    /// Whether the provider is overloaded.
    pub fn is_overloaded(&self) -> bool {
        self.0.code == Code::Overloaded
    }

    /// Whether a timeout expired.
    pub fn is_timeout(&self) -> bool {
        self.0.code == Code::Timeout
    }

    /// The cause, if it is a `T`. A tool's fatal error is found this way.
    pub fn cause<T: StdError + 'static>(&self) -> Option<&T> {
        self.0.source.as_deref()?.downcast_ref()
    }

    /// The cause by value.
    ///
    /// # Errors
    /// The error itself if it has no cause.
    pub fn into_cause(mut self) -> Result<BoxError, Self> {
        self.0.source.take().ok_or(self)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { code, message, status, request_id, .. } = &*self.0;
        write!(out, "{code}: {message}")?;
        match (status, request_id) {
            (Some(status), Some(id)) => write!(out, " (HTTP {status}, request {id})"),
            (Some(status), None) => write!(out, " (HTTP {status})"),
            (None, Some(id)) => write!(out, " (request {id})"),
            (None, None) => Ok(()),
        }
    }
}

/// The message and the causes that it does not quote, as `fn main() -> Result<()>` prints `Debug`; `{:#?}`
/// shows the fields.
impl fmt::Debug for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        match inner.source {
            // The marker for retry policies is no cause to read.
            None if !out.alternate() => return fmt::Display::fmt(self, out),
            Some(_) if !out.alternate() => return message_and_causes(self, out),
            _ => {}
        }
        out.debug_struct("Error")
            .field("code", &inner.code)
            .field("message", &inner.message)
            .field("status", &inner.status)
            .field("request_id", &inner.request_id)
            .field("retry_after", &inner.retry_after)
            .field("retryable", &inner.retryable)
            .field("usage", &inner.usage)
            .field("messages", &inner.messages.len())
            .field("stop_reason", &inner.stop_reason)
            .field("source", &inner.source)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self.0.source.as_deref() {
            Some(source) => Some(source),
            None if self.0.retryable => None,
            None => Some(&self.0.terminal),
        }
    }
}

/// While there is no answer, the node returns with this error, and the engine reports the question.
impl From<Interrupted> for Error {
    fn from(waits: Interrupted) -> Self {
        Error::new(Code::Middleware, "it waits for the answer to a question").with_source(waits)
    }
}

fn has_terminal(error: &(dyn StdError + 'static)) -> bool {
    error.is::<Terminal>() || error.source().is_some_and(has_terminal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_own_text() {
        let mut texts: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), Code::ALL.len());
        assert!(texts.iter().all(|text| text.starts_with("E_LLM_")));
    }

    #[test]
    fn only_a_terminal_cause_ends_the_retries() {
        let failed = || Error::new(Code::ToolFailed, "");
        assert!(failed().with_source("disk full").is_retryable());
        assert!(!failed().with_source(Terminal::new("card refused")).is_retryable());
        assert!(!failed().with_source(Error::new(Code::Auth, "")).is_retryable());
        assert!(failed().with_source(Error::new(Code::Overloaded, "")).is_retryable());
    }
}
