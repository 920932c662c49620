//! What a model call or a tool loop fails with: one opaque [`Error`] with a stable code.
//!
//! An error says what to do, and never holds a key or the text of a conversation. Whether the *same* request
//! may succeed later is [`Error::is_retryable`]; a node's retry policy sees the same answer, because an error
//! that is not worth a retry has an [`agentgraph::Terminal`] as its source, unless it has a cause of its own.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use agentgraph::Terminal;

use crate::model::Usage;

/// A boxed error of anybody.
pub type BoxError = Box<dyn StdError + Send + Sync + 'static>;

/// The result of this crate's calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal, $retry:literal;)*) => {
        /// What kind of failure an [`Error`] is. The text of a code never changes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])* $variant,)*
        }

        impl Code {
            /// Every code there is, in the order of declaration.
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
    /// The account has no money or reached its spend limit.
    Billing = "E_LLM_BILLING", false;
    /// Too many requests or tokens in the last minutes (HTTP 429).
    RateLimited = "E_LLM_RATE_LIMITED", true;
    /// The provider has too much to do at the moment (HTTP 529).
    Overloaded = "E_LLM_OVERLOADED", true;
    /// The provider failed (HTTP 5xx).
    Server = "E_LLM_SERVER", true;
    /// The request collided with another one (HTTP 409).
    Conflict = "E_LLM_CONFLICT", true;
    /// No answer within the total, the connect or the idle timeout.
    Timeout = "E_LLM_TIMEOUT", true;
    /// No connection, or a connection that broke before an answer.
    Connection = "E_LLM_CONNECTION", true;
    /// A stream that ended before its last event.
    Truncated = "E_LLM_TRUNCATED", true;
    /// The provider refused the request as it is (HTTP 400 and other 4xx).
    BadRequest = "E_LLM_BAD_REQUEST", false;
    /// No such model or endpoint (HTTP 404).
    NotFound = "E_LLM_NOT_FOUND", false;
    /// The request has more bytes or tokens than the provider takes (HTTP 413).
    TooLarge = "E_LLM_TOO_LARGE", false;
    /// An answer that is not what the wire format says.
    Decode = "E_LLM_DECODE", false;
    /// A model was built with settings that cannot work.
    Config = "E_LLM_CONFIG", false;
    /// A tool's name or schema cannot be sent, or two tools have the same name.
    BadTool = "E_LLM_BAD_TOOL", false;
    /// A tool returned a fatal error; [`source`](std::error::Error::source) is that error.
    ToolFailed = "E_LLM_TOOL_FAILED", true;
    /// A prompt's template cannot be read.
    Template = "E_LLM_TEMPLATE", false;
    /// A prompt asks for a value that its database does not have.
    MissingValue = "E_LLM_MISSING_VALUE", false;
    /// A model's answers were refused until no try was left.
    AnswerRejected = "E_LLM_ANSWER_REJECTED", false;
    /// A scripted model was asked for more replies than its script has.
    ScriptExhausted = "E_LLM_SCRIPT_EXHAUSTED", false;
}

impl fmt::Display for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// What a call of this crate fails with. Opaque: ask it for its [`code`](Error::code) or by predicate.
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
    source: Option<BoxError>,
    /// The source of an error without one that is not retryable.
    terminal: Terminal,
}

impl Error {
    /// An error of the given code; `message` says what happened and what to do. For authors of models.
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
            source: None,
            terminal: Terminal::new("the same request would fail again"),
        }))
    }

    /// The same error with the HTTP status it came with.
    pub fn with_status(mut self, status: u16) -> Self {
        self.0.status = Some(status);
        self
    }

    /// The same error with the provider's id of the request, for its support.
    pub fn with_request_id(mut self, id: impl Into<String>) -> Self {
        self.0.request_id = Some(id.into());
        self
    }

    /// The same error with the wait the provider asked for.
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.0.retry_after = Some(wait);
        self
    }

    /// The same error, worth a retry or not whatever its code says.
    pub fn with_retryable(mut self, retryable: bool) -> Self {
        self.0.retryable = retryable;
        self
    }

    /// The same error with what was paid for before it, added to what it says already. For authors of models
    /// and loops: who gets the error counts it.
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.0.usage += usage;
        self
    }

    /// The same error with the cause it came from. A cause that must not be tried again makes the error so.
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        let source = source.into();
        self.0.retryable &= !has_terminal(&*source);
        self.0.source = Some(source);
        self
    }

    /// The same error with every occurrence of a text cut out of its message.
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

    /// What happened and what to do, without code, status and request id.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The HTTP status, if an answer came.
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// The provider's id of the request.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// The wait the provider asked for before the next try.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// What was paid for before it failed, such as the earlier rounds of a [`ToolLoop`](crate::ToolLoop).
    /// Zero for a call that failed as a whole.
    pub fn usage(&self) -> Usage {
        self.0.usage
    }

    /// Whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.0.retryable
    }

    /// Whether the key is the problem: missing, wrong, or not allowed to do this.
    pub fn is_auth(&self) -> bool {
        matches!(self.0.code, Code::Auth | Code::Permission)
    }

    /// Whether money is the problem.
    pub fn is_billing(&self) -> bool {
        self.0.code == Code::Billing
    }

    /// Whether the caller was too fast.
    pub fn is_rate_limited(&self) -> bool {
        self.0.code == Code::RateLimited
    }

    /// Whether the provider has too much to do.
    pub fn is_overloaded(&self) -> bool {
        self.0.code == Code::Overloaded
    }

    /// Whether time ran out.
    pub fn is_timeout(&self) -> bool {
        self.0.code == Code::Timeout
    }

    /// The cause, if it is a `T`. This is how a tool's fatal error is found again.
    pub fn cause<T: StdError + 'static>(&self) -> Option<&T> {
        self.0.source.as_deref()?.downcast_ref()
    }

    /// The cause by value, or the error itself if it has none.
    ///
    /// # Errors
    /// The error unchanged when it has no cause.
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

impl fmt::Debug for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        out.debug_struct("Error")
            .field("code", &inner.code)
            .field("message", &inner.message)
            .field("status", &inner.status)
            .field("request_id", &inner.request_id)
            .field("retry_after", &inner.retry_after)
            .field("retryable", &inner.retryable)
            .field("usage", &inner.usage)
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

fn has_terminal(error: &(dyn StdError + 'static)) -> bool {
    error.is::<Terminal>() || error.source().is_some_and(has_terminal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_text_of_its_own() {
        let mut texts: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), Code::ALL.len());
        assert!(texts.iter().all(|text| text.starts_with("E_LLM_")));
    }

    #[test]
    fn a_terminal_cause_ends_the_retries_and_another_one_does_not() {
        let failed = || Error::new(Code::ToolFailed, "");
        assert!(failed().with_source("disk full").is_retryable());
        assert!(!failed().with_source(Terminal::new("card refused")).is_retryable());
        assert!(!failed().with_source(Error::new(Code::Auth, "")).is_retryable());
        assert!(failed().with_source(Error::new(Code::Overloaded, "")).is_retryable());
    }
}
