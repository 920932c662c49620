//! The key of a provider: where it comes from and how it is sent.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

use crate::error::{Code, Error, Result};
use crate::sent_key::SentKey;

/// A source of keys that is asked before each request and each retry, for tokens that live shortly. A closure
/// that returns a future is one.
///
/// ```
/// use agentgraph_llm::{AnthropicModel, KeyProvider, SecretString};
///
/// struct Vault;
///
/// #[async_trait::async_trait]
/// impl KeyProvider for Vault {
///     async fn key(&self) -> agentgraph_llm::Result<SecretString> {
///         Ok(SecretString::from("a-token-of-this-minute"))
///     }
/// }
///
/// assert!(AnthropicModel::builder().key_provider(Vault).model("m").build().is_ok());
/// let closure = || async { Ok(SecretString::from("a-token-of-this-minute")) };
/// assert!(AnthropicModel::builder().key_provider(closure).model("m").build().is_ok());
/// ```
#[async_trait]
pub trait KeyProvider: Send + Sync {
    /// The key for the next request.
    ///
    /// # Errors
    /// The error ends the call, or leads to a retry if it [is retryable](Error::is_retryable).
    async fn key(&self) -> Result<SecretString>;

    /// The server refused the last key (HTTP 401): a source that keeps keys forgets it. The call is tried
    /// once more, with the key that [`key`](Self::key) then gives.
    async fn refused(&self) {}
}

#[async_trait]
impl<F, K> KeyProvider for F
where
    F: Fn() -> K + Send + Sync,
    K: Future<Output = Result<SecretString>> + Send,
{
    async fn key(&self) -> Result<SecretString> {
        self().await
    }
}

/// How the key is sent.
///
/// ```
/// use agentgraph_llm::{AnthropicModel, Authentication};
///
/// let gateway = AnthropicModel::builder().api_key("sk-not-a-real-key").model("m");
/// assert!(gateway.authentication(Authentication::header("x-api-key")).build().is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Authentication {
    /// As `Authorization: Bearer <key>`.
    Bearer,
    /// As the value of the header of this name.
    Header(Cow<'static, str>),
}

impl Authentication {
    /// The key as the value of a header.
    pub fn header(name: impl Into<Cow<'static, str>>) -> Self {
        Authentication::Header(name.into())
    }
}

/// The key, or where it comes from.
#[derive(Clone)]
pub(crate) enum KeySource {
    Fixed(SecretString),
    Provider(Arc<dyn KeyProvider>),
}

impl fmt::Debug for KeySource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("[redacted]")
    }
}

/// The header with the key.
pub(super) struct KeyHeader {
    source: Option<KeySource>,
    name: HeaderName,
    is_bearer: bool,
}

impl KeyHeader {
    /// # Errors
    /// `E_LLM_CONFIG` if the header's name or a fixed key cannot be sent.
    pub(super) fn new(authentication: &Authentication, source: Option<KeySource>) -> Result<Self> {
        let name = match authentication {
            Authentication::Bearer => AUTHORIZATION,
            Authentication::Header(name) => HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
                config(format!("`{name}` cannot be the name of a header: correct `.authentication(..)`"))
            })?,
        };
        let header = KeyHeader { source, name, is_bearer: *authentication == Authentication::Bearer };
        if let Some(KeySource::Fixed(key)) = &header.source {
            header.value(key)?;
        }
        Ok(header)
    }

    pub(super) fn name(&self) -> &HeaderName {
        &self.name
    }

    /// Whether a call may be tried with another key than the one that was refused.
    pub(super) async fn renew(&self) -> bool {
        let Some(KeySource::Provider(provider)) = &self.source else { return false };
        provider.refused().await;
        true
    }

    pub(super) fn has_key(&self) -> bool {
        self.source.is_some()
    }

    /// Adds the key for one attempt to its headers, unless they have one.
    pub(super) async fn add_to(&self, headers: &mut HeaderMap) -> Result<SentKey> {
        if let Some(value) = headers.get(&self.name) {
            // Of `Bearer <token>` only the token is a secret.
            let secret = value.to_str().ok().and_then(|value| value.split(' ').next_back());
            return Ok(SentKey::new(secret.map(SecretString::from)));
        }
        let key = match &self.source {
            None => return Ok(SentKey::none()),
            Some(KeySource::Fixed(key)) => key.clone(),
            Some(KeySource::Provider(provider)) => provider.key().await?,
        };
        headers.insert(self.name.clone(), self.value(&key)?);
        Ok(SentKey::new(Some(key)))
    }

    fn value(&self, key: &SecretString) -> Result<HeaderValue> {
        let key = key.expose_secret().trim();
        let text = if self.is_bearer { format!("Bearer {key}") } else { key.to_owned() };
        let value = HeaderValue::from_str(&text).ok().filter(|_| !key.is_empty());
        let mut value = value.ok_or_else(|| {
            config("the API key is empty or has characters that no key has: copy it again".to_owned())
        })?;
        value.set_sensitive(true);
        Ok(value)
    }
}

fn config(message: String) -> Error {
    Error::new(Code::Config, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(authentication: Authentication, key: &str) -> Result<KeyHeader> {
        KeyHeader::new(&authentication, Some(KeySource::Fixed(key.into())))
    }

    #[tokio::test]
    async fn the_key_is_sent_as_bearer_or_in_a_named_header_and_is_not_printed() {
        for (authentication, name, value) in [
            (Authentication::Bearer, "authorization", "Bearer hunter2-hunter2"),
            (Authentication::header("X-Api-Key"), "x-api-key", "hunter2-hunter2"),
        ] {
            let mut headers = HeaderMap::new();
            let key = header(authentication, " hunter2-hunter2\n").unwrap();
            key.add_to(&mut headers).await.unwrap();
            assert_eq!(headers[name], value);
            assert!(!format!("{headers:?}").contains("hunter2"));
        }
    }

    #[test]
    fn a_key_that_cannot_be_sent_is_refused_and_not_repeated() {
        for key in ["", " ", "se\ncret"] {
            let error = header(Authentication::Bearer, key).err().unwrap();
            assert_eq!(error.code(), Code::Config);
            assert!(!error.to_string().contains("cret"), "{error}");
        }
        let named = header(Authentication::header("no header"), "key");
        assert!(named.err().unwrap().message().contains("`no header`"));
    }
}
