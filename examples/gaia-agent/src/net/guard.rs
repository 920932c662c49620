//! [`Guard`]: fetches addresses that a model names.
//!
//! A model may have its addresses from a page that was written for it, so an address must not lead into this
//! machine or its network. Each address that a name resolves to is checked, and the connection is made to the
//! checked addresses alone: a name that resolves to another one a moment later changes nothing. The same
//! holds for each redirect. One origin is exempt, the server of the evaluation, which the person has set.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::Url;
use reqwest::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderMap, LOCATION};

use super::{NetError, host_of, is_public, read_body};

/// More redirects than these end in an error.
const REDIRECTS: usize = 5;
const CONNECT: Duration = Duration::from_secs(5);

/// Finds the addresses of a host.
#[async_trait]
pub trait Resolve: Send + Sync {
    /// All addresses of the host, with the port.
    ///
    /// # Errors
    /// If the name has none.
    async fn resolve(&self, host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>>;
}

/// Asks the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((host, port)).await?.collect())
    }
}

/// Fetches addresses that a model names, and no others than those of the public internet and of one trusted
/// origin. Cheap to clone.
#[derive(Clone)]
pub struct Guard {
    trusted: Option<Url>,
    /// A service of the settings, which is not checked either.
    service: Option<Url>,
    hosts: Arc<[String]>,
    max_bytes: usize,
    timeout: Duration,
    resolver: Arc<dyn Resolve>,
}

/// A downloaded file.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The address after all redirects.
    pub url: Url,
    /// The media type that the server says.
    pub media_type: Option<String>,
    /// The name of the file: that of the server, else the last part of the path. Not checked.
    pub name: Option<String>,
    /// The content.
    pub bytes: Vec<u8>,
}

impl Default for Guard {
    fn default() -> Self {
        Guard {
            trusted: None,
            service: None,
            hosts: Arc::from([]),
            max_bytes: 20 << 20,
            timeout: Duration::from_secs(60),
            resolver: Arc::new(SystemResolver),
        }
    }
}

impl Guard {
    /// Allows every host of the public internet, 20 MiB and one minute.
    pub fn new() -> Self {
        Guard::default()
    }

    /// Sets the origin whose addresses are not checked, and that paths without a host belong to.
    #[must_use]
    pub fn trusted(mut self, origin: Url) -> Self {
        self.trusted = Some(origin);
        self
    }

    /// Sets the origin of a service that the person has set, whose addresses are not checked.
    #[must_use]
    pub(crate) fn service(mut self, origin: Url) -> Self {
        self.service = Some(origin);
        self
    }

    /// Allows these hosts and the hosts below them, and no others. An empty list allows all.
    #[must_use]
    pub fn hosts(mut self, hosts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.hosts = hosts.into_iter().map(|host| host.into().to_lowercase()).collect();
        self
    }

    /// Sets the most bytes of an answer.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets the longest time of a fetch, with its redirects.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how hosts are resolved, for tests.
    #[must_use]
    pub fn resolver(mut self, resolver: impl Resolve + 'static) -> Self {
        self.resolver = Arc::new(resolver);
        self
    }

    /// Fetches an address; a path alone is one of the trusted origin.
    ///
    /// # Errors
    /// If the address is not allowed, cannot be reached, or has too much.
    pub async fn fetch(&self, address: &str) -> Result<Fetched, NetError> {
        let fetching = self.follow(self.url(address)?);
        match tokio::time::timeout(self.timeout, fetching).await {
            Ok(fetched) => fetched,
            Err(_) => Err(NetError(format!("the download took longer than {:?}", self.timeout))),
        }
    }

    fn url(&self, address: &str) -> Result<Url, NetError> {
        let address = address.trim();
        let parsed = match (&self.trusted, Url::parse(address)) {
            (_, Ok(url)) => Ok(url),
            (Some(origin), Err(_)) if address.starts_with('/') => origin.join(address),
            (_, Err(error)) => Err(error),
        };
        parsed.map_err(|error| NetError(format!("`{address}` is no address: {error}")))
    }

    async fn follow(&self, mut url: Url) -> Result<Fetched, NetError> {
        for _ in 0..=REDIRECTS {
            let response = self.request(&url).await?;
            let status = response.status();
            if status.is_redirection()
                && let Some(to) = response.headers().get(LOCATION)
            {
                let to = to.to_str().ok().and_then(|to| url.join(to).ok());
                url = to.ok_or_else(|| NetError(format!("{} redirects to no address", host_of(&url))))?;
                continue;
            }
            if !status.is_success() {
                return Err(NetError(format!("{} answered {status}", host_of(&url))));
            }
            let headers = response.headers();
            let media_type = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).map(str::to_owned);
            let name = name_of(headers).or_else(|| last_part(&url));
            let bytes = read_body(&url, response, self.max_bytes).await?;
            return Ok(Fetched { url, media_type, name, bytes });
        }
        Err(NetError(format!("{} redirects more than {REDIRECTS} times", host_of(&url))))
    }

    /// One request, to the addresses that were checked.
    async fn request(&self, url: &Url) -> Result<reqwest::Response, NetError> {
        let (host, addresses) = self.check(url).await?;
        let client = agentgraph_llm::http_client_builder()
            .connect_timeout(CONNECT)
            // A proxy would resolve the name again.
            .no_proxy()
            .user_agent(super::http::USER_AGENT)
            .resolve_to_addrs(&host, &addresses)
            .build()
            .map_err(|error| NetError::of(url, error))?;
        client.get(url.clone()).send().await.map_err(|error| NetError::of(url, error))
    }

    /// The host and its addresses; every one is allowed.
    async fn check(&self, url: &Url) -> Result<(String, Vec<SocketAddr>), NetError> {
        let refused = |why: &str| NetError(format!("{} is not fetched: {why}", host_of(url)));
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refused("only http and https are"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("the address has a user or a password"));
        }
        let host = url.host_str().unwrap_or_default().to_lowercase();
        let is_trusted = [&self.trusted, &self.service]
            .into_iter()
            .flatten()
            .any(|trusted| trusted.origin() == url.origin());
        if !is_trusted && !self.allows(&host) {
            return Err(refused(&format!("the hosts are limited to {}", self.hosts.join(", "))));
        }
        let port = url.port_or_known_default().unwrap_or(0);
        let addresses = match host.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(address) => vec![SocketAddr::new(address, port)],
            Err(_) => {
                self.resolver.resolve(&host, port).await.map_err(|error| refused(&error.to_string()))?
            }
        };
        if addresses.is_empty() {
            return Err(refused("the name has no address"));
        }
        if !is_trusted && addresses.iter().any(|address| !is_public(address.ip())) {
            return Err(refused("it leads to an address that is not public"));
        }
        Ok((host, addresses))
    }

    fn allows(&self, host: &str) -> bool {
        let is_below = |allowed: &String| {
            host == allowed || host.strip_suffix(allowed.as_str()).is_some_and(|before| before.ends_with('.'))
        };
        self.hosts.is_empty() || self.hosts.iter().any(is_below)
    }
}

/// The name in a `Content-Disposition`, in its plain form.
fn name_of(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(CONTENT_DISPOSITION)?.to_str().ok()?;
    let (_, name) = value.split_once("filename=")?;
    let name = name.split(';').next()?.trim().trim_matches('"');
    (!name.is_empty()).then(|| name.to_owned())
}

fn last_part(url: &Url) -> Option<String> {
    let part = url.path_segments()?.next_back()?;
    (!part.is_empty()).then(|| part.to_owned())
}

impl fmt::Debug for Guard {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = out.debug_struct("Guard");
        parts.field("trusted", &self.trusted.as_ref().map(host_of)).field("hosts", &self.hosts);
        parts.field("max_bytes", &self.max_bytes).field("timeout", &self.timeout).finish_non_exhaustive()
    }
}
