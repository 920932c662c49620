//! Items in a file and in a server: a change whose process is killed is there as a whole or not at all, and
//! processes that change the same items lose nothing.
#![cfg(all(unix, feature = "sqlite"))]

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use crate::sqlite_folder::Folder;
use agentgraph::Code;
use agentgraph::store::{Change, Found, Namespace, SqliteStore, Store, StoreExt, VectorIndex};
use serde_json::json;

/// The environment variable with the address of the store of the process that is killed.
const VICTIM: &str = "AGENTGRAPH_TEST_STORE_VICTIM";

const ITEMS: usize = 20;

fn space() -> Namespace {
    Namespace::new(["a"]).unwrap()
}

async fn open(address: &str) -> Arc<dyn Store> {
    let index = VectorIndex::new(Letters).fields(["text"]);
    #[cfg(feature = "postgres")]
    if let Some((url, schema)) = address.split_once(' ') {
        let builder = agentgraph::store::PostgresStore::builder(url).schema(schema).connections(2);
        return Arc::new(builder.index(index).connect().await.unwrap());
    }
    Arc::new(SqliteStore::builder(Path::new(address)).index(index).open().await.unwrap())
}

/// A vector that shows the number of its text.
struct Letters;

#[async_trait::async_trait]
impl agentgraph::store::Embedder for Letters {
    fn dimensions(&self) -> usize {
        2
    }

    async fn embed(
        &self,
        texts: &[String],
    ) -> Result<Vec<Vec<f32>>, Box<dyn std::error::Error + Send + Sync>> {
        texts.iter().map(|text| Ok(vec![1.0, text.parse::<f32>()?])).collect()
    }
}

/// Stores twenty items with the number of a round in each, round after round, until it is killed.
#[tokio::test]
async fn writes_until_it_is_killed() {
    let Ok(address) = std::env::var(VICTIM) else { return };
    let store = open(&address).await;
    for round in 1_u32.. {
        let changes = (0..ITEMS).map(|n| {
            let value = json!({ "round": round, "text": round.to_string(), "long": "x".repeat(2_000) });
            Change::put(&space(), n.to_string(), value)
        });
        store.change(changes.collect()).await.unwrap();
        if round == 3 {
            println!("begun");
        }
    }
}

/// Kills a process while it writes, after some microseconds.
fn kill_after(address: &str, micros: u64) {
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "items_survive_kills::writes_until_it_is_killed", "--nocapture"])
        .env(VICTIM, address)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut output = victim.stdout.take().unwrap();
    let mut heard = Vec::new();
    while !String::from_utf8_lossy(&heard).contains("begun") {
        let mut byte = [0];
        assert_eq!(
            output.read(&mut byte).unwrap(),
            1,
            "the process ended: {}",
            String::from_utf8_lossy(&heard)
        );
        heard.push(byte[0]);
    }
    std::thread::sleep(std::time::Duration::from_micros(micros));
    victim.kill().unwrap();
    victim.wait().unwrap();
}

/// All items are of one round, and their vectors too.
async fn assert_whole(address: &str) {
    let store = open(address).await;
    let page = store.search(&space()).limit(100).await.unwrap();
    let round = |found: &Found| found.item.value["round"].as_u64().unwrap();
    assert_eq!(page.len(), ITEMS);
    let first = round(&page[0]);
    assert!(page.iter().all(|found| round(found) == first), "{page:?}");
    let near = store.search(&space()).text(first.to_string()).limit(100).await.unwrap();
    assert_eq!(near.len(), ITEMS);
    assert!(near.iter().all(|found| found.score.unwrap() > 0.999_999), "{near:?}");
}

#[tokio::test]
async fn a_killed_change_of_a_file_is_whole() {
    let folder = Folder::new();
    let file = folder.fresh();
    for kill in 0..12 {
        kill_after(file.to_str().unwrap(), kill * 377);
        assert_whole(file.to_str().unwrap()).await;
    }
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn a_killed_change_of_a_server_is_whole() {
    let server = crate::postgres_server::PostgresServer::get();
    let address = format!("{} {}", server.url(), server.fresh_schema());
    for kill in 0..12 {
        kill_after(&address, kill * 377);
        assert_whole(&address).await;
    }
}

const COUNT: u64 = 100;

/// Adds to one count by `if_version`, and puts items of its own, as many as the other process.
#[tokio::test]
async fn counts_beside_another_process() {
    let Some(orders) = crate::two_processes::orders() else { return };
    let store = open(orders.to_str().unwrap()).await;
    let own = Namespace::new(["own", &std::process::id().to_string()]).unwrap();
    for n in 0..COUNT {
        loop {
            let item = store.get(&space(), "count").await.unwrap();
            let next = item.as_ref().map_or(0, |item| item.to::<u64>().unwrap()) + 1;
            let put = store.put(&space(), "count", next).unindexed();
            let put = match item {
                Some(item) => put.if_version(item.version),
                None => put.if_absent(),
            };
            match put.await {
                Ok(_) => break,
                Err(error) => assert_eq!(error.code(), Code::ItemConflict, "{error}"),
            }
        }
        store.put(&own, n.to_string(), n).unindexed().await.unwrap();
    }
}

async fn assert_counted(address: &str) {
    crate::two_processes::run("items_survive_kills::counts_beside_another_process", address);
    let store = open(address).await;
    assert_eq!(store.get_as::<u64>(&space(), "count").await.unwrap(), Some(2 * COUNT));
    let own = store.list_namespaces().prefix(["own"]).await.unwrap();
    assert_eq!(own.len(), 2);
    for namespace in own {
        let page = store.search(&namespace).limit(1_000).await.unwrap();
        assert_eq!(page.len() as u64, COUNT);
    }
}

#[tokio::test]
async fn two_processes_count_in_one_file() {
    let folder = Folder::new();
    assert_counted(folder.fresh().to_str().unwrap()).await;
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn two_processes_count_in_one_server() {
    let server = crate::postgres_server::PostgresServer::get();
    assert_counted(&format!("{} {}", server.url(), server.fresh_schema())).await;
}
