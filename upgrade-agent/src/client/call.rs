//! A request, independent of routes' versions and retries.

use reqwest::Method;
use reqwest::header::HeaderValue;
use serde_json::Value;

use super::error::{ClientError, ErrorKind};

/// The caller of a route, which decides about the authorization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    /// The health call, which may go to a wrong server and so carries no secret.
    Anybody,
    Admin,
    /// A student's application.
    Student,
}

/// A request.
#[derive(Clone)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) path: Vec<String>,
    pub(super) user: Option<HeaderValue>,
    pub(super) body: Option<Value>,
    pub(super) repeatable: bool,
    pub(super) audience: Audience,
}

impl Call {
    /// A read, which may be retried.
    pub(super) fn get(path: &[&str]) -> Self {
        Self { repeatable: true, ..Self::new(Method::GET, path) }
    }

    pub(super) fn health() -> Self {
        Self { audience: Audience::Anybody, ..Self::get(&[]) }
    }

    pub(super) fn post(path: &[&str], body: Value) -> Self {
        Self { body: Some(body), ..Self::new(Method::POST, path) }
    }

    pub(super) fn put(path: &[&str], body: Value) -> Self {
        Self { body: Some(body), ..Self::new(Method::PUT, path) }
    }

    pub(super) fn patch(path: &[&str], body: Value) -> Self {
        Self { body: Some(body), ..Self::new(Method::PATCH, path) }
    }

    pub(super) fn delete(path: &[&str]) -> Self {
        Self::new(Method::DELETE, path)
    }

    fn new(method: Method, path: &[&str]) -> Self {
        let path = path.iter().map(|&part| part.to_owned()).collect();
        Self { method, path, user: None, body: None, repeatable: false, audience: Audience::Admin }
    }

    /// Marks the call as idempotent.
    pub(super) fn repeatable(self) -> Self {
        Self { repeatable: true, ..self }
    }

    /// A call for a student who is named in the body.
    pub(super) fn of_student(self) -> Self {
        Self { audience: Audience::Student, ..self }
    }

    /// Names the student in a header. Servers read it as Latin-1, so an id beyond that arrives as another
    /// one, though always as the same. Space around an id would be lost, and the id might be another
    /// student's.
    pub(super) fn of_user(self, id: &str) -> Result<Self, ClientError> {
        let latin: Option<Vec<u8>> = id.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
        let bytes = latin.unwrap_or_else(|| id.as_bytes().to_vec());
        match HeaderValue::from_bytes(&bytes).ok().filter(|_| id.trim() == id) {
            Some(header) => Ok(Self { user: Some(header), ..self }),
            None => {
                let why = "this server takes a student's id in a header, which cannot hold this one";
                Err(ClientError::new(ErrorKind::BadRequest, self.name(), why))
            }
        }
    }

    /// The name of the call in errors.
    pub(super) fn name(&self) -> String {
        format!("{} /{}", self.method, self.path.join("/"))
    }
}
