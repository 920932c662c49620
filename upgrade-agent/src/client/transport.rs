//! Sends a call and returns status and body. Knows HTTP, timeouts and retries, and nothing of experiments.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode, Url, redirect};
use tokio::time::Instant;

use super::auth::Admin;
use super::call::{Audience, Call};
use super::dialect::Dialect;
use super::error::{ClientError, ErrorKind};
use super::reply::{Body, Reply};
use super::retry::{self, Policy};

const USER_ID: HeaderName = HeaderName::from_static("user-id");

/// The limit of a response's size. Responses of UpGrade are far smaller.
const LARGEST_BODY: usize = 64 * 1024 * 1024;

/// The settings of a transport.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) base: Url,
    pub(super) admin: Admin,
    /// The authorization of a student's application.
    pub(super) client_key: Option<HeaderValue>,
    pub(super) times: Times,
    pub(super) policy: Policy,
    pub(super) clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    pub(super) jitter: Arc<dyn Fn() -> f64 + Send + Sync>,
}

/// The time limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// Until the connection is open.
    pub(super) connect: Duration,
    /// One attempt, from its start to the last byte of the response.
    pub(super) attempt: Duration,
    /// A call with all its retries.
    pub(super) total: Duration,
}

/// The connection to one server.
#[derive(Clone)]
pub(super) struct Transport {
    settings: Settings,
    /// Opens a connection per call, for servers that close connections without notice.
    single: Client,
    pooled: Client,
}

impl Transport {
    pub(super) fn new(settings: Settings) -> Result<Self, ClientError> {
        let client = |idle| client_for(&settings.base, settings.times, idle);
        Ok(Self { single: client(0)?, pooled: client(16)?, settings })
    }

    /// Makes the call, and retries it if that is safe and may help.
    ///
    /// A server up to 6.2 closes the connection after an error response without notice, so the next call on
    /// it would fail. The same is assumed until the dialect is known.
    pub(super) async fn send(&self, dialect: Option<Dialect>, call: &Call) -> Result<Reply, ClientError> {
        let http = if dialect == Some(Dialect::V65) { &self.pooled } else { &self.single };
        let ends = Instant::now() + self.settings.times.total;
        let mut tries = 0;
        let mut has_renewed = false;
        loop {
            let outcome = self.attempt(http, call, ends).await;
            if !has_renewed && self.renews(call, &outcome).await {
                has_renewed = true;
                continue;
            }
            let wait = self.wait(call, &outcome, tries).filter(|wait| Instant::now() + *wait < ends);
            let Some(wait) = wait else { return outcome };
            tries += 1;
            tracing::debug!(call = call.name(), tries, ?wait, "calling the UpGrade server again");
            tokio::time::sleep(wait).await;
        }
    }

    fn wait(&self, call: &Call, outcome: &Result<Reply, ClientError>, tries: u32) -> Option<Duration> {
        let (passes, asked) = match outcome {
            Ok(reply) => (retry::passes(reply.status.as_u16(), call.repeatable), reply.asked_wait),
            Err(why) => (retry::may_pass(why, call.repeatable), None),
        };
        passes.then(|| self.settings.policy.wait(tries, asked, (self.settings.jitter)())).flatten()
    }

    /// Whether a call with a rejected token can be repeated with another one. The rejected call had no
    /// effect.
    async fn renews(&self, call: &Call, outcome: &Result<Reply, ClientError>) -> bool {
        match outcome {
            Ok(reply) if reply.status == StatusCode::UNAUTHORIZED && call.audience == Audience::Admin => {
                self.settings.admin.renews(reply.sent.as_ref()).await
            }
            _ => false,
        }
    }

    async fn attempt(&self, http: &Client, call: &Call, ends: Instant) -> Result<Reply, ClientError> {
        let attempt = async {
            let authorization = self.authorization(call.audience).await?;
            self.exchange(http, call, authorization).await
        };
        tokio::time::timeout_at(ends, attempt).await.unwrap_or_else(|_| {
            let why = format!("no answer within {:?}", self.settings.times.total);
            Err(ClientError::new(ErrorKind::Timeout, call.name(), why))
        })
    }

    async fn authorization(&self, audience: Audience) -> Result<Option<HeaderValue>, ClientError> {
        match audience {
            Audience::Anybody => Ok(None),
            Audience::Student => Ok(self.settings.client_key.clone()),
            Audience::Admin => self.settings.admin.header().await,
        }
    }

    async fn exchange(
        &self,
        http: &Client,
        call: &Call,
        authorization: Option<HeaderValue>,
    ) -> Result<Reply, ClientError> {
        let mut request = http.request(call.method.clone(), self.url(&call.path));
        if let Some(authorization) = &authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        if let Some(user) = &call.user {
            request = request.header(USER_ID, user);
        }
        if let Some(body) = &call.body {
            request = request.json(body);
        }
        let name = call.name();
        let response = request.send().await.map_err(|why| failure_of(&name, why))?;
        let status = response.status();
        let asked_wait = retry::asked_wait(response.headers(), (self.settings.clock)());
        let bytes = read_body(&name, response).await?;
        Ok(Reply { call: name, status, body: Body::of(&bytes), asked_wait, sent: authorization })
    }

    /// The URL of the API.
    pub(super) fn base(&self) -> &Url {
        &self.settings.base
    }

    fn url(&self, path: &[String]) -> Url {
        let mut url = self.settings.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url
    }
}

/// An HTTP client that follows no redirects.
pub(super) fn client_for(url: &Url, times: Times, idle: usize) -> Result<Client, ClientError> {
    // An error means that a provider was installed for the process already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .connect_timeout(times.connect)
        .timeout(times.attempt)
        .pool_max_idle_per_host(idle)
        .redirect(redirect::Policy::none());
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    if url.scheme() == "http" {
        // Redirects are off, so no certificate is ever checked: skip loading the system's store.
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|why| {
        ClientError::new(ErrorKind::Config, "building the client", deepest(&why.without_url()))
    })
}

pub(super) fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(|host| {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
    })
}

pub(super) async fn read_body(call: &str, mut response: Response) -> Result<Vec<u8>, ClientError> {
    let too_large = || ClientError::new(ErrorKind::Protocol, call, "the answer is too large");
    if response.content_length().is_some_and(|length| length > LARGEST_BODY as u64) {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|why| failure_of(call, why))? {
        if bytes.len() + chunk.len() > LARGEST_BODY {
            return Err(too_large());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

pub(super) fn failure_of(call: &str, why: reqwest::Error) -> ClientError {
    let is_broken = !why.is_connect() && (why.is_request() || why.is_body() || why.is_decode());
    let kind = if why.is_timeout() && !why.is_connect() {
        ErrorKind::Timeout
    } else if why.is_connect() || is_broken {
        ErrorKind::Connect
    } else {
        ErrorKind::Protocol
    };
    let failure = ClientError::new(kind, call, deepest(&why.without_url()));
    if is_broken { failure.maybe_done() } else { failure }
}

/// The innermost cause says what happened ("connection refused"), the outer ones only where.
fn deepest(why: &dyn std::error::Error) -> String {
    let mut deepest = why;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}
