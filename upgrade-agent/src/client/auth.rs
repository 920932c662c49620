//! Authorization: the admin's bearer token or Google service account, and the client key of a student's
//! application. Secrets are never displayed.

mod jwt;
mod service_account;

use std::sync::Arc;

use reqwest::header::HeaderValue;
use secrecy::{ExposeSecret, SecretString};

use super::error::{ClientError, ErrorKind};

pub(super) use service_account::{KeyFile, ServiceAccount, TokenHttp};

/// The authorization of admin calls.
#[derive(Clone)]
pub(super) enum Admin {
    Nobody,
    Token(HeaderValue),
    Account(Arc<ServiceAccount>),
}

impl Admin {
    /// The header to send; fetches a token if necessary.
    pub(super) async fn header(&self) -> Result<Option<HeaderValue>, ClientError> {
        match self {
            Self::Nobody => Ok(None),
            Self::Token(header) => Ok(Some(header.clone())),
            Self::Account(account) => account.header().await.map(Some),
        }
    }

    /// Discards the header that the server has refused. Returns whether a new one can be fetched.
    pub(super) async fn renews(&self, refused: Option<&HeaderValue>) -> bool {
        match (self, refused) {
            (Self::Account(account), Some(refused)) => {
                account.drop_refused(refused).await;
                true
            }
            _ => false,
        }
    }
}

/// A header marked as sensitive.
pub(super) fn bearer(token: &str) -> Result<HeaderValue, ClientError> {
    let token = token.trim();
    if token.is_empty() {
        return Err(refused("the token is empty"));
    }
    let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
        .map_err(|_| refused("the token holds characters that a header cannot carry"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// The authorization of a student's application: the key, signed with the secret. The token does not expire,
/// so it is built once.
pub(super) fn client_bearer(key: &str, secret: &SecretString) -> Result<HeaderValue, ClientError> {
    if key.trim().is_empty() || secret.expose_secret().is_empty() {
        return Err(refused("the client key and its secret must not be empty"));
    }
    bearer(&jwt::hs256(&serde_json::json!({ "APIKey": key }), secret.expose_secret().as_bytes()))
}

pub(super) fn refused(message: impl Into<String>) -> ClientError {
    ClientError::new(ErrorKind::Config, "building the client", message)
}
