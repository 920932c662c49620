//! [`Readers`]: connections for searches, each on a thread for blocking work.

use std::sync::Arc;

use rusqlite::Connection;
use tokio::task::spawn_blocking;

use super::schema::TABLES;
use crate::lock::Lock;
use crate::sqlite::fault::{Fault, Home};
use crate::sqlite::open::FileOptions;

/// The most connections that are kept for later searches.
const KEPT: usize = 4;

#[derive(Debug)]
pub(super) struct Readers {
    file: FileOptions,
    home: Home,
    /// Connections that no search uses. The lock is held to take or return one.
    idle: Lock<Vec<Connection>>,
}

impl Readers {
    pub(super) fn new(file: FileOptions, home: Home) -> Self {
        Readers { file, home, idle: Lock::default() }
    }

    /// Runs `work` with a connection of its own. If this is dropped, the work goes on and its result is
    /// dropped: it only reads.
    pub(super) async fn run<T: Send + 'static>(
        self: Arc<Self>,
        work: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let home = self.home.clone();
        let done = spawn_blocking(move || {
            let idle = self.idle.lock().pop();
            let connection = match idle {
                Some(connection) => connection,
                None => self.file.connect_to_read(&self.home, &TABLES)?,
            };
            let done = work(&connection);
            let mut idle = self.idle.lock();
            if idle.len() < KEPT {
                idle.push(connection);
            }
            done
        });
        match done.await {
            Ok(done) => done,
            Err(error) => Err(home.error("could not be searched").with_source(error).into()),
        }
    }
}
