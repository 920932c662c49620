//! From a URL to a pool, a schema and its tables.

use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Config, NoTls, Socket};

use super::dial::Dial;
use super::fault::{Fault, explain};
use super::leases::{Absent, GRACE};
use super::listen::Listener;
use super::{PostgresSaver, schema};
use crate::checkpoint::blob::SHARE_FROM;
use crate::error::{Code, Error};

/// The options of a [`PostgresSaver`]; made by [`PostgresSaver::builder`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `connect`"]
pub struct PostgresSaverBuilder {
    url: String,
    schema: String,
    connections: usize,
    grace: Duration,
    share_from: usize,
}

impl PostgresSaverBuilder {
    pub(super) fn new(url: String) -> Self {
        PostgresSaverBuilder {
            url,
            schema: "agentgraph".into(),
            connections: 16,
            grace: GRACE,
            share_from: SHARE_FROM,
        }
    }

    /// The schema that holds the tables; `agentgraph` if not set. It is created if it is not there. Letters, digits and
    /// `_`, at most 48 of them.
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// How many connections the pool may hold; 16 if not set. A saver needs one more to listen on.
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections.max(1);
        self
    }

    /// How long a saver that has lost all its connections is taken for alive; a second if not set. Its threads are another's after
    /// that. Longer, and the threads of a process that was killed are free later; shorter, and a server that is restarted, or
    /// a proxy, may cost a living process its threads before it has connected again.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// From how many bytes on a value is stored once, however many checkpoints, branches and threads hold it; 64 KiB if not
    /// set, `usize::MAX` for never. What is in the database already stays as it is; savers that share it may differ.
    pub fn share_values_from(mut self, bytes: usize) -> Self {
        self.share_from = bytes;
        self
    }

    /// Connects without encryption of what goes over the wire: to a server on the same machine or in a network of its own.
    ///
    /// # Errors
    /// As [`PostgresSaver::connect`].
    pub async fn connect(self) -> Result<PostgresSaver, Error> {
        self.connect_with(NoTls).await
    }

    /// Connects with the encryption that a TLS connector of the crate `tokio-postgres` brings.
    ///
    /// # Errors
    /// As [`PostgresSaver::connect`].
    pub async fn connect_with<T>(self, tls: T) -> Result<PostgresSaver, Error>
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::TlsConnect: Send + Sync,
        T::Stream: Send + Sync,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        self.open(tls).await.map_err(|fault| explain(fault, ""))
    }

    async fn open<T>(self, tls: T) -> Result<PostgresSaver, Fault>
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::TlsConnect: Send + Sync,
        T::Stream: Send + Sync,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if self.schema.is_empty() || self.schema.len() > 48 || !self.schema.chars().all(plain) {
            let problem =
                format!("`{}` is no name for a schema: letters, digits and `_`, at most 48", self.schema);
            return Err(Error::new(Code::Store, problem).into());
        }
        let mut config: Config = self.url.parse().map_err(|error: tokio_postgres::Error| {
            // The URL may hold a password, so it is not repeated.
            let problem = "the address of the checkpoint database makes no sense: it is to look like \
                           `postgres://user:password@host:5432/database`";
            Error::new(Code::Store, problem).with_source(error)
        })?;
        config.options(format!("-c search_path={}", self.schema.to_ascii_lowercase()));
        if config.get_application_name().is_none() {
            config.application_name("agentgraph");
        }
        let manager = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let dial = Dial::new(config.clone(), tls);
        let manager = Manager::from_connect(config, dial.clone(), manager);
        let pool = Pool::builder(manager).max_size(self.connections).build();
        let pool = pool.map_err(|error| {
            Error::new(Code::Store, "the pool of connections could not be made").with_source(error)
        })?;
        schema::bring_up_to_date(&mut *pool.get().await?, &self.schema.to_ascii_lowercase()).await?;
        let listener = Listener::start(dial, &self.schema.to_ascii_lowercase()).await?;
        let (absent, grace, share_from) = (Absent::default(), self.grace, self.share_from);
        Ok(PostgresSaver { pool, listener, absent, grace, share_from })
    }
}
