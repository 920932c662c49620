//! From a URL to a pool, a schema and its tables.

use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Config, Socket};

use super::dial::{Connector, Dial};
use super::fault::{Fault, explain};
use super::leases::{self, GRACE};
use super::listen::Listener;
use super::statements::{Connection, Style};
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
    session_url: Option<String>,
    grace: Duration,
    share_from: usize,
}

/// How a database is connected to.
#[derive(Clone, Debug)]
pub(crate) struct ServerOptions {
    pub(crate) url: String,
    /// `None` to find out.
    pub(crate) is_pooled: Option<bool>,
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
            is_pooled: None,
            schema: schema.to_owned(),
            connections: 16,
            connect_timeout: Duration::from_secs(10),
            wait_timeout: Duration::from_secs(30),
            answer_timeout: Duration::from_secs(60),
        }
    }
}

/// The methods that the builders of a saver and a store on a server have in common.
macro_rules! server_methods {
    ($opened:ident, $schema:literal, $explain:expr) => {
        #[doc = concat!("The schema of the tables; `", $schema, "` if not set.")]
        /// It is created if it does not exist. Letters, digits and `_`, at most 48; case matters. A saver
        /// and a store need different ones.
        pub fn schema(mut self, schema: impl Into<String>) -> Self {
            self.server.schema = schema.into();
            self
        }

        /// The most connections of the pool; 16 if not set. A saver needs one more to listen on, unless a
        /// pooler is in between and there is no
        /// [`session_url`](crate::PostgresSaverBuilder::session_url).
        pub fn connections(mut self, connections: usize) -> Self {
            self.server.connections = connections.max(1);
            self
        }

        /// The longest time that a call may take, before it fails with
        /// [`StoreCode::Store`](crate::StoreCode::Store) and its connection is closed; a minute if not set.
        /// It covers everything inside: waiting for a connection, opening one, all statements and
        /// repetitions, and connecting itself. The data of a failed call may or may not be stored.
        ///
        /// The work of some calls grows with a thread or with the store: deleting, copying and pruning
        /// threads, [`usage`](crate::Catalog::usage), and connecting after an update that changes the
        /// tables. Where a minute is too short for them, connect once more, with a longer time.
        pub fn answer_timeout(mut self, timeout: std::time::Duration) -> Self {
            self.server.answer_timeout = timeout;
            self
        }

        /// The longest time that connecting to the server may take, for each address in the URL; 10 seconds
        /// if neither this nor `connect_timeout` in the URL is set.
        pub fn connect_timeout(mut self, timeout: std::time::Duration) -> Self {
            self.server.connect_timeout = timeout;
            self
        }

        /// The longest time that a call waits for a connection of the pool while all are in use, before it
        /// fails with [`StoreCode::Store`](crate::StoreCode::Store); 30 seconds if not set.
        pub fn wait_timeout(mut self, timeout: std::time::Duration) -> Self {
            self.server.wait_timeout = timeout;
            self
        }

        /// Connects without TLS: to a server on the same machine or in a private network.
        ///
        /// # Errors
        #[doc = concat!("As [`", stringify!($opened), "::connect`].")]
        pub async fn connect(self) -> Result<$opened, $crate::error::StoreError> {
            self.connect_with(tokio_postgres::NoTls).await
        }

        /// Connects with TLS, by a connector for the crate `tokio-postgres`.
        ///
        /// # Errors
        #[doc = concat!("As [`", stringify!($opened), "::connect`].")]
        pub async fn connect_with<T>(self, tls: T) -> Result<$opened, $crate::error::StoreError>
        where
            T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
            T::TlsConnect: Send + Sync,
            T::Stream: Send + Sync,
            <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
        {
            let answer_timeout = self.server.answer_timeout;
            let connector = $crate::postgres::dial::connector(tls);
            let opened = tokio::time::timeout(answer_timeout, self.open(connector)).await;
            opened.unwrap_or(Err(Fault::Silent(answer_timeout))).map_err($explain)
        }
    };
}
pub(crate) use server_methods;

impl PostgresSaverBuilder {
    pub(super) fn new(url: String) -> Self {
        PostgresSaverBuilder {
            server: ServerOptions::new(url, "agentgraph"),
            session_url: None,
            grace: GRACE,
            share_from: SHARE_FROM,
        }
    }

    /// The URL is that of a pooler such as PgBouncer, in session or transaction mode. Connecting finds out
    /// by itself whether a pooler is in between, by the number of the process at the other end; set this for
    /// a pooler that passes on the numbers of the server.
    ///
    /// Statements have no names behind a pooler, and nothing depends on a session. Without a
    /// [`session_url`](Self::session_url) the saver gives no sign of life: the threads of a killed process
    /// become free when their leases end, by time alone, and callers that wait for a thread look at it again
    /// and again.
    ///
    /// ```no_run
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), agentgraph_checkpoint::StoreError> {
    /// use agentgraph_checkpoint::{Checkpointer, PostgresSaver};
    ///
    /// let saver = PostgresSaver::builder("postgres://agent@pooler:6432/app")
    ///     .pooled()
    ///     .session_url("postgres://agent@database:5432/app")
    ///     .connect()
    ///     .await?;
    /// assert!(saver.threads().await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn pooled(mut self) -> Self {
        self.server.is_pooled = Some(true);
        self
    }

    /// A second address of the same database, for what needs a session while the other address is that of a
    /// pooler: the connection that waits for notifications, whose lock is the saver's sign of life. It leads
    /// to the server itself, or to a pooler in session mode. Connecting fails with
    /// [`StoreCode::Store`](crate::StoreCode::Store) if it leads to another database or does not keep
    /// sessions.
    pub fn session_url(mut self, url: impl Into<String>) -> Self {
        self.session_url = Some(url.into());
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

    server_methods!(PostgresSaver, "agentgraph", |fault| explain(fault, ""));

    async fn open(self, connector: Connector) -> Result<PostgresSaver, Fault> {
        let PostgresSaverBuilder { server, session_url, grace, share_from } = self;
        let number = leases::new_owner();
        let (calls, dial, mut connection) = server.open(&connector, Some(number)).await?;
        schema::migrate(&mut connection, &server.schema, schema::MIGRATIONS).await?;
        let session = match session_url {
            Some(url) => Some(server.dial(&url, &connector, Some(number))?.assume(false)),
            None => Some(dial).filter(|dial| !dial.is_pooled()),
        };
        let owner = if session.is_some() { number } else { -number };
        let listener = Listener::start(session.clone(), owner, &server.schema).await?;
        if let Some(session) = session
            && calls.style.is_pooled()
            && !(leases::is_seen(&connection, owner).await? && session.keeps_sessions().await?)
        {
            let problem = "`PostgresSaverBuilder::session_url` does not lead to the same database, or leads to \
                           a pooler that does not keep sessions: name the server itself";
            return Err(StoreError::new(StoreCode::Store, problem).into());
        }
        drop(connection);
        let (absent, stops) = Default::default();
        Ok(PostgresSaver { calls, listener, absent, grace, share_from, stops })
    }
}

impl ServerOptions {
    /// The pool, the way to open more connections, and the first one.
    pub(crate) async fn open(
        &self,
        connector: &Connector,
        owner: Option<i64>,
    ) -> Result<(Calls, Dial, Connection), Fault> {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if self.schema.is_empty() || self.schema.len() > 48 || !self.schema.chars().all(plain) {
            let problem =
                format!("`{}` is not a valid schema name: use 1 to 48 letters, digits and `_`", self.schema);
            return Err(StoreError::new(StoreCode::Store, problem).into());
        }
        let mut dial = self.dial(&self.url, connector, owner)?;
        if let Some(is_pooled) = self.is_pooled {
            dial = dial.assume(is_pooled);
        }
        let manager = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_connect(Config::new(), dial.clone(), manager);
        let pool = Pool::builder(manager).max_size(self.connections).runtime(Runtime::Tokio1);
        let wait_timeout = self.wait_timeout.min(self.answer_timeout);
        let pool = pool.wait_timeout(Some(wait_timeout)).create_timeout(Some(dial.timeout()));
        let pool = pool.build().map_err(|error| {
            StoreError::new(StoreCode::Store, "the pool of connections could not be created")
                .with_source(error)
        })?;
        let first = pool.get().await?;
        let style = Style::new(&self.schema, dial.is_pooled());
        let calls = Calls { pool, style: style.clone(), answer_timeout: self.answer_timeout };
        Ok((calls, dial, Connection::new(first, style)))
    }

    fn dial(&self, url: &str, connector: &Connector, owner: Option<i64>) -> Result<Dial, StoreError> {
        let config = self.config(url)?;
        let timeout = config.get_connect_timeout().copied().unwrap_or(self.connect_timeout);
        let timeout = timeout * u32::try_from(config.get_hosts().len().max(1)).unwrap_or(1);
        Ok(Dial::new(config, connector, timeout.min(self.answer_timeout), owner))
    }

    /// The settings of the URL, with defaults for those it leaves out.
    fn config(&self, url: &str) -> Result<Config, StoreError> {
        let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
            // The URL may contain a password, so it is not repeated.
            let problem = "the address of the database is not valid: write it as \
                           `postgres://user:password@host:5432/database`";
            StoreError::new(StoreCode::Store, problem).with_source(error)
        })?;
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
