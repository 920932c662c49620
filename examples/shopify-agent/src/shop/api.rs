//! Calls of the API: a query and its variables go out, data or a [`ShopError`] come back.

use std::time::Duration;

use reqwest::StatusCode;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use super::ShopError;

/// Calls that a throttled query makes at most.
const ATTEMPTS: usize = 4;
/// The longest pause between two of them.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The longest answer that is read.
const LONGEST_ANSWER: usize = 8 << 20;

/// The address of a shop and how it is called.
#[derive(Clone, Debug)]
pub struct ShopSettings {
    /// The base address, such as `https://example.myshopify.com`.
    pub url: String,
    /// The version of the API.
    pub version: String,
    /// The Admin API access token.
    pub token: SecretString,
    /// The longest wait for an answer.
    pub timeout: Duration,
}

impl ShopSettings {
    /// The version of the API that the queries are written for.
    pub const VERSION: &'static str = "2025-01";

    /// A shop with the defaults.
    pub fn new(url: impl Into<String>, token: impl Into<SecretString>) -> Self {
        let timeout = Duration::from_secs(10);
        ShopSettings { url: url.into(), version: Self::VERSION.to_owned(), token: token.into(), timeout }
    }
}

pub(super) struct Api {
    client: reqwest::Client,
    address: reqwest::Url,
    token: SecretString,
}

impl Api {
    pub(super) fn new(settings: ShopSettings) -> Result<Self, ShopError> {
        let problem =
            |why: String| ShopError::Setting(format!("the shop's address `{}` {why}", settings.url));
        let base =
            reqwest::Url::parse(&settings.url).map_err(|error| problem(format!("is no URL: {error}")))?;
        let is_local = matches!(base.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        if base.scheme() != "https" && !(base.scheme() == "http" && is_local) {
            return Err(problem("must begin with `https://`, since the token is sent to it".to_owned()));
        }
        if !settings.version.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Err(ShopError::Setting(format!("`{}` is no version of the API", settings.version)));
        }
        let path = format!("admin/api/{}/graphql.json", settings.version);
        let address = base.join(&path).map_err(|error| problem(format!("is no base address: {error}")))?;
        let client = agentgraph_llm::http_client_builder().timeout(settings.timeout).build();
        let client = client.map_err(|error| ShopError::Setting(error.to_string()))?;
        Ok(Api { client, address, token: settings.token })
    }

    /// A query that changes nothing. One that failed on the way is sent once more.
    pub(super) async fn read(&self, query: &str, variables: Value) -> Result<Value, ShopError> {
        match self.call(query, &variables).await {
            Err(ShopError::Unavailable(_)) => self.call(query, &variables).await,
            done => done,
        }
    }

    /// A mutation, and the payload of its one field. Its user errors are a refusal.
    pub(super) async fn change(
        &self,
        query: &str,
        variables: Value,
        field: &str,
    ) -> Result<Value, ShopError> {
        let mut data = self.call(query, &variables).await?;
        let payload = data[field].take();
        let errors: Vec<&str> =
            payload["userErrors"].as_array().into_iter().flatten().filter_map(message).collect();
        if errors.is_empty() { Ok(payload) } else { Err(ShopError::Refused(errors.join(" "))) }
    }

    /// Repeats what was throttled, which the shop has not begun.
    async fn call(&self, query: &str, variables: &Value) -> Result<Value, ShopError> {
        let mut attempt = 1;
        loop {
            match self.send(query, variables).await {
                Err(ShopError::Throttled(pause)) if attempt < ATTEMPTS => {
                    tracing::debug!(?pause, "the shop asks for a pause");
                    tokio::time::sleep(pause.min(LONGEST_PAUSE)).await;
                    attempt += 1;
                }
                done => return done,
            }
        }
    }

    async fn send(&self, query: &str, variables: &Value) -> Result<Value, ShopError> {
        // An error of the client names the address, which customers must not read.
        let failed = |error: reqwest::Error| ShopError::Unavailable(error.without_url().to_string());
        let call = self
            .client
            .post(self.address.clone())
            .header("x-shopify-access-token", self.token.expose_secret());
        let answer =
            call.json(&json!({ "query": query, "variables": variables })).send().await.map_err(failed)?;
        let status = answer.status();
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                return Err(ShopError::Unauthorized(status.to_string()));
            }
            StatusCode::TOO_MANY_REQUESTS => return Err(ShopError::Throttled(asked_pause(&answer))),
            status if status.is_server_error() => return Err(ShopError::Unavailable(status.to_string())),
            status if !status.is_success() => return Err(ShopError::Protocol(status.to_string())),
            _ => {}
        }
        if answer.content_length().is_some_and(|length| length > LONGEST_ANSWER as u64) {
            return Err(ShopError::Protocol("it is too long".to_owned()));
        }
        let bytes = answer.bytes().await.map_err(failed)?;
        let mut body: Value =
            serde_json::from_slice(&bytes).map_err(|error| ShopError::Protocol(error.to_string()))?;
        let errors = body["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
        if errors.iter().any(|error| error["extensions"]["code"] == "THROTTLED") {
            return Err(ShopError::Throttled(cost_pause(&body["extensions"]["cost"])));
        }
        if !errors.is_empty() || !body["data"].is_object() {
            let errors: Vec<&str> = errors.iter().filter_map(message).collect();
            return Err(ShopError::Protocol(errors.join("; ")));
        }
        Ok(body["data"].take())
    }
}

fn message(error: &Value) -> Option<&str> {
    error["message"].as_str()
}

fn asked_pause(answer: &reqwest::Response) -> Duration {
    let header = answer.headers().get("retry-after").and_then(|value| value.to_str().ok());
    // Shopify sends seconds with decimals.
    let seconds =
        header.and_then(|text| text.parse::<f64>().ok()).and_then(|s| Duration::try_from_secs_f64(s).ok());
    seconds.unwrap_or(Duration::from_secs(1))
}

/// The time after which the points of the query are there again.
fn cost_pause(cost: &Value) -> Duration {
    let status = &cost["throttleStatus"];
    let number = |value: &Value| value.as_f64().unwrap_or_default();
    let missing = number(&cost["requestedQueryCost"]) - number(&status["currentlyAvailable"]);
    let pause = missing / number(&status["restoreRate"]).max(1.0);
    Duration::try_from_secs_f64(pause).unwrap_or(Duration::from_secs(1)).max(Duration::from_millis(20))
}
