//! The errors of the client.

use std::fmt;

use reqwest::Url;

use super::draft::ExperimentPatch;

/// The kinds of errors, each with a stable code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The settings of the client are invalid.
    Config,
    /// No connection to the address.
    Connect,
    /// No response in time. It is unknown whether the server acted.
    Timeout,
    /// The server rejects the authorization.
    Auth,
    /// The server rejects the request.
    BadRequest,
    /// The experiment, student or route does not exist.
    NotFound,
    /// The id is taken, or somebody else changed the experiment meanwhile.
    Conflict,
    /// A change of several calls stopped in between; [`ClientError::unfinished`] has the missing part.
    Unfinished,
    /// The server failed.
    Server,
    /// The response is not one of an UpGrade server.
    Protocol,
}

impl ErrorKind {
    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::Config => "E_UPGRADE_CONFIG",
            Self::Connect => "E_UPGRADE_CONNECT",
            Self::Timeout => "E_UPGRADE_TIMEOUT",
            Self::Auth => "E_UPGRADE_AUTH",
            Self::BadRequest => "E_UPGRADE_BAD_REQUEST",
            Self::NotFound => "E_UPGRADE_NOT_FOUND",
            Self::Conflict => "E_UPGRADE_CONFLICT",
            Self::Unfinished => "E_UPGRADE_UNFINISHED",
            Self::Server => "E_UPGRADE_SERVER",
            Self::Protocol => "E_UPGRADE_PROTOCOL",
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::Config => "correct the settings of the client",
            Self::Connect => "check that the server runs and that the URL is right",
            Self::Timeout => "read the experiment before trying again: the server may have acted",
            Self::Auth => "give a valid token (UPGRADE_TOKEN) or a service account (--service-account)",
            Self::BadRequest => "correct the request",
            Self::NotFound => "check the id against the list of experiments",
            Self::Conflict => "read the experiment that is there; then choose another id, or update it",
            Self::Unfinished => "update the experiment with what is missing; what is done stays",
            Self::Server => "see the server's log",
            Self::Protocol => "check that the URL is that of an UpGrade API (it mostly ends in /api)",
        }
    }
}

const ADVICE_FOR_STUDENTS: &str = "check the student's id, or make him known first by initializing the user";

const ADVICE_FOR_APPLICATIONS: &str =
    "give the server's client key and its secret (UPGRADE_CLIENT_KEY and UPGRADE_CLIENT_SECRET)";
const ADVICE_FOR_READERS: &str = "try again later, or allow it more time (--timeout)";

/// A failed call: its name, the kind of the error, and the message.
///
/// Contains no headers, no request body and no token, so it may be displayed and logged.
#[derive(Clone, PartialEq)]
pub struct ClientError {
    kind: ErrorKind,
    call: String,
    /// The URL of the API, for errors that may come from a wrong URL.
    place: Option<String>,
    status: Option<u16>,
    message: String,
    maybe_done: bool,
    unfinished: Option<Box<Unfinished>>,
}

/// The message, as `fn main() -> Result<()>` prints `Debug`.
impl fmt::Debug for ClientError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// A change that was made in part.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Unfinished {
    /// The experiment, which exists.
    pub experiment_id: String,
    /// The part that may be missing. [`super::UpgradeClient::update`] with it completes the change, and has
    /// no effect if nothing was missing.
    pub missing: ExperimentPatch,
}

impl ClientError {
    pub(super) fn new(kind: ErrorKind, call: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            kind,
            call: call.into(),
            place: None,
            status: None,
            message: message.into(),
            maybe_done: false,
            unfinished: None,
        }
    }

    /// Turns the error into one in the middle of a change.
    pub(super) fn in_the_middle(self, experiment_id: &str, done: &str, missing: ExperimentPatch) -> Self {
        let message = format!("{done}, but the rest failed: {} ({})", self.message, self.kind.code());
        let experiment_id = experiment_id.to_owned();
        let unfinished = Some(Box::new(Unfinished { experiment_id, missing }));
        Self { kind: ErrorKind::Unfinished, message, unfinished, ..self }
    }

    /// Adds the URL of the API, if the server may be elsewhere.
    pub(super) fn at(mut self, url: &Url) -> Self {
        if matches!(self.kind, ErrorKind::Connect | ErrorKind::Timeout | ErrorKind::Protocol) {
            self.place = Some(url.to_string());
        }
        self
    }

    /// Turns the error of a health call, which every UpGrade server answers, into one of a wrong server.
    pub(super) fn of_health(mut self) -> Self {
        if matches!(self.kind, ErrorKind::NotFound | ErrorKind::BadRequest) {
            self.kind = ErrorKind::Protocol;
        }
        self
    }

    /// Marks the error as one after which the server may have acted.
    pub(super) fn maybe_done(mut self) -> Self {
        self.maybe_done = true;
        self
    }

    pub(super) fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The stable code of the kind, such as `E_UPGRADE_NOT_FOUND`.
    pub fn code(&self) -> &'static str {
        self.kind.code()
    }

    /// The call that failed, such as `GET /experiments/names`.
    pub fn call(&self) -> &str {
        &self.call
    }

    /// Whether the server may have acted nevertheless: it was reached and did not refuse. Read the data
    /// before you repeat such a call.
    pub fn may_have_acted(&self) -> bool {
        match self.kind {
            // A rate-limited call was not processed.
            ErrorKind::Server => self.status != Some(429),
            ErrorKind::Timeout | ErrorKind::Protocol | ErrorKind::Unfinished => true,
            ErrorKind::Connect | ErrorKind::Conflict => self.maybe_done,
            _ => false,
        }
    }

    /// The missing part of a change of several calls.
    pub fn unfinished(&self) -> Option<&Unfinished> {
        self.unfinished.as_deref()
    }

    /// The HTTP status, if there was a response.
    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// Whether the student is unknown to the server. Its versions report this in three ways.
    fn lacks_student(&self) -> bool {
        let said = self.message.to_lowercase();
        self.kind == ErrorKind::NotFound
            && ["user not found", "user not defined"].iter().any(|words| said.contains(words))
    }

    fn advice(&self) -> &'static str {
        let is_of_student = self.call.contains(" /v6/") || self.call.contains(" /v5/");
        match self.kind {
            _ if self.lacks_student() => ADVICE_FOR_STUDENTS,
            ErrorKind::Auth if is_of_student => ADVICE_FOR_APPLICATIONS,
            ErrorKind::Timeout if self.call.starts_with("GET ") => ADVICE_FOR_READERS,
            kind => kind.advice(),
        }
    }

    /// The message of the server or of this client.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code(), self.call)?;
        if let Some(place) = &self.place {
            write!(f, " at {place}")?;
        }
        write!(f, ": {}", self.message)?;
        if let Some(status) = self.status {
            write!(f, " (HTTP {status})")?;
        }
        write!(f, "; {}", self.advice())
    }
}

impl std::error::Error for ClientError {}
