//! The client of one server, its dialect, and the calls that all others use.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::RwLock;

use super::builder::UpgradeClientBuilder;
use super::call::Call;
use super::dialect::Dialect;
use super::error::{ClientError, ErrorKind};
use super::model::Health;
use super::reply::{Body, Reply};
use super::student_routes::KnownVersion;
use super::transport::Transport;
use super::wire;

/// A client of one UpGrade server. Cheap to clone; clones share connections and the dialect.
#[derive(Clone)]
pub struct UpgradeClient {
    transport: Arc<Transport>,
    /// Set by each successful health response, so a server that is replaced by another version is recognized.
    /// Locked during the first health call.
    server: Arc<RwLock<Option<Server>>>,
    seen: Arc<KnownVersion>,
}

/// The properties that follow from the server's version.
#[derive(Clone, Copy, Debug)]
struct Server {
    dialect: Dialect,
    is_before_6: bool,
}

impl UpgradeClient {
    /// Starts a builder for the server whose API is at `url`, such as `http://localhost:3030/api`.
    pub fn builder(url: impl Into<String>) -> UpgradeClientBuilder {
        UpgradeClientBuilder::new(url.into())
    }

    pub(super) fn new(transport: Transport) -> Self {
        Self { transport: Arc::new(transport), server: Arc::default(), seen: Arc::default() }
    }

    /// Reads the server's version and sets the dialect. Every other call does so if necessary; an explicit
    /// call detects a wrong URL early.
    ///
    /// # Errors
    ///
    /// As [`Self::health`], and `E_UPGRADE_PROTOCOL` if the version cannot be read.
    pub async fn connect(&self) -> Result<Health, ClientError> {
        let health = self.health().await?;
        server_of(&health).map(|_| health)
    }

    /// The dialect of the server; read on first use.
    ///
    /// # Errors
    ///
    /// As [`Self::connect`].
    pub async fn dialect(&self) -> Result<Dialect, ClientError> {
        self.server().await.map(|server| server.dialect)
    }

    async fn server(&self) -> Result<Server, ClientError> {
        if let Some(server) = *self.server.read().await {
            return Ok(server);
        }
        let mut known = self.server.write().await;
        match *known {
            Some(server) => Ok(server),
            None => {
                let server = server_of(&self.ask_health(None).await?)?;
                *known = Some(server);
                Ok(server)
            }
        }
    }

    pub(super) async fn is_before_6(&self) -> Result<bool, ClientError> {
        self.server().await.map(|server| server.is_before_6)
    }

    pub(super) fn seen(&self) -> &KnownVersion {
        &self.seen
    }

    /// The health and version of the server. Needs no token.
    ///
    /// # Errors
    ///
    /// `E_UPGRADE_CONNECT` or `E_UPGRADE_TIMEOUT` without a response, `E_UPGRADE_PROTOCOL` if the response is
    /// not one of an UpGrade server.
    pub async fn health(&self) -> Result<Health, ClientError> {
        let dialect = self.server.read().await.map(|server| server.dialect);
        let health = self.ask_health(dialect).await?;
        if let Ok(server) = server_of(&health) {
            *self.server.write().await = Some(server);
        }
        Ok(health)
    }

    async fn ask_health(&self, dialect: Option<Dialect>) -> Result<Health, ClientError> {
        let call = Call::health();
        let asked = async {
            let reply = self.transport.send(dialect, &call).await?;
            wire::health(&wire::success(reply)?).ok_or_else(|| not_upgrade(&call.name()))
        };
        asked.await.map_err(|why: ClientError| why.of_health().at(self.transport.base()))
    }

    /// Makes a call and returns the body of a successful response; 204 gives `null`.
    pub(super) async fn call(&self, call: Call) -> Result<Value, ClientError> {
        wire::success(self.send(&call).await?).map(Body::into_value)
    }

    /// Makes a call and returns the response with any status.
    pub(super) async fn send(&self, call: &Call) -> Result<Reply, ClientError> {
        let dialect = self.dialect().await?;
        self.transport.send(Some(dialect), call).await.map_err(|why| why.at(self.transport.base()))
    }
}

impl fmt::Debug for UpgradeClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = self.server.try_read().ok().and_then(|server| *server);
        f.debug_struct("UpgradeClient").field("server", &server).finish()
    }
}

fn server_of(health: &Health) -> Result<Server, ClientError> {
    let dialect = Dialect::of_version(&health.version).ok_or_else(|| {
        let why = format!("the server calls itself version {:?}", wire::short(&health.version));
        ClientError::new(ErrorKind::Protocol, "GET /", why)
    })?;
    Ok(Server { dialect, is_before_6: Dialect::is_before_6(&health.version) })
}

fn not_upgrade(call: &str) -> ClientError {
    ClientError::new(ErrorKind::Protocol, call, "this is not the health answer of an UpGrade server")
}
