//! CORS: the web pages that may call, by default those of this machine. A caller that is not a page sends no
//! origin and may call.

use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, ORIGIN, VARY,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

const METHODS: &str = "GET,POST,PUT,DELETE,PATCH,OPTIONS";
/// A day, in seconds.
const FOR_HOW_LONG: &str = "86400";

/// The page of a request, if it comes from one.
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

    /// The page, if it may not call.
    pub(super) fn unauthorized_page(&self, sites: &Sites) -> Option<String> {
        let page = String::from_utf8_lossy(self.page.as_ref()?.as_bytes()).into_owned();
        (!page.is_empty() && !sites.hold(&page)).then_some(page)
    }

    /// The response to a preflight request.
    pub(super) fn invitation(&self) -> Response {
        let mut response = StatusCode::NO_CONTENT.into_response();
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(FOR_HOW_LONG));
        headers.insert(VARY, HeaderValue::from_static("Access-Control-Request-Headers"));
        if let Some(wanted) = &self.wanted {
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
        }
        response
    }

    /// Adds the headers that let the page read a response.
    pub(super) fn admit(self, response: &mut Response) {
        let Some(page) = self.page else { return };
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, page);
        headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
        let varies = match headers.get(VARY) {
            Some(_) => HeaderValue::from_static("Origin, Access-Control-Request-Headers"),
            None => HeaderValue::from_static("Origin"),
        };
        headers.insert(VARY, varies);
    }
}

/// The sites whose pages may call, as in the original's setting `CORS_WHITELIST`.
#[derive(Clone, Debug)]
pub(crate) struct Sites(Arc<[String]>);

impl Sites {
    pub(crate) fn of(names: &[String]) -> Self {
        Self(names.iter().map(|name| site(host(name)).to_lowercase()).collect())
    }

    /// Scheme, port and subdomains are ignored.
    fn hold(&self, page: &str) -> bool {
        let site = site(host(page)).to_lowercase();
        self.0.contains(&site)
    }
}

fn host(page: &str) -> &str {
    let host = page.strip_prefix("https://").or_else(|| page.strip_prefix("http://")).unwrap_or(page);
    let host = host.split('/').next().unwrap_or_default();
    match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => host,
    }
}

/// The last two labels of a name, or `localhost` alone. The original splits IP addresses like names; here an
/// address is whole.
fn site(host: &str) -> &str {
    if host.parse::<Ipv4Addr>().is_ok() {
        return host;
    }
    let mut dots = host.rmatch_indices('.').map(|(at, _)| at + 1);
    match dots.next() {
        Some(last) if &host[last..] == "localhost" => &host[last..],
        Some(_) => dots.next().map_or(host, |at| &host[at..]),
        None => host,
    }
}
