//! The HTTP driver of all providers: POST requests with retries, answered whole or as a stream.
//!
//! It knows keys, addresses, timeouts, retries and bytes, and no provider. A wire gives a [`Wire`] with what
//! is its own, a [`Decoder`] for its streams, and a [`Dialect`] for its errors and headers. The settings that
//! all wires share are a [`Connection`], and [`connection_settings!`] writes their setters.

mod base_url;
mod clock;
mod connection;
mod endpoint;
mod events;
mod feed;
mod key;
mod limits;
pub(crate) mod refusal;
mod retry;
mod settings;

use std::error::Error as StdError;
use std::fmt::Write as _;
use std::time::Duration;

use reqwest::header::HeaderMap;

use crate::error::Error;

pub use clock::{Clock, SystemClock};
pub use connection::http_client_builder;
pub(crate) use connection::{Connection, Wire, variable};
pub(crate) use endpoint::{Call, Endpoint};
pub(crate) use feed::{Answer, Feed, is_done_mark, says_error, stream_decoder};
pub use key::{Authentication, KeyProvider};
pub(crate) use key::{KeySource, SentKey};
pub(crate) use limits::{LimitHeaders, QuotaHeaders};
pub(crate) use retry::Policy;
pub(crate) use settings::connection_settings;

/// The limit of bytes of a response, streamed or not, and of an error's body.
pub(crate) const MAX_BODY: usize = 64 * 1024 * 1024;

/// How a provider writes its errors and headers.
#[derive(Clone, Copy)]
pub(crate) struct Dialect {
    /// Turns an unsuccessful response into an [`Error`]. A wait in the headers and the verdict of
    /// `x-should-retry` are read by the driver.
    pub(crate) refusal: fn(status: u16, headers: &HeaderMap, body: &[u8]) -> Error,
    /// The header with the provider's id of the request.
    pub(crate) request_id: &'static str,
    /// The headers with the rate limits.
    pub(crate) limits: Option<LimitHeaders>,
}

/// Turns the bytes of one response into events.
pub(crate) trait Decoder: Send + 'static {
    /// The response in progress.
    type Answer: Answer;

    /// The stream in progress.
    fn feed(&mut self) -> &mut Feed<Self::Answer>;
}

/// The timeouts of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// From the start of an attempt until a stream begins or a whole body ends.
    pub(crate) total: Duration,
    pub(crate) connect: Duration,
    /// The longest silence within a stream.
    pub(crate) idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Timeouts { total: seconds(600), connect: seconds(5), idle: seconds(120) }
    }
}

/// The text of an error with its causes, each once.
fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.contains(&said) {
            let _ = write!(text, ": {said}");
        }
        next = cause.source();
    }
    text
}
