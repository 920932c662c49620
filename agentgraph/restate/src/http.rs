//! The HTTP client of this crate, for the ingress, the admin API and the relay.

use std::error::Error;
use std::net::IpAddr;
use std::time::Duration;

use reqwest::Url;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(5);

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
