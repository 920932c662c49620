//! [`Jwt`]: callers by signed tokens, whose keys the issuer publishes.

use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use axum::http::request::Parts;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, crypto, decode, decode_header};
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::{Authenticate, Caller, Denied, bearer};

/// Lets in callers with a JSON Web Token of an issuer, sent as `Authorization: Bearer ..`.
///
/// A token counts if it is signed with one of the issuer's public keys, names issuer and audience, and has
/// not expired. Its subject is the caller. The keys are fetched from the issuer's key set (JWKS) with the
/// first token, then once an hour, and when a token names a key that is new, at most every ten seconds.
///
/// ```
/// use agentgraph_server::{Jwt, Server};
///
/// let tokens = Jwt::new("https://login.example", "graphs");
/// let server = Server::new().jwt(tokens);
/// # drop(server);
/// ```
#[derive(Debug)]
pub struct Jwt {
    issuer: String,
    audience: String,
    keys_at: String,
    claim: String,
    kept: RwLock<Kept>,
    /// When the keys were last asked for. Held while they are, so that requests ask once together.
    asked: Mutex<Option<Instant>>,
}

#[derive(Debug, Default)]
struct Kept {
    keys: Vec<Jwk>,
    fetched: Option<Instant>,
}

/// How long keys are used before they are fetched again.
const LIFETIME: Duration = Duration::from_secs(3600);

/// How long the issuer is left alone after it was asked.
const PAUSE: Duration = Duration::from_secs(10);

/// Tokens are signed with a key that only the issuer has. Those with a shared secret (`HS256`, ..) are
/// refused: with a public key taken for the secret, anyone could make them.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

impl Jwt {
    /// Takes the tokens that this issuer has made for this audience. The keys are looked for at
    /// `/.well-known/jwks.json` below the issuer.
    pub fn new(issuer: impl Into<String>, audience: impl Into<String>) -> Self {
        // An error means that a provider is installed already; any provider will do.
        let _ = crypto::rust_crypto::DEFAULT_PROVIDER.install_default();
        let issuer = issuer.into();
        Jwt {
            keys_at: format!("{}/.well-known/jwks.json", issuer.trim_end_matches('/')),
            issuer,
            audience: audience.into(),
            claim: "sub".to_owned(),
            kept: RwLock::default(),
            asked: Mutex::default(),
        }
    }

    /// Sets the address of the key set.
    #[must_use]
    pub fn keys_at(mut self, url: impl Into<String>) -> Self {
        self.keys_at = url.into();
        self
    }

    /// Sets the claim that names the caller; `sub` unless set. Choose one that is never given to another
    /// person.
    #[must_use]
    pub fn caller_claim(mut self, claim: impl Into<String>) -> Self {
        self.claim = claim.into();
        self
    }

    /// The key with this id, or the only key if the token names none; and whether the keys are fresh.
    fn known(&self, id: Option<&str>) -> (Option<Jwk>, bool) {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        let key = match (id, kept.keys.as_slice()) {
            (Some(id), keys) => keys.iter().find(|key| key.common.key_id.as_deref() == Some(id)),
            (None, [only]) => Some(only),
            (None, _) => None,
        };
        (key.cloned(), kept.fetched.is_some_and(|at| at.elapsed() < LIFETIME))
    }

    async fn key(&self, id: Option<&str>) -> Result<Jwk, Denied> {
        if let (Some(key), true) = self.known(id) {
            return Ok(key);
        }
        let mut asked = self.asked.lock().await;
        // Another request may have fetched them meanwhile.
        let is_due = asked.is_none_or(|at| at.elapsed() >= PAUSE);
        if is_due && !matches!(self.known(id), (Some(_), true)) {
            *asked = Some(Instant::now());
            self.fetch().await;
        }
        match self.known(id) {
            // Old keys are better than none while the issuer does not answer.
            (Some(key), _) => Ok(key),
            (None, true) => Err(Denied::Unknown),
            (None, false) => Err(Denied::Unavailable),
        }
    }

    async fn fetch(&self) {
        match self.fetched().await {
            Ok(keys) => {
                let kept = Kept { keys, fetched: Some(Instant::now()) };
                *self.kept.write().unwrap_or_else(PoisonError::into_inner) = kept;
            }
            // The address may hold a secret of its own.
            Err(error) => {
                let error = error.without_url();
                tracing::warn!(%error, issuer = self.issuer, "the keys of tokens could not be fetched");
            }
        }
    }

    async fn fetched(&self) -> Result<Vec<Jwk>, reqwest::Error> {
        let client = agentgraph_llm::http_client_builder().timeout(PAUSE).build()?;
        let answer = client.get(&self.keys_at).send().await?.error_for_status()?;
        let mut set: Value = answer.json().await?;
        let keys = match set["keys"].take() {
            Value::Array(keys) => keys,
            _ => Vec::new(),
        };
        // One key of a kind that is not known here leaves the others.
        Ok(keys.into_iter().filter_map(|key| serde_json::from_value(key).ok()).collect())
    }

    async fn caller_of(&self, token: &str) -> Result<Caller, Denied> {
        let head = decode_header(token).map_err(|_| Denied::Unknown)?;
        if !ALGORITHMS.contains(&head.alg) {
            return Err(Denied::Unknown);
        }
        let key = self.key(head.kid.as_deref()).await?;
        let key = DecodingKey::from_jwk(&key).map_err(|_| Denied::Unknown)?;
        let mut rules = Validation::new(head.alg);
        rules.set_issuer(&[&self.issuer]);
        rules.set_audience(&[&self.audience]);
        rules.set_required_spec_claims(&["exp", "iss", "aud"]);
        rules.validate_nbf = true;
        let claims = decode::<Map<String, Value>>(token, &key, &rules).map_err(|_| Denied::Unknown)?.claims;
        match claims.get(&self.claim).and_then(Value::as_str) {
            Some(name) if !name.is_empty() => Ok(Caller::named(name)),
            _ => Err(Denied::Unknown),
        }
    }
}

#[async_trait::async_trait]
impl Authenticate for Jwt {
    async fn authenticate(&self, request: &Parts) -> Result<Caller, Denied> {
        match bearer(&request.headers) {
            Some(token) => self.caller_of(token).await,
            None => Err(Denied::Unknown),
        }
    }
}
