//! The Postgres server of the cases that need one: the one that the environment names, or a private one.

#[cfg(feature = "postgres")]
mod schema;
// The tests' own, some of whose functions are for them only.
#[path = "../../agentgraph/tests/postgres_server/mod.rs"]
mod server;

#[cfg(feature = "postgres")]
pub(crate) use schema::Schema;

use server::PostgresServer;

/// The variable with the URL of a database that may be filled, to measure there and not on a private server.
pub(crate) const URL: &str = "AGENTGRAPH_BENCHES_POSTGRES";

/// A server, which ends with the process if it is a private one.
#[derive(Clone)]
pub(crate) struct Server {
    url: String,
}

impl Server {
    /// None where none is named and Postgres is not installed.
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
