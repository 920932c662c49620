//! The settings of an embedded server.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::SystemTime;

use secrecy::SecretString;
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::accounts::gate::Gate;
use crate::accounts::{self, settings};
use crate::contexts::Contexts;
use crate::core::Core;
use crate::error::ServerError;
use crate::handle::ServerHandle;
use crate::routes::{RouteContext, Sites};
use crate::shared_core::SharedCore;
use crate::wire::dialect::Dialect;
use crate::wire::fault::Fault;
use crate::world::World;
use crate::world::journal::Journal;
use crate::world::sources::{self, Clock, Ids};
use crate::{metrics, segments};

/// An UpGrade server inside this process.
#[derive(Debug)]
pub struct EmbeddedServer;

impl EmbeddedServer {
    /// Starts a builder. The defaults: in memory, a free port, the contexts `assign-prog` and `mathstream`.
    pub fn builder() -> EmbeddedServerBuilder {
        EmbeddedServerBuilder {
            port: 0,
            data_file: None,
            clock: Box::new(SystemTime::now),
            ids: Box::new(Uuid::new_v4),
            contexts: Contexts::default(),
            dialect: Dialect::V65,
            lasting: false,
            sites: vec!["localhost".to_owned()],
            gate: Gate::default(),
        }
    }
}

/// The settings of an [`EmbeddedServer`].
pub struct EmbeddedServerBuilder {
    port: u16,
    data_file: Option<PathBuf>,
    clock: Clock,
    ids: Ids,
    contexts: Contexts,
    dialect: Dialect,
    lasting: bool,
    sites: Vec<String>,
    gate: Gate,
}

impl EmbeddedServerBuilder {
    /// Sets the port on loopback; 0, the default, takes a free one.
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Stores all data in this SQLite file, which is created with its folder if it does not exist. Only one
    /// server can use it at a time.
    pub fn data_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.data_file = Some(path.into());
        self
    }

    /// Stores all data in memory, which is the default.
    pub fn in_memory(mut self) -> Self {
        self.data_file = None;
        self
    }

    /// Sets the clock of the server.
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Box::new(clock);
        self
    }

    /// Sets the source of ids, which must be unique.
    pub fn ids(mut self, ids: impl FnMut() -> Uuid + Send + 'static) -> Self {
        self.ids = Box::new(ids);
        self
    }

    /// Derives ids from a seed.
    pub fn seed(mut self, seed: u64) -> Self {
        self.ids = sources::seeded(seed);
        self
    }

    /// Sets the contexts.
    pub fn contexts(mut self, contexts: impl Into<Contexts>) -> Self {
        self.contexts = contexts.into();
        self
    }

    /// Sets the emulated version: 6.5.0, the default, or 6.2.0.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use tokio::io::{AsyncReadExt, AsyncWriteExt};
    /// use tokio::net::TcpStream;
    /// use upgrade_simulator::{Dialect, EmbeddedServer};
    ///
    /// let server = EmbeddedServer::builder().dialect(Dialect::V62).start().await?;
    /// let mut call = TcpStream::connect(server.addr()).await?;
    /// call.write_all(b"GET /api/version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await?;
    /// let mut answer = String::new();
    /// call.read_to_string(&mut answer).await?;
    /// assert!(answer.ends_with("\"6.2.0\""));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn dialect(mut self, dialect: impl Into<Dialect>) -> Self {
        self.dialect = dialect.into();
        self
    }

    /// Keeps connections open after an error response. UpGrade up to 6.2 closes them without notice, and so
    /// does this server in that dialect by default; the next call on such a connection fails.
    pub fn lasting_connections(mut self) -> Self {
        self.lasting = true;
        self
    }

    /// Requires a bearer token from administrators. Each token belongs to the account with an email; the
    /// accounts are in the server's data (at first `admin@example.com`). By default no token is required.
    /// first there is `admin@example.com`). Without a token, the default, nobody is asked.
    pub fn admin_token(mut self, token: SecretString, email: impl Into<String>) -> Self {
        self.gate.admins.push((token, email.into()));
        self
    }

    /// Sets the key of the students' applications and the secret for its signature. They are required while
    /// the setting `toCheckAuth` is on.
    pub fn client_key(mut self, key: impl Into<String>, secret: SecretString) -> Self {
        self.gate.client = Some((key.into(), secret));
        self
    }

    /// Sets the sites whose web pages may call the server, in place of `localhost`. A name such as
    /// `example.org` includes its subdomains, every scheme and every port, as in UpGrade's setting
    /// `CORS_WHITELIST`; an address stands for itself. Other callers are not checked.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use upgrade_simulator::EmbeddedServer;
    ///
    /// let server = EmbeddedServer::builder().cors_origins(["localhost", "127.0.0.1"]).start().await?;
    /// assert_eq!(format!("{}/api", server.host_url()), server.url());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn cors_origins(mut self, sites: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.sites = sites.into_iter().map(Into::into).collect();
        self
    }

    /// Starts the server on the current tokio runtime.
    ///
    /// # Errors
    ///
    /// If the port is taken, or the data file is in use or not a data file of this server.
    pub async fn start(self) -> Result<ServerHandle, ServerError> {
        let port = self.port;
        let failed = |source| ServerError::Bind { port, source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(failed)?;
        let addr = listener.local_addr().map_err(failed)?;
        let dialect = self.dialect;
        let lasting = self.lasting;
        let sites = Sites::of(&self.sites);
        let core = self.shared()?;
        let face = RouteContext { core, dialect, breaks: dialect == Dialect::V62 && !lasting, sites };
        Ok(ServerHandle::serve(listener, addr, &face))
    }

    fn shared(self) -> Result<SharedCore, ServerError> {
        let open = |path| Journal::open(path, self.dialect);
        let journal = self.data_file.as_deref().map(open).transpose()?;
        let world = journal.as_ref().map_or_else(|| Ok(World::new(self.dialect)), Journal::load)?;
        let mut core = Core::new(world, journal, self.contexts, self.clock, self.ids);
        let unwritten = |_| ServerError::Data {
            path: self.data_file.unwrap_or_default(),
            why: "it cannot be written".to_owned(),
        };
        ensure_initial_rows(&mut core).map_err(unwritten)?;
        Ok(SharedCore::new(core, self.gate))
    }
}

/// Creates the rows that the original creates at its start, on disk as well.
fn ensure_initial_rows(core: &mut Core) -> Result<(), Fault> {
    segments::ensure_global_lists(core);
    settings::ensure_settings(core);
    accounts::ensure_account(core);
    metrics::ensure_first_metrics(core);
    core.commit()
}
