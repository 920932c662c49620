//! The authorization of one connection: its tokens, and how it gets new ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use reqwest::Url;
use rmcp::transport::auth::OAuthClientConfig;
use rmcp::transport::{
    AuthClient, AuthError, AuthorizationManager, AuthorizationRequest, AuthorizationSession,
    ClientCredentialsConfig, CredentialStore, OAuthHttpClient, WWWAuthenticateParams,
};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Mutex;

use super::http::{self, Http};
use super::loopback::Loopback;
use super::tokens::Tokens;
use super::{Grant, McpOAuth};
use crate::error::{Code, Error, Result};
use crate::http::chain;
use crate::mcp::failure::Server;

pub(in crate::mcp) struct Authorization {
    settings: McpOAuth,
    /// The server's address without its query, which may contain a key.
    server: Url,
    http: Arc<dyn OAuthHttpClient>,
    tokens: Tokens,
    client: AuthClient<reqwest::Client>,
    /// Counts the successes of [`answer`](Authorization::answer).
    count: AtomicU64,
    /// Held while a person is asked.
    asking: Mutex<()>,
}

impl Authorization {
    /// With the tokens of the store.
    pub(in crate::mcp) async fn new(
        settings: McpOAuth,
        client: reqwest::Client,
        server: &Server,
    ) -> Result<Self> {
        let url = Url::parse(&server.name).map_err(|error| Error::new(Code::Config, error.to_string()))?;
        let http: Arc<dyn OAuthHttpClient> = Arc::new(Http::new(client.clone(), &url));
        let tokens = Tokens::new(settings.store.clone(), server.issued.clone());
        let failed = |error| failed(server, error);
        let mut manager = manager(&url, &http, &tokens).await.map_err(failed)?;
        let stored = tokens.load().await.map_err(failed)?;
        if let (Some(stored), Some(id)) = (stored, &settings.client_id)
            && stored.client_id != *id
        {
            tokens.clear().await.map_err(failed)?;
        }
        if manager.initialize_from_store().await.map_err(failed)?
            && let Some(id) = &settings.client_id
        {
            let mut config = OAuthClientConfig::new(id, url.as_str());
            config.client_secret = settings.exposed_secret();
            manager.configure_client(config).map_err(failed)?;
        }
        let client = AuthClient::new(client, manager);
        Ok(Authorization {
            settings,
            server: url,
            http,
            tokens,
            client,
            count: AtomicU64::new(0),
            asking: Mutex::default(),
        })
    }

    /// The client that adds the token to each request, and renews it.
    pub(in crate::mcp) fn client(&self) -> AuthClient<reqwest::Client> {
        self.client.clone()
    }

    /// How often tokens were given since the start.
    pub(in crate::mcp) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Gets a token that the server asks for by a header `WWW-Authenticate`; the request may then be sent
    /// again.
    /// Requests that fail at the same time cause one authorization: `count` is that from before the request.
    pub(in crate::mcp) async fn answer(&self, challenge: &str, count: u64, server: &Server) -> Result<()> {
        let _asking = self.asking.lock().await;
        if self.count() != count {
            return Ok(());
        }
        let scopes = self.scopes(challenge, server).await?;
        // The other requests go on with the manager of the connection while a person is asked.
        let failed = |error| failed(server, error);
        let mut manager = manager(&self.server, &self.http, &self.tokens).await.map_err(failed)?;
        let found = manager.resolve_metadata_from_challenge(Some(challenge)).await.map_err(failed)?;
        manager.set_metadata(found.metadata);
        let manager = match &self.settings.grant {
            Grant::Credentials => self.by_credentials(manager, scopes).await.map_err(failed)?,
            Grant::Browser { port, open } => {
                let loopback = Loopback::bind(*port).await?;
                let session = self.session(manager, loopback.address(), scopes).await.map_err(failed)?;
                let opened = self.page(&session)?;
                open(opened.as_str())?;
                let redirected = loopback.redirected(&opened).await?;
                finished(session, &redirected).await.map_err(failed)?
            }
            Grant::Redirect { address, ask } => {
                let session = self.session(manager, address, scopes).await.map_err(failed)?;
                let redirected = ask(self.page(&session)?.into()).await?;
                finished(session, &redirected).await.map_err(failed)?
            }
        };
        *self.client.auth_manager.lock().await = manager;
        // After the tokens: a request that reads this number is sent with them.
        self.count.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// The scopes to ask for; empty for those that the server's metadata names.
    async fn scopes(&self, challenge: &str, server: &Server) -> Result<Vec<String>> {
        let asked = WWWAuthenticateParams::parse(challenge, &self.server);
        if !asked.is_insufficient_scope() {
            return Ok(self.settings.scopes.clone());
        }
        let stored = self.tokens.load().await.map_err(|error| failed(server, error))?;
        let mut scopes = stored.map(|stored| stored.granted_scopes).unwrap_or_default();
        let granted = scopes.len();
        for scope in asked.scope.iter().flat_map(|scopes| scopes.split_whitespace()) {
            if !scopes.iter().any(|known| known == scope) {
                scopes.push(scope.to_owned());
            }
        }
        // Asking again for the same would give the same.
        if scopes.len() == granted {
            let message = format!(
                "the MCP server `{}` refuses a request whose scopes were granted: ask its operator for access",
                server.name
            );
            return Err(Error::new(Code::Permission, message));
        }
        Ok(scopes)
    }

    async fn by_credentials(
        &self,
        mut manager: AuthorizationManager,
        scopes: Vec<String>,
    ) -> Result<AuthorizationManager, AuthError> {
        let scopes = if scopes.is_empty() { manager.select_initial_scopes(&[]).await } else { scopes };
        let config = ClientCredentialsConfig::ClientSecret {
            client_id: self.settings.client_id.clone().unwrap_or_default(),
            client_secret: self.settings.exposed_secret().unwrap_or_default(),
            scopes,
            resource: Some(self.server.to_string()),
        };
        manager.validate_client_credentials_metadata(&config)?;
        manager.configure_client_credentials(&config)?;
        manager.exchange_client_credentials(&config).await?;
        Ok(manager)
    }

    async fn session(
        &self,
        manager: AuthorizationManager,
        redirect: &str,
        scopes: Vec<String>,
    ) -> Result<AuthorizationSession, AuthError> {
        let settings = &self.settings;
        let mut request = AuthorizationRequest::new(redirect)
            .with_initial_scope_selection()
            .with_scopes(scopes)
            .with_client_name(&settings.client_name);
        request.client_id = settings.client_id.clone();
        request.client_secret = settings.exposed_secret();
        request.client_metadata_url = settings.metadata_url.clone();
        AuthorizationSession::new(manager, request).await.map_err(|(_, error)| error)
    }

    /// The page for the person. The authorization server names its address, and a program may pass it to the
    /// shell of a desktop.
    fn page(&self, session: &AuthorizationSession) -> Result<Url> {
        let page = Url::parse(&session.auth_url).ok();
        let is_web =
            |url: &Url| http::is_secure(url) || url.scheme() == "http" && !http::is_secure(&self.server);
        page.filter(is_web).ok_or_else(|| {
            let message =
                format!("the address for the login at `{}` does not begin with `https://`", self.server);
            Error::new(Code::Auth, message)
        })
    }
}

impl McpOAuth {
    pub(in crate::mcp) fn secret(&self) -> Option<&SecretString> {
        self.client_secret.as_ref()
    }

    fn exposed_secret(&self) -> Option<String> {
        self.secret().map(|secret| secret.expose_secret().to_owned())
    }
}

async fn manager(
    server: &Url,
    http: &Arc<dyn OAuthHttpClient>,
    tokens: &Tokens,
) -> Result<AuthorizationManager, AuthError> {
    let mut manager =
        AuthorizationManager::new_with_oauth_http_client(server.clone(), Arc::clone(http)).await?;
    manager.set_credential_store(tokens.clone());
    Ok(manager)
}

/// Exchanges the code of the redirect for tokens.
async fn finished(
    session: AuthorizationSession,
    redirected: &str,
) -> Result<AuthorizationManager, AuthError> {
    let url = Url::parse(redirected)?;
    let query = |wanted: &str| url.query_pairs().find(|(name, _)| name == wanted).map(|(_, value)| value);
    if let Some(error) = query("error") {
        let described = query("error_description").unwrap_or_default();
        return Err(AuthError::AuthorizationFailed(format!("{error} {described}")));
    }
    session.handle_callback_url(redirected).await?;
    Ok(session.auth_manager)
}

/// The error of an authorization. Its text may quote what a server wrote.
fn failed(server: &Server, error: AuthError) -> Error {
    let (code, remedy) = match &error {
        AuthError::DiscoveryRequestFailed { .. }
        | AuthError::HttpError(_)
        | AuthError::TokenRefreshFailed(_) => {
            (Code::Connection, "check that its authorization server can be reached")
        }
        AuthError::CredentialStoreError(_) => (Code::Config, "see the `McpTokenStore`"),
        AuthError::RegistrationFailed(_) => {
            (Code::Auth, "register the program there, and set its `client_id(..)`")
        }
        AuthError::InternalError(_) => (Code::Auth, "the answer does not belong to the login that was begun"),
        _ => (Code::Auth, "log in again"),
    };
    let message =
        format!("no access to the MCP server `{}`: {remedy} ({})", server.name, server.clean(chain(&error)));
    Error::new(code, message)
}
