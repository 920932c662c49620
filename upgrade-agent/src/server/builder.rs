//! Settings of an embedded server.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::SystemTime;

use tokio::net::TcpListener;
use uuid::Uuid;

use super::contexts::default_contexts;
use super::core::{Core, Shared};
use super::error::ServerError;
use super::handle::ServerHandle;
use super::journal::Journal;
use super::sources::{self, Clock, Ids};
use super::world::World;
use crate::client::ContextMetadata;

/// An UpGrade server inside this process.
#[derive(Debug)]
pub struct EmbeddedServer;

impl EmbeddedServer {
    /// Starts to describe a server: in memory, on a free port, with the two contexts
    /// `assign-prog` and `mathstream`, unless told otherwise.
    pub fn builder() -> EmbeddedServerBuilder {
        EmbeddedServerBuilder {
            port: 0,
            data_file: None,
            clock: Box::new(SystemTime::now),
            ids: Box::new(Uuid::new_v4),
            contexts: None,
        }
    }
}

/// Collects the settings of an [`EmbeddedServer`].
pub struct EmbeddedServerBuilder {
    port: u16,
    data_file: Option<PathBuf>,
    clock: Clock,
    ids: Ids,
    contexts: Option<ContextMetadata>,
}

impl EmbeddedServerBuilder {
    /// The port on loopback; 0, the default, takes a free one.
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Keeps everything in this SQLite file, which is made with its folder if it does not exist.
    /// One server at a time can use it.
    pub fn data_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.data_file = Some(path.into());
        self
    }

    /// Keeps everything in memory only, as is the default.
    pub fn in_memory(mut self) -> Self {
        self.data_file = None;
        self
    }

    /// Where the times in answers come from.
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Box::new(clock);
        self
    }

    /// Where the ids of new things come from. They must differ from each other.
    pub fn ids(mut self, ids: impl FnMut() -> Uuid + Send + 'static) -> Self {
        self.ids = Box::new(ids);
        self
    }

    /// Derives the ids of new things from a seed.
    pub fn seed(mut self, seed: u64) -> Self {
        self.ids = sources::seeded(seed);
        self
    }

    /// The contexts to serve.
    pub fn contexts(mut self, contexts: ContextMetadata) -> Self {
        self.contexts = Some(contexts);
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
        Ok(ServerHandle::serve(listener, addr, Shared::new(self.core()?)))
    }

    fn core(self) -> Result<Core, ServerError> {
        let journal = self.data_file.as_deref().map(Journal::open).transpose()?;
        let world = journal.as_ref().map_or_else(|| Ok(World::new()), Journal::load)?;
        let contexts = self.contexts.unwrap_or_else(default_contexts);
        let mut core = Core::new(world, journal, contexts, self.clock, self.ids);
        let unwritten = |_| ServerError::Data {
            path: self.data_file.unwrap_or_default(),
            why: "it cannot be written".to_owned(),
        };
        core.found().map_err(unwritten)?;
        Ok(core)
    }
}
