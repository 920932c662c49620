//! [`Caller`]: who makes a request, and how that is known: by a key, by a token, or by code of one's own. It
//! knows nothing of what callers may see.

#[cfg(feature = "jwt")]
mod jwt;

#[cfg(feature = "jwt")]
pub use jwt::Jwt;

use std::collections::HashMap;
use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, header};
use sha2::{Digest, Sha256};

/// Who makes a request.
///
/// A named caller sees and changes only its own threads, runs, assistants and items; those of others are
/// unknown to it. Operators see and change everything.
///
/// ```
/// use agentgraph_server::Caller;
///
/// assert_eq!(Caller::named("ada").name(), Some("ada"));
/// assert_eq!(Caller::operator().name(), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Caller(Option<Arc<str>>);

impl Caller {
    /// A caller with a name, which is the `owner` in the metadata of what it makes.
    pub fn named(name: impl Into<Arc<str>>) -> Self {
        Caller(Some(name.into()))
    }

    /// A caller that sees and changes everything.
    pub const fn operator() -> Self {
        Caller(None)
    }

    /// The name; `None` for an operator.
    pub fn name(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

/// Why a request is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Denied {
    /// It does not show who the caller is: it is answered with 401.
    #[error("a key or a token is missing or wrong: send it as a bearer token")]
    Unknown,
    /// What it shows cannot be checked now: it is answered with 503.
    #[error("tokens cannot be checked at the moment: try again")]
    Unavailable,
}

/// Finds out who makes a request. See [`Server::authenticate`](crate::Server::authenticate).
#[async_trait::async_trait]
pub trait Authenticate: Send + Sync + 'static {
    /// Returns the caller, from the head of a request and what layers in front have added to its extensions.
    ///
    /// # Errors
    /// [`Denied`], if the request is not let in.
    async fn authenticate(&self, request: &Parts) -> Result<Caller, Denied>;
}

/// Takes the [`Caller`] that a layer in front of the routes has added to the extensions of the request.
///
/// ```
/// use agentgraph_server::{Caller, LayeredCaller, Server};
/// use axum::extract::Request;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), agentgraph_server::ServerError> {
/// let graphs = Server::new().in_memory().authenticate(LayeredCaller).router().await?;
/// let app = graphs.layer(axum::middleware::map_request(async |mut request: Request| {
///     // From a session, a certificate, ..
///     request.extensions_mut().insert(Caller::named("ada"));
///     request
/// }));
/// # drop(app);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct LayeredCaller;

#[async_trait::async_trait]
impl Authenticate for LayeredCaller {
    async fn authenticate(&self, request: &Parts) -> Result<Caller, Denied> {
        request.extensions.get().cloned().ok_or(Denied::Unknown)
    }
}

/// What checks the callers of a server.
#[derive(Clone, Default)]
pub(crate) struct Access {
    /// By the digest of their key: comparing those tells nothing of a key by its time.
    keys: HashMap<[u8; 32], Caller>,
    others: Vec<Arc<dyn Authenticate>>,
    /// Whether callers may be known by what a browser adds to requests of any page.
    reads_cookies: bool,
}

impl Access {
    pub(crate) fn add_key(&mut self, key: &str, caller: Caller) {
        self.keys.insert(digest(key), caller);
    }

    pub(crate) fn add(&mut self, other: impl Authenticate, reads_cookies: bool) {
        self.others.push(Arc::new(other));
        self.reads_cookies |= reads_cookies;
    }

    /// Whether anything checks callers.
    pub(crate) fn is_set(&self) -> bool {
        !self.keys.is_empty() || !self.others.is_empty()
    }

    /// Whether a page can only call with a secret that it knows itself.
    pub(crate) fn keeps_pages_out(&self) -> bool {
        self.is_set() && !self.reads_cookies
    }

    /// The caller by the first check that knows it. Everyone is an operator if there is none.
    pub(crate) async fn caller(&self, request: &Parts) -> Result<Caller, Denied> {
        if !self.is_set() {
            return Ok(Caller::operator());
        }
        let shown = bearer(&request.headers).or_else(|| text(&request.headers, "x-api-key"));
        if let Some(caller) = shown.and_then(|key| self.keys.get(&digest(key))) {
            return Ok(caller.clone());
        }
        let mut denied = Denied::Unknown;
        for other in &self.others {
            match other.authenticate(request).await {
                Ok(caller) => return Ok(caller),
                Err(Denied::Unknown) => {}
                Err(Denied::Unavailable) => denied = Denied::Unavailable,
            }
        }
        Err(denied)
    }
}

fn digest(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = text(headers, header::AUTHORIZATION.as_str())?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn text<'a>(headers: &'a HeaderMap, name: &'static str) -> Option<&'a str> {
    headers.get(HeaderName::from_static(name))?.to_str().ok()
}
