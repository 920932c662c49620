//! The HTTP client of this crate, for the ingress and the admin API.

use std::error::Error;
use std::time::Duration;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(5);

/// A client without a limit of time: a call takes as long as its run.
pub(crate) fn client() -> Result<reqwest::Client, String> {
    // Fails if the program has installed another one, which is then used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .connect_timeout(CONNECT)
        .tcp_nodelay(true)
        .build()
        .map_err(|error| text_of(&error))
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
