//! The private Postgres server of the engine's tests.
#[path = "../../../../agentgraph/tests/postgres_server/mod.rs"]
mod server;

pub(crate) use server::PostgresServer;
