//! HTTP for tools: addresses that the person has set ([`Http`]), and addresses that a model names
//! ([`Guard`]).
//!
//! Everything is bounded: the time, the bytes of an answer, the redirects. No part of it knows a tool.

mod address;
mod guard;
mod http;

pub use address::is_public;
pub use guard::{Fetched, Guard, Resolve, SystemResolver};
pub use http::Http;

use std::error::Error;

use reqwest::Url;

/// Why something could not be fetched, for the model that asked for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NetError(pub(crate) String);

impl NetError {
    /// A failed request, with its causes and without the address, which may hold a key.
    pub(crate) fn of(url: &Url, error: reqwest::Error) -> Self {
        let error = error.without_url();
        let mut text = format!("{} could not be reached: {error}", host_of(url));
        let mut cause = error.source();
        while let Some(error) = cause {
            text += &format!(": {error}");
            cause = error.source();
        }
        NetError(text)
    }
}

/// The scheme, host and port of an address.
pub(crate) fn host_of(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// Reads a body up to a limit of bytes.
pub(crate) async fn read_body(
    url: &Url,
    mut response: reqwest::Response,
    limit: usize,
) -> Result<Vec<u8>, NetError> {
    let too_long = || NetError(format!("the answer of {} is longer than {limit} bytes", host_of(url)));
    if response.content_length().is_some_and(|length| length > limit as u64) {
        return Err(too_long());
    }
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| NetError::of(url, error))? {
        if body.len() + piece.len() > limit {
            return Err(too_long());
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}
