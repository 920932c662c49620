//! A response, before its status is checked.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::HeaderValue;
use serde_json::Value;

/// A response with any status.
pub(super) struct Reply {
    pub(super) call: String,
    pub(super) status: StatusCode,
    pub(super) body: Body,
    /// The wait that the server asks for.
    pub(super) asked_wait: Option<Duration>,
    /// The authorization of the request, which servers may repeat in the response.
    pub(super) sent: Option<HeaderValue>,
}

impl Reply {
    /// Whether the route does not exist: the server's other errors are JSON.
    pub(super) fn is_no_route(&self) -> bool {
        self.status == StatusCode::NOT_FOUND && matches!(self.body, Body::Other(_))
    }
}

/// The body of a response.
#[derive(Debug, PartialEq)]
pub(super) enum Body {
    Empty,
    Json(Value),
    /// JSON that is cut off.
    Torn,
    /// Anything else, such as the HTML for unknown routes, as text.
    Other(Option<String>),
}

impl Body {
    pub(super) fn of(bytes: &[u8]) -> Self {
        if bytes.trim_ascii().is_empty() {
            return Self::Empty;
        }
        match serde_json::from_slice(bytes) {
            Ok(value) => Self::Json(value),
            Err(why) if why.is_eof() => Self::Torn,
            Err(_) => Self::Other(std::str::from_utf8(bytes).ok().and_then(html_says)),
        }
    }

    /// The JSON; `null` if there is none.
    pub(super) fn into_value(self) -> Value {
        match self {
            Self::Json(value) => value,
            _ => Value::Null,
        }
    }
}

/// The sentence in an HTML error page.
fn html_says(page: &str) -> Option<String> {
    let within = |open: &str, close: &str| {
        let rest = page.split_once(open)?.1;
        let text = rest.split_once(close)?.0.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    within("<pre>", "</pre>").or_else(|| within("<title>", "</title>"))
}
