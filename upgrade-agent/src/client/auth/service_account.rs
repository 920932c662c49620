//! A Google service account: its key file and its access tokens. A token is fetched on first use and renewed
//! before it expires, once for all concurrent calls.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Url};
use ring::signature::RsaKeyPair;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::{bearer, jwt, refused};
use crate::client::error::{ClientError, ErrorKind};
use crate::client::transport::{failure_of, is_loopback, read_body};
use crate::client::wire::short;

const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
const GRANT: &str = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=";
const CALL: &str = "POST of the service account's token request";

/// The longest lifetime that Google accepts.
const LIFETIME: Duration = Duration::from_secs(3600);
/// A token is renewed this long before it expires, but not before four fifths of its lifetime.
const MARGIN: Duration = Duration::from_secs(300);
/// Key files have about 2,400 bytes.
const LARGEST_FILE: u64 = 64 * 1024;

/// The HTTP client and clock of token requests.
pub(in crate::client) struct TokenHttp {
    pub(in crate::client) client: Client,
    pub(in crate::client) clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
}

/// The service account of a key file.
pub(in crate::client) struct ServiceAccount {
    email: String,
    key_id: Option<String>,
    key: RsaKeyPair,
    token_uri: Url,
    http: TokenHttp,
    /// The number of fetches, so that callers that waited for a failed one do not start another.
    fetches: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    token: Option<Token>,
    failure: Option<ClientError>,
}

struct Token {
    header: HeaderValue,
    renew_at: SystemTime,
}

/// The checked content of a key file.
pub(in crate::client) struct KeyFile {
    email: String,
    key_id: Option<String>,
    key: RsaKeyPair,
    token_uri: Url,
}

impl KeyFile {
    /// Reads a key file. Errors contain nothing of its content.
    pub(in crate::client) fn read(path: &Path) -> Result<Self, ClientError> {
        let wrong = |why: &str| refused(format!("the service account file {}: {why}", path.display()));
        let mut text = String::new();
        let file = std::fs::File::open(path).map_err(|why| wrong(&why.to_string()))?;
        file.take(LARGEST_FILE).read_to_string(&mut text).map_err(|_| wrong("it cannot be read as text"))?;
        let fields: Value = serde_json::from_str(&text).map_err(|_| wrong("it is not JSON"))?;
        Self::of(&fields).map_err(|why| wrong(&why))
    }

    fn of(fields: &Value) -> Result<Self, String> {
        let text = |name: &str| {
            let text = fields[name].as_str().filter(|text| !text.trim().is_empty());
            text.ok_or_else(|| format!("it has no {name}"))
        };
        if fields["type"].as_str().is_some_and(|kind| kind != "service_account") {
            return Err("its type is not service_account".into());
        }
        Ok(Self {
            email: text("client_email")?.to_owned(),
            key_id: text("private_key_id").ok().map(str::to_owned),
            key: private_key(text("private_key")?)?,
            token_uri: token_uri(text("token_uri")?)?,
        })
    }

    /// The URL of the token server.
    pub(in crate::client) fn token_uri(&self) -> &Url {
        &self.token_uri
    }
}

fn private_key(pem: &str) -> Result<RsaKeyPair, String> {
    let bad = || "its private_key is not an RSA key in PEM".to_owned();
    let key = match PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| bad())? {
        PrivateKeyDer::Pkcs8(der) => RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()),
        PrivateKeyDer::Pkcs1(der) => RsaKeyPair::from_der(der.secret_pkcs1_der()),
        _ => return Err(bad()),
    };
    key.map_err(|_| bad())
}

/// The signed claim is sent to this URL of the file, so the URL must be safe against eavesdroppers.
fn token_uri(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|_| "its token_uri is no URL".to_owned())?;
    let is_safe = url.scheme() == "https" || (url.scheme() == "http" && is_loopback(&url));
    if !is_safe || !url.username().is_empty() || url.password().is_some() {
        return Err("its token_uri must begin with https:// and carry no password".into());
    }
    Ok(url)
}

impl ServiceAccount {
    pub(in crate::client) fn new(file: KeyFile, http: TokenHttp) -> Self {
        let KeyFile { email, key_id, key, token_uri } = file;
        let fetches = AtomicU64::new(0);
        let state = Mutex::default();
        Self { email, key_id, key, token_uri, http, fetches, state }
    }

    /// The header with a token that is valid for a while.
    pub(super) async fn header(&self) -> Result<HeaderValue, ClientError> {
        let asked_after = self.fetches.load(Ordering::Acquire);
        let mut state = self.state.lock().await;
        if let Some(token) = state.token.as_ref().filter(|token| (self.http.clock)() < token.renew_at) {
            return Ok(token.header.clone());
        }
        if let Some(failure) = &state.failure
            && self.fetches.load(Ordering::Acquire) > asked_after
        {
            return Err(failure.clone());
        }
        let fetched = self.fetch().await;
        self.fetches.fetch_add(1, Ordering::Release);
        state.failure = fetched.as_ref().err().cloned();
        state.token = fetched.ok();
        match (&state.token, &state.failure) {
            (Some(token), _) => Ok(token.header.clone()),
            (None, Some(failure)) => Err(failure.clone()),
            (None, None) => Err(unexpected_answer("it has no token")),
        }
    }

    /// Discards a token that the server has refused, unless a new one was fetched meanwhile.
    pub(super) async fn drop_refused(&self, refused: &HeaderValue) {
        let mut state = self.state.lock().await;
        if state.token.as_ref().is_some_and(|token| token.header == *refused) {
            state.token = None;
        }
    }

    async fn fetch(&self) -> Result<Token, ClientError> {
        let now = (self.http.clock)();
        let assertion = self.assertion(now)?;
        let request = self.http.client.post(self.token_uri.clone());
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let response = request.body(format!("{GRANT}{assertion}")).send().await;
        let response = response.map_err(|why| failure_of(CALL, why))?;
        let status = response.status();
        let bytes = read_body(CALL, response).await?;
        let answer: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        if !status.is_success() {
            let why = error_text(&answer).replace(&assertion, "[secret]");
            let kind = if status.is_server_error() { ErrorKind::Server } else { ErrorKind::Auth };
            return Err(ClientError::new(kind, CALL, why).with_status(status.as_u16()));
        }
        let token =
            answer["access_token"].as_str().ok_or_else(|| unexpected_answer("it has no access_token"))?;
        let header = bearer(token).map_err(|_| unexpected_answer("its access_token cannot be sent"))?;
        let life =
            Duration::from_secs(answer["expires_in"].as_u64().unwrap_or(LIFETIME.as_secs()).min(86_400));
        Ok(Token { header, renew_at: now + life.saturating_sub(MARGIN.min(life / 5)) })
    }

    /// The signed claim that is exchanged for a token.
    fn assertion(&self, now: SystemTime) -> Result<String, ClientError> {
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let claims = json!({
            "iss": self.email,
            "scope": SCOPE,
            "aud": self.token_uri.as_str(),
            "iat": since,
            "exp": since + LIFETIME.as_secs(),
        });
        jwt::rs256(&claims, self.key_id.as_deref(), &self.key)
            .map_err(|_| refused("the service account's key cannot sign"))
    }
}

/// `{error, error_description}`, as in the OAuth standard.
fn error_text(answer: &Value) -> String {
    let parts = ["error", "error_description"].map(|field| answer[field].as_str().unwrap_or(""));
    let told: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    if told.is_empty() {
        return "the token server does not say why".into();
    }
    short(&told.join(": "))
}

fn unexpected_answer(why: &str) -> ClientError {
    ClientError::new(ErrorKind::Protocol, CALL, format!("the token server's answer is strange: {why}"))
}
