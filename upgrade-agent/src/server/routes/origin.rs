//! Which web pages may call: those that this machine serves itself. Whoever is no page says nothing of
//! where he comes from, and may call.

use axum::http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, ORIGIN, VARY,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

const METHODS: &str = "GET,POST,PUT,DELETE,PATCH,OPTIONS";
/// A day, in seconds.
const FOR_HOW_LONG: &str = "86400";

/// The page from which a call comes, if it comes from one.
pub(super) struct Origin {
    page: Option<HeaderValue>,
    /// The headers that the page wants to send.
    wanted: Option<HeaderValue>,
}

impl Origin {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let header = |name| headers.get(name).cloned();
        Self { page: header(ORIGIN), wanted: header(ACCESS_CONTROL_REQUEST_HEADERS) }
    }

    /// The page, if it is one that may not call.
    pub(super) fn stranger(&self) -> Option<String> {
        let page = String::from_utf8_lossy(self.page.as_ref()?.as_bytes()).into_owned();
        (!page.is_empty() && !is_local(&page)).then_some(page)
    }

    /// The answer to a page that asks whether it may call.
    pub(super) fn invitation(&self) -> Response {
        let mut response = StatusCode::NO_CONTENT.into_response();
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(FOR_HOW_LONG));
        if let Some(wanted) = &self.wanted {
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
        }
        response
    }

    /// Lets the page read an answer.
    pub(super) fn admit(self, response: &mut Response) {
        let Some(page) = self.page else { return };
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, page);
        headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
        headers.insert(VARY, HeaderValue::from_static("Origin"));
    }
}

fn is_local(page: &str) -> bool {
    let host = page.strip_prefix("https://").or_else(|| page.strip_prefix("http://")).unwrap_or(page);
    let host = host.split('/').next().unwrap_or_default();
    let host = match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => host,
    };
    host == "localhost" || host.ends_with(".localhost")
}
