//! A schema for a case, and connections to it.

use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use agentgraph::checkpoint::PostgresSaver;
use tokio::runtime::Runtime;
use tokio_postgres::{Client, Config, NoTls};

use super::Server;

/// A schema with a unique name, removed on drop.
pub(crate) struct Schema {
    pub(crate) runtime: Rc<Runtime>,
    pub(crate) client: Client,
    name: String,
    server: Server,
}

impl Schema {
    pub(crate) fn new(runtime: &Rc<Runtime>) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("benches_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let server = Server::get().expect("a Postgres server");
        let client = runtime.block_on(connect(&server, &name));
        runtime.block_on(client.batch_execute(&format!("CREATE SCHEMA {name}"))).expect("a schema");
        Schema { runtime: Rc::clone(runtime), client, name, server }
    }

    /// Returns a saver with its own connections to the schema.
    pub(crate) fn saver(&self) -> PostgresSaver {
        let saver = PostgresSaver::builder(self.server.url()).schema(&self.name);
        self.runtime.block_on(saver.connect()).expect("a saver")
    }

    /// Opens one more connection like [`client`](Self::client).
    pub(crate) fn connect(&self) -> Client {
        self.runtime.block_on(connect(&self.server, &self.name))
    }

    /// Returns the size of all tables with their indexes.
    pub(crate) fn bytes(&self) -> i64 {
        let sql = "SELECT coalesce(sum(pg_total_relation_size(pg_class.oid)), 0)::bigint
            FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
            WHERE nspname = $1 AND relkind = 'r'";
        let row = self.runtime.block_on(self.client.query_one(sql, &[&self.name]));
        row.expect("a sum").get(0)
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        // A leftover schema does not affect a measurement.
        let drop = format!("DROP SCHEMA {} CASCADE", self.name);
        let _ = self.runtime.block_on(self.client.batch_execute(&drop));
    }
}

/// Connects. The connection is a task of the current runtime, like those of the engine's pool.
async fn connect(server: &Server, schema: &str) -> Client {
    let mut config: Config = server.url().parse().expect("the URL of a database");
    config.options(format!("-c search_path={schema}"));
    let (client, connection) = config.connect(NoTls).await.expect("a connection");
    tokio::spawn(connection);
    client
}
