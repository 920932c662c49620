//! The client itself: one server, its dialect once known, and the calls that all others build on.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::OnceCell;

use super::builder::UpgradeClientBuilder;
use super::dialect::Dialect;
use super::error::{ClientError, ErrorKind};
use super::model::Health;
use super::transport::{Body, Call, Transport};
use super::wire;

/// A client of one UpGrade server. Cheap to clone; clones share connections and the dialect.
#[derive(Clone)]
pub struct UpgradeClient {
    transport: Arc<Transport>,
    dialect: Arc<OnceCell<Dialect>>,
}

impl UpgradeClient {
    /// Starts to describe a client of the server whose API is at `url`, such as
    /// `http://localhost:3030/api`.
    pub fn builder(url: impl Into<String>) -> UpgradeClientBuilder {
        UpgradeClientBuilder::new(url.into())
    }

    pub(super) fn new(transport: Transport) -> Self {
        Self { transport: Arc::new(transport), dialect: Arc::new(OnceCell::new()) }
    }

    /// Asks the server what it is and settles the dialect. Every other call does so when needed;
    /// calling it at the start finds a wrong URL early.
    ///
    /// # Errors
    ///
    /// As [`Self::health`], and `E_UPGRADE_PROTOCOL` if the version is not one.
    pub async fn connect(&self) -> Result<Health, ClientError> {
        let health = self.health().await?;
        let dialect = self.dialect.get_or_try_init(|| async { dialect_of(&health) });
        dialect.await?;
        Ok(health)
    }

    /// The dialect of the server, asked for on first use.
    ///
    /// # Errors
    ///
    /// As [`Self::connect`].
    pub async fn dialect(&self) -> Result<Dialect, ClientError> {
        let ask = || async { dialect_of(&self.health().await?) };
        self.dialect.get_or_try_init(ask).await.copied()
    }

    /// Whether the server is up, and which version it is. Needs no token.
    ///
    /// # Errors
    ///
    /// `E_UPGRADE_CONNECT` or `E_UPGRADE_TIMEOUT` if nobody answers, `E_UPGRADE_PROTOCOL` if it is
    /// not an UpGrade server that does.
    pub async fn health(&self) -> Result<Health, ClientError> {
        let call = Call::get(&[]);
        let reply = self.transport.send(self.dialect.get().copied(), &call).await?;
        wire::health(&wire::success(reply)?).ok_or_else(|| not_upgrade(&call.name()))
    }

    /// Makes a call and hands back the body of a good answer; nothing (204) reads as `null`.
    pub(super) async fn call(&self, call: Call) -> Result<Value, ClientError> {
        let dialect = self.dialect().await?;
        wire::success(self.transport.send(Some(dialect), &call).await?).map(|body| match body {
            Body::Json(value) => value,
            _ => Value::Null,
        })
    }
}

impl fmt::Debug for UpgradeClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpgradeClient").field("dialect", &self.dialect.get()).finish()
    }
}

fn dialect_of(health: &Health) -> Result<Dialect, ClientError> {
    Dialect::of_version(&health.version).ok_or_else(|| {
        let why = format!("the server calls itself version {:?}", health.version);
        ClientError::new(ErrorKind::Protocol, "GET /", why)
    })
}

fn not_upgrade(call: &str) -> ClientError {
    ClientError::new(ErrorKind::Protocol, call, "this is not the health answer of an UpGrade server")
}
