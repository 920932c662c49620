//! Settings of a client, checked once when it is built.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::HeaderValue;
use secrecy::{ExposeSecret, SecretString};

use super::error::{ClientError, ErrorKind};
use super::session::UpgradeClient;
use super::transport::{Settings, Transport};

const TIMEOUT: Duration = Duration::from_secs(30);
const RETRIES: u32 = 2;
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// Collects the settings of an [`UpgradeClient`].
#[derive(Clone)]
pub struct UpgradeClientBuilder {
    url: String,
    token: Option<SecretString>,
    timeout: Duration,
    retries: u32,
    retry_pause: Duration,
}

impl UpgradeClientBuilder {
    pub(super) fn new(url: String) -> Self {
        Self { url, token: None, timeout: TIMEOUT, retries: RETRIES, retry_pause: RETRY_PAUSE }
    }

    /// Sends this bearer token with every call. It is never shown.
    pub fn token(mut self, token: SecretString) -> Self {
        self.token = Some(token);
        self
    }

    /// How long one attempt of a call may take, 30 seconds if not set.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How often a call that may safely be repeated is tried again after the server could not be
    /// reached or was too busy, twice if not set. Calls that create, change or delete are never
    /// repeated.
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// The pause before the first retry, 200 milliseconds if not set; it doubles each time.
    pub fn retry_pause(mut self, pause: Duration) -> Self {
        self.retry_pause = pause;
        self
    }

    /// Builds the client. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// `E_UPGRADE_CONFIG` if the URL is not an absolute `http` or `https` one, carries a user name
    /// or a password, or if the token is empty or cannot be sent in a header.
    pub fn build(self) -> Result<UpgradeClient, ClientError> {
        let base = base_url(&self.url)?;
        let settings = Settings {
            loopback: is_loopback(&base),
            authorization: self.token.as_ref().map(authorization).transpose()?,
            base,
            timeout: self.timeout,
            retries: self.retries,
            retry_pause: self.retry_pause,
        };
        Ok(UpgradeClient::new(Transport::new(settings)?))
    }
}

/// Without the URL, which is not checked yet and may carry a password.
impl fmt::Debug for UpgradeClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpgradeClientBuilder")
            .field("timeout", &self.timeout)
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}

fn base_url(text: &str) -> Result<Url, ClientError> {
    let url = Url::parse(text.trim()).map_err(|why| refused(format!("bad URL: {why}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.cannot_be_a_base() || !url.has_host() {
        return Err(refused("the URL must begin with http:// or https:// and name a host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused("the URL must not carry a user name or password; give a token instead"));
    }
    Ok(url)
}

fn authorization(token: &SecretString) -> Result<HeaderValue, ClientError> {
    if token.expose_secret().trim().is_empty() {
        return Err(refused("the token is empty"));
    }
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret().trim()))
        .map_err(|_| refused("the token holds characters that a header cannot carry"))?;
    value.set_sensitive(true);
    Ok(value)
}

fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(|host| {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
    })
}

fn refused(message: impl Into<String>) -> ClientError {
    ClientError::new(ErrorKind::Config, "building the client", message)
}
