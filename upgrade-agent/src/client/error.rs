//! What can go wrong between a caller and an UpGrade server.

use std::fmt;

use reqwest::Url;

use super::draft::ExperimentPatch;

/// The kinds of trouble, each with a stable code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The client cannot be built from what it was given.
    Config,
    /// Nobody answers at the address.
    Connect,
    /// No answer in time. Whether the server acted is unknown.
    Timeout,
    /// The server does not know who asks, or does not let him.
    Auth,
    /// The server does not accept what was sent.
    BadRequest,
    /// There is no such experiment, student or route.
    NotFound,
    /// The id is taken, or somebody else changed the experiment meanwhile.
    Conflict,
    /// A change of several calls stopped between them: [`ClientError::unfinished`] tells what is
    /// missing.
    Unfinished,
    /// The server failed.
    Server,
    /// The answer is not one that an UpGrade server gives.
    Protocol,
}

impl ErrorKind {
    /// A code that does not change between versions of this crate.
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

/// A failed call: what was asked, how it failed, what the server said.
///
/// Carries no headers, no body that was sent and no token, so it may be shown and logged.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientError {
    kind: ErrorKind,
    call: String,
    /// Where the server should be, if that is in doubt.
    place: Option<String>,
    status: Option<u16>,
    message: String,
    maybe_done: bool,
    unfinished: Option<Box<Unfinished>>,
}

/// A change of which a part is done.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Unfinished {
    /// The experiment, which exists.
    pub experiment_id: String,
    /// What it may still lack; given to [`super::UpgradeClient::update`] it finishes the change, and does no
    /// harm if nothing was missing.
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

    /// This failure as one in the middle of a change.
    pub(super) fn in_the_middle(self, experiment_id: &str, done: &str, missing: ExperimentPatch) -> Self {
        let message = format!("{done}, but the rest failed: {} ({})", self.message, self.kind.code());
        let experiment_id = experiment_id.to_owned();
        let unfinished = Some(Box::new(Unfinished { experiment_id, missing }));
        Self { kind: ErrorKind::Unfinished, message, unfinished, ..self }
    }

    /// Names the URL of the API, if the failure leaves in doubt whether the server is there.
    pub(super) fn at(mut self, url: &Url) -> Self {
        if matches!(self.kind, ErrorKind::Connect | ErrorKind::Timeout | ErrorKind::Protocol) {
            self.place = Some(url.to_string());
        }
        self
    }

    /// This failure of a call that every UpGrade server answers: whoever does not know it is none.
    pub(super) fn of_health(mut self) -> Self {
        if matches!(self.kind, ErrorKind::NotFound | ErrorKind::BadRequest) {
            self.kind = ErrorKind::Protocol;
        }
        self
    }

    /// Says that the server was reached and may have done what was asked.
    pub(super) fn maybe_done(mut self) -> Self {
        self.maybe_done = true;
        self
    }

    pub(super) fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// How it failed.
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

    /// Whether the server may have done what was asked nevertheless: it was reached, and did not
    /// say that it refused. Read before you repeat such a call.
    pub fn may_have_acted(&self) -> bool {
        match self.kind {
            // Who asks too often is not heard.
            ErrorKind::Server => self.status != Some(429),
            ErrorKind::Timeout | ErrorKind::Protocol | ErrorKind::Unfinished => true,
            ErrorKind::Connect | ErrorKind::Conflict => self.maybe_done,
            _ => false,
        }
    }

    /// What a change of several calls still lacks, if it stopped between them.
    pub fn unfinished(&self) -> Option<&Unfinished> {
        self.unfinished.as_deref()
    }

    /// The HTTP status of the answer, if there was one.
    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// Whether it is a student whom the server does not know. Its versions say it in three ways.
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

    /// What the server said, or what this client found wrong.
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
