//! [`Http`]: requests to the services of tools, whose addresses the person has set.

use std::time::Duration;

use reqwest::{RequestBuilder, Url};

use super::{NetError, host_of, read_body};

pub(super) const USER_AGENT: &str = concat!("gaia-agent/", env!("CARGO_PKG_VERSION"));
/// The most bytes of an answer.
const MAX_BYTES: usize = 4 << 20;
const TIMEOUT: Duration = Duration::from_secs(20);

/// A client for the services of tools. It follows no redirects, and reads 4 MiB of an answer within 20 s.
#[derive(Clone, Debug)]
pub struct Http {
    client: reqwest::Client,
}

impl Http {
    /// A client. `is_local` is for addresses of this machine, which no proxy knows.
    ///
    /// # Errors
    /// If the system has no certificates.
    pub fn new(is_local: bool) -> Result<Self, NetError> {
        let builder = agentgraph_llm::http_client_builder().user_agent(USER_AGENT).timeout(TIMEOUT);
        let builder = if is_local { builder.no_proxy() } else { builder };
        let client = builder.build().map_err(|error| NetError(format!("the HTTP client: {error}")))?;
        Ok(Http { client })
    }

    /// The text of a `GET`.
    pub(crate) async fn get_text(&self, url: &Url) -> Result<String, NetError> {
        self.text(url, self.client.get(url.clone())).await
    }

    /// A `POST` of JSON.
    pub(crate) fn post(&self, url: &Url, body: &serde_json::Value) -> RequestBuilder {
        self.client.post(url.clone()).json(body)
    }

    /// Sends a request and reads the text of a good answer.
    pub(crate) async fn text(&self, url: &Url, request: RequestBuilder) -> Result<String, NetError> {
        let response = request.send().await.map_err(|error| NetError::of(url, error))?;
        let status = response.status();
        let body = read_body(url, response, MAX_BYTES).await?;
        let text = String::from_utf8_lossy(&body).into_owned();
        if status.is_success() {
            return Ok(text);
        }
        let said: String = text.trim().chars().take(200).collect();
        let why = if status.as_u16() == 429 { " (too many requests: wait before the next)" } else { "" };
        Err(NetError(format!("{} answered {status}{why}: {said}", host_of(url))))
    }
}
