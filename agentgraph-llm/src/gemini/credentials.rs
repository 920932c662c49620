//! Tokens for Vertex AI: Google's application default credentials.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use tokio::sync::Mutex;

use crate::error::{Code, Error, Result};
use crate::http::{Clock, KeyProvider, SystemClock, config, http_client_builder, variable};

const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
const TOKEN_URL: &str = "https://oauth2.googleapis.com/token";
const METADATA_HOST: &str = "metadata.google.internal";

/// All but what a form may hold as it is.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'_').remove(b'-').remove(b'.');

/// The limit of the wait for a token.
const TIMEOUT: Duration = Duration::from_secs(15);

/// A token is replaced so long before it expires. Google's own clients use this time.
const MARGIN: Duration = Duration::from_secs(225);

/// The life of the statement that is exchanged for a token: the longest that Google takes.
const STATEMENT_LIFE: u64 = 3600;

/// Tokens of Google's application default credentials, for
/// [`GeminiModelBuilder::vertex`](super::GeminiModelBuilder::vertex): of a service account's key, of the
/// user who logged in with `gcloud`, or of the metadata server of a machine in Google's cloud. A token is
/// kept until shortly before it expires.
///
/// Not supported: federated identities (`external_account`). Not tried live.
///
/// ```
/// use agentgraph_llm::gemini::GoogleCredentials;
///
/// let error = GoogleCredentials::from_json(r#"{"type": "external_account"}"#).unwrap_err();
/// assert!(error.message().contains("`service_account`"));
/// ```
pub struct GoogleCredentials {
    source: Source,
    client: reqwest::Client,
    clock: Arc<dyn Clock>,
    /// The last token, and when it expires. Calls that need a new one wait for one request.
    token: Mutex<Option<(SecretString, SystemTime)>>,
}

enum Source {
    ServiceAccount { account: ServiceAccount, key: Box<RsaKeyPair> },
    User(User),
    Metadata { host: String },
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CredentialsFile {
    ServiceAccount(ServiceAccount),
    AuthorizedUser(User),
}

#[derive(Deserialize)]
struct ServiceAccount {
    client_email: String,
    private_key: SecretString,
    private_key_id: Option<String>,
    token_uri: Option<String>,
}

#[derive(Deserialize)]
struct User {
    client_id: String,
    client_secret: SecretString,
    refresh_token: SecretString,
    token_uri: Option<String>,
}

#[derive(Deserialize)]
struct Answer {
    access_token: SecretString,
    expires_in: u64,
}

impl GoogleCredentials {
    /// The credentials of the environment: the file in `GOOGLE_APPLICATION_CREDENTIALS`, or that of
    /// `gcloud auth application-default login`, or the metadata server, at `GCE_METADATA_HOST` if set.
    ///
    /// # Errors
    /// `E_LLM_CONFIG` if a file cannot be used.
    pub fn find() -> Result<Self> {
        let variable = |name| variable(|name| std::env::var(name).ok(), name);
        if let Some(file) = variable("GOOGLE_APPLICATION_CREDENTIALS") {
            return GoogleCredentials::from_file(file);
        }
        let folder = variable("CLOUDSDK_CONFIG").map(PathBuf::from);
        let home = || Some(PathBuf::from(variable("HOME")?).join(".config/gcloud"));
        let of_user = || Some(PathBuf::from(variable("APPDATA")?).join("gcloud"));
        let file =
            folder.or_else(of_user).or_else(home).map(|at| at.join("application_default_credentials.json"));
        match file.filter(|file| file.exists()) {
            Some(file) => GoogleCredentials::from_file(file),
            None => GoogleCredentials::metadata_server(variable("GCE_METADATA_HOST").as_deref()),
        }
    }

    /// The credentials in a file.
    ///
    /// # Errors
    /// `E_LLM_CONFIG` if it cannot be read or is of another type.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|error| {
            config(format!("the credentials in {} cannot be read: {error}", path.display()))
                .with_source(error)
        })?;
        GoogleCredentials::from_json(&text)
    }

    /// The credentials in the text of such a file.
    ///
    /// # Errors
    /// `E_LLM_CONFIG` if they are of another type.
    pub fn from_json(text: &str) -> Result<Self> {
        // The parser's own message may repeat a secret.
        let wrong = || {
            config("the credentials cannot be used: they are of type `service_account` or `authorized_user`")
        };
        let source = match serde_json::from_str(text).map_err(|_| wrong())? {
            CredentialsFile::AuthorizedUser(user) => Source::User(user),
            CredentialsFile::ServiceAccount(account) => {
                let key = Box::new(private_key(&account.private_key).ok_or_else(|| {
                    config(
                        "the private key of the service account is no RSA key in PKCS #8: download it again",
                    )
                })?);
                Source::ServiceAccount { account, key }
            }
        };
        GoogleCredentials::of(source, http_client_builder())
    }

    /// The service account of the machine. `host` is `metadata.google.internal` if not given.
    ///
    /// # Errors
    /// `E_LLM_CONFIG` if the HTTP client cannot be built.
    pub fn metadata_server(host: Option<&str>) -> Result<Self> {
        let host = host.unwrap_or(METADATA_HOST).to_owned();
        // It is reached directly, and only from the machine itself.
        GoogleCredentials::of(Source::Metadata { host }, http_client_builder().no_proxy())
    }

    fn of(source: Source, client: reqwest::ClientBuilder) -> Result<Self> {
        let client = client.timeout(TIMEOUT).build();
        let client = client.map_err(|error| config(format!("the HTTP client cannot be built: {error}")))?;
        Ok(GoogleCredentials { source, client, clock: Arc::new(SystemClock), token: Mutex::new(None) })
    }

    /// Sets the clock that the life of tokens is compared to, for tests.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    async fn request(&self) -> Result<Answer> {
        let form = |url: &Option<String>, fields: &[(&str, &str)]| {
            let encode =
                |(name, value): &(&str, &str)| format!("{name}={}", utf8_percent_encode(value, ESCAPED));
            let body: Vec<_> = fields.iter().map(encode).collect();
            let request = self.client.post(url.as_deref().unwrap_or(TOKEN_URL)).body(body.join("&"));
            request.header("content-type", "application/x-www-form-urlencoded")
        };
        let request = match &self.source {
            Source::Metadata { host } => {
                let url = format!("http://{host}/computeMetadata/v1/instance/service-accounts/default/token");
                self.client.get(url).header("metadata-flavor", "Google")
            }
            Source::User(user) => form(
                &user.token_uri,
                &[
                    ("grant_type", "refresh_token"),
                    ("client_id", &user.client_id),
                    ("client_secret", user.client_secret.expose_secret()),
                    ("refresh_token", user.refresh_token.expose_secret()),
                ],
            ),
            Source::ServiceAccount { account, key } => {
                let assertion = signed(&self.statement(account), key)?;
                let grant = "urn:ietf:params:oauth:grant-type:jwt-bearer";
                form(&account.token_uri, &[("grant_type", grant), ("assertion", &assertion)])
            }
        };
        let failed = |error: reqwest::Error| {
            let why = error.without_url();
            let message = format!("no token for Vertex: the server of tokens did not answer ({why})");
            Error::new(Code::Connection, message).with_source(why)
        };
        let response = request.send().await.map_err(failed)?;
        let status = response.status();
        let body = response.bytes().await.map_err(failed)?;
        if !status.is_success() {
            let code = if status.is_server_error() { Code::Server } else { Code::Auth };
            let message =
                format!("no token for Vertex (HTTP {status}): check the credentials and their roles");
            return Err(Error::new(code, message));
        }
        // Without the parser's message, which may repeat the token.
        serde_json::from_slice(&body)
            .map_err(|_| Error::new(Code::Decode, "the server of tokens sent no token"))
    }

    /// Header and claims of the statement that is signed.
    fn statement(&self, account: &ServiceAccount) -> [serde_json::Value; 2] {
        let now = self.clock.now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let audience = account.token_uri.as_deref().unwrap_or(TOKEN_URL);
        let header = serde_json::json!({"alg": "RS256", "typ": "JWT", "kid": account.private_key_id});
        let claims = serde_json::json!({
            "iss": account.client_email, "scope": SCOPE, "aud": audience, "iat": now, "exp": now + STATEMENT_LIFE,
        });
        [header, claims]
    }
}

/// The key in a PEM file.
fn private_key(pem: &SecretString) -> Option<RsaKeyPair> {
    let lines = pem.expose_secret().lines().filter(|line| !line.starts_with("-----"));
    let der = STANDARD.decode(lines.map(str::trim).collect::<String>()).ok()?;
    RsaKeyPair::from_pkcs8(&der).ok()
}

/// A JSON Web Token.
fn signed(parts: &[serde_json::Value; 2], key: &RsaKeyPair) -> Result<String> {
    let text = parts.each_ref().map(|part| URL_SAFE_NO_PAD.encode(part.to_string())).join(".");
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature)
        .map_err(|_| config("the key of the service account cannot sign: download it again"))?;
    Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

#[async_trait]
impl KeyProvider for GoogleCredentials {
    async fn key(&self) -> Result<SecretString> {
        let mut kept = self.token.lock().await;
        let now = self.clock.now();
        if let Some((token, expires)) = &*kept
            && now + MARGIN < *expires
        {
            return Ok(token.clone());
        }
        let Answer { access_token, expires_in } = self.request().await?;
        let expires = now.checked_add(Duration::from_secs(expires_in)).unwrap_or(now);
        *kept = Some((access_token.clone(), expires));
        Ok(access_token)
    }

    async fn refused(&self) {
        *self.token.lock().await = None;
    }
}

impl fmt::Debug for GoogleCredentials {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.source {
            Source::ServiceAccount { .. } => "service account",
            Source::User(_) => "user",
            Source::Metadata { .. } => "metadata server",
        };
        out.debug_struct("GoogleCredentials").field("source", &kind).finish_non_exhaustive()
    }
}
