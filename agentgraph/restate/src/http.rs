//! The HTTP client of this crate, for the ingress, the admin API and the relay.

use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use agentgraph::BoxError;
use futures_util::future::BoxFuture;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::{RequestBuilder, Url};

use crate::trace;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(5);

type Keys = Arc<dyn Fn() -> BoxFuture<'static, Result<String, BoxError>> + Send + Sync>;

/// The headers that a gateway before the server asks for.
#[derive(Clone, Default)]
pub(crate) struct GatewayHeaders {
    fixed: HeaderMap,
    keys: Option<Keys>,
    /// Why one of them is no header.
    problem: Option<String>,
}

impl GatewayHeaders {
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            (Ok(name), Ok(mut value)) => {
                value.set_sensitive(true);
                self.fixed.insert(name, value);
            }
            _ => self.problem = Some(format!("`{name}` or its value is no HTTP header")),
        }
    }

    pub(crate) fn set_keys<K>(&mut self, keys: impl Fn() -> K + Send + Sync + 'static)
    where
        K: Future<Output = Result<String, BoxError>> + Send + 'static,
    {
        self.keys = Some(Arc::new(move || Box::pin(keys())));
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        self.problem.clone().map_or(Ok(()), Err)
    }

    /// The request with these headers, those of the current trace, and a key of this moment.
    pub(crate) async fn on(&self, request: RequestBuilder) -> Result<RequestBuilder, String> {
        let mut headers = self.fixed.clone();
        trace::inject(&mut headers);
        if let Some(keys) = &self.keys {
            let key = keys().await.map_err(|error| format!("there is no key: {error}"))?;
            let value = HeaderValue::try_from(format!("Bearer {}", key.trim()));
            let mut value = value.map_err(|_| "the key is no value of an HTTP header".to_owned())?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(request.headers(headers))
    }
}

/// A client for requests to this address, without a limit of time: a call takes as long as its run.
pub(crate) fn client(address: &str) -> Result<reqwest::Client, String> {
    // Fails if the program has installed another one, which is then used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder().connect_timeout(CONNECT).tcp_nodelay(true);
    if is_loopback(address) {
        // A proxy of the environment is on another machine, and would look for the address there.
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| text_of(&error))
}

fn is_loopback(address: &str) -> bool {
    let url = Url::parse(address).ok();
    url.as_ref().and_then(Url::host_str).is_some_and(|host| {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
    })
}

/// An error with its causes, which reqwest leaves out.
pub(crate) fn text_of(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_machine_are_reached_without_the_proxy_of_the_environment() {
        for here in ["http://127.0.0.1:8080", "http://127.1.2.3", "http://[::1]:9070/", "http://localhost/a"]
        {
            assert!(is_loopback(here), "{here}");
        }
        for elsewhere in
            ["http://10.0.0.1:8080", "https://restate.example.org", "http://localhost.example.org", ""]
        {
            assert!(!is_loopback(elsewhere), "{elsewhere}");
        }
    }
}
