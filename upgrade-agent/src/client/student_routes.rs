//! The routes of a student's application. Version 6 names the student in a header, version 5 in the body.
//! Servers before 6.0 have only version 5, later ones have both.

use std::sync::atomic::{AtomicU8, Ordering};

use serde_json::{Value, json};

use super::call::Call;
use super::error::{ClientError, ErrorKind};
use super::reply::{Body, Reply};
use super::session::UpgradeClient;
use super::wire;

/// A version of the routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V5,
    V6,
}

impl Version {
    fn other(self) -> Self {
        match self {
            Self::V5 => Self::V6,
            Self::V6 => Self::V5,
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::V5 => "v5",
            Self::V6 => "v6",
        }
    }
}

/// The version of the routes that a server was found to have, against its own version: 5, 6, or 0 for none
/// yet.
#[derive(Debug, Default)]
pub(super) struct KnownVersion(AtomicU8);

impl KnownVersion {
    fn note(&self, version: Version) {
        self.0.store(if version == Version::V5 { 5 } else { 6 }, Ordering::Relaxed);
    }

    fn version(&self) -> Option<Version> {
        match self.0.load(Ordering::Relaxed) {
            5 => Some(Version::V5),
            6 => Some(Version::V6),
            _ => None,
        }
    }
}

/// A call for a student, before the version of the routes is chosen.
pub(super) struct StudentCall<'a> {
    route: &'static str,
    user: &'a str,
    body: Value,
    /// Whether the call changes a student's data, which is a PATCH.
    is_change: bool,
    repeatable: bool,
}

impl<'a> StudentCall<'a> {
    /// `POST /v6/<route>`.
    pub(super) fn post(route: &'static str, user: &'a str, body: Value) -> Self {
        Self { route, user, body, is_change: false, repeatable: false }
    }

    /// `PATCH /v6/<route>`, which is idempotent.
    pub(super) fn set(route: &'static str, user: &'a str, body: Value) -> Self {
        Self { is_change: true, ..Self::post(route, user, body).repeatable() }
    }

    /// Marks the call as idempotent.
    pub(super) fn repeatable(self) -> Self {
        Self { repeatable: true, ..self }
    }

    /// The name of the call in errors before it is sent.
    pub(super) fn name(&self) -> String {
        format!("{} /v6/{}", if self.is_change { "PATCH" } else { "POST" }, self.route)
    }

    fn of(&self, version: Version) -> Result<Call, ClientError> {
        let mut body = self.body.clone();
        if version == Version::V5 {
            // Some routes take the student as the body, others as a field of it.
            let field = if matches!(self.route, "init" | "groupmembership" | "workinggroup") {
                "id"
            } else {
                "userId"
            };
            body[field] = json!(self.user);
        }
        let path = [version.path(), self.route];
        let call = if self.is_change { Call::patch(&path, body) } else { Call::post(&path, body) };
        let call = Call { repeatable: self.repeatable, ..call }.of_student();
        if version == Version::V6 { call.of_user(self.user) } else { Ok(call) }
    }
}

impl UpgradeClient {
    /// Makes a call for a student with the routes that the server has. A missing route had no effect, so the
    /// other version may be tried after any call.
    pub(super) async fn student_call(&self, asked: StudentCall<'_>) -> Result<Value, ClientError> {
        check_user(&asked)?;
        let first = self.version_for(asked.user).await?;
        let reply = self.send(&asked.of(first)?).await?;
        if !reply.is_no_route() {
            return good(reply);
        }
        let Ok(second) = asked.of(first.other()) else { return good(reply) };
        let second = self.send(&second).await?;
        if second.is_no_route() {
            return good(reply);
        }
        if fits_in_a_header(asked.user) {
            self.seen().note(first.other());
        }
        good(second)
    }

    async fn version_for(&self, user: &str) -> Result<Version, ClientError> {
        if !fits_in_a_header(user) {
            return Ok(Version::V5);
        }
        let promised = if self.is_before_6().await? { Version::V5 } else { Version::V6 };
        Ok(self.seen().version().unwrap_or(promised))
    }
}

fn good(reply: Reply) -> Result<Value, ClientError> {
    wire::success(reply).map(Body::into_value)
}

/// Headers are read as Latin-1, and lose surrounding space.
fn fits_in_a_header(user: &str) -> bool {
    user.trim() == user && user.chars().all(|c| u32::from(c) <= 0xff)
}

fn check_user(asked: &StudentCall<'_>) -> Result<(), ClientError> {
    if asked.user.trim().is_empty() || asked.user.chars().any(char::is_control) {
        let why = "a student's id must not be empty or hold control characters";
        return Err(ClientError::new(ErrorKind::BadRequest, asked.name(), why));
    }
    Ok(())
}
