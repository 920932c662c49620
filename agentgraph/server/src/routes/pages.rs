//! [`Pages`]: which web pages may call. A page of a stranger, open in a browser of this machine, reaches a
//! server on the loopback as its user does.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tower_http::cors::AllowOrigin;

use crate::error::ApiError;

/// Who may call from a browser.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pages {
    /// Something else than the origin protects the server.
    pub(crate) any: bool,
    /// Origins beside those of this machine and the server's own.
    pub(crate) origins: Vec<String>,
    /// Whether the server is called by names of this machine alone. A stranger's name that resolves to
    /// this machine would make the stranger's page one of the server's own.
    pub(crate) by_names_of_this_machine: bool,
}

impl Pages {
    pub(super) fn allow_origin(self: &Arc<Self>) -> AllowOrigin {
        let pages = Arc::clone(self);
        AllowOrigin::predicate(move |origin, parts| {
            pages.let_in(Some(origin), called_name(&parts.uri, &parts.headers))
        })
    }

    fn let_in(&self, origin: Option<&HeaderValue>, called: Option<&str>) -> bool {
        if self.any {
            return true;
        }
        // A browser always says whom it calls.
        if self.by_names_of_this_machine && called.is_some_and(|name| !is_of_this_machine(name)) {
            return false;
        }
        let Some(origin) = origin else { return true };
        let Ok(origin) = origin.to_str() else { return false };
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        self.origins.iter().any(|known| known == origin)
            || authority.is_some_and(|name| called == Some(name) || is_of_this_machine(name))
    }
}

/// The host and port that the caller asked for.
fn called_name<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    let header = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    header.or_else(|| uri.authority().map(Authority::as_str))
}

fn is_of_this_machine(authority: &str) -> bool {
    let Ok(authority) = authority.parse::<Authority>() else { return false };
    let host = authority.host();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse();
    host == "localhost" || host.ends_with(".localhost") || address.is_ok_and(|ip: IpAddr| ip.is_loopback())
}

pub(super) async fn check_page(State(pages): State<Arc<Pages>>, request: Request, next: Next) -> Response {
    if pages.let_in(request.headers().get(header::ORIGIN), called_name(request.uri(), request.headers())) {
        return next.run(request).await;
    }
    let detail = "a server without keys is not called by pages of other sites: allow the origin with \
                  `Server::allow_origin`, or set keys with `Server::bearer_keys`";
    ApiError::new(StatusCode::FORBIDDEN, detail).into_response()
}
