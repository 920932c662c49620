//! Tests whether a store can keep graphs: every clause of
//! [`checkpoint::conformance`](crate::checkpoint::conformance), and clauses that need a graph. Threads
//! continue from stored data, and damaged data is reported.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! use agentgraph::checkpoint::MemorySaver;
//! use agentgraph::testing::store_clauses;
//!
//! let report = store_clauses::run(|| async { Ok(MemorySaver::new()) }).await;
//! assert!(report.holds(), "{report}");
//! # }
//! ```

use std::fmt::Display;
use std::sync::Arc;

use futures_util::FutureExt;
use serde_json::json;

use crate::error::Code;
use crate::extract::Snapshot;
use crate::graph::StateGraph;
use crate::json_state::{JsonChannels, JsonReducer, JsonState, JsonUpdate};
use crate::run::CompiledGraph;
use crate::words::{END, START};
use agentgraph_checkpoint::conformance::{self, Clause, Report, check};
use agentgraph_checkpoint::{
    CheckpointId, Checkpointer, ListQuery, MemorySaver, Place, Put, Row, StoreError,
};

/// A store under test.
type Store = Arc<dyn Checkpointer>;

/// Runs every clause on a store of its own from `make_store`.
pub async fn run<C, F, M>(make_store: M) -> Report
where
    C: Checkpointer,
    F: Future<Output = Result<C, StoreError>>,
    M: Fn() -> F,
{
    check(&clauses(), make_store).await
}

/// Every clause, those without a graph first.
pub fn clauses() -> Vec<Clause> {
    let mut clauses = conformance::clauses();
    clauses.extend(WITH_A_GRAPH);
    clauses
}

const WITH_A_GRAPH: [Clause; 4] = [
    Clause::code("a thread continues from its stored bytes", |store| continue_a_thread(store).boxed()),
    Clause::code(
        "a truncated record is reported as E_CORRUPT_CHECKPOINT, and earlier checkpoints can be read",
        |store| {
            let cut = |record: &mut Vec<u8>| record.truncate(record.len() / 2);
            read_damaged(store, cut, Code::CorruptCheckpoint).boxed()
        },
    ),
    Clause::code(
        "a corrupted record is reported as E_CORRUPT_CHECKPOINT, and earlier checkpoints can be read",
        |store| {
            let change = |record: &mut Vec<u8>| {
                let header = 5..record.len().min(20);
                record[header].fill(0xc1);
            };
            read_damaged(store, change, Code::CorruptCheckpoint).boxed()
        },
    ),
    Clause::code(
        "a record of an unknown format is reported as E_UNKNOWN_FORMAT, and earlier checkpoints can be read",
        |store| {
            let make_newer = |record: &mut Vec<u8>| record[0] = 250;
            read_damaged(store, make_newer, Code::UnknownFormat).boxed()
        },
    ),
];

/// Counts to three.
fn graph(store: impl Checkpointer) -> Result<CompiledGraph<JsonState>, String> {
    async fn count(state: Snapshot<JsonState>) -> JsonUpdate {
        let n = state["n"].as_u64().unwrap_or(0) + 1;
        JsonUpdate::new().set("n", n).set("log", format!("counted to {n}"))
    }
    let schema = JsonChannels::new().channel("n", json!(0), JsonReducer::Once).channel(
        "log",
        json!([]),
        JsonReducer::Append,
    );
    let graph = StateGraph::with_schema(schema).node("count", count).edge(START, "count");
    let more = |state: &JsonState| if state["n"].as_u64() < Some(3) { "count" } else { END };
    let graph = graph.branch("count", more, ["count", END]).compile().map_err(|error| error.to_string())?;
    Ok(graph.checkpointer(store))
}

async fn continue_a_thread(store: Store) -> Result<(), String> {
    let graph = graph(Arc::clone(&store))?;
    let first = graph
        .invoke(JsonUpdate::new().set("n", 0))
        .thread("t")
        .max_supersteps(2)
        .await
        .map_err(store_failed)?;
    if first.output()["n"] != 2 {
        return Err(format!("after two supersteps the state is {:?}", first.output()));
    }
    let last = graph.proceed().thread("t").await.map_err(store_failed)?;
    let state = graph.state("t").await.map_err(store_failed)?.ok_or("the thread does not exist")?;
    let expected = json!(["counted to 1", "counted to 2", "counted to 3"]);
    if state.values["log"] != expected || last.output()["log"] != expected {
        return Err(format!("the continued thread has the state {:?}", state.values));
    }
    match graph.history("t").await.map_err(store_failed)?.len() {
        4 => Ok(()),
        other => Err(format!("the history has {other} checkpoints instead of 4")),
    }
}

/// Stores a thread of four checkpoints, the third of them damaged.
async fn read_damaged(store: Store, damage: fn(&mut Vec<u8>), code: Code) -> Result<(), String> {
    const DAMAGED: CheckpointId = CheckpointId::new(0, 2);
    let place = Place::root("t");
    for row in rows_of_a_thread().await? {
        let Row { id, kind, mut record } = row;
        if id == DAMAGED {
            damage(&mut record);
        }
        let put = Put::new(place, id, kind, &record);
        store.put(put).await.map_err(store_failed)?;
    }
    let graph = graph(store)?;
    for (what, failed) in [
        ("state", graph.state("t").await.err()),
        ("proceed", graph.proceed().thread("t").await.err()),
        ("state_at", graph.state_at("t", DAMAGED).await.err()),
    ] {
        let Some(error) = failed else { return Err(format!("`{what}` accepts the damaged record")) };
        let told = error.to_string();
        if error.code() != code || !told.contains("checkpoint 0.2") || error.thread() != Some("t") {
            return Err(format!(
                "`{what}` fails with `{told}` instead of {code} for checkpoint 0.2 of thread `t`"
            ));
        }
    }
    let before = graph.state_at("t", CheckpointId::new(0, 1)).await.map_err(store_failed)?;
    if before.is_none_or(|before| before.values["n"] != 1) {
        return Err("the checkpoint before the damaged one has changed".to_owned());
    }
    let history = graph.history("t").before(DAMAGED).await.map_err(store_failed)?;
    match history.len() {
        2 => Ok(()),
        other => {
            Err(format!("the history before the damaged checkpoint has {other} checkpoints instead of 2"))
        }
    }
}

async fn rows_of_a_thread() -> Result<Vec<Row>, String> {
    let saver = Arc::new(MemorySaver::new());
    let graph = graph(Arc::clone(&saver))?;
    graph.invoke(JsonUpdate::new().set("n", 0)).thread("t").await.map_err(store_failed)?;
    let mut rows = saver.list(Place::root("t"), ListQuery::default()).await.map_err(store_failed)?;
    rows.reverse();
    Ok(rows)
}

fn store_failed(error: impl Display) -> String {
    format!("the store failed: {error}")
}
