//! Checkpoints: the stored state of a run, from which the run can continue. This crate has the stores of
//! `agentgraph` and the contract for a store of your own. The engine re-exports all of it as
//! `agentgraph::checkpoint`; the author of a store needs this crate only.
//!
//! A [`Checkpointer`] is a store of rows and does not know the state: it stores bytes under (thread,
//! namespace, branch, step), refuses to overwrite a row, and finds the rows a read needs. Only the engine
//! knows the meaning of the bytes. A store may also have [`Leases`], a [`Catalog`] and [`Upkeep`].
//!
//! A row is a *full* (every channel), a *delta* (the changes of one superstep) or a *segment* (the deltas
//! of 1,024 steps folded into one). A checkpoint is read from the newest full at or before it, the segments
//! after that full, and the deltas after the last segment.
//!
//! Large values are stored once. The stores of this crate cut them out of records and pending writes and
//! store them by their hash (`blob.rs`); a reader gets the whole row and does not notice. Checkpoints,
//! branches, threads and pending writes share them. A large value is removed together with its last use.
//!
//! ```
//! use agentgraph_checkpoint::{CheckpointId, Checkpointer, MemorySaver, Place, Put, RowKind, StoreCode};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), agentgraph_checkpoint::StoreError> {
//! let store = MemorySaver::new();
//! let first = Put::new(Place::root("t-1"), CheckpointId::new(0, 0), RowKind::Full, b"bytes of the engine");
//! store.put(first).await?;
//! assert_eq!(store.threads().await?, ["t-1"]);
//!
//! // The second writer has lost the race, and nothing is overwritten.
//! let lost = store.put(Put { record: b"others", ..first }).await.unwrap_err();
//! assert_eq!(lost.code(), StoreCode::Stale);
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! None is on by default: `sqlite`, `postgres`, `encryption`, and `conformance` for the tests that every
//! store must pass.

#![warn(clippy::too_many_lines)]

// # Rooms
//
// The modules, from the top of the house to the bottom. A file imports from its own module and from modules
// further down; a test of `agentgraph` (`tests/sources`) checks it.
//
// - `tables`: tables of other crates in Postgres, on the connections of a saver
// - `store`: long-term memory: a contract of its own, on the same backends
// - `conformance`: the tests of a store of one's own
// - `encrypted`: a store in front of a store, which encrypts
// - `postgres`: rows in Postgres
// - `sqlite`: rows in an SQLite file
// - `memory`: rows in this process
// - `prune`: which checkpoints stay, and the rows that remain of them
// - `behind`: the queue of writes of `Durability::Async`
// - `leased`: a store for one run, which carries the fence of its lease
// - `refused`: a store that a graph must not use
// - `delegate`: the methods of a wrapper
// - `catalog`: the catalog of any store
// - `upkeep`: the upkeep of any store
// - `leases`: the leases of any store
// - `checkpointer`: the contract of a store, with its three extensions
// - `owned`: requests that outlive their caller
// - `stops`: the listeners of requests to stop
// - `lease`: the words of leases
// - `blob`: large values, stored once
// - `cut`: where the large values in bytes are
// - `header`: headers of consecutive records, added up
// - `fold`: deltas, replayed without the type of the state
// - `row`: the arguments and results of a store's calls
// - `frame`: how a record is divided into bytes
// - `delta`: the change of a superstep as bytes
// - `canonical`: maps in one order
// - `signed`: numbers and times in databases
// - `services`: time and randomness
// - `error`: errors and their codes
// - `place`: where a row is
// - `format`: the number of the format, and the shape of MessagePack
// - `source`: why a checkpoint was written
// - `id`: the ids of runs, tasks and checkpoints
// - `lock`: a mutex that no panic makes unusable
// - `impls`: implementations that are the same for many types

#[doc(hidden)]
pub mod behind;
mod blob;
#[doc(hidden)]
pub mod canonical;
#[doc(hidden)]
pub mod catalog;
mod checkpointer;
#[cfg(feature = "conformance")]
pub mod conformance;
mod cut;
mod delegate;
pub mod delta;
#[cfg(feature = "encryption")]
mod encrypted;
mod error;
#[doc(hidden)]
pub mod fold;
mod format;
#[doc(hidden)]
pub mod frame;
#[doc(hidden)]
pub mod header;
mod id;
mod impls;
mod lease;
mod leased;
#[doc(hidden)]
pub mod leases;
mod lock;
mod memory;
mod owned;
mod place;
#[cfg(feature = "postgres")]
mod postgres;
#[doc(hidden)]
pub mod prune;
mod refused;
mod row;
#[doc(hidden)]
pub mod services;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod signed;
mod source;
#[cfg(feature = "sqlite")]
mod sqlite;
mod stops;
pub mod store;
#[cfg(feature = "postgres")]
#[doc(hidden)]
pub mod tables;
#[doc(hidden)]
pub mod upkeep;

pub use blob::Usage;
pub use catalog::{Catalog, listed_branches};
pub use checkpointer::Checkpointer;
#[cfg(feature = "encryption")]
pub use encrypted::{EncryptedSaver, EncryptionKey, KeyRing};
pub use error::{StoreCode, StoreError, stale, thread_exists, unknown_thread};
pub use id::{CheckpointId, InvalidId, RunId, TaskId};
pub use lease::{Claim, HearsStops, HeldLease, HeldQuery, LeaseTerms, lease_lost};
pub use leases::Leases;
pub use memory::MemorySaver;
#[cfg(feature = "postgres")]
pub use postgres::{PostgresSaver, PostgresSaverBuilder};
pub use prune::{Retention, StoredCheckpoint};
pub use row::{
    ListQuery, PendingWrite, Place, Put, PutWrites, Rewrite, Row, RowKind, Tail, Waiting, WaitingQuery,
};
pub use services::{Services, SystemServices};
pub use source::Source;
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteSaver, SqliteSaverBuilder, Synchronous};
#[cfg(feature = "encryption")]
pub use store::EncryptedStore;
pub use store::{
    Change, Embedder, Filter, Found, Item, MemoryStore, Namespace, NamespacePattern, NamespaceQuery,
    SearchQuery, Store, StoreExt, VectorIndex,
};
#[cfg(feature = "postgres")]
pub use store::{PostgresStore, PostgresStoreBuilder};
#[cfg(feature = "sqlite")]
pub use store::{SqliteStore, SqliteStoreBuilder};
pub use upkeep::Upkeep;

/// For the engine only, which has the same release: not a part of the public API.
#[doc(hidden)]
pub mod engine {
    pub use crate::checkpointer::page;
    pub use crate::error::{corrupt, message_and_causes, unreadable};
    pub use crate::id::TaskPlace;
    pub use crate::leased::Leased;
    pub use crate::lock::Lock;
    pub use crate::refused::Refused;
    pub use crate::row::{IMPOSSIBLE, check_id, is_possible};
}
