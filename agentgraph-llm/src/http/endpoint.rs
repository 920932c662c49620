//! Requests to one server, with retries.

use std::fmt;
use std::sync::Arc;

use reqwest::header::{CONTENT_ENCODING, HeaderMap};
use reqwest::{Response, StatusCode, Url};
use tokio::time::{Instant, timeout_at};
use tracing::Instrument;

use super::events::Events;
use super::key::KeyHeader;
use super::{Clock, Decoder, Dialect, MAX_BODY, Policy, Timeouts, base_url, chain, retry};
use crate::error::{Code, Error, Result};
use crate::message::MessageIds;
use crate::model::end::unless_empty;
use crate::model::{ChatRequest, ChatStream, ModelInfo, TokenCount};
use crate::sent_key::SentKey;
use crate::telemetry::ChatTrace;

/// The client of one server: see [`Connection::endpoint`](super::Connection::endpoint).
pub struct Endpoint {
    pub(super) client: reqwest::Client,
    pub(super) base: Url,
    pub(super) headers: HeaderMap,
    pub(super) key: KeyHeader,
    pub(super) timeouts: Timeouts,
    pub(super) policy: Policy,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ids: MessageIds,
    pub(super) dialect: Dialect,
}

/// The request of a message.
pub struct Call {
    /// The address.
    pub url: Url,
    /// The body, as JSON.
    pub body: String,
    /// The model, for the span and for the origin of the message.
    pub info: ModelInfo,
    /// The request that `body` is made of, for the span.
    pub request: ChatRequest,
}

/// The attempts of one call.
#[derive(Default)]
struct Attempts {
    retries: u32,
    /// The key was refused, and its source was asked for another one.
    has_new_key: bool,
}

impl Endpoint {
    /// The address of a path below the base URL, such as `messages`, with the query of the base URL.
    pub fn url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        base_url::extend(&mut url, path);
        url
    }

    /// Sends a body and reads the body of the response with `read`.
    ///
    /// # Errors
    /// Those of the connection, of the server and of `read`, after the retries.
    pub async fn send<T>(&self, url: &Url, body: &str, read: impl Fn(&[u8]) -> Result<T>) -> Result<T> {
        let mut attempts = Attempts::default();
        loop {
            match self.try_send(url, body, &read).await {
                Ok(answer) => return Ok(answer),
                Err(error) => self.wait_or_give_up(error, &mut attempts).await?,
            }
        }
    }

    /// Asks the server for the number of tokens of a request to `model`. A server without the endpoint, such
    /// as most compatible ones, gives an estimate.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn count(
        &self,
        url: &Url,
        body: &str,
        read: impl Fn(&[u8]) -> Result<TokenCount>,
        (model, request): (&str, &ChatRequest),
    ) -> Result<TokenCount> {
        match self.send(url, body, read).await {
            Err(error) if has_no_endpoint(&error, model) => Ok(TokenCount::estimate(request)),
            counted => counted,
        }
    }

    /// Requests a message. It returns after the first event. A failure before that is retried like any other;
    /// a failure after it ends the stream, because events that were shown cannot be taken back. An answer
    /// without content is asked for once more.
    ///
    /// The response gets its message id, its origin, the id of the request and the rate limits here, and the
    /// call has its span.
    ///
    /// # Errors
    /// Those of the connection and of the server before the first event, after the retries.
    pub async fn stream<D: Decoder>(
        self: &Arc<Self>,
        call: Call,
        decoder: impl Fn() -> D + Send + Sync + 'static,
    ) -> Result<ChatStream> {
        let stream = self.stream_once(&call, &decoder).await?;
        // A stop sequence at the beginning leaves nothing, and not every wire says that it was one.
        if !call.request.stop.is_empty() {
            return Ok(stream);
        }
        let endpoint = Arc::clone(self);
        Ok(unless_empty(stream, move || async move { endpoint.stream_once(&call, &decoder).await }))
    }

    async fn stream_once<D: Decoder>(
        self: &Arc<Self>,
        call: &Call,
        decoder: &(impl Fn() -> D + Sync),
    ) -> Result<ChatStream> {
        let trace = ChatTrace::begin(call.info.clone(), &call.request);
        match self.begin_stream(call, &trace, decoder).instrument(trace.span().clone()).await {
            Ok(events) => {
                trace.record_first_piece();
                Ok(events.into_stream(trace))
            }
            Err(error) => {
                trace.end(Err(&error));
                Err(error)
            }
        }
    }

    async fn begin_stream<D: Decoder>(
        self: &Arc<Self>,
        call: &Call,
        trace: &ChatTrace,
        decoder: impl Fn() -> D,
    ) -> Result<Events<D>> {
        let mut attempts = Attempts::default();
        loop {
            match self.try_stream(call, trace, decoder()).await {
                Ok(events) => return Ok(events),
                Err(error) => self.wait_or_give_up(error, &mut attempts).await?,
            }
        }
    }

    async fn wait_or_give_up(&self, error: Error, attempts: &mut Attempts) -> Result<()> {
        let (code, status) = (error.code(), error.status());
        // A token that its source keeps may have expired, or was revoked. That is no retry of the same call.
        if status == Some(401)
            && !std::mem::replace(&mut attempts.has_new_key, true)
            && self.key.renew().await
        {
            tracing::debug!("the key was refused: asking its source for another one");
            return Ok(());
        }
        let wait = self.policy.wait(error, attempts.retries, self.clock.jitter())?;
        attempts.retries += 1;
        tracing::debug!(%code, status, retry = attempts.retries, ?wait, "trying the call again");
        self.clock.sleep(wait).await;
        Ok(())
    }

    async fn try_send<T>(&self, url: &Url, body: &str, read: impl Fn(&[u8]) -> Result<T>) -> Result<T> {
        let opened = async {
            let mut opened = self.open(url, body, self.sign().await?).await?;
            let bytes = self.read(&mut opened.response).await?;
            Ok((opened, bytes))
        };
        let (opened, bytes) = self.in_time(self.deadline(), opened).await?;
        read(&bytes).map_err(|error| opened.complete(self, error))
    }

    async fn try_stream<D: Decoder>(
        self: &Arc<Self>,
        call: &Call,
        trace: &ChatTrace,
        decoder: D,
    ) -> Result<Events<D>> {
        let deadline = self.deadline();
        let opened = async {
            let signed = self.sign().await?;
            trace.record_request(&call.request, &signed.key);
            self.open(&call.url, &call.body, signed).await
        };
        let opened = self.in_time(deadline, opened).await?;
        Events::begin(Arc::clone(self), opened, &call.info, decoder, deadline).await
    }

    /// Without the query, which may hold a secret.
    fn shown_url(&self) -> &str {
        self.base.as_str().split('?').next().unwrap_or_default()
    }

    fn deadline(&self) -> Option<Instant> {
        Instant::now().checked_add(self.timeouts.total)
    }

    /// Waits for `work`, but not beyond the total timeout.
    pub(super) async fn in_time<T>(
        &self,
        deadline: Option<Instant>,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let Some(deadline) = deadline else { return work.await };
        timeout_at(deadline, work).await.unwrap_or_else(|_| {
            let host = self.base.host_str().unwrap_or_default();
            let message =
                format!("no answer from {host} within {:?}: set a longer `timeout(..)`", self.timeouts.total);
            Err(Error::new(Code::Timeout, message))
        })
    }

    async fn sign(&self) -> Result<Signed> {
        let mut headers = self.headers.clone();
        let key = self.key.add_to(&mut headers).await?;
        Ok(Signed { headers, key })
    }

    /// Sends a body and waits for the head of a successful response.
    async fn open(&self, url: &Url, body: &str, signed: Signed) -> Result<Opened> {
        let Signed { headers, key } = signed;
        let request = self.client.post(url.clone()).headers(headers).body(body.to_owned());
        let response = request.send().await.map_err(|error| self.transport(error))?;
        let mut opened = Opened { response, key };
        let status = opened.response.status();
        let encoding = encoding(opened.response.headers());
        if status.is_success() {
            return match encoding {
                None => Ok(opened),
                Some(encoding) => Err(opened.complete(self, compressed(&encoding))),
            };
        }
        // If the body cannot be read, the status is enough.
        let body = match encoding {
            None => self.read(&mut opened.response).await.unwrap_or_default(),
            Some(_) => Vec::new(),
        };
        Err(opened.complete(self, self.refusal(status, opened.response.headers(), &body)))
    }

    pub(super) async fn read(&self, response: &mut Response) -> Result<Vec<u8>> {
        self.read_after(Vec::new(), response).await
    }

    /// Reads the rest of a body whose beginning was read.
    pub(super) async fn read_after(&self, mut body: Vec<u8>, response: &mut Response) -> Result<Vec<u8>> {
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
            let message = "the server redirects, which is not followed: correct the base URL";
            Error::new(Code::BadRequest, message).with_status(status.as_u16())
        } else {
            (self.dialect.refusal)(status.as_u16(), headers, body)
        };
        if let Some(wait) = retry::asked_wait(headers, self.clock.now()) {
            error = error.with_retry_after(wait);
        }
        if status == StatusCode::NOT_IMPLEMENTED {
            error = error.with_retryable(false);
        }
        // A retry does not help against a billing error, even if the server asks for one.
        match retry::verdict(headers).filter(|again| !again || !error.is_billing()) {
            Some(verdict) => error.with_retryable(verdict),
            None => error,
        }
    }

    pub(super) fn transport(&self, error: reqwest::Error) -> Error {
        let host = self.base.host_str().unwrap_or_default();
        let error = error.without_url();
        let why = chain(&error);
        if error.is_timeout() && error.is_connect() {
            let message =
                format!("no connection to {host} in time: check the network and the base URL ({why})");
            Error::new(Code::Timeout, message)
        } else if error.is_timeout() {
            // The driver gives its own client no other timeout.
            let message =
                "the HTTP client's own timeout expired: set a longer one in `http_client(..)`, or none";
            Error::new(Code::Timeout, message)
        } else if error.is_connect() {
            let message = format!("no connection to {host}: check the network and the base URL ({why})");
            Error::new(Code::Connection, message)
        } else {
            let message = format!("the connection to {host} broke: try again ({why})");
            Error::new(Code::Connection, message)
        }
    }
}

/// The headers of one attempt, with its key.
struct Signed {
    headers: HeaderMap,
    key: SentKey,
}

/// A response whose head was read.
pub(super) struct Opened {
    pub(super) response: Response,
    pub(super) key: SentKey,
}

impl Opened {
    /// Adds the request's id to an error, and removes the key from it.
    pub(super) fn complete(&self, endpoint: &Endpoint, error: Error) -> Error {
        let error = match self.request_id(endpoint) {
            Some(id) => error.with_request_id(id),
            None => error,
        };
        self.key.redact(error)
    }

    pub(super) fn request_id(&self, endpoint: &Endpoint) -> Option<&str> {
        self.response.headers().get(endpoint.dialect.request_id)?.to_str().ok()
    }
}

/// Whether the error says that the server does not have the path. One that names the model is about the
/// model.
fn has_no_endpoint(error: &Error, model: &str) -> bool {
    match error.status() {
        Some(405 | 501) => true,
        Some(404) => !has_word(error.message(), model),
        _ => false,
    }
}

fn has_word(text: &str, word: &str) -> bool {
    let is_apart = |letter: Option<char>| !letter.is_some_and(char::is_alphanumeric);
    text.match_indices(word).any(|(at, _)| {
        let after = &text[at + word.len()..];
        is_apart(text[..at].chars().next_back()) && is_apart(after.chars().next())
    })
}

/// The compression of a body, if it has one. The client removes the header from bodies that it reads.
fn encoding(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(CONTENT_ENCODING)?;
    let name = String::from_utf8_lossy(value.as_bytes()).trim().to_lowercase();
    (!name.is_empty() && name != "identity").then_some(name)
}

fn compressed(encoding: &str) -> Error {
    let cure = match encoding {
        "gzip" if !cfg!(feature = "gzip") => "enable the feature `gzip` of this crate, or ",
        _ => "",
    };
    let message = format!(
        "the answer is compressed (content-encoding: {encoding}), which was not asked for: {cure}turn off the \
         compression in the server or in the proxy before it"
    );
    Error::new(Code::Decode, message)
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Endpoint")
            .field("url", &self.shown_url())
            .field("timeouts", &self.timeouts)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
