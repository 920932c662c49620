//! The tokens of a connection: in memory, and in the program's store.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use rmcp::transport::{AuthError, CredentialRefreshGuard, CredentialStore, StoredCredentials};
use secrecy::ExposeSecret;

use super::McpTokenStore;
use crate::mcp::failure::Issued;

/// Read before every request, so the store is only asked for what is not in memory.
#[derive(Clone)]
pub(super) struct Tokens {
    store: Option<Arc<dyn McpTokenStore>>,
    kept: Arc<Mutex<Option<StoredCredentials>>>,
    /// Where tokens are noted that no message may show.
    issued: Issued,
}

impl Tokens {
    pub(super) fn new(store: Option<Arc<dyn McpTokenStore>>, issued: Issued) -> Self {
        Tokens { store, kept: Arc::default(), issued }
    }

    fn kept(&self) -> MutexGuard<'_, Option<StoredCredentials>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, credentials: StoredCredentials) {
        let tokens = serde_json::to_value(&credentials.token_response).unwrap_or_default();
        for name in ["access_token", "refresh_token"] {
            self.issued.add(tokens[name].as_str().unwrap_or_default());
        }
        *self.kept() = Some(credentials);
    }
}

#[async_trait]
impl CredentialStore for Tokens {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let kept = self.kept().clone();
        let (None, Some(store)) = (&kept, &self.store) else { return Ok(kept) };
        let Some(text) = store.load().await.map_err(failed)? else { return Ok(None) };
        // Without the reason, which may quote a token.
        let unreadable = |_| failed("the stored tokens cannot be read: delete them");
        let stored: StoredCredentials = serde_json::from_str(text.expose_secret()).map_err(unreadable)?;
        self.keep(stored.clone());
        Ok(Some(stored))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let text = serde_json::to_string(&credentials).map_err(failed)?;
        self.keep(credentials);
        let Some(store) = &self.store else { return Ok(()) };
        store.save(Some(text.into())).await.map_err(failed)
    }

    async fn clear(&self) -> Result<(), AuthError> {
        *self.kept() = None;
        let Some(store) = &self.store else { return Ok(()) };
        store.save(None).await.map_err(failed)
    }
    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        // Another process may have refreshed meanwhile: the next read is from the store.
        if self.store.is_some() {
            *self.kept() = None;
        }
        Ok(None)
    }
}

fn failed(error: impl ToString) -> AuthError {
    AuthError::CredentialStoreError(error.to_string())
}
