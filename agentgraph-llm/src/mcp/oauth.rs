//! Authorization at an MCP server with OAuth 2.1: who the program is, how a person is asked, and where tokens
//! are kept.
//!
//! Discovery, registration, PKCE and the token requests are `rmcp`'s. This module must not show a token: not
//! in an error, in a `Debug` text or in a log.

mod authorization;
mod http;
mod loopback;
mod tokens;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use secrecy::SecretString;

use crate::error::Result;

pub(super) use authorization::Authorization;

/// Keeps the tokens of one server for one person, so that they survive a restart. The text is JSON with the
/// tokens in clear: encrypt it, or protect the place.
///
/// The text is read before a refresh, too, so processes may share a place. They may refresh at the same time;
/// a server that accepts a refresh token only once then asks for a new authorization.
///
/// ```
/// use agentgraph_llm::SecretString;
/// use agentgraph_llm::mcp::{McpOAuth, McpTokenStore};
/// use std::sync::Mutex;
///
/// #[derive(Default)]
/// struct Keychain(Mutex<Option<SecretString>>);
///
/// #[async_trait::async_trait]
/// impl McpTokenStore for Keychain {
///     async fn load(&self) -> agentgraph_llm::Result<Option<SecretString>> {
///         Ok(self.0.lock().unwrap().clone())
///     }
///
///     async fn save(&self, tokens: Option<SecretString>) -> agentgraph_llm::Result<()> {
///         *self.0.lock().unwrap() = tokens;
///         Ok(())
///     }
/// }
///
/// let oauth = McpOAuth::client_credentials("my-program", "hunter2").store(Keychain::default());
/// assert!(!format!("{oauth:?}").contains("hunter2"));
/// ```
#[async_trait]
pub trait McpTokenStore: Send + Sync {
    /// The text that was saved last.
    ///
    /// # Errors
    /// The error ends the call or the connecting.
    async fn load(&self) -> Result<Option<SecretString>>;

    /// Keeps the text in place of the earlier one; `None` deletes it.
    ///
    /// # Errors
    /// The error ends the call or the connecting. The connection goes on with the new tokens.
    async fn save(&self, tokens: Option<SecretString>) -> Result<()>;
}

/// How a program gets a token for a server at an address: the setting of
/// [`oauth`](crate::mcp::McpClientBuilder::oauth).
///
/// The server names its authorization server when it refuses a request. The program identifies itself by a
/// [`client_id`](McpOAuth::client_id), by the address of its
/// [metadata](McpOAuth::client_metadata_url) if the authorization server takes one, or it registers itself. A
/// token is renewed shortly before its end and when it is refused. When that fails, or when a tool needs a
/// scope that was not granted, the person is asked again, and the request is sent again; the limits of time
/// do not run meanwhile.
///
/// An [`http_client`](crate::mcp::McpClientBuilder::http_client) of your own sends these requests, too. It
/// should follow no redirects: codes and tokens would reach the other host before its answer is refused.
///
/// ```
/// use agentgraph_llm::mcp::{McpClient, McpOAuth};
///
/// let oauth = McpOAuth::in_browser(|address| {
///     println!("Open this address: {address}");
///     Ok(())
/// });
/// let server = McpClient::http("https://mcp.example.com/mcp").oauth(oauth.scopes(["notes:read"]));
/// # drop(server);
/// ```
#[derive(Clone)]
pub struct McpOAuth {
    grant: Grant,
    client_id: Option<String>,
    client_secret: Option<SecretString>,
    metadata_url: Option<String>,
    client_name: String,
    scopes: Vec<String>,
    store: Option<Arc<dyn McpTokenStore>>,
}

type Open = dyn Fn(&str) -> Result<()> + Send + Sync;
type Ask = dyn Fn(String) -> Redirected + Send + Sync;
type Redirected = Pin<Box<dyn Future<Output = Result<String>> + Send>>;

/// Where a token comes from.
#[derive(Clone)]
enum Grant {
    /// A person on this machine, whose browser comes back to a port of it.
    Browser { port: u16, open: Arc<Open> },
    /// A person who comes back to an address of the program.
    Redirect { address: String, ask: Arc<Ask> },
    /// The secret of the program.
    Credentials,
}

impl McpOAuth {
    fn new(grant: Grant) -> Self {
        McpOAuth {
            grant,
            client_id: None,
            client_secret: None,
            metadata_url: None,
            client_name: "agentgraph".to_owned(),
            scopes: Vec::new(),
            store: None,
        }
    }

    /// Asks a person on this machine: `open` opens an address in a browser, or shows it. The browser comes
    /// back to `http://127.0.0.1:PORT/callback`, where this library listens for five minutes.
    pub fn in_browser(open: impl Fn(&str) -> Result<()> + Send + Sync + 'static) -> Self {
        McpOAuth::new(Grant::Browser { port: 0, open: Arc::new(open) })
    }

    /// Asks a person elsewhere, such as the user of a web application. `ask` gets the address that the person
    /// must open, and returns the whole address to which the authorization server sent the browser back: that
    /// of `redirect_address` with a query. A wrong `state` in it is refused.
    ///
    /// ```
    /// use agentgraph_llm::mcp::McpOAuth;
    /// use tokio::sync::mpsc;
    ///
    /// let (page, _opened) = mpsc::channel::<String>(1);
    /// let oauth = McpOAuth::redirect("https://app.example.com/callback", move |address| {
    ///     let page = page.clone();
    ///     async move {
    ///         let _ = page.send(address).await;
    ///         Ok("https://app.example.com/callback?code=..&state=..".to_owned())
    ///     }
    /// });
    /// assert!(format!("{oauth:?}").contains("https://app.example.com/callback"));
    /// ```
    pub fn redirect<F, R>(redirect_address: impl Into<String>, ask: F) -> Self
    where
        F: Fn(String) -> R + Send + Sync + 'static,
        R: Future<Output = Result<String>> + Send + 'static,
    {
        let ask = Arc::new(move |address| Box::pin(ask(address)) as Redirected);
        McpOAuth::new(Grant::Redirect { address: redirect_address.into(), ask })
    }

    /// Asks no person: the program has an id and a secret of its own (client credentials).
    pub fn client_credentials(id: impl Into<String>, secret: impl Into<SecretString>) -> Self {
        McpOAuth::new(Grant::Credentials).client_id(id).client_secret(secret)
    }

    /// Sets the id under which the authorization server knows the program. Without it, the program registers
    /// itself.
    pub fn client_id(mut self, id: impl Into<String>) -> Self {
        self.client_id = Some(id.into());
        self
    }

    /// Sets the secret that belongs to the [`client_id`](McpOAuth::client_id).
    pub fn client_secret(mut self, secret: impl Into<SecretString>) -> Self {
        self.client_secret = Some(secret.into());
        self
    }

    /// Sets the address of a page with the program's metadata, which is its id at authorization servers that
    /// read such pages. It begins with `https://`.
    pub fn client_metadata_url(mut self, url: impl Into<String>) -> Self {
        self.metadata_url = Some(url.into());
        self
    }

    /// Sets the name that a person sees when the program registers itself. Default: `agentgraph`.
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.client_name = name.into();
        self
    }

    /// Sets the scopes to ask for. Default: those that the server names.
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the port of [`in_browser`](McpOAuth::in_browser), for a client whose redirect address is
    /// registered. Default: a free one.
    pub fn port(mut self, number: u16) -> Self {
        if let Grant::Browser { port, .. } = &mut self.grant {
            *port = number;
        }
        self
    }

    /// Sets where tokens are kept. Default: in memory, as long as the connection.
    pub fn store(mut self, store: impl McpTokenStore + 'static) -> Self {
        self.store = Some(Arc::new(store));
        self
    }
}

impl fmt::Debug for McpOAuth {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let redirect = match &self.grant {
            Grant::Browser { port, .. } => format!("http://127.0.0.1:{port}/callback"),
            Grant::Redirect { address, .. } => address.clone(),
            Grant::Credentials => String::new(),
        };
        out.debug_struct("McpOAuth")
            .field("redirect", &redirect)
            .field("client_id", &self.client_id)
            .field("client_metadata_url", &self.metadata_url)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}
