//! The addresses in the settings, checked before they are used, so that a message names the setting.

use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};

use crate::config::{Config, ConfigError};

/// The URL in a setting.
pub(super) fn url(config: &Config, setting: &str, text: &str) -> Result<Url, ConfigError> {
    let wrong = |why: &str| ConfigError::Value { from: config.source(setting), why: why.to_owned() };
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let url = url.ok_or_else(|| {
        wrong("it must be a URL that begins with http:// or https://, such as http://127.0.0.1:8080")
    })?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("the URL must not carry a user name or a password"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("the URL must not have a query or a fragment"));
    }
    Ok(url)
}

/// A relay and its token.
pub(super) struct RelayAddress {
    pub(super) url: Url,
    token: Option<SecretString>,
}

impl RelayAddress {
    /// The relay of the settings; `None` if there is none.
    pub(super) fn of(config: &Config) -> Result<Option<Self>, ConfigError> {
        let Some(relay) = &config.restate.relay else { return Ok(None) };
        let url = url(config, "relay", relay)?;
        let token = config.restate.relay_token.clone();
        if token.is_some() && url.scheme() == "http" && !is_loopback(&url) && !config.allow_plain_http {
            let why = "over http UPGRADE_AGENT_RELAY_TOKEN can be read on its way: give the URL as https, or allow this \
                       with --allow-plain-http";
            return Err(ConfigError::Value { from: config.source("relay"), why: why.to_owned() });
        }
        Ok(Some(RelayAddress { url, token }))
    }

    pub(super) fn token(&self) -> Option<&str> {
        self.token.as_ref().map(ExposeSecret::expose_secret)
    }
}

pub(super) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}
