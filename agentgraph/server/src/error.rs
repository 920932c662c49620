//! Errors: those of the server as a whole, those of a request, and the names that errors of nodes have.

use std::net::SocketAddr;

use agentgraph::Code;
use agentgraph::checkpoint::{StoreCode, StoreError};
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The address can be reached from other machines, and nothing checks who calls.
    #[error(
        "{0} can be reached from other machines, and the server would let in everyone: set keys with \
         `Server::bearer_keys` or another check of callers, or call `Server::allow_anyone` if something in front of it checks callers"
    )]
    Unprotected(SocketAddr),
    /// Two graphs have one name.
    #[error("there are two graphs with the name `{0}`: give each graph a name of its own")]
    SameName(String),
    /// A graph cannot be served.
    #[error("the graph `{name}` cannot be served")]
    Graph {
        /// The name of the graph.
        name: String,
        /// The reason.
        #[source]
        source: agentgraph::Error,
    },
    /// The records cannot be read or written.
    #[error("the records of the server cannot be used")]
    Records(#[from] RecordError),
    /// The address cannot be used.
    #[error("the server cannot listen: choose another address")]
    Listen(#[from] std::io::Error),
}

/// A failure of the store of records.
#[derive(Debug, thiserror::Error)]
#[error("the store of records failed: {0}")]
pub struct RecordError(String);

impl RecordError {
    /// An error with the message of the store.
    ///
    /// ```
    /// let error = agentgraph_server::RecordError::new("the disk is full");
    /// assert_eq!(error.to_string(), "the store of records failed: the disk is full");
    /// ```
    pub fn new(problem: impl std::fmt::Display) -> Self {
        RecordError(problem.to_string())
    }
}

/// An error with a name that clients see, as LangGraph's clients see the class of an exception. A node
/// returns it; other errors of nodes are shown as `NodeFailed`.
///
/// ```
/// use agentgraph_server::NamedError;
///
/// let error = NamedError::new("ValueError", "boom!");
/// assert_eq!(error.name(), "ValueError");
/// assert_eq!(error.to_string(), "boom!");
/// ```
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct NamedError {
    name: String,
    message: String,
}

impl NamedError {
    /// An error with a name and a message.
    pub fn new(name: impl Into<String>, message: impl Into<String>) -> Self {
        NamedError { name: name.into(), message: message.into() }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// What a client is told about the failure of a run.
#[derive(Clone, Debug)]
pub(crate) struct Failed {
    pub(crate) name: String,
    pub(crate) message: String,
    /// Whether it says nothing of the run: its store failed, or another process has its thread.
    pub(crate) is_passing: bool,
}

impl Failed {
    pub(crate) fn of(error: &agentgraph::Error) -> Self {
        let mut source: Option<&(dyn std::error::Error + 'static)> = std::error::Error::source(error);
        while let Some(inner) = source {
            if let Some(named) = inner.downcast_ref::<NamedError>() {
                return Failed::new(&named.name, named.message.clone());
            }
            source = inner.source();
        }
        if matches!(error.code(), Code::Store) {
            // What a store says may name files, hosts and users.
            tracing::error!(%error, "the store failed");
            return Failed { is_passing: true, ..Failed::new("Store", "the store failed") };
        }
        let is_passing = matches!(error.code(), Code::ThreadBusy | Code::LeaseLost | Code::Stale);
        Failed { is_passing, ..Failed::new(format!("{:?}", error.code()), error.message()) }
    }

    pub(crate) fn new(name: impl Into<String>, message: impl Into<String>) -> Self {
        Failed { name: name.into(), message: message.into(), is_passing: false }
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        json!({ "error": self.name, "message": self.message })
    }
}

/// The error of a request: its status and its text.
#[derive(Debug)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) detail: String,
    /// A word for programs, where the status does not say enough.
    code: Option<&'static str>,
}

/// After how many seconds a caller that has too much under way may try again. When some of it ends is not
/// known.
const RETRY_AFTER: &str = "1";

impl ApiError {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        ApiError { status, detail: detail.into(), code: None }
    }

    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    pub(crate) fn unknown(what: &str, id: &str) -> Self {
        ApiError::new(StatusCode::NOT_FOUND, format!("{what} {id} not found"))
    }

    /// The caller has as many of something as it may have at a time.
    pub(crate) fn too_many(code: &'static str, what: &str, limit: usize) -> Self {
        let detail = format!("a caller has at most {limit} {what} at a time: try again when some have ended");
        ApiError { code: Some(code), ..ApiError::new(StatusCode::TOO_MANY_REQUESTS, detail) }
    }

    pub(crate) fn conflict(detail: impl Into<String>) -> Self {
        ApiError::new(StatusCode::CONFLICT, detail)
    }
}

impl From<RecordError> for ApiError {
    fn from(error: RecordError) -> Self {
        tracing::error!(%error, "a request failed");
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "the store of records failed")
    }
}

/// What every graph can do but one on Restate.
pub(crate) fn not_on_restate(what: &str) -> agentgraph::Error {
    let message = format!("{what}: the graph runs on Restate");
    agentgraph::Error::new(Code::Host, &*message).with_source(NamedError::new(NOT_ON_RESTATE, message))
}

/// The name of that failure of a run.
const NOT_ON_RESTATE: &str = "NotOnRestate";

impl From<agentgraph::Error> for ApiError {
    fn from(error: agentgraph::Error) -> Self {
        let failed = Failed::of(&error);
        if failed.name == NOT_ON_RESTATE {
            let code = Some("not_on_restate");
            return ApiError { code, ..ApiError::new(StatusCode::NOT_IMPLEMENTED, failed.message) };
        }
        let status = match error.code() {
            Code::UnknownCheckpoint | Code::UnknownThread => StatusCode::NOT_FOUND,
            Code::ThreadBusy | Code::ThreadExists | Code::LeaseLost | Code::Stale => StatusCode::CONFLICT,
            Code::UnknownChannel
            | Code::BadValue
            | Code::BadInput
            | Code::BadAnswer
            | Code::UnknownTarget
            | Code::UnknownInterrupt
            | Code::AmbiguousAnswer
            | Code::NothingToResume
            | Code::EditRejected => StatusCode::UNPROCESSABLE_ENTITY,
            // Of the processes that run the graph, or of their server.
            Code::Host => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        ApiError::new(status, failed.message)
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let status = match error.code() {
            StoreCode::ItemName | StoreCode::ItemValue | StoreCode::ItemQuery => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            StoreCode::ItemConflict => StatusCode::CONFLICT,
            _ => {
                // What a store says may name files, hosts and users.
                tracing::error!(%error, "the store of items failed");
                return ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "the store of items failed");
            }
        };
        ApiError::new(status, error.message())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut body = json!({ "detail": self.detail });
        if let Some(code) = self.code {
            body["code"] = code.into();
        }
        let mut response = (self.status, Json(body)).into_response();
        let header = match self.status {
            StatusCode::UNAUTHORIZED => Some((header::WWW_AUTHENTICATE, "Bearer")),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                Some((header::RETRY_AFTER, RETRY_AFTER))
            }
            _ => None,
        };
        if let Some((name, value)) = header {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}
