//! Who calls: the admin with a bearer token or as a Google service account, a student's application
//! with the client key. What is secret here is shown by nothing.

mod jwt;
mod service_account;

use std::sync::Arc;

use reqwest::header::HeaderValue;
use secrecy::{ExposeSecret, SecretString};

use super::error::{ClientError, ErrorKind};

pub(super) use service_account::{KeyFile, ServiceAccount, TokenHttp};

/// How admin calls authenticate.
#[derive(Clone)]
pub(super) enum Admin {
    Nobody,
    Token(HeaderValue),
    Account(Arc<ServiceAccount>),
}

impl Admin {
    /// The header to send, fetched if need be.
    pub(super) async fn header(&self) -> Result<Option<HeaderValue>, ClientError> {
        match self {
            Self::Nobody => Ok(None),
            Self::Token(header) => Ok(Some(header.clone())),
            Self::Account(account) => account.header().await.map(Some),
        }
    }

    /// Whether there may be another header than this one, which the server has refused.
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

/// A header that is shown nowhere.
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

/// What a student's application sends: the key, signed with the secret. The server checks the
/// signature and takes the same text again and again.
pub(super) fn client_bearer(key: &str, secret: &SecretString) -> Result<HeaderValue, ClientError> {
    if key.trim().is_empty() || secret.expose_secret().is_empty() {
        return Err(refused("the client key and its secret must not be empty"));
    }
    bearer(&jwt::hs256(&serde_json::json!({ "APIKey": key }), secret.expose_secret().as_bytes()))
}

pub(super) fn refused(message: impl Into<String>) -> ClientError {
    ClientError::new(ErrorKind::Config, "building the client", message)
}
