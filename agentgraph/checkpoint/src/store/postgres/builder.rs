//! [`PostgresStoreBuilder`]: the options of a store in a database.

use tokio_postgres::Socket;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};

use super::PostgresStore;
use super::schema::MIGRATIONS;
use super::vectors::Vectors;
use crate::postgres::dial::Connector;
use crate::postgres::fault::{Fault, explain_for_items};
use crate::postgres::open::{ServerOptions, server_methods};
use crate::postgres::schema::migrate;
use crate::store::options::{Options, SCAN_LIMIT, option_methods};

/// The options of a [`PostgresStore`], made by [`PostgresStore::builder`].
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), agentgraph_checkpoint::StoreError> {
/// use agentgraph_checkpoint::PostgresStore;
/// use std::time::Duration;
///
/// let store = PostgresStore::builder("postgres://agent@localhost/app")
///     .schema("memory")
///     .connections(8)
///     .lifetime(Duration::from_secs(30 * 24 * 3600))
///     .connect()
///     .await?;
/// # drop(store);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `connect`"]
pub struct PostgresStoreBuilder {
    server: ServerOptions,
    options: Options,
    requires_pgvector: bool,
}

impl PostgresStoreBuilder {
    pub(super) fn new(url: String) -> Self {
        PostgresStoreBuilder {
            server: ServerOptions::new(url, "agentgraph_store"),
            options: Options::new(SCAN_LIMIT),
            requires_pgvector: false,
        }
    }

    option_methods!();

    /// The URL is that of a pooler such as PgBouncer, in session or transaction mode. Connecting finds out
    /// by itself whether a pooler is in between, as that of a
    /// [`PostgresSaver`](crate::PostgresSaverBuilder::pooled). Behind it statements have no names; a store
    /// needs no session.
    ///
    /// ```no_run
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), agentgraph_checkpoint::StoreError> {
    /// use agentgraph_checkpoint::PostgresStore;
    ///
    /// let store = PostgresStore::builder("postgres://agent@pooler:6432/app").pooled().connect().await?;
    /// assert!(!store.uses_pgvector());
    /// # Ok(())
    /// # }
    /// ```
    pub fn pooled(mut self) -> Self {
        self.server.is_pooled = Some(true);
        self
    }

    /// Fails with [`StoreCode::Store`](crate::StoreCode::Store) if the server cannot compare vectors, in the
    /// place of comparing them in this process.
    pub fn require_pgvector(mut self) -> Self {
        self.requires_pgvector = true;
        self
    }

    server_methods!(PostgresStore, "agentgraph_store", explain_for_items);

    async fn open(self, connector: Connector) -> Result<PostgresStore, Fault> {
        let (calls, _, mut connection) = self.server.open(&connector, None).await?;
        migrate(&mut connection, &self.server.schema, MIGRATIONS).await?;
        let needs_vectors = self.requires_pgvector || self.options.index.is_some();
        let vectors = match needs_vectors {
            true => Vectors::find(&connection, self.requires_pgvector).await?,
            false => Vectors::InProcess,
        };
        Ok(PostgresStore { options: self.options, calls, vectors })
    }
}
