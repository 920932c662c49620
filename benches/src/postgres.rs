//! The Postgres server of the cases: one that the environment names, or a private one.

#[cfg(feature = "postgres")]
mod schema;
// The module of the tests; the benches do not call all of its functions.
#[path = "../../agentgraph/tests/postgres_server/mod.rs"]
mod server;

#[cfg(feature = "postgres")]
pub(crate) use schema::Schema;

use server::PostgresServer;

/// The environment variable with the URL of a database to fill, in place of a private server.
pub(crate) const URL: &str = "AGENTGRAPH_BENCHES_POSTGRES";

/// A server; a private one ends with the process.
#[derive(Clone)]
pub(crate) struct Server {
    url: String,
}

impl Server {
    /// Returns `None` if the environment names no server and Postgres is not installed.
    pub(crate) fn get() -> Option<Self> {
        if let Ok(url) = std::env::var(URL) {
            return Some(Server { url });
        }
        PostgresServer::is_installed().then(|| Server { url: PostgresServer::get().url() })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}
