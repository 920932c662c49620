//! The settings of a client, checked once when it is built.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};

use super::auth::{self, Admin, KeyFile, ServiceAccount, TokenHttp, refused};
use super::error::ClientError;
use super::retry::Policy;
use super::session::UpgradeClient;
use super::transport::{Settings, Times, Transport, client_for, is_loopback};

const CONNECT: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(30);
const DEADLINE: Duration = Duration::from_secs(120);
const RETRIES: u32 = 2;
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// The longest duration: practically endless, and small enough to be added to any time.
const LONGEST: Duration = Duration::from_secs(86_400 * 365);

/// The settings of an [`UpgradeClient`].
#[derive(Clone)]
pub struct UpgradeClientBuilder {
    url: String,
    token: Option<SecretString>,
    service_account: Option<PathBuf>,
    client_key: Option<(String, SecretString)>,
    allows_plain_http: bool,
    times: Times,
    policy: Policy,
    clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    jitter: Arc<dyn Fn() -> f64 + Send + Sync>,
}

impl UpgradeClientBuilder {
    pub(super) fn new(url: String) -> Self {
        Self {
            url,
            token: None,
            service_account: None,
            client_key: None,
            allows_plain_http: false,
            times: Times { connect: CONNECT, attempt: TIMEOUT, total: DEADLINE },
            policy: Policy { retries: RETRIES, pause: RETRY_PAUSE },
            clock: Arc::new(SystemTime::now),
            jitter: Arc::new(random),
        }
    }

    /// Sends this bearer token with every admin call. It is never displayed, and not sent with the health
    /// call or with calls of students.
    pub fn token(mut self, token: SecretString) -> Self {
        self.token = Some(token);
        self
    }

    /// Authenticates admin calls as the Google service account of this key file (JSON): the client
    /// fetches an access token from the file's `token_uri` and renews it before it ends.
    ///
    /// The file is read when the client is built. A token that the server refuses is replaced once.
    pub fn service_account_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.service_account = Some(path.into());
        self
    }

    /// Authenticates the calls of a student's application on a server that checks them: by the
    /// server's client key, signed with its secret (HS256). Neither is ever shown.
    pub fn client_key(mut self, api_key: impl Into<String>, secret: SecretString) -> Self {
        self.client_key = Some((api_key.into(), secret));
        self
    }

    /// Allows tokens and keys on an unencrypted connection to another machine, for a server in a private
    /// network. Anyone on the network path can then read them.
    ///
    /// ```
    /// use upgrade_agent::client::UpgradeClient;
    ///
    /// let school = || UpgradeClient::builder("http://upgrade.school.internal/api").token("t".into());
    /// assert_eq!(school().build().unwrap_err().code(), "E_UPGRADE_CONFIG");
    /// assert!(school().allow_plain_http().build().is_ok());
    /// ```
    pub fn allow_plain_http(mut self) -> Self {
        self.allows_plain_http = true;
        self
    }

    /// Limits one attempt of a call, 30 seconds if not set.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.times.attempt = timeout;
        self
    }

    /// Limits the time until a connection is open, 10 seconds if not set.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.times.connect = timeout;
        self
    }

    /// Limits a call with all its retries, two minutes if not set. No retry starts after that.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.times.total = deadline;
        self
    }

    /// Sets the number of retries after connection failures and overload, 2 if not set. A call that creates,
    /// changes or deletes is retried only if the server certainly did not process it.
    pub fn retries(mut self, retries: u32) -> Self {
        self.policy.retries = retries;
        self
    }

    /// Sets the back-off before the first retry, 200 milliseconds if not set. It doubles with each retry, up
    /// to 20 seconds. A longer `Retry-After` of the server takes precedence.
    pub fn retry_pause(mut self, pause: Duration) -> Self {
        self.policy.pause = pause;
        self
    }

    /// Sets the clock, the system's clock if not set.
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets the randomness of the back-off, a number from 0 to 1 that takes up to half off each wait, so that
    /// many clients do not retry at the same time.
    pub fn jitter(mut self, jitter: impl Fn() -> f64 + Send + Sync + 'static) -> Self {
        self.jitter = Arc::new(jitter);
        self
    }

    /// Builds the client. Sends nothing.
    ///
    /// # Errors
    ///
    /// `E_UPGRADE_CONFIG` if the URL is not an absolute `http` or `https` one or carries a user name or a
    /// password, a query or a fragment; if a token or client key is empty or cannot be sent in a header; if
    /// there is a token and a service account; if one of them or a client key would go over `http` to another
    /// machine and that is [not allowed](Self::allow_plain_http); or if the account's file cannot be read,
    /// has no RSA key or names a token server that is neither `https` nor on this machine.
    pub fn build(self) -> Result<UpgradeClient, ClientError> {
        let base = base_url(&self.url)?;
        let is_secret = self.token.is_some() || self.service_account.is_some() || self.client_key.is_some();
        if is_secret && base.scheme() == "http" && !is_loopback(&base) && !self.allows_plain_http {
            return Err(refused(
                "over http whoever carries the traffic can read the token: give the URL as https, or allow \
                 this with `allow_plain_http()`, at the command line with --allow-plain-http",
            ));
        }
        let times = self.times.capped();
        let admin = match (&self.token, &self.service_account) {
            (None, None) => Admin::Nobody,
            (Some(token), None) => Admin::Token(auth::bearer(token.expose_secret())?),
            (None, Some(path)) => {
                let file = KeyFile::read(path)?;
                let client = client_for(file.token_uri(), times, 0)?;
                let http = TokenHttp { client, clock: Arc::clone(&self.clock) };
                Admin::Account(Arc::new(ServiceAccount::new(file, http)))
            }
            (Some(_), Some(_)) => return Err(refused("give a token or a service account, not both")),
        };
        let key = self.client_key.as_ref().map(|(key, secret)| auth::client_bearer(key, secret));
        let settings = Settings {
            admin,
            client_key: key.transpose()?,
            base,
            times,
            policy: self.policy,
            clock: self.clock,
            jitter: self.jitter,
        };
        Ok(UpgradeClient::new(Transport::new(settings)?))
    }
}

impl Times {
    fn capped(self) -> Self {
        let Self { connect, attempt, total } = self;
        Self { connect: connect.min(LONGEST), attempt: attempt.min(LONGEST), total: total.min(LONGEST) }
    }
}

/// Good enough to spread retries of several clients.
fn random() -> f64 {
    let bits = u32::try_from(RandomState::new().hash_one(0) >> 32).unwrap_or(0);
    f64::from(bits) / f64::from(u32::MAX)
}

/// Without the URL, which is unchecked and may contain a password.
impl fmt::Debug for UpgradeClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpgradeClientBuilder")
            .field("times", &self.times)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

fn base_url(text: &str) -> Result<Url, ClientError> {
    let text = text.trim();
    if !text.contains("://") {
        return Err(refused(without_scheme(text)));
    }
    let url = Url::parse(text).map_err(|why| refused(format!("bad URL: {why}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.cannot_be_a_base() || !url.has_host() {
        return Err(refused("the URL must begin with http:// or https:// and name a host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused("the URL must not carry a user name or password; give a token instead"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(refused("the URL must not have a query or a fragment; a token is given by itself"));
    }
    Ok(url)
}

/// The error for a URL without a scheme, with the URL that was probably meant if it cannot contain a
/// password.
fn without_scheme(text: &str) -> String {
    let told = "the URL must begin with http:// or https://";
    let meant = ["http", "https"].map(|scheme| Url::parse(&format!("{scheme}://{text}")));
    let [Ok(plain), Ok(safe)] = meant else { return told.to_owned() };
    if text.contains('@') || !plain.has_host() || plain.query().is_some() || plain.fragment().is_some() {
        return told.to_owned();
    }
    let mut url = if is_loopback(&plain) { plain } else { safe };
    if url.path() == "/" {
        url.set_path("/api");
    }
    format!("{told}, such as {url}")
}
