//! Sends one call and hands back status and body. Knows HTTP, timeouts and retries; knows nothing
//! of experiments.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use reqwest::{Client, Method, Response, StatusCode, Url, redirect};
use serde_json::Value;

use super::dialect::Dialect;
use super::error::{ClientError, ErrorKind};

const USER_ID: HeaderName = HeaderName::from_static("user-id");

/// No answer of an UpGrade server is near this; a larger one is not worth the memory.
const LARGEST_BODY: usize = 64 * 1024 * 1024;

/// What a transport is made of.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) base: Url,
    pub(super) loopback: bool,
    pub(super) authorization: Option<HeaderValue>,
    pub(super) timeout: Duration,
    pub(super) retries: u32,
    pub(super) retry_pause: Duration,
}

/// One request to be made.
pub(super) struct Call {
    method: Method,
    path: Vec<String>,
    user: Option<HeaderValue>,
    body: Option<Value>,
    repeatable: bool,
}

impl Call {
    /// A read, which may be repeated.
    pub(super) fn get(path: &[&str]) -> Self {
        Self { repeatable: true, ..Self::new(Method::GET, path) }
    }

    pub(super) fn post(path: &[&str], body: Value) -> Self {
        Self { body: Some(body), ..Self::new(Method::POST, path) }
    }

    pub(super) fn put(path: &[&str], body: Value) -> Self {
        Self { body: Some(body), ..Self::new(Method::PUT, path) }
    }

    pub(super) fn delete(path: &[&str]) -> Self {
        Self::new(Method::DELETE, path)
    }

    fn new(method: Method, path: &[&str]) -> Self {
        let path = path.iter().map(|&part| part.to_owned()).collect();
        Self { method, path, user: None, body: None, repeatable: false }
    }

    /// Says that a second call does nothing that the first one did not.
    pub(super) fn repeatable(self) -> Self {
        Self { repeatable: true, ..self }
    }

    /// Speaks for a student.
    pub(super) fn of_user(self, id: &str) -> Result<Self, ClientError> {
        let header = HeaderValue::from_bytes(id.as_bytes()).ok().filter(|_| !id.trim().is_empty());
        let Some(header) = header else {
            let why = "a student's id must not be empty or hold control characters";
            return Err(ClientError::new(ErrorKind::BadRequest, self.name(), why));
        };
        Ok(Self { user: Some(header), ..self })
    }

    /// How the call is named in errors.
    pub(super) fn name(&self) -> String {
        format!("{} /{}", self.method, self.path.join("/"))
    }
}

/// An answer, whatever its status.
pub(super) struct Reply {
    pub(super) call: String,
    pub(super) status: StatusCode,
    pub(super) body: Body,
}

/// The body of an answer.
#[derive(Debug, PartialEq)]
pub(super) enum Body {
    Empty,
    Json(Value),
    /// Anything else, such as the HTML that unknown routes answer.
    Other,
}

impl Body {
    fn of(bytes: &[u8]) -> Self {
        if bytes.trim_ascii().is_empty() {
            return Self::Empty;
        }
        serde_json::from_slice(bytes).map_or(Self::Other, Self::Json)
    }
}

/// The way to one server.
#[derive(Clone)]
pub(super) struct Transport {
    settings: Settings,
    /// Opens a connection per call: for servers that drop one without saying so.
    single: Client,
    pooled: Client,
}

impl Transport {
    pub(super) fn new(settings: Settings) -> Result<Self, ClientError> {
        Ok(Self { single: client(&settings, 0)?, pooled: client(&settings, 16)?, settings })
    }

    /// Makes the call, again if it failed on the way and may be repeated.
    ///
    /// A server up to 6.2 ends the connection after an error answer without a word, so the next
    /// call on it would die; the same goes for a server whose dialect is not known yet.
    pub(super) async fn send(&self, dialect: Option<Dialect>, call: &Call) -> Result<Reply, ClientError> {
        let http = if dialect == Some(Dialect::V65) { &self.pooled } else { &self.single };
        let mut pause = self.settings.retry_pause;
        let mut left = if call.repeatable { self.settings.retries } else { 0 };
        loop {
            let outcome = self.attempt(http, call).await;
            if left == 0 || !is_passing(&outcome) {
                return outcome;
            }
            left -= 1;
            tokio::time::sleep(pause).await;
            pause = pause.saturating_mul(2);
        }
    }

    async fn attempt(&self, http: &Client, call: &Call) -> Result<Reply, ClientError> {
        let mut request = http.request(call.method.clone(), self.url(&call.path));
        if let Some(authorization) = &self.settings.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        if let Some(user) = &call.user {
            request = request.header(USER_ID, user);
        }
        if let Some(body) = &call.body {
            request = request.json(body);
        }
        let failed = |why| failure(call, why);
        let response = request.send().await.map_err(failed)?;
        let status = response.status();
        let bytes = read(call, response).await?;
        Ok(Reply { call: call.name(), status, body: Body::of(&bytes) })
    }

    fn url(&self, path: &[String]) -> Url {
        let mut url = self.settings.base.clone();
        url.set_query(None);
        url.set_fragment(None);
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url
    }
}

fn client(settings: &Settings, idle: usize) -> Result<Client, ClientError> {
    // Whoever installed a provider before has made the choice for the process.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .timeout(settings.timeout)
        .pool_max_idle_per_host(idle)
        .redirect(redirect::Policy::none());
    if settings.loopback {
        builder = builder.no_proxy();
    }
    if settings.base.scheme() == "http" {
        // Redirects are off, so no certificate is ever looked at: spare the system's store.
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|why| {
        ClientError::new(ErrorKind::Config, "building the client", deepest(&why.without_url()))
    })
}

async fn read(call: &Call, mut response: Response) -> Result<Vec<u8>, ClientError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|why| failure(call, why))? {
        if bytes.len() + chunk.len() > LARGEST_BODY {
            let why = "the answer is too large";
            return Err(ClientError::new(ErrorKind::Protocol, call.name(), why));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

fn failure(call: &Call, why: reqwest::Error) -> ClientError {
    let is_broken = !why.is_connect() && (why.is_request() || why.is_body() || why.is_decode());
    let kind = if why.is_timeout() {
        ErrorKind::Timeout
    } else if why.is_connect() || is_broken {
        ErrorKind::Connect
    } else {
        ErrorKind::Protocol
    };
    let failure = ClientError::new(kind, call.name(), deepest(&why.without_url()));
    if is_broken { failure.broken() } else { failure }
}

/// The cause at the bottom says what happened ("connection refused"); those above only where.
fn deepest(why: &dyn std::error::Error) -> String {
    let mut deepest = why;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}

fn is_passing(outcome: &Result<Reply, ClientError>) -> bool {
    match outcome {
        Ok(reply) => matches!(reply.status.as_u16(), 429 | 502 | 503 | 504),
        Err(why) => matches!(why.kind(), ErrorKind::Connect | ErrorKind::Timeout),
    }
}
