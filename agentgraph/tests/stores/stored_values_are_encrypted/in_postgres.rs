//! The tests of encryption on a Postgres server.

use std::sync::Arc;

use agentgraph::checkpoint::{EncryptedSaver, PostgresSaver};
use agentgraph::{Checkpointer, Durability};

use super::ring;
use super::world::{NEEDLE, run_all, run_dependencies};
use crate::postgres_server::PostgresServer;

/// Returns every row of every table of a schema as text, with bytes as hexadecimal digits.
async fn all_rows(server: &PostgresServer, schema: &str) -> Vec<String> {
    let (client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let tables = "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = $1";
    let mut rows = Vec::new();
    for table in client.query(tables, &[&schema]).await.unwrap() {
        let query = format!("SELECT t::text FROM {schema}.{} t", table.get::<_, String>(0));
        rows.extend(client.query(&query, &[]).await.unwrap().iter().map(|row| row.get::<_, String>(0)));
    }
    rows
}

/// Returns the number of rows that contain the needle.
fn count_with_needle(rows: &[String]) -> usize {
    let hex: String = NEEDLE.bytes().map(|byte| format!("{byte:02x}")).collect();
    rows.iter().filter(|row| row.contains(NEEDLE) || row.contains(&hex)).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rows_of_postgres_hold_no_clear_text() {
    let server = PostgresServer::get();
    let schema = server.fresh_schema();
    let clear = server.fresh_schema();
    let open =
        async |schema: &str| PostgresSaver::builder(server.url()).schema(schema).connect().await.unwrap();
    let saver: Arc<dyn Checkpointer> = Arc::new(EncryptedSaver::new(open(&schema).await, ring()));
    run_all(|| Arc::clone(&saver)).await;
    let rows = all_rows(&server, &schema).await;
    assert!(rows.len() > 20, "only {} rows", rows.len());
    assert_eq!(count_with_needle(&rows), 0);
    let saver: Arc<dyn Checkpointer> = Arc::new(open(&clear).await);
    run_dependencies(saver, Durability::Sync).await;
    assert!(
        count_with_needle(&all_rows(&server, &clear).await) > 0,
        "the needle is found without encryption"
    );
}
