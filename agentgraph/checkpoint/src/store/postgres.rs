//! [`PostgresStore`]: items in a Postgres database, for many processes on many machines.
//!
//! This file decides which call talks to the server. `changes.rs` and `reads.rs` have the statements,
//! `schema.rs` the tables, `vectors.rs` the extension `pgvector`, `builder.rs` the options. The pool, the
//! tasks of calls and the explanation of failures are those of the checkpointer (`crate::postgres`).

mod builder;
mod changes;
mod reads;
mod schema;
mod vectors;

pub use builder::PostgresStoreBuilder;

use async_trait::async_trait;

use self::reads::Read;
use self::vectors::Vectors;
use super::Store;
use super::change::Change;
use super::embedder::embed_query;
use super::item::{Found, Item};
use super::namespace::{Namespace, check_key};
use super::options::{Options, SCAN_LIMIT, rows_of};
use super::pattern::NamespaceQuery;
use super::search::SearchQuery;
use crate::error::StoreError;
use crate::impls::shows;
use crate::postgres::schema::migrate;
use crate::postgres::statements::Style;
use crate::postgres::{Calls, explained};

/// Keeps items in a Postgres database (version 12 or later), in tables that it creates on first use.
/// A clone is another handle of the same store.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), agentgraph_checkpoint::StoreError> {
/// use agentgraph_checkpoint::{Namespace, PostgresStore, StoreExt};
///
/// let store = PostgresStore::connect("postgres://agent@localhost/agents").await?;
/// store.put(&Namespace::new(["users", "ada"])?, "city", "Rome").await?;
/// # Ok(())
/// # }
/// ```
///
/// The tables are in a schema of their own, `agentgraph_store` if not set, so checkpoints may be in the same
/// database. Creating them needs the right to do so; another user needs the rights on the schema that
/// [`PostgresSaver`](crate::PostgresSaver) lists. Pooling, timeouts and poolers in between are as there.
///
/// Filters are evaluated by this process, after the items of the namespace were read: the
/// [scan limit](PostgresStoreBuilder::scan_limit) bounds how many. A search sees the items as they were
/// when it began.
///
/// # Vectors
///
/// With a [`VectorIndex`](crate::VectorIndex) the store uses the extension `pgvector`, if the database has
/// it, or the server has it and this user may create it: the server then compares the vectors, exactly and
/// without an approximate index, and sends the items in order of their similarity. Otherwise this process
/// reads the vectors of the namespace and compares them, within the scan limit; the results are the same.
/// [`uses_pgvector`](Self::uses_pgvector) says which;
/// [`require_pgvector`](PostgresStoreBuilder::require_pgvector) makes it an error. A user with the right
/// creates the extension once per database: `CREATE EXTENSION vector`.
///
/// # Errors
///
/// [`StoreCode::Store`](crate::StoreCode::Store) if the server fails or cannot be reached; its source is
/// the client's own error. [`StoreCode::ItemUnreadable`](crate::StoreCode::ItemUnreadable) if stored bytes
/// are damaged; other items are not affected.
#[derive(Clone)]
pub struct PostgresStore {
    options: Options,
    calls: Calls,
    vectors: Vectors,
}

impl PostgresStore {
    /// Connects to the database of a URL (`postgres://user:password@host:port/database`) or a list of
    /// settings (`host=.. user=..`); creates or updates the tables.
    ///
    /// # Errors
    /// [`StoreCode::Store`](crate::StoreCode::Store) if the URL is invalid, the server cannot be reached,
    /// or it does not allow tables to be created;
    /// [`StoreCode::UnknownFormat`](crate::StoreCode::UnknownFormat) if a newer release created them.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::builder(url).connect().await
    }

    /// Set options, then [`connect`](PostgresStoreBuilder::connect).
    pub fn builder(url: impl Into<String>) -> PostgresStoreBuilder {
        PostgresStoreBuilder::new(url.into())
    }

    /// A store on the connections of a saver, with the usual options.
    pub(crate) async fn on(calls: Calls, schema: &str) -> Result<Self, StoreError> {
        let calls = Calls { style: Style::new(schema, calls.style.is_pooled()), ..calls };
        let name = schema.to_owned();
        explained!(calls, items, connection => migrate(connection, &name, schema::MIGRATIONS).await)?;
        Ok(PostgresStore { options: Options::new(SCAN_LIMIT), calls, vectors: Vectors::InProcess })
    }

    /// Whether the server compares vectors. `false` without a [`VectorIndex`](crate::VectorIndex).
    pub fn uses_pgvector(&self) -> bool {
        matches!(self.vectors, Vectors::OnServer { .. })
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn read(
        &self,
        namespace: &Namespace,
        key: &str,
        refresh: Option<bool>,
    ) -> Result<Option<Item>, StoreError> {
        check_key(key)?;
        let now = self.options.now();
        let (space, name) = (namespace.to_bytes(), key.as_bytes().to_vec());
        let refreshes = self.options.refreshes(refresh);
        explained!(self.calls, items, connection => {
            reads::get(connection, &space, &name, now, refreshes).await
        })
    }

    async fn change(&self, changes: Vec<Change>) -> Result<Vec<Option<u64>>, StoreError> {
        let prepared = self.options.prepare(changes).await?;
        let rows = rows_of(prepared)?;
        explained!(self.calls, items, connection => changes::apply(connection, &rows).await)
    }

    async fn find(&self, query: &SearchQuery) -> Result<Vec<Found>, StoreError> {
        query.check()?;
        let vector = embed_query(self.options.index.as_ref(), query.text.as_deref()).await?;
        let read = Read {
            query: query.clone(),
            vector,
            vectors: self.vectors.clone(),
            now: self.options.now(),
            scan_limit: self.options.scan_limit,
            refreshes: self.options.refreshes(query.refresh),
        };
        explained!(self.calls, items, connection => reads::search(connection, &read).await)
    }

    async fn list(&self, query: &NamespaceQuery) -> Result<Vec<Namespace>, StoreError> {
        query.check()?;
        let (query, now) = (query.clone(), self.options.now());
        explained!(self.calls, items, connection => reads::list(connection, &query, now).await)
    }

    async fn sweep(&self) -> Result<u64, StoreError> {
        let now = self.options.now();
        explained!(self.calls, items, connection => changes::sweep(connection, now).await)
    }
}

shows!(PostgresStore: |it| { options: it.options, vectors: it.vectors });
