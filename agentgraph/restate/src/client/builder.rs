//! [`RestateClientBuilder`]: the settings of a connection.

use agentgraph::{BoxError, Code, Error};

use super::RestateClient;
use super::ingress::Ingress;
use crate::admin::Admin;
use crate::http::GatewayHeaders;

/// Settings of a [`RestateClient`] that its connection needs.
///
/// ```
/// use agentgraph_restate::RestateClient;
///
/// let client = RestateClient::builder()
///     .header("x-project", "triage")
///     .key_provider(|| async { Ok("a-token-of-this-minute".to_owned()) })
///     .connect("https://restate.example.org");
/// assert!(client.is_ok());
/// assert!(RestateClient::builder().header("no header", "").connect("http://127.0.0.1:8080").is_err());
/// ```
#[derive(Default)]
#[must_use = "a client is made by `.connect(..)`"]
pub struct RestateClientBuilder {
    headers: GatewayHeaders,
    admin: Option<String>,
}

impl RestateClientBuilder {
    /// An HTTP header of each request, for a gateway before the server. The server gets it, too, and keeps it
    /// with the call unless the gateway removes it. What nodes are to know is sent by
    /// [`RemoteCall::header`](crate::RemoteCall::header).
    pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        self.headers.set(name.as_ref(), value.as_ref());
        self
    }

    /// A source of keys that is asked before each request, for tokens that live shortly. A key is sent as
    /// `authorization: Bearer <key>`.
    pub fn key_provider<K>(mut self, keys: impl Fn() -> K + Send + Sync + 'static) -> Self
    where
        K: Future<Output = Result<String, BoxError>> + Send + 'static,
    {
        self.headers.set_keys(keys);
        self
    }

    /// The server's admin API, such as `http://127.0.0.1:9070`, for [`RestateClient::search`] and
    /// [`RestateClient::kill`]. Requests to it have the same headers.
    pub fn admin(mut self, address: impl Into<String>) -> Self {
        self.admin = Some(address.into());
        self
    }

    /// A client of the server with this ingress. Nothing is sent yet.
    ///
    /// # Errors
    /// [`Code::Host`](agentgraph::Code::Host) if an address is no URL, or a header is none.
    pub fn connect(self, ingress: &str) -> Result<RestateClient, Error> {
        let admin = self.admin.map(|address| Admin::new(&address, self.headers.clone())).transpose();
        let admin = admin.map_err(|problem| Error::new(Code::Host, problem))?;
        Ok(RestateClient { ingress: Ingress::new(ingress, self.headers)?, admin, keys: None, relay: None })
    }
}

/// Shows nothing: headers may be keys.
impl std::fmt::Debug for RestateClientBuilder {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("RestateClientBuilder").finish_non_exhaustive()
    }
}
