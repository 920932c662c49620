//! The errors of `rmcp` as errors of this crate.

use std::time::Duration;

use rmcp::model::ErrorCode;
use rmcp::service::{ClientInitializeError, ServiceError};

use crate::error::{Code, Error};
use crate::tool::ToolError;

/// The error of a connection that did not come about.
pub(super) fn of_connecting(server: &str, error: ClientInitializeError) -> Error {
    let (code, remedy) = match &error {
        error if error.is_authorization_required() => (Code::Auth, "set a valid token"),
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => (Code::Config, "set another `protocol`"),
        ClientInitializeError::ConnectionClosed(_) => {
            (Code::Connection, "see what the server wrote to its stderr")
        }
        ClientInitializeError::TransportError { .. } => (Code::Connection, "check that the server runs"),
        ClientInitializeError::JsonRpcError(_) => (Code::BadRequest, "set another `protocol`"),
        _ => (Code::Decode, "check that it is an MCP server"),
    };
    let message = format!("the MCP server `{server}` did not answer as expected ({error}): {remedy}");
    Error::new(code, message).with_source(error)
}

/// The error of a request other than a call.
pub(super) fn of_request(server: &str, what: &str, error: ServiceError) -> Error {
    let code = match &error {
        ServiceError::TransportClosed | ServiceError::TransportSend(_) => return closed(server),
        ServiceError::McpError(_) => Code::BadRequest,
        _ => Code::Decode,
    };
    Error::new(code, format!("the MCP server `{server}` did not {what}: {error}")).with_source(error)
}

/// The error of a call. What the server says about this call is for the model; the end of the connection is
/// not, because no other arguments would help.
pub(super) fn of_call(server: &str, error: ServiceError) -> ToolError {
    match error {
        ServiceError::McpError(error) if error.code == ErrorCode::INVALID_PARAMS => {
            ToolError::invalid_arguments(error.message)
        }
        ServiceError::McpError(error) => ToolError::failed(error.message),
        ServiceError::Cancelled { reason } => ToolError::failed(format!(
            "the server cancelled the call: {}",
            reason.as_deref().unwrap_or("no reason")
        )),
        ServiceError::TransportClosed | ServiceError::TransportSend(_) => closed(server).into(),
        other => of_request(server, "answer the call", other).into(),
    }
}

/// The error after the end of a connection.
pub(super) fn closed(server: &str) -> Error {
    let message = format!(
        "the connection to the MCP server `{server}` has ended: connect again, with a new `McpClient`"
    );
    Error::new(Code::Connection, message).with_retryable(false)
}

/// The error of a server that does not answer in time.
pub(super) fn late(server: &str, what: &str, limit: Duration) -> Error {
    let message = format!(
        "the MCP server `{server}` did not {what} within {limit:?}: check that it runs, or set a longer timeout"
    );
    Error::new(Code::Timeout, message)
}
