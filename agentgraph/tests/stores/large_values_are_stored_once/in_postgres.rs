//! The tests of large values on a Postgres server.

use std::sync::Arc;

use agentgraph::CheckpointId;
use agentgraph::checkpoint::{Catalog, Checkpointer, Place, PostgresSaver, Put, RowKind};
use proptest::prelude::*;

use super::model::{self, FROM, INVARIANTS, Model, calls};
use super::{
    LARGE, assert_a_megabyte_is_stored_once, assert_both_contain, assert_concurrent_use_is_safe,
    assert_the_last_write_wins, errors_after_damage, text,
};
use crate::postgres_server::PostgresServer;

#[tokio::test]
async fn a_megabyte_in_three_threads_and_a_hundred_forks_is_stored_once() {
    let server = PostgresServer::get();
    let store = postgres(&server, &server.fresh_schema(), 64 * 1024).await;
    assert_a_megabyte_is_stored_once(Arc::new(store)).await;
}

#[tokio::test]
async fn the_last_of_two_writes_of_one_key_in_one_call_wins() {
    let server = PostgresServer::get();
    let store = postgres(&server, &server.fresh_schema(), 64 * 1024).await;
    assert_the_last_write_wins([Arc::new(store) as Arc<dyn Checkpointer>]).await;
}

#[tokio::test]
async fn a_damaged_or_missing_large_value_is_an_error_that_names_its_checkpoint() {
    let server = PostgresServer::get();
    let second = "(SELECT blob FROM piece WHERE step = 2)";
    let zeros = "decode(repeat('00', 100000), 'hex')";
    for (damage, expected) in [
        (format!("UPDATE blob SET bytes = {zeros} WHERE hash = {second}"), "has changed"),
        (format!("UPDATE blob SET bytes = substr(bytes, 2) WHERE hash = {second}"), "has changed"),
        (format!("DELETE FROM blob WHERE hash = {second}"), "is missing from the store"),
        ("DELETE FROM piece WHERE step = 2".into(), "it has 1 large values, and the store has 0 of them"),
        ("UPDATE piece SET at = 100000 WHERE step = 2".into(), "do not fit into it"),
    ] {
        let schema = server.fresh_schema();
        let saver = postgres(&server, &schema, 64 * 1024).await;
        // The replica role disables the references between the tables.
        let damage = format!("SET search_path = {schema}; SET session_replication_role = replica; {damage}");
        let damaged = errors_after_damage(saver, async || drop(server.sql(&damage).await)).await;
        assert_both_contain(damaged, expected);
    }
}

#[tokio::test]
async fn tables_of_earlier_releases_are_migrated() {
    let server = PostgresServer::get();
    let schema = server.fresh_schema();
    let saver = PostgresSaver::builder(server.url()).schema(&schema).share_values_from(usize::MAX);
    let record = text("record", LARGE);
    let place = Place::root("t");
    let id = CheckpointId::new(0, 0);
    let put = Put::new(place, id, RowKind::Full, record.as_bytes());
    saver.connect().await.unwrap().put(put).await.unwrap();
    server
        .sql(&format!(
            "SET search_path = {schema}; DROP TABLE piece; DROP TABLE blob; DROP INDEX large;
             ALTER TABLE checkpoint DROP COLUMN pieces; ALTER TABLE pending DROP COLUMN pieces;
             ALTER TABLE lease DROP COLUMN length; ALTER TABLE lease DROP COLUMN ends;
             DROP INDEX stopping; ALTER TABLE lease DROP COLUMN stops;
             DELETE FROM migration WHERE version >= 3"
        ))
        .await;
    let saver = postgres(&server, &schema, 1000).await;
    assert_eq!(saver.row(place, id).await.unwrap().unwrap().record, record.as_bytes());
    saver.put(Put { place: Place::root("u"), ..put }).await.unwrap();
    assert_eq!(saver.row(Place::root("u"), id).await.unwrap().unwrap().record, record.as_bytes());
    assert_eq!(saver.usage().await.unwrap().value_bytes, LARGE as u64);
    assert_postgres_is_consistent(&server, &schema).await;
}

/// Uses two savers, each with its own connections, like two processes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_writing_pruning_and_deleting_of_the_same_values_is_safe() {
    let server = PostgresServer::get();
    let schema = server.fresh_schema();
    let (one, two) =
        (postgres(&server, &schema, 64 * 1024).await, postgres(&server, &schema, 64 * 1024).await);
    assert_concurrent_use_is_safe([Arc::new(one), Arc::new(two)]).await;
    assert_postgres_is_consistent(&server, &schema).await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn values_are_there_as_long_as_something_holds_them(calls in calls()) {
        model::run(async {
            let server = PostgresServer::get();
            let schema = server.fresh_schema();
            let store = postgres(&server, &schema, FROM).await;
            let mut model = Model::default();
            for call in &calls {
                model.make(&store, call).await;
            }
            model.check(&store).await;
            assert_postgres_is_consistent(&server, &schema).await;
        });
    }
}

async fn assert_postgres_is_consistent(server: &PostgresServer, schema: &str) {
    for (what, query) in INVARIANTS {
        let query = query.replace("OF_ROW", "piece.owner = set_byte('\\x00'::bytea, 0, checkpoint.part)");
        let write =
            "piece.owner = '\\x02'::bytea || pending.task || substring(int8send(pending.slot) FROM 5)";
        let query = query.replace("OF_WRITE", write).replace("BLOB", "blob.hash");
        let found = server.sql(&format!("SET search_path = {schema}; {query}")).await;
        assert_eq!(found, "0", "{what}");
    }
    let wrong = "SELECT count(*) FROM blob WHERE sha256(bytes) <> hash";
    assert_eq!(server.sql(&format!("SET search_path = {schema}; {wrong}")).await, "0");
}

async fn postgres(server: &PostgresServer, schema: &str, from: usize) -> PostgresSaver {
    let saver = PostgresSaver::builder(server.url()).schema(schema).connections(6);
    saver.share_values_from(from).connect().await.unwrap()
}
