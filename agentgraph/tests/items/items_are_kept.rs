//! The conformance kit of stores of items: the stores of this crate fulfil every clause, and every clause
//! finds a store that breaks it.
#![cfg(all(feature = "conformance", feature = "encryption", feature = "sqlite"))]

mod faulty;

use std::collections::BTreeMap;

use crate::sqlite_folder::Folder;
use agentgraph::checkpoint::conformance::Report;
use agentgraph::checkpoint::store::conformance::{self, Setup};
use agentgraph::checkpoint::{EncryptedStore, EncryptionKey, KeyRing, MemoryStore, SqliteStore, Store};
use faulty::{FAULTS, Fault, FaultyStore};

fn assert_holds(report: &Report) {
    assert!(report.holds(), "{report}");
    assert!(report.findings.len() > 40, "{report}");
}

fn memory(setup: Setup) -> MemoryStore {
    MemoryStore::new().services(setup.clock).index(setup.index)
}

#[tokio::test]
async fn memory_keeps_items() {
    assert_holds(&conformance::run(|setup| async { Ok(memory(setup)) }).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_in_memory_keeps_items() {
    let report = conformance::run(|setup| async {
        SqliteStore::builder("").services(setup.clock).index(setup.index).in_memory()
    });
    assert_holds(&report.await);
}

#[tokio::test]
async fn an_sqlite_file_keeps_items() {
    let folder = Folder::new();
    let open =
        |setup: Setup| SqliteStore::builder(folder.fresh()).services(setup.clock).index(setup.index).open();
    assert_holds(&conformance::run(open).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_sqlite_file_keeps_items_on_two_workers() {
    let folder = Folder::new();
    let open =
        |setup: Setup| SqliteStore::builder(folder.fresh()).services(setup.clock).index(setup.index).open();
    assert_holds(&conformance::run(open).await);
}

fn key(byte: u8) -> EncryptionKey {
    EncryptionKey::from_bytes([byte; 32])
}

fn encrypted<S: Store>(inner: S, setup: &Setup, keys: KeyRing) -> EncryptedStore<S> {
    EncryptedStore::new(inner, keys).index(setup.index.clone())
}

#[tokio::test]
async fn an_encrypted_store_keeps_items() {
    let make = |setup: Setup| async move {
        let inner = MemoryStore::new().services(setup.clock.clone());
        Ok(encrypted(inner, &setup, KeyRing::new("k", key(7))?))
    };
    assert_holds(&conformance::run(make).await);
}

#[tokio::test]
async fn an_encrypted_sqlite_file_with_two_keys_keeps_items() {
    let folder = Folder::new();
    let file = &folder;
    let make = |setup: Setup| async move {
        let inner = SqliteStore::builder(file.fresh()).services(setup.clock.clone()).open().await?;
        let keys = KeyRing::new("new", key(8))?.older("old", key(7))?;
        Ok(encrypted(inner, &setup, keys))
    };
    assert_holds(&conformance::run(make).await);
}

#[cfg(feature = "postgres")]
mod in_postgres {
    use agentgraph::checkpoint::{PostgresStore, StoreError};

    use super::*;
    use crate::postgres_server::PostgresServer;

    async fn open(server: &PostgresServer, setup: Setup) -> Result<PostgresStore, StoreError> {
        let builder = PostgresStore::builder(server.url()).schema(server.fresh_schema()).connections(4);
        builder.services(setup.clock).index(setup.index).connect().await
    }

    #[tokio::test]
    async fn a_server_without_pgvector_keeps_items() {
        let server = PostgresServer::get();
        let report = conformance::run(|setup| async {
            let store = open(&server, setup).await?;
            assert!(!store.uses_pgvector());
            Ok(store)
        });
        assert_holds(&report.await);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_server_with_pgvector_keeps_items() {
        let server = PostgresServer::with_vectors();
        let report = conformance::run(|setup| async {
            let store = open(&server, setup).await?;
            assert!(store.uses_pgvector());
            Ok(store)
        });
        assert_holds(&report.await);
    }

    #[tokio::test]
    async fn an_encrypted_server_keeps_items() {
        let server = &PostgresServer::get();
        let make = |setup: Setup| async move {
            let builder = PostgresStore::builder(server.url()).schema(server.fresh_schema()).connections(2);
            let inner = builder.services(setup.clock.clone()).connect().await?;
            Ok(encrypted(inner, &setup, KeyRing::new("k", key(7))?))
        };
        assert_holds(&conformance::run(make).await);
    }
}

#[tokio::test]
async fn every_fault_is_found_by_its_clause() {
    let clauses = conformance::clauses();
    let mut found: BTreeMap<&str, u32> = clauses.iter().map(|clause| (clause.name(), 0)).collect();
    for (fault, name) in FAULTS {
        let clause = clauses.iter().find(|clause| clause.name() == *name);
        let clause = clause.unwrap_or_else(|| panic!("no clause `{name}`"));
        let setup = Setup::new();
        // The wrapper alone breaks nothing.
        assert_eq!(clause.check(FaultyStore::new(Fault::None, &setup), &setup).await, Ok(()), "{name}");
        let setup = Setup::new();
        let problem = clause.check(FaultyStore::new(*fault, &setup), &setup).await;
        assert!(!problem.expect_err(name).is_empty());
        *found.get_mut(name).unwrap() += 1;
    }
    let blind: Vec<&str> = found.iter().filter(|(_, by)| **by == 0).map(|(clause, _)| *clause).collect();
    assert!(blind.is_empty(), "no faulty store exists for these clauses: {blind:#?}");
}
