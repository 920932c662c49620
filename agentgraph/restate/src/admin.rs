//! [`Admin`]: requests to the server's admin API.

use std::time::{Duration, Instant};

use reqwest::{Client, Method, RequestBuilder, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::http::{self, GatewayHeaders};

/// What the server says, with 409, of an invocation that has ended.
pub(crate) const ENDED: &str = "already completed";

/// The admin API of a server.
#[derive(Clone)]
pub(crate) struct Admin {
    client: Client,
    base: String,
    headers: GatewayHeaders,
}

impl Admin {
    /// That at this address, such as `http://127.0.0.1:9070`. Nothing is sent yet.
    pub(crate) fn new(address: &str, headers: GatewayHeaders) -> Result<Self, String> {
        headers.check()?;
        Url::parse(address).map_err(|error| format!("`{address}` is no address: {error}"))?;
        let base = address.trim_end_matches('/').to_owned();
        Ok(Admin { client: http::client(address)?, base, headers })
    }

    /// The rows of an SQL query of the server's tables.
    pub(crate) async fn rows<T: DeserializeOwned>(
        &self,
        sql: &str,
        patience: Duration,
    ) -> Result<Vec<T>, String> {
        let mut found: Value =
            self.send(Method::POST, "query", Some(&json!({ "query": sql })), patience).await?;
        serde_json::from_value(found["rows"].take()).map_err(|error| format!("rows of another form: {error}"))
    }

    /// Sends a request, and again as long as it may still succeed.
    pub(crate) async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        patience: Duration,
    ) -> Result<T, String> {
        let until = Instant::now() + patience;
        let mut wait = Duration::from_millis(50);
        loop {
            let request = self.client.request(method.clone(), format!("{}/{path}", self.base));
            let request = match body {
                Some(body) => request.json(body),
                None => request,
            };
            let (problem, may_pass) = match self.answer(request.header("accept", "application/json")).await? {
                Ok((status, text)) if status.is_success() => {
                    // Some answers have no body.
                    let text = if text.is_empty() { "null" } else { &text };
                    return serde_json::from_str(text).map_err(|error| format!("{error}: {text}"));
                }
                Ok((status, text)) => {
                    let may_pass = may_pass(status) && !text.contains(ENDED);
                    (format!("status {status}: {text}"), may_pass)
                }
                Err(problem) => (problem, true),
            };
            if !may_pass || Instant::now() >= until {
                return Err(problem);
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(Duration::from_secs(2));
        }
    }

    /// The answer, or why there was none.
    async fn answer(&self, request: RequestBuilder) -> Result<Result<(StatusCode, String), String>, String> {
        let answer = self.headers.on(request).await?.send().await;
        Ok(match answer {
            Ok(answer) => Ok((answer.status(), answer.text().await.unwrap_or_default())),
            Err(error) => Err(http::text_of(&error)),
        })
    }
}

/// Whether the same request may succeed later.
fn may_pass(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::CONFLICT
}
