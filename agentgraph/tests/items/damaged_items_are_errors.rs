//! Stored bytes of items that were damaged, or that another program wrote, are typed errors that name the
//! item; the other items are not affected. Encrypted items do not open at another place, or under another
//! key.
#![cfg(all(feature = "encryption", feature = "sqlite"))]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::sqlite_folder::Folder;
use agentgraph::Code;
use agentgraph::checkpoint::{EncryptionKey, KeyRing, SqliteSaver};
use agentgraph::store::{
    Change, EncryptedStore, Filter, Lifetime, MemoryStore, Namespace, SqliteStore, Store, StoreExt,
};
use proptest::prelude::*;
use rusqlite::{Connection, params};
use serde_json::{Value, json};

fn space() -> Namespace {
    Namespace::new(["users", "ada"]).unwrap()
}

async fn filled(file: &Path) -> SqliteStore {
    let store = SqliteStore::open(file).await.unwrap();
    for key in ["good", "bad"] {
        store.put(&space(), key, json!({ "n": 1 })).await.unwrap();
    }
    store
}

fn damage(file: &Path, sql: &str, value: impl rusqlite::ToSql) {
    let connection = Connection::open(file).unwrap();
    assert_eq!(connection.execute(sql, params![value]).unwrap(), 1);
}

const DAMAGE: &str = "UPDATE item SET value = ?1 WHERE key = CAST('bad' AS BLOB)";

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_of_a_value_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let folder = Folder::new();
            let file = folder.fresh();
            let store = filled(&file).await;
            damage(&file, DAMAGE, &bytes);
            match store.get(&space(), "bad").await {
                // Some bytes are a value, and then exactly that one.
                Ok(item) => assert_eq!(rmp_serde::to_vec_named(&item.unwrap().value).unwrap(), bytes),
                Err(error) => {
                    assert_eq!(error.code(), Code::ItemUnreadable);
                    assert!(error.message().contains(r#"the item "bad" in ["users", "ada"]"#), "{error}");
                }
            }
            assert!(store.get(&space(), "good").await.unwrap().is_some());
        });
    }
}

#[tokio::test]
async fn deep_and_large_claims_of_bytes_are_errors() {
    let folder = Folder::new();
    let file = folder.fresh();
    let store = filled(&file).await;
    let deep = [[0x91].repeat(100_000), vec![0xc0]].concat();
    // Arrays and maps that claim four billion elements.
    for bytes in [deep, vec![0xdd, 0xff, 0xff, 0xff, 0xff], vec![0xdf, 0xff, 0xff, 0xff, 0xff, 0xa1]] {
        damage(&file, DAMAGE, bytes);
        let error = store.get(&space(), "bad").await.unwrap_err();
        assert_eq!(error.code(), Code::ItemUnreadable, "{error}");
        let error = store.search(&space()).filter(Filter::eq("n", 1)).await.unwrap_err();
        assert_eq!(error.code(), Code::ItemUnreadable, "{error}");
    }
    // It can be put again, and deleted.
    store.put(&space(), "bad", 2).await.unwrap();
    assert_eq!(store.get_as(&space(), "bad").await.unwrap(), Some(2));
    damage(&file, DAMAGE, "text");
    assert_eq!(store.get(&space(), "bad").await.unwrap_err().code(), Code::ItemUnreadable);
    assert!(store.delete(&space(), "bad").await.unwrap());
}

#[tokio::test]
async fn damaged_names_and_vectors_are_errors() {
    let folder = Folder::new();
    let file = folder.fresh();
    let store = filled(&file).await;
    damage(&file, "UPDATE item SET namespace = ?1 WHERE key = CAST('bad' AS BLOB)", vec![0x61, 0x00, 0x02]);
    let error = store.list_namespaces().await.unwrap_err();
    assert_eq!(error.code(), Code::ItemUnreadable, "{error}");
    let error = store.search(&Namespace::root()).await.unwrap_err();
    assert_eq!(error.code(), Code::ItemUnreadable, "{error}");
    assert_eq!(store.search(&space()).await.unwrap().len(), 1);
    damage(&file, "UPDATE item SET key = ?1 WHERE key = CAST('good' AS BLOB)", vec![0xff]);
    let error = store.search(&space()).await.unwrap_err();
    assert_eq!(error.code(), Code::ItemUnreadable, "{error}");
}

#[tokio::test]
async fn checkpoints_and_items_have_files_of_their_own() {
    let folder = Folder::new();
    let (threads, items) = (folder.fresh(), folder.fresh());
    drop((SqliteSaver::open(&threads).await.unwrap(), SqliteStore::open(&items).await.unwrap()));
    let error = SqliteStore::open(&threads).await.unwrap_err();
    assert!(error.message().contains("holds checkpoints: choose another path"), "{error}");
    let error = SqliteSaver::open(&items).await.unwrap_err();
    assert!(error.message().contains("holds the items of a store: choose another path"), "{error}");
}

#[tokio::test]
async fn a_full_file_keeps_its_items_and_a_moved_one_takes_no_more() {
    let folder = Folder::new();
    let file = folder.fresh();
    let store = SqliteStore::builder(&file).max_size(200_000).open().await.unwrap();
    store.put(&space(), "k", "old").await.unwrap();
    let error = store.put(&space(), "k", "x".repeat(400_000)).await.unwrap_err();
    assert_eq!(error.code(), Code::Store);
    assert!(error.message().contains("`SqliteStoreBuilder::max_size`, then try again"), "{error}");
    assert_eq!(store.get_as::<String>(&space(), "k").await.unwrap().as_deref(), Some("old"));
    std::fs::rename(&file, folder.fresh()).unwrap();
    // The check of the file is at most once a millisecond.
    std::thread::sleep(Duration::from_millis(2));
    let error = store.put(&space(), "k", "new").await.unwrap_err();
    assert!(error.message().contains("was deleted, moved or replaced"), "{error}");
}

fn key(byte: u8) -> EncryptionKey {
    EncryptionKey::from_bytes([byte; 32])
}

fn ring(name: &str, byte: u8) -> KeyRing {
    KeyRing::new(name, key(byte)).unwrap()
}

async fn encrypted() -> (Arc<MemoryStore>, EncryptedStore<Arc<MemoryStore>>) {
    let inner = Arc::new(MemoryStore::new());
    let store = EncryptedStore::new(Arc::clone(&inner), ring("k", 1));
    for (key, value) in [("a", "the secret of a"), ("b", "the secret of b")] {
        store.put(&space(), key, value).await.unwrap();
    }
    (inner, store)
}

#[tokio::test]
async fn items_that_were_swapped_or_changed_do_not_open() {
    let (inner, store) = encrypted().await;
    let rows = inner.search(&Namespace::root()).await.unwrap();
    let (one, two) = (&rows[0].item, &rows[1].item);
    inner.put(&one.namespace, &*one.key, two.value.clone()).await.unwrap();
    for key in ["a", "b"] {
        let read = store.get(&space(), key).await;
        let is_swapped = key == "b";
        assert_eq!(
            read.err().map(|error| error.code() == Code::SealBroken),
            is_swapped.then_some(true),
            "{key}"
        );
    }
    assert_eq!(store.search(&space()).await.unwrap_err().code(), Code::SealBroken);
    for value in [json!("no base64!"), json!(7), json!(""), json!("wQ=="), json!("AAAA")] {
        inner.put(&one.namespace, &*one.key, value).await.unwrap();
        let error = store.get(&space(), "b").await.unwrap_err();
        assert!([Code::NotEncrypted, Code::SealBroken].iter().any(|code| error.code() == *code), "{error}");
        assert!(error.message().contains(r#"the item "b" in ["users", "ada"]"#), "{error}");
    }
}

#[tokio::test]
async fn nothing_of_names_and_values_is_stored_in_clear() {
    let (inner, store) = encrypted().await;
    store.put(&Namespace::new(["other", "ada"]).unwrap(), "a", "the secret of a").await.unwrap();
    let rows = inner.search(&Namespace::root()).await.unwrap();
    let shown = format!("{rows:?}");
    for secret in ["users", "ada", "secret", "other"] {
        assert!(!shown.contains(secret), "{secret}");
    }
    // Equal segments below other parents, equal keys elsewhere and equal values cannot be recognized.
    let (here, elsewhere) = (&rows[2].item, &rows[0].item);
    assert_ne!(here.namespace.segments()[1], elsewhere.namespace.segments()[1]);
    assert_ne!((&here.key, &here.value), (&elsewhere.key, &elsewhere.value));
    // Those of one namespace are together.
    assert_eq!(rows[1].item.namespace, here.namespace);
}

#[tokio::test]
async fn another_key_finds_nothing_and_opens_nothing() {
    let (inner, _) = encrypted().await;
    let other = EncryptedStore::new(Arc::clone(&inner), ring("k", 2));
    assert!(other.get(&space(), "a").await.unwrap().is_none());
    assert_eq!(other.search(&Namespace::root()).await.unwrap_err().code(), Code::WrongKey);
    let other = EncryptedStore::new(inner, ring("j", 1));
    assert_eq!(other.get(&space(), "a").await.unwrap_err().code(), Code::UnknownKey);
}

#[tokio::test]
async fn rotation_moves_items_when_they_are_stored_again_and_by_reseal() {
    let inner = Arc::new(MemoryStore::new());
    let old = EncryptedStore::new(Arc::clone(&inner), ring("old", 1));
    for n in 0..5_u64 {
        old.put(&space(), n.to_string(), n).lifetime(Duration::from_secs(3_600)).await.unwrap();
    }
    let before = old.get(&space(), "0").refresh(false).await.unwrap().unwrap();
    let both = || ring("new", 2).older("old", key(1)).unwrap();
    let store = EncryptedStore::new(Arc::clone(&inner), both());
    assert_eq!(store.search(&space()).await.unwrap().len(), 5);
    // A put, a conditional put and a delete of items under the older key.
    store.put(&space(), "0", 10).lifetime(Duration::from_secs(60)).await.unwrap();
    let item = store.get(&space(), "1").await.unwrap().unwrap();
    assert_eq!(store.put(&space(), "1", 11).if_absent().await.unwrap_err().code(), Code::ItemConflict);
    store.put(&space(), "1", 11).if_version(item.version).await.unwrap();
    assert!(store.delete(&space(), "2").await.unwrap());
    assert_eq!(inner.search(&Namespace::root()).limit(100).await.unwrap().len(), 4);
    let after = store.get(&space(), "0").await.unwrap().unwrap();
    assert_eq!((after.created_at, after.value), (before.created_at, json!(10)));
    let end = |item: &agentgraph::store::Item| item.expires_at;
    let kept = store.get(&space(), "3").refresh(false).await.unwrap().unwrap();
    assert_eq!(store.reseal(&Namespace::new(["users"]).unwrap()).await.unwrap(), 2);
    assert_eq!(store.reseal(&Namespace::root()).await.unwrap(), 0);
    let moved = store.get(&space(), "3").refresh(false).await.unwrap().unwrap();
    assert_eq!((end(&moved), moved.created_at, &moved.value), (end(&kept), kept.created_at, &kept.value));

    let new = EncryptedStore::new(inner, ring("new", 2));
    let values: Vec<Value> =
        new.search(&space()).await.unwrap().into_iter().map(|found| found.item.value).collect();
    assert_eq!(values, [json!(4), json!(3), json!(11), json!(10)]);
    assert_eq!(new.list_namespaces().await.unwrap(), [space()]);
}

#[tokio::test]
async fn a_search_that_opens_too_much_is_refused() {
    let inner = MemoryStore::new();
    let store = EncryptedStore::new(inner, ring("k", 1)).scan_limit(10);
    for n in 0..11 {
        store.put(&space(), n.to_string(), n).await.unwrap();
    }
    assert_eq!(store.search(&space()).limit(100).await.unwrap().len(), 11);
    let error = store.search(&space()).filter(Filter::eq("", -1)).await.unwrap_err();
    assert_eq!(error.code(), Code::ScanLimit);
    assert!(error.message().contains("raise the `scan_limit`"), "{error}");
    // Enough is found before the limit.
    assert_eq!(store.search(&space()).filter(Filter::gte("", 8)).limit(3).await.unwrap().len(), 3);
}

#[tokio::test]
async fn times_beyond_all_calendars_are_the_end_of_time() {
    let store = SqliteStore::in_memory().unwrap();
    let far = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 40);
    for lifetime in [Lifetime::For(Duration::MAX), Lifetime::Until(Duration::MAX, far)] {
        store.change(vec![Change::put(&space(), "k", 1).lifetime(lifetime).created_at(far)]).await.unwrap();
        assert_eq!(store.get_as(&space(), "k").await.unwrap(), Some(1));
    }
    store.put(&space(), "k", 1).lifetime(Duration::ZERO).await.unwrap();
    assert!(store.get(&space(), "k").await.unwrap().is_none());
}

#[cfg(feature = "postgres")]
mod in_postgres {
    use agentgraph::store::conformance::Letters;
    use agentgraph::store::{PostgresStore, VectorIndex};

    use super::*;
    use crate::postgres_server::PostgresServer;

    #[tokio::test]
    async fn damaged_rows_are_errors() {
        let server = PostgresServer::get();
        let schema = server.fresh_schema();
        let store = PostgresStore::builder(server.url()).schema(&schema).connect().await.unwrap();
        for key in ["good", "bad"] {
            store.put(&space(), key, 1).await.unwrap();
        }
        server.sql(&format!(r"UPDATE {schema}.item SET value = '\xdf01' WHERE key = 'bad'")).await;
        let error = store.get(&space(), "bad").await.unwrap_err();
        assert_eq!(error.code(), Code::ItemUnreadable);
        assert!(error.message().contains(r#"the item "bad" in ["users", "ada"]"#), "{error}");
        assert_eq!(store.get_as(&space(), "good").await.unwrap(), Some(1));
        server.sql(&format!(r"UPDATE {schema}.item SET namespace = '\x6100' WHERE key = 'bad'")).await;
        assert_eq!(store.list_namespaces().await.unwrap_err().code(), Code::ItemUnreadable);
    }

    #[tokio::test]
    async fn a_user_without_the_right_goes_without_pgvector_unless_it_is_required() {
        let server = PostgresServer::with_vectors();
        let database = server.fresh_database().await;
        let name = format!("plain_{database}");
        server.sql(&format!("CREATE ROLE {name} LOGIN; GRANT CREATE ON DATABASE {database} TO {name}")).await;
        let url = server.url_of(&database).replace("//agent@", &format!("//{name}@"));
        let index = || VectorIndex::new(Letters);
        let store = PostgresStore::builder(&*url).index(index()).connect().await.unwrap();
        store.put(&space(), "k", "ab").await.unwrap();
        let by_this_process = store.uses_pgvector();
        assert_eq!(store.search(&space()).text("a").await.unwrap().len(), 1);
        let required = PostgresStore::builder(&*url).index(index()).require_pgvector().connect().await;
        assert!(!by_this_process);
        let error = required.unwrap_err();
        assert!(error.message().contains("CREATE EXTENSION vector"), "{error}");

        // The one with the right creates it, and the vectors that are there are compared by the server.
        let own = PostgresStore::builder(server.url_of(&database)).schema("elsewhere").require_pgvector();
        assert!(own.connect().await.unwrap().uses_pgvector());
        let store = PostgresStore::builder(&*url).index(index()).connect().await.unwrap();
        assert!(store.uses_pgvector());
        assert_eq!(store.search(&space()).text("a").await.unwrap()[0].item.key, "k");
    }

    #[tokio::test]
    async fn a_server_without_the_extension_says_so() {
        let server = PostgresServer::get();
        let builder = PostgresStore::builder(server.url()).schema(server.fresh_schema());
        let error = builder.require_pgvector().connect().await.err();
        // A machine may have the package for its own server.
        if let Some(error) = error {
            assert!(error.message().contains("install the package of `pgvector`"), "{error}");
        }
    }
}
