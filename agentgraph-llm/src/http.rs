//! The HTTP driver of a provider: one POST with retries, answered whole or as a stream.
//!
//! It knows timeouts, retries and bytes. A [`Decoder`] reads the bytes of a stream, and a [`Dialect`] reads
//! the provider's errors.

mod clock;
mod events;
mod retry;

use std::error::Error as StdError;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Response, StatusCode, Url};
use secrecy::{ExposeSecret, SecretString};
use tracing::Span;

use crate::error::{Code, Error, Result};
use crate::model::{ChatEvent, ChatStream};

use events::Events;

pub use clock::{Clock, SystemClock};
pub(crate) use retry::Policy;

/// The limit of bytes of a response, streamed or not, and of an error's body.
pub(crate) const MAX_BODY: usize = 64 * 1024 * 1024;

/// Turns an HTTP error of the provider into an [`Error`].
pub(crate) type Dialect = fn(status: u16, body: &[u8]) -> Error;

/// Turns the bytes of a stream into events.
pub(crate) trait Decoder: Send + 'static {
    fn push(&mut self, bytes: &[u8]);
    fn end(&mut self);
    fn next_event(&mut self) -> Option<Result<ChatEvent>>;
}

/// The timeouts of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    pub(crate) total: Duration,
    pub(crate) connect: Duration,
    pub(crate) idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Timeouts { total: seconds(600), connect: seconds(5), idle: seconds(120) }
    }
}

/// The client of one endpoint.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) client: reqwest::Client,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) timeouts: Timeouts,
    pub(crate) policy: Policy,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) dialect: Dialect,
    /// Removed from every message of a server, in case the server repeats the key.
    pub(crate) secret: SecretString,
}

/// Builds the client of an endpoint. It follows no redirects: a redirect would send the key to another host.
pub(crate) fn client(url: &Url, timeouts: Timeouts) -> Result<reqwest::Client> {
    // An error means that a provider is installed already; any provider will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(timeouts.connect);
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| {
        let message = format!("the HTTP client cannot be built: {}", chain(&error));
        Error::new(Code::Config, message)
    })
}

/// Whether the host is a loopback address.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl Endpoint {
    /// Sends a body and returns the body of the response.
    pub(crate) async fn send(&self, body: String) -> Result<Vec<u8>> {
        let mut tries = 0;
        loop {
            match self.try_send(&body).await {
                Ok(answer) => return Ok(answer),
                Err(error) => self.wait_or_give_up(error, &mut tries).await?,
            }
        }
    }

    /// Sends a body and returns the events of the response. It returns after the first event. A failure
    /// before that is retried like any other; a failure after it ends the stream, because events that were
    /// shown cannot be taken back.
    pub(crate) async fn stream<D: Decoder>(
        &self,
        body: String,
        decoder: impl Fn() -> D,
    ) -> Result<ChatStream> {
        let mut tries = 0;
        loop {
            match self.try_stream(&body, decoder()).await {
                Ok(events) => return Ok(events.into_stream(Span::current())),
                Err(error) => self.wait_or_give_up(error, &mut tries).await?,
            }
        }
    }

    async fn wait_or_give_up(&self, error: Error, tries: &mut u32) -> Result<()> {
        let Some(wait) = self.policy.wait(&error, *tries, self.clock.jitter()) else {
            return Err(error);
        };
        *tries += 1;
        tracing::debug!(code = %error.code(), status = error.status(), retry = *tries, ?wait, "trying the call again");
        self.clock.sleep(wait).await;
        Ok(())
    }

    async fn try_send(&self, body: &str) -> Result<Vec<u8>> {
        let mut response = self.open(body).await?;
        self.read(&mut response).await
    }

    async fn try_stream<D: Decoder>(&self, body: &str, decoder: D) -> Result<Events<D>> {
        let response = self.open(body).await?;
        Events::begin(self.clone(), response, decoder).await
    }

    /// Sends a body and waits for the head of a successful response.
    async fn open(&self, body: &str) -> Result<Response> {
        let request = self.client.post(self.url.clone()).headers(self.headers.clone()).body(body.to_owned());
        let response = request.timeout(self.timeouts.total).send().await;
        let mut response = response.map_err(|error| self.transport(error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let headers = std::mem::take(response.headers_mut());
        // If the body cannot be read, the status is enough.
        let body = self.read(&mut response).await.unwrap_or_default();
        Err(self.refusal(status, &headers, &body))
    }

    async fn read(&self, response: &mut Response) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| self.transport(error))? {
            if body.len() + piece.len() > MAX_BODY {
                let message = format!("the answer has more than {MAX_BODY} bytes: check the base URL");
                return Err(Error::new(Code::Decode, message));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    fn refusal(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Error {
        let mut error = if status.is_redirection() {
            Error::new(Code::BadRequest, "the server redirects, which is not followed: correct the base URL")
                .with_status(status.as_u16())
        } else {
            (self.dialect)(status.as_u16(), body)
        };
        if let Some(id) = headers.get("request-id").and_then(|id| id.to_str().ok()) {
            error = error.with_request_id(id);
        }
        if let Some(wait) = retry::asked_wait(headers, self.clock.now()) {
            error = error.with_retry_after(wait);
        }
        // A retry does not help against a billing error, even if the server asks for one.
        if let Some(verdict) = retry::verdict(headers).filter(|again| !again || !error.is_billing()) {
            error = error.with_retryable(verdict);
        }
        self.redacted(error)
    }

    fn redacted(&self, error: Error) -> Error {
        error.without_text(self.secret.expose_secret())
    }

    fn transport(&self, error: reqwest::Error) -> Error {
        let Timeouts { total, connect, .. } = self.timeouts;
        let host = self.url.host_str().unwrap_or_default();
        let error = error.without_url();
        let why = chain(&error);
        if error.is_connect() && error.is_timeout() {
            let message =
                format!("no connection to {host} within {connect:?}: check the network and the base URL");
            Error::new(Code::Timeout, message)
        } else if error.is_connect() {
            let message = format!("no connection to {host}: check the network and the base URL ({why})");
            Error::new(Code::Connection, message)
        } else if error.is_timeout() {
            let message =
                format!("no complete answer from {host} within {total:?}: set a longer `timeout(..)`");
            Error::new(Code::Timeout, message)
        } else {
            let message = format!("the connection to {host} broke: try again ({why})");
            Error::new(Code::Connection, message)
        }
    }
}

/// The text of an error with its causes, each once.
fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.contains(&said) {
            let _ = write!(text, ": {said}");
        }
        next = cause.source();
    }
    text
}
