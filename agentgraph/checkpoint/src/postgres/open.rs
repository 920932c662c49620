//! From a URL to a pool, a schema and its tables.

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Config, NoTls, Socket};

use super::dial::Dial;
use super::fault::{Fault, explain};
use super::leases::GRACE;
use super::listen::Listener;
use super::{Calls, PostgresSaver, schema};
use crate::blob::SHARE_FROM;
use crate::error::{StoreCode, StoreError};

/// The options of a [`PostgresSaver`], made by [`PostgresSaver::builder`].
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), agentgraph_checkpoint::StoreError> {
/// use agentgraph_checkpoint::{Checkpointer, PostgresSaver};
/// use std::time::Duration;
///
/// let saver = PostgresSaver::builder("postgres://agent@localhost/app")
///     .schema("agents")
///     .connections(32)
///     .answer_timeout(Duration::from_secs(10))
///     .connect()
///     .await?;
/// assert!(saver.threads().await?.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `connect`"]
pub struct PostgresSaverBuilder {
    server: ServerOptions,
    grace: Duration,
    share_from: usize,
}

/// How a database is connected to.
#[derive(Clone, Debug)]
pub(crate) struct ServerOptions {
    pub(crate) url: String,
    pub(crate) schema: String,
    pub(crate) connections: usize,
    pub(crate) connect_timeout: Duration,
    pub(crate) wait_timeout: Duration,
    pub(crate) answer_timeout: Duration,
}

impl ServerOptions {
    pub(crate) fn new(url: String, schema: &str) -> Self {
        ServerOptions {
            url,
            schema: schema.to_owned(),
            connections: 16,
            connect_timeout: Duration::from_secs(10),
            wait_timeout: Duration::from_secs(30),
            answer_timeout: Duration::from_secs(60),
        }
    }
}

impl PostgresSaverBuilder {
    pub(super) fn new(url: String) -> Self {
        PostgresSaverBuilder {
            server: ServerOptions::new(url, "agentgraph"),
            grace: GRACE,
            share_from: SHARE_FROM,
        }
    }

    /// The schema of the tables; `agentgraph` if not set. It is created if it does not exist. Letters,
    /// digits and `_`, at most 48; case matters.
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.server.schema = schema.into();
        self
    }

    /// The most connections of the pool; 16 if not set. A saver needs one more to listen on.
    pub fn connections(mut self, connections: usize) -> Self {
        self.server.connections = connections.max(1);
        self
    }

    /// The longest time that connecting to the server may take, for each address in the URL; 10 seconds if
    /// neither this nor `connect_timeout` in the URL is set.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.server.connect_timeout = timeout;
        self
    }

    /// The longest time that a call waits for a connection of the pool while all are in use, before it
    /// fails with [`StoreCode::Store`](crate::StoreCode::Store); 30 seconds if not set.
    pub fn wait_timeout(mut self, timeout: Duration) -> Self {
        self.server.wait_timeout = timeout;
        self
    }

    /// The longest time that the server may take to answer a call, before it fails with
    /// [`StoreCode::Store`](crate::StoreCode::Store) and its connection is closed; a minute if not set. The
    /// data of a failed call may or may not be stored. Calls whose work grows with a thread or with the
    /// store (deleting, copying and pruning threads, and [`usage`](crate::Catalog::usage)) may take longer,
    /// as long as the server answers keep-alive probes: one every 30 seconds unless the URL sets another
    /// interval.
    pub fn answer_timeout(mut self, timeout: Duration) -> Self {
        self.server.answer_timeout = timeout;
        self
    }

    /// How long a saver that lost all its connections counts as alive; a second if not set. After that
    /// other savers may take its threads. With a longer time the threads of a killed process become free
    /// later; with a shorter one a restart of the server, or of a proxy, may cost a live process its
    /// threads before it has reconnected.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Values of at least `bytes` bytes are stored once, however many checkpoints, branches and threads use
    /// them; 64 KiB if not set, `usize::MAX` for never. Values already in the database are not changed;
    /// savers that share it may differ.
    pub fn share_values_from(mut self, bytes: usize) -> Self {
        self.share_from = bytes;
        self
    }

    /// Connects without TLS: to a server on the same machine or in a private network.
    ///
    /// # Errors
    /// As [`PostgresSaver::connect`].
    pub async fn connect(self) -> Result<PostgresSaver, StoreError> {
        self.connect_with(NoTls).await
    }

    /// Connects with TLS, by a connector for the crate `tokio-postgres`.
    ///
    /// # Errors
    /// As [`PostgresSaver::connect`].
    pub async fn connect_with<T>(self, tls: T) -> Result<PostgresSaver, StoreError>
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
        let (pool, dial) = self.server.pool(tls)?;
        schema::migrate(&mut pool.get().await?, &self.server.schema, schema::MIGRATIONS).await?;
        let listener = Listener::start(dial, &self.server.schema).await?;
        let PostgresSaverBuilder { server: ServerOptions { answer_timeout, .. }, grace, share_from } = self;
        let calls = Calls { pool, answer_timeout };
        Ok(PostgresSaver {
            calls,
            listener,
            absent: Arc::default(),
            grace,
            share_from,
            stops: Default::default(),
        })
    }
}

impl ServerOptions {
    /// A pool whose connections use the schema, and the way to open more of them.
    pub(crate) fn pool<T>(&self, tls: T) -> Result<(Pool, Dial), Fault>
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::TlsConnect: Send + Sync,
        T::Stream: Send + Sync,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if self.schema.is_empty() || self.schema.len() > 48 || !self.schema.chars().all(plain) {
            let problem =
                format!("`{}` is not a valid schema name: use 1 to 48 letters, digits and `_`", self.schema);
            return Err(StoreError::new(StoreCode::Store, problem).into());
        }
        let config = self.config()?;
        let connect_timeout = config.get_connect_timeout().copied().unwrap_or(self.connect_timeout);
        let connect_timeout = connect_timeout * u32::try_from(config.get_hosts().len().max(1)).unwrap_or(1);
        let manager = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let dial = Dial::new(config.clone(), tls, connect_timeout);
        let manager = Manager::from_connect(config, dial.clone(), manager);
        let pool = Pool::builder(manager).max_size(self.connections).runtime(Runtime::Tokio1);
        let pool = pool.wait_timeout(Some(self.wait_timeout)).create_timeout(Some(connect_timeout));
        let pool = pool.build().map_err(|error| {
            StoreError::new(StoreCode::Store, "the pool of connections could not be created")
                .with_source(error)
        })?;
        Ok((pool, dial))
    }

    /// The settings of the URL, with defaults for those it leaves out.
    fn config(&self) -> Result<Config, StoreError> {
        let mut config: Config = self.url.parse().map_err(|error: tokio_postgres::Error| {
            // The URL may contain a password, so it is not repeated.
            let problem = "the address of the database is not valid: write it as \
                           `postgres://user:password@host:5432/database`";
            StoreError::new(StoreCode::Store, problem).with_source(error)
        })?;
        // The name was checked: letters, digits and `_`.
        let schema = format!("-c search_path=\"{}\"", self.schema);
        let options = match config.get_options() {
            Some(options) => format!("{options} {schema}"),
            None => schema,
        };
        config.options(options);
        if config.get_application_name().is_none() {
            config.application_name("agentgraph");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(self.connect_timeout);
        }
        keep_alive(&mut config);
        Ok(config)
    }
}

/// The default of `tokio-postgres`: too long for a caller that waits for an answer.
const IDLE: Duration = Duration::from_secs(2 * 60 * 60);

/// Makes a connection to a server that silently disappeared end within a minute.
fn keep_alive(config: &mut Config) {
    if config.get_keepalives_idle() == IDLE {
        config.keepalives_idle(Duration::from_secs(30));
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_interval(Duration::from_secs(10));
    }
    if config.get_keepalives_retries().is_none() {
        config.keepalives_retries(3);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(Duration::from_secs(60));
    }
}
