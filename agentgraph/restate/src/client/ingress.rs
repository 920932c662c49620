//! [`Ingress`]: requests to the server's ingress, sent again where that is safe.

use std::time::{Duration, Instant};

use agentgraph::{Code, Error};
use bytes::Bytes;
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use serde::Deserialize;

use crate::http::{self, GatewayHeaders};
use crate::wire::message::error_of;

const PATIENCE: Duration = Duration::from_secs(30);

/// Where requests go.
#[derive(Clone)]
pub(super) struct Ingress {
    client: Client,
    base: Url,
    headers: GatewayHeaders,
    /// How long a request that reached nothing is sent again.
    pub(super) patience: Duration,
}

/// A handler of an object with a key.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) service: &'a str,
    pub(super) key: &'a str,
    pub(super) handler: &'a str,
}

/// The server's own errors, and those of handlers.
#[derive(Deserialize)]
struct Problem {
    message: String,
}

/// The server's answer to a request that is only sent.
#[derive(Deserialize)]
struct Sent {
    #[serde(rename = "invocationId")]
    invocation_id: String,
}

enum Attempt {
    Done(Bytes),
    Failed(Error),
    /// The request may succeed later.
    Again(Error),
}

impl Ingress {
    pub(super) fn new(base: &str, headers: GatewayHeaders) -> Result<Self, Error> {
        let invalid = |problem: String| {
            Error::new(Code::Host, format!("`{base}` is no address of an ingress: {problem}"))
        };
        let url = Url::parse(base).map_err(|error| invalid(error.to_string()))?;
        if url.cannot_be_a_base() {
            return Err(invalid("it needs a host, such as http://127.0.0.1:8080".to_owned()));
        }
        let client = http::client(base).map_err(invalid)?;
        headers.check().map_err(|problem| Error::new(Code::Host, problem))?;
        Ok(Ingress { client, base: url, headers, patience: PATIENCE })
    }

    pub(super) fn base(&self) -> &str {
        self.base.as_str()
    }

    /// Calls a handler that is answered without a run, and may run twice.
    pub(super) async fn ask(&self, target: Target<'_>, payload: Bytes) -> Result<Bytes, Error> {
        let asked = self.call(target, payload, None);
        // The server gives up such a request after half a minute.
        tokio::time::timeout(self.patience, asked).await.unwrap_or_else(|_| {
            let problem = format!(
                "no answer in {:?}: no worker of `{}` is reached by the server",
                self.patience, target.service
            );
            Err(Error::new(Code::Host, problem))
        })
    }

    /// Sends a request to a handler, and does not wait for it. Returns the id of its invocation.
    pub(super) async fn send(
        &self,
        target: Target<'_>,
        payload: Bytes,
        key: &str,
        delay: Option<Duration>,
    ) -> Result<String, Error> {
        let mut url = self.url(&[target.service, target.key, target.handler, "send"])?;
        if let Some(delay) = delay {
            url.query_pairs_mut().append_pair("delay", &format!("{}ms", delay.as_millis()));
        }
        let answer = self.again(|| self.client.post(url.clone()).body(payload.clone()), Some(key)).await?;
        let sent: Sent = serde_json::from_slice(&answer)
            .map_err(|error| Error::new(Code::Host, format!("the server names no invocation: {error}")))?;
        Ok(sent.invocation_id)
    }

    /// Waits for the answer to a request that was sent.
    pub(super) async fn attach(&self, invocation: &str) -> Result<Bytes, Error> {
        let url = self.url(&["restate", "invocation", invocation, "attach"])?;
        self.again(|| self.client.get(url.clone()), None).await
    }

    /// Whether an invocation was killed, or is not known any more.
    pub(super) async fn is_gone(&self, invocation: &str) -> Result<bool, Error> {
        let url = self.url(&["restate", "invocation", invocation, "output"])?;
        let request = self.headers.on(self.client.get(url)).await.map_err(no_key)?;
        let answer = request.send().await.map_err(|error| self.unreached(&error))?;
        match answer.status() {
            StatusCode::NOT_FOUND => Ok(true),
            // Of a gateway, or of a server that is not ready. Others may be those of a failed invocation.
            StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => match refused(answer).await {
                Attempt::Failed(error) | Attempt::Again(error) => Err(error),
                Attempt::Done(_) => Ok(false),
            },
            StatusCode::CONFLICT => {
                let problem = answer.json::<Problem>().await.ok();
                Ok(problem.is_some_and(|problem| problem.message == "killed"))
            }
            _ => Ok(false),
        }
    }

    /// Calls a handler and waits for its answer. Without an idempotency key the handler must be one that
    /// may run twice.
    pub(super) async fn call(
        &self,
        target: Target<'_>,
        payload: Bytes,
        key: Option<&str>,
    ) -> Result<Bytes, Error> {
        let url = self.url(&[target.service, target.key, target.handler])?;
        self.again(|| self.client.post(url.clone()).body(payload.clone()), key).await
    }

    /// Sends a request, again if it may not have reached the server.
    async fn again(&self, request: impl Fn() -> RequestBuilder, key: Option<&str>) -> Result<Bytes, Error> {
        let mut lost_since = None;
        let mut wait = Duration::from_millis(20);
        loop {
            let begun = Instant::now();
            let error = match self.attempt(request(), key).await {
                Attempt::Done(answer) => return Ok(answer),
                Attempt::Failed(error) => return Err(error),
                Attempt::Again(error) => error,
            };
            // A request that was with the server for long, and was then cut off, had reached it.
            if begun.elapsed() > self.patience {
                (lost_since, wait) = (None, Duration::from_millis(20));
            }
            if lost_since.get_or_insert_with(Instant::now).elapsed() > self.patience {
                return Err(error);
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(Duration::from_secs(1));
        }
    }

    async fn attempt(&self, request: RequestBuilder, key: Option<&str>) -> Attempt {
        let mut request = match self.headers.on(request).await {
            Ok(request) => request.header("content-type", "application/octet-stream"),
            Err(problem) => return Attempt::Failed(no_key(problem)),
        };
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        match request.send().await {
            Ok(answer) if answer.status().is_success() => match answer.bytes().await {
                Ok(bytes) => Attempt::Done(bytes),
                Err(error) => Attempt::Again(self.unreached(&error)),
            },
            Ok(answer) => refused(answer).await,
            Err(error) => Attempt::Again(self.unreached(&error)),
        }
    }

    fn unreached(&self, error: &reqwest::Error) -> Error {
        let problem = format!("the server at {} was not reached: {}", self.base, http::text_of(error));
        Error::new(Code::Host, problem)
    }

    fn url(&self, path: &[&str]) -> Result<Url, Error> {
        let mut url = self.base.clone();
        let no_base = |()| Error::new(Code::Host, "the address of the ingress cannot be extended");
        url.path_segments_mut().map_err(no_base)?.pop_if_empty().extend(path);
        Ok(url)
    }
}

fn no_key(problem: String) -> Error {
    Error::new(Code::Host, problem)
}

async fn refused(answer: Response) -> Attempt {
    let status = answer.status();
    let text = answer.text().await.unwrap_or_default();
    let message = serde_json::from_str::<Problem>(&text).map_or(text, |problem| problem.message);
    if let Some((code, message)) = message.split_once(": ")
        && code.starts_with("E_")
    {
        return Attempt::Failed(error_of(code, message.to_owned()));
    }
    let error = Error::new(Code::Host, format!("the server answers with status {status}: {message}"));
    match status {
        // Workers that have just been registered are not known on all nodes at once.
        StatusCode::NOT_FOUND
        | StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => Attempt::Again(error),
        _ => Attempt::Failed(error),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parts_of_the_path_whatever_is_in_them() {
        let ingress = Ingress::new("http://127.0.0.1:8080", GatewayHeaders::default()).unwrap();
        let url = ingress.url(&["triage.steps", "a/b?c d#ü", "look"]).unwrap();
        assert_eq!(url.as_str(), "http://127.0.0.1:8080/triage.steps/a%2Fb%3Fc%20d%23%C3%BC/look");
    }

    #[test]
    fn an_address_that_is_none_is_refused() {
        for bad in ["", "localhost", "mailto:a@b"] {
            assert!(Ingress::new(bad, GatewayHeaders::default()).is_err(), "{bad}");
        }
    }
}
