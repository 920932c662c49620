//! The errors of `rmcp` as errors of this crate.
//!
//! An error of `rmcp` may show the whole address, with a key in it, and what the server wrote. So its text is
//! cleaned, and the error itself is not kept as a source.

#[cfg(feature = "mcp-oauth")]
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::ErrorCode;
use rmcp::service::{ClientInitializeError, ServiceError};
use secrecy::{ExposeSecret, SecretString};

use crate::error::{Code, Error};
use crate::tool::ToolError;

/// A server, for messages.
#[derive(Default)]
pub(super) struct Server {
    /// The program, or the address without its query.
    pub(super) name: String,
    /// What no message may show: the whole address, the token, and the values of headers.
    pub(super) secrets: Vec<SecretString>,
    /// Tokens that an authorization server gave out. No message may show them either.
    #[cfg(feature = "mcp-oauth")]
    pub(super) issued: Issued,
}

impl Server {
    pub(super) fn clean(&self, text: impl ToString) -> String {
        let text = without(&self.secrets, text.to_string());
        #[cfg(feature = "mcp-oauth")]
        let text = without(&self.issued.0.lock().unwrap_or_else(PoisonError::into_inner), text);
        text
    }

    /// The error of a connection that did not come about.
    pub(super) fn not_connected(&self, error: &ClientInitializeError) -> Error {
        let (code, remedy) = match error {
            error if error.is_authorization_required() => (Code::Auth, "set a valid token"),
            ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
                (Code::Config, "set another `protocol`")
            }
            ClientInitializeError::ConnectionClosed(_) => {
                (Code::Connection, "see what the server wrote to its standard error")
            }
            ClientInitializeError::TransportError { .. } => (Code::Connection, "check that the server runs"),
            ClientInitializeError::JsonRpcError(_) => (Code::BadRequest, "set another `protocol`"),
            _ => (Code::Decode, "check that it is an MCP server"),
        };
        let (name, error) = (&self.name, self.clean(error));
        Error::new(code, format!("the MCP server `{name}` did not answer as expected: {remedy} ({error})"))
    }

    /// The error of a request other than a call.
    pub(super) fn not_done(&self, what: &str, error: &ServiceError) -> Error {
        let code = match error {
            ServiceError::TransportClosed => return self.closed(),
            error if error.is_authorization_required() => Code::Auth,
            ServiceError::TransportSend(_) => Code::Connection,
            ServiceError::McpError(_) => Code::BadRequest,
            _ => Code::Decode,
        };
        Error::new(code, format!("the MCP server `{}` did not {what}: {}", self.name, self.clean(error)))
    }

    /// The error of a call. What the server says about this call is for the model; a failure of the
    /// connection is not, because no other arguments would help.
    pub(super) fn call_failed(&self, error: ServiceError) -> ToolError {
        match error {
            ServiceError::McpError(error) if error.code == ErrorCode::INVALID_PARAMS => {
                ToolError::invalid_arguments(self.clean(error.message))
            }
            ServiceError::McpError(error) => ToolError::failed(self.clean(error.message)),
            ServiceError::Cancelled { reason } => {
                let reason = reason.as_deref().unwrap_or("no reason");
                ToolError::failed(format!("the server cancelled the call: {reason}"))
            }
            other => self.not_done("answer the call", &other).into(),
        }
    }

    /// The error after the end of a connection.
    pub(super) fn closed(&self) -> Error {
        let name = &self.name;
        let message = format!(
            "the connection to the MCP server `{name}` has ended: connect again, with a new `McpClient`"
        );
        Error::new(Code::Connection, message).with_retryable(false)
    }

    /// The error of a server that does not answer the first request in time.
    pub(super) fn not_started(&self, what: &str, limit: Duration) -> Error {
        let message = format!(
            "the MCP server `{}` did not {what} within {limit:?} after its start: check that it runs, or set a longer \
             `connect_timeout(..)` if it has to be downloaded first",
            self.name
        );
        Error::new(Code::Timeout, message)
    }

    /// The error of a server that does not answer in time.
    pub(super) fn late(&self, what: &str, limit: Duration) -> Error {
        let message = format!(
            "the MCP server `{}` did not {what} within {limit:?}: check that it runs, or set a longer timeout",
            self.name
        );
        Error::new(Code::Timeout, message)
    }
}

fn without(secrets: &[SecretString], text: String) -> String {
    secrets
        .iter()
        .filter(|secret| !secret.expose_secret().is_empty())
        .fold(text, |text, secret| text.replace(secret.expose_secret(), "[redacted]"))
}

/// The last tokens of a connection.
#[cfg(feature = "mcp-oauth")]
#[derive(Clone, Default)]
pub(super) struct Issued(Arc<Mutex<Vec<SecretString>>>);

#[cfg(feature = "mcp-oauth")]
impl Issued {
    pub(super) fn add(&self, token: &str) {
        let mut issued = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !issued.iter().any(|known| known.expose_secret() == token) {
            // An answer may still quote the token before the last one.
            let old = issued.len().saturating_sub(7);
            issued.drain(..old);
            issued.push(token.into());
        }
    }
}
