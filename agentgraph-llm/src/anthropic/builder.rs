//! The settings of an [`AnthropicModel`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

use super::encode::DEFAULT_MAX_TOKENS;
use super::{AnthropicModel, failure};
use crate::error::{Code, Error, Result};
use crate::http::{self, Clock, Endpoint, Policy, SystemClock, Timeouts};
use crate::message::MessageIds;

const DEFAULT_BASE_URL: &str = "https://api.anthropic.com";
const VERSION: &str = "2023-06-01";

/// The settings of an [`AnthropicModel`]. Key and model are required, everything else has a default. One
/// field per setting.
///
/// ```
/// use agentgraph_llm::AnthropicModel;
/// use agentgraph_llm::anthropic::DEFAULT_MODEL;
/// use std::time::Duration;
///
/// let model = AnthropicModel::builder()
///     .api_key("sk-not-a-real-key")
///     .model(DEFAULT_MODEL)
///     .timeout(Duration::from_secs(60))
///     .max_tokens(1_000)
///     .build()?;
/// assert!(!format!("{model:?}").contains("not-a-real-key"));
/// # Ok::<(), agentgraph_llm::Error>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct AnthropicModelBuilder {
    api_key: Option<SecretString>,
    model: Option<String>,
    base_url: String,
    allows_plain_http: bool,
    betas: Vec<String>,
    temperature: Option<f32>,
    max_tokens: u32,
    timeouts: Timeouts,
    policy: Policy,
    clock: Arc<dyn Clock>,
    ids: MessageIds,
}

impl Default for AnthropicModelBuilder {
    fn default() -> Self {
        AnthropicModelBuilder {
            api_key: None,
            model: None,
            base_url: DEFAULT_BASE_URL.to_owned(),
            allows_plain_http: false,
            betas: Vec::new(),
            temperature: None,
            max_tokens: DEFAULT_MAX_TOKENS,
            timeouts: Timeouts::default(),
            policy: Policy::default(),
            clock: Arc::new(SystemClock),
            ids: MessageIds::default(),
        }
    }
}

impl AnthropicModelBuilder {
    pub(super) fn from_vars(var: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let filled = |name| var(name).filter(|value| !value.trim().is_empty());
        let Some(key) = filled("ANTHROPIC_API_KEY") else {
            return Err(config(
                "ANTHROPIC_API_KEY is not set: set it to an API key, or use `AnthropicModel::builder()`",
            ));
        };
        let builder = AnthropicModelBuilder::default().api_key(key);
        Ok(match filled("ANTHROPIC_BASE_URL") {
            Some(url) => builder.base_url(url),
            None => builder,
        })
    }

    /// Sets the key. Required. White space around it is ignored.
    pub fn api_key(mut self, key: impl Into<SecretString>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    /// Sets the model's name. Required.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets the server's address, with or without `/v1`: `https://api.anthropic.com` if not set. An address
    /// of another machine must be https, unless [plain http is allowed](Self::allow_plain_http).
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = url.into();
        self
    }

    /// Allows an unencrypted address of another machine, for a gateway in a private network. Anyone on the
    /// network path can then read the key and the conversations.
    ///
    /// ```
    /// use agentgraph_llm::{AnthropicModel, Code};
    ///
    /// let gateway = || AnthropicModel::builder().api_key("k").model("m").base_url("http://gateway.internal:8080");
    /// assert_eq!(gateway().build().unwrap_err().code(), Code::Config);
    /// assert!(gateway().allow_plain_http().build().is_ok());
    /// ```
    pub fn allow_plain_http(mut self) -> Self {
        self.allows_plain_http = true;
        self
    }

    /// Requests a beta feature of the API. May be called several times.
    pub fn beta(mut self, name: impl Into<String>) -> Self {
        self.betas.push(name.into());
        self
    }

    /// Limits one attempt, including the whole of a stream: 600 s if not set.
    pub fn timeout(mut self, total: Duration) -> Self {
        self.timeouts.total = total;
        self
    }

    /// Limits the time until the connection is open: 5 s if not set.
    pub fn connect_timeout(mut self, connect: Duration) -> Self {
        self.timeouts.connect = connect;
        self
    }

    /// Limits the silence within a stream: 120 s if not set.
    pub fn idle_timeout(mut self, idle: Duration) -> Self {
        self.timeouts.idle = idle;
        self
    }

    /// Sets the number of retries of a failed call: 2 if not set.
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.policy.max_retries = retries;
        self
    }

    /// Sets the temperature of requests that have none.
    pub fn temperature(mut self, temperature: f32) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Sets the limit of output tokens of requests that have none: 4096 if not set.
    pub fn max_tokens(mut self, tokens: u32) -> Self {
        self.max_tokens = tokens;
        self
    }

    /// Sets the clock and randomness of retries, for tests.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets the source of message ids.
    pub fn message_ids(mut self, ids: MessageIds) -> Self {
        self.ids = ids;
        self
    }

    /// Builds the model. Nothing is sent.
    ///
    /// # Errors
    /// `E_LLM_CONFIG` if key or model are missing or a setting is invalid.
    pub fn build(self) -> Result<AnthropicModel> {
        let model = self.model.filter(|model| !model.trim().is_empty());
        let model = model.ok_or_else(|| config("no model: set one with `.model(\"claude-...\")`"))?;
        let key = self
            .api_key
            .ok_or_else(|| config("no API key: set one with `.api_key(..)` or ANTHROPIC_API_KEY"))?;
        let secret = SecretString::from(key.expose_secret().trim());
        let url = messages_url(&self.base_url)?;
        if url.scheme() == "http" && !http::is_loopback(&url) && !self.allows_plain_http {
            return Err(config(
                "the base URL is http, by which the key could be read on its way: give it as https, or allow this with \
                 `.allow_plain_http()`",
            ));
        }
        let endpoint = Endpoint {
            client: http::client(&url, self.timeouts)?,
            headers: headers(&secret, &self.betas)?,
            url,
            timeouts: self.timeouts,
            policy: self.policy,
            clock: self.clock,
            dialect: failure::from_status,
            secret,
        };
        if self.temperature.is_some_and(|temperature| !temperature.is_finite() || temperature < 0.0) {
            return Err(config(
                "the temperature is not a number from 0 up: set one with `.temperature(..)`, or none",
            ));
        }
        let temperature = self.temperature;
        let max_tokens = self.max_tokens;
        let ids = self.ids;
        Ok(AnthropicModel { model, temperature, max_tokens, endpoint, ids })
    }
}

fn config(message: impl Into<String>) -> Error {
    Error::new(Code::Config, message)
}

fn messages_url(base: &str) -> Result<Url> {
    let wrong = |why: &str| {
        config(format!("the base URL cannot be used ({why}): it looks like `{DEFAULT_BASE_URL}`"))
    };
    let base = base.trim().trim_end_matches('/');
    let base = base.strip_suffix("/v1").unwrap_or(base);
    let url = Url::parse(&format!("{base}/v1/messages")).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("it is neither http nor https"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("it holds a user or a password, which would show up in logs"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("it has a query or a fragment"));
    }
    Ok(url)
}

fn headers(key: &SecretString, betas: &[String]) -> Result<HeaderMap> {
    let mut key = HeaderValue::from_str(key.expose_secret())
        .ok()
        .filter(|value| !value.is_empty())
        .ok_or_else(|| config("the API key is empty or has characters that no key has: copy it again"))?;
    key.set_sensitive(true);
    let mut headers = HeaderMap::new();
    headers.insert(HeaderName::from_static("x-api-key"), key);
    headers.insert(HeaderName::from_static("anthropic-version"), HeaderValue::from_static(VERSION));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    if !betas.is_empty() {
        let betas =
            HeaderValue::from_str(&betas.join(",")).map_err(|_| config("a beta's name cannot be sent"))?;
        headers.insert(HeaderName::from_static("anthropic-beta"), betas);
    }
    Ok(headers)
}

impl fmt::Debug for AnthropicModelBuilder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AnthropicModelBuilder")
            .field("model", &self.model)
            .field("api_key", &self.api_key.as_ref().map(|_| "[redacted]"))
            .field("timeouts", &self.timeouts)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_may_include_the_version() {
        for base in
            ["http://127.0.0.1:80", "http://127.0.0.1/", "http://127.0.0.1/v1", " http://127.0.0.1/v1/ "]
        {
            assert_eq!(messages_url(base).unwrap().as_str(), "http://127.0.0.1/v1/messages", "{base}");
        }
        assert_eq!(messages_url("https://gate/llm").unwrap().as_str(), "https://gate/llm/v1/messages");
    }

    #[test]
    fn an_invalid_base_url_is_refused_and_not_repeated_in_the_error() {
        for base in
            ["", "api.anthropic.com", "ftp://host", "http://user:hunter2@host", "http://host?token=hunter2"]
        {
            let error = messages_url(base).unwrap_err();
            assert_eq!(error.code(), Code::Config, "{base}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn plain_http_is_refused_unless_allowed_or_on_this_machine() {
        let builder = |base: &str| AnthropicModel::builder().api_key("k").model("m").base_url(base);
        for base in
            ["http://gate", "http://10.0.0.1:80", "http://localhost.evil.example", "HTTP://[2001:db8::1]"]
        {
            let error = builder(base).build().unwrap_err();
            assert_eq!(error.code(), Code::Config, "{base}");
            assert!(error.message().contains(".allow_plain_http()"), "{error}");
            assert!(builder(base).allow_plain_http().build().is_ok(), "{base}");
        }
        for base in ["http://localhost:1", "http://127.0.0.9", "http://[::1]:8080", "https://gate"] {
            assert!(builder(base).build().is_ok(), "{base}");
        }
    }

    #[test]
    fn blank_environment_variables_count_as_missing() {
        let vars = |key: &'static str, url: &'static str| {
            AnthropicModelBuilder::from_vars(move |name| match name {
                "ANTHROPIC_API_KEY" => Some(key.to_owned()),
                "ANTHROPIC_BASE_URL" => Some(url.to_owned()),
                _ => None,
            })
        };
        assert_eq!(vars(" ", "").unwrap_err().code(), Code::Config);
        assert_eq!(vars("k", " ").unwrap().base_url, DEFAULT_BASE_URL);
        assert_eq!(vars("k", "http://localhost:1").unwrap().base_url, "http://localhost:1");
    }

    #[test]
    fn the_header_with_the_key_is_not_printed() {
        let headers = headers(&SecretString::from("hunter2"), &[]).unwrap();
        assert!(headers["x-api-key"].is_sensitive());
        assert!(!format!("{headers:?}").contains("hunter2"));
    }

    #[test]
    fn a_model_needs_a_name_a_valid_key_and_a_finite_temperature() {
        let builder = AnthropicModel::builder;
        assert!(builder().api_key("k").build().unwrap_err().message().contains(".model("));
        assert!(builder().model("m").build().unwrap_err().message().contains("ANTHROPIC_API_KEY"));
        let error = builder().model("m").api_key("se\ncret").build().unwrap_err();
        assert!(!error.to_string().contains("cret"), "{error}");
        assert!(builder().model("m").api_key(" key\n").build().is_ok());
        assert!(builder().model("m").api_key("k").temperature(f32::NAN).build().is_err());
    }
}
