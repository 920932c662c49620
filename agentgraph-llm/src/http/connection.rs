//! The settings that all wires share, and the endpoint that they make.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use reqwest::Url;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use super::base_url::{self, BaseUrl};
use super::key::{KeyHeader, KeySource};
use super::{
    Authentication, Clock, Dialect, Endpoint, Policy, SystemClock, Timeouts, chain, connection_settings,
};
use crate::error::{Code, Error, Result};
use crate::message::MessageIds;

/// The settings that all wires share.
///
/// ```
/// use agentgraph_llm::Authentication;
/// use agentgraph_llm::http::Connection;
///
/// let connection = Connection::new("https://models.internal", Authentication::Bearer).api_key("not-a-real-key");
/// assert!(!format!("{connection:?}").contains("not-a-real-key"));
/// ```
// The builders of this crate have it in a field, and `connection_settings!` gives them its setters.
#[derive(Clone)]
pub struct Connection {
    pub(crate) key: Option<KeySource>,
    /// `None` for that of the wire.
    pub(crate) authentication: Option<Authentication>,
    pub(crate) own_authentication: Authentication,
    pub(crate) base_url: String,
    pub(crate) allows_plain_http: bool,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) client: Option<reqwest::Client>,
    pub(crate) timeouts: Timeouts,
    pub(crate) policy: Policy,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: MessageIds,
    default_url: &'static str,
}

connection_settings!(@ Connection, "the address of `new`");

/// What a wire adds to the settings.
pub struct Wire {
    /// The path that is added to a base URL which does not end with a version, such as `v1`; empty for none.
    pub version: Cow<'static, str>,
    /// The message of the error for a missing key; `None` if the server may need none.
    pub missing_key: Option<&'static str>,
    /// The wire's own headers. Headers of the user replace them.
    pub headers: HeaderMap,
    /// How the provider writes its errors and headers.
    pub dialect: Dialect,
}

impl Connection {
    /// The settings with the address of a server, and how it takes the key.
    pub fn new(default_url: &'static str, authentication: Authentication) -> Self {
        Connection {
            key: None,
            authentication: None,
            own_authentication: authentication,
            base_url: default_url.to_owned(),
            allows_plain_http: false,
            headers: Vec::new(),
            client: None,
            timeouts: Timeouts::default(),
            policy: Policy::default(),
            clock: Arc::new(SystemClock),
            ids: MessageIds::default(),
            default_url,
        }
    }

    /// Builds the endpoint. Nothing is sent.
    ///
    /// # Errors
    /// `E_LLM_CONFIG` if a setting is invalid or the key is missing.
    pub fn endpoint(self, wire: Wire) -> Result<Arc<Endpoint>> {
        let base = BaseUrl {
            text: &self.base_url,
            example: self.default_url,
            version: &wire.version,
            allows_plain_http: self.allows_plain_http,
        };
        let base = base.check()?;
        let headers = self.all_headers(wire.headers)?;
        let key = KeyHeader::new(self.authentication.as_ref().unwrap_or(&self.own_authentication), self.key)?;
        if let Some(message) = wire.missing_key
            && !key.has_key()
            && !headers.contains_key(key.name())
        {
            return Err(config(message));
        }
        let client = match self.client {
            Some(client) => client,
            None => client(&base, self.timeouts)?,
        };
        Ok(Arc::new(Endpoint {
            client,
            base,
            headers,
            key,
            timeouts: self.timeouts,
            policy: self.policy,
            clock: self.clock,
            ids: self.ids,
            dialect: wire.dialect,
        }))
    }

    fn connection(&mut self) -> &mut Self {
        self
    }

    fn all_headers(&self, mut headers: HeaderMap) -> Result<HeaderMap> {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        for (name, value) in &self.headers {
            let parsed = HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_str(value).ok());
            let Some((name, mut value)) = parsed else {
                return Err(config(format!(
                    "the header `{}` cannot be sent: correct `.header(..)`",
                    name.escape_debug()
                )));
            };
            // It may be a secret of a gateway.
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(headers)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Connection")
            .field("key", &self.key)
            .field("authentication", &self.authentication)
            .field("timeouts", &self.timeouts)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

/// The name of a model, which is required. `example` is one, for the error.
pub(crate) fn named(model: Option<String>, example: &str) -> Result<String> {
    let model = model.map(|model| model.trim().to_owned()).filter(|model| !model.is_empty());
    model.ok_or_else(|| config(format!("no model: set one with `.model(\"{example}\")`")))
}

/// The value of an environment variable, unless it is blank.
pub(crate) fn variable(var: impl Fn(&str) -> Option<String>, name: &str) -> Option<String> {
    var(name).filter(|value| !value.trim().is_empty())
}

/// The beginning of an HTTP client for the `http_client` of a model's builder, to add a proxy, certificates
/// or a pool of one's own: with TLS, a connect timeout of 5 s, and without redirects, which would send the
/// conversation to another host.
///
/// ```
/// use agentgraph_llm::AnthropicModel;
///
/// let client = agentgraph_llm::http_client_builder().pool_max_idle_per_host(2).build()?;
/// let model = AnthropicModel::builder().api_key("sk-not-a-real-key").model("m").http_client(client);
/// assert!(model.build().is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn http_client_builder() -> reqwest::ClientBuilder {
    // An error means that a provider is installed already; any provider will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .user_agent(concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Timeouts::default().connect)
}

fn client(base: &Url, timeouts: Timeouts) -> Result<reqwest::Client> {
    let mut builder = http_client_builder().connect_timeout(timeouts.connect);
    if base_url::is_loopback(base) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| config(format!("the HTTP client cannot be built: {}", chain(&error))))
}

pub(crate) fn config(message: impl Into<String>) -> Error {
    Error::new(Code::Config, message)
}
