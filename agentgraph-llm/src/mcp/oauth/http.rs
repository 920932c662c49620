//! The requests of an authorization, over the HTTP client of the connection.

use std::time::Duration;

use axum::http::Response;
use reqwest::Url;
use reqwest::header::CONTENT_TYPE;
use rmcp::transport::{OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest};
use serde_json::{Map, Value};

/// The limit of one request, unless `rmcp` has one.
const TIMEOUT: Duration = Duration::from_secs(30);
const MAX_BODY: usize = 1 << 20;

/// The fields of a token response that are kept.
const TOKEN_FIELDS: [&str; 8] = [
    "access_token",
    "token_type",
    "expires_in",
    "refresh_token",
    "scope",
    "error",
    "error_description",
    "error_uri",
];

/// Sends each request to its own address only: a redirect is an answer and not followed.
pub(super) struct Http {
    client: reqwest::Client,
    is_secure: bool,
}

impl Http {
    /// For a server at this address. If it is reached over TLS, its authorization server must be, too.
    pub(super) fn new(client: reqwest::Client, server: &Url) -> Self {
        Http { client, is_secure: is_secure(server) }
    }
}

pub(super) fn is_secure(address: &Url) -> bool {
    address.scheme() == "https"
}

impl OAuthHttpClient for Http {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let limit = request.timeout.unwrap_or(TIMEOUT);
            let request = reqwest::Request::try_from(request.request)?;
            let url = request.url().clone();
            if self.is_secure && !is_secure(&url) {
                return Err(refused(format!("{} is not reached over TLS", origin(&url))));
            }
            let form = request.headers().get(CONTENT_TYPE);
            let is_token_request = form.is_some_and(|kind| kind == "application/x-www-form-urlencoded");
            let answered = tokio::time::timeout(limit, async {
                let mut response = self.client.execute(request).await?;
                // A client of one's own may follow redirects.
                if response.url().origin() != url.origin() {
                    return Err(refused(format!("{} redirected to another host", origin(&url))));
                }
                let mut body = Vec::new();
                while let Some(chunk) = response.chunk().await? {
                    if chunk.len() > MAX_BODY - body.len() {
                        return Err(refused(format!("the answer of {} is too long", origin(&url))));
                    }
                    body.extend_from_slice(&chunk);
                }
                let body = if is_token_request { without_extras(body) } else { body };
                Ok(Response::from(response).map(|_| body))
            });
            let late = |_| refused(format!("{} did not answer within {limit:?}", origin(&url)));
            answered.await.map_err(late)?
        })
    }
}

/// Without fields that `rmcp` would print to its log, such as an `id_token`.
fn without_extras(body: Vec<u8>) -> Vec<u8> {
    let Ok(mut fields) = serde_json::from_slice::<Map<String, Value>>(&body) else { return body };
    fields.retain(|name, _| TOKEN_FIELDS.contains(&name.as_str()));
    serde_json::to_vec(&fields).unwrap_or(body)
}

fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

fn refused(message: String) -> OAuthHttpClientError {
    message.into()
}
