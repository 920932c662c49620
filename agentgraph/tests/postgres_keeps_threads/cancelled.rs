//! A run in one process is cancelled by another one that uses the same server.

use agentgraph::checkpoint::PostgresSaver;

use super::postgres_server::PostgresServer;
use super::{cancelling, two_processes};

#[tokio::test]
async fn one_process_cancels_the_run_of_another() {
    let server = PostgresServer::get();
    let orders = format!("{} {}", server.url(), server.fresh_schema());
    two_processes::run("cancelled::a_process_that_cancels_or_is_cancelled", orders);
}

/// Does nothing unless the test above starts it.
#[tokio::test]
async fn a_process_that_cancels_or_is_cancelled() {
    let Some(orders) = two_processes::orders() else { return };
    let (url, schema) = orders.to_str().unwrap().split_once(' ').unwrap();
    let saver = PostgresSaver::builder(url).schema(schema).connect().await.unwrap();
    cancelling::cancel_or_be_cancelled(saver).await;
}
