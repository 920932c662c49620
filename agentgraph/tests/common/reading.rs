//! Reads a thread in every way and continues it. Whatever its bytes are, each call works or returns an
//! error.

use std::sync::Arc;

use agentgraph::checkpoint::{Checkpointer, EncryptedSaver, EncryptionKey, KeyRing};
use agentgraph::prelude::*;
use agentgraph::{Code, Error, MemorySaver};

use super::pass_story::pass;
use super::stories::{Story, large, long, migrated, paused};

/// The bit that marks the number of a pass.
pub const PASS: u8 = 64;

/// The first of the numbers whose threads are read through an encryption key.
pub const ENCRYPTED: u8 = 128;

/// Wraps a saver so that it encrypts and decrypts these threads.
pub fn encrypted<C: Checkpointer>(saver: C) -> EncryptedSaver<C> {
    EncryptedSaver::new(saver, KeyRing::new("k", EncryptionKey::from_bytes([7; 32])).unwrap())
}

fn through(which: usize, saver: Arc<MemorySaver>) -> Arc<dyn Checkpointer> {
    if which >= ENCRYPTED.into() { Arc::new(encrypted(saver)) } else { saver }
}

/// Reads the thread of this number.
///
/// # Panics
/// If a read is refused for another reason than the bytes.
pub async fn read_thread(which: usize, saver: Arc<MemorySaver>) {
    match which & usize::from(PASS) {
        0 => read(&graph_of(which, saver)).await,
        _ => read_pass(through(which, saver)).await,
    }
}

/// Returns the graph that the thread of this number belongs to.
pub fn graph_of(which: usize, saver: Arc<MemorySaver>) -> CompiledGraph<Story> {
    let saver = through(which, saver);
    match which % 4 {
        0 => paused(saver),
        1 => long(saver),
        2 => large(saver, 2),
        _ => migrated(saver),
    }
}

/// Whether damaged bytes may cause this error. Unknown channels and nodes are allowed too, since names
/// are bytes.
fn is_fair(error: &Error) -> bool {
    use Code::{CorruptCheckpoint, GraphChanged, NotEncrypted, SchemaVersion, SealBroken};
    use Code::{UnknownFormat, UnknownKey, WrongKey};
    matches!(error.code(), CorruptCheckpoint | UnknownFormat | GraphChanged | SchemaVersion)
        || matches!(error.code(), SealBroken | NotEncrypted | UnknownKey | WrongKey)
}

/// Reads and continues a thread of a state graph.
///
/// # Panics
/// If the thread is refused for another reason than its bytes.
pub async fn read(graph: &CompiledGraph<Story>) {
    if let Err(error) = graph.state("t").await {
        assert!(is_fair(&error), "state: {error}");
        assert_eq!(error.thread(), Some("t"), "{error}");
    }
    match graph.history("t").await {
        Err(error) => assert!(is_fair(&error), "history: {error}"),
        Ok(history) => {
            for checkpoint in history.iter().take(3) {
                let _ = graph.update_state("t").at(checkpoint.id).update(Story::update().count(1)).await;
            }
        }
    }
    // A damaged frontier or answer may give the run any end, as long as it ends.
    let _ = graph.proceed().thread("t").max_supersteps(3).await;
    let _ = graph.resume(1).thread("t").max_supersteps(3).await;
    let _ = graph.invoke(Story::update()).thread("t").abandon().max_supersteps(3).await;
}

/// Reads and continues a thread of a dependency graph.
async fn read_pass(saver: Arc<dyn Checkpointer>) {
    let graph = pass(saver);
    match graph.state("t").await {
        Err(error) => {
            assert!(is_fair(&error), "state: {error}");
            assert_eq!(error.thread(), Some("t"), "{error}");
        }
        Ok(state) => drop(state.map(|state| graph.mermaid_of(&state.values))),
    }
    match graph.history("t").await {
        Err(error) => assert!(is_fair(&error), "history: {error}"),
        Ok(history) => {
            for checkpoint in history.iter().take(3) {
                graph.mermaid_of(&checkpoint.values);
                let _ = graph.topology_at("t", checkpoint.id).await;
            }
        }
    }
    let outcomes = [
        graph.proceed().thread("t").max_supersteps(20).await,
        graph.resume("yes").thread("t").max_supersteps(20).await,
        graph.invoke(()).thread("t").abandon().max_supersteps(20).await,
    ];
    for error in outcomes.into_iter().filter_map(Result::err) {
        // The nodes do not panic, so a panic would be one of the engine.
        assert_ne!(error.code(), Code::NodePanicked, "{error}");
    }
}
