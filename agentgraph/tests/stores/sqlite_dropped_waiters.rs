//! A run that waits to store a row is dropped, or no longer polled, at every possible point. The rows of
//! the other runs are stored, no run hangs, and the row of the dropped run is stored at once or never.
#![cfg(feature = "sqlite")]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use agentgraph::CheckpointId;
use agentgraph::checkpoint::TaskId;
use agentgraph::checkpoint::{
    Checkpointer, PendingWrite, Place, Put, PutWrites, RowKind, SqliteSaver, StoreCode, StoreError,
};
use futures_util::future::join_all;
use futures_util::poll;
use rusqlite::Connection;

use crate::sqlite_folder::Folder;

const RUNS: usize = 4;
const POLLS: usize = 12;

fn put(thread: &str) -> Put<'_> {
    Put::new(Place::root(thread), CheckpointId::new(0, 0), RowKind::Full, b"x")
}

/// A saver, and a second connection that can lock its file.
struct File {
    saver: SqliteSaver,
    writer: Connection,
    _folder: Folder,
}

impl File {
    async fn new() -> Self {
        let folder = Folder::new();
        let saver = SqliteSaver::open(folder.file("threads.db")).await.unwrap();
        let writer = Connection::open(folder.file("threads.db")).unwrap();
        File { saver, writer, _folder: folder }
    }
}

type Storing<'a> = Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send + 'a>>;

async fn is_stored(saver: &SqliteSaver, thread: &str) -> bool {
    saver.row(Place::root(thread), CheckpointId::new(0, 0)).await.unwrap().is_some()
}

/// Locks the file, polls the put of every run this many times, and unlocks the file after
/// `unlocked_after` of them. Then stops polling the put of one run and awaits the others.
async fn stop_polling_one(file: &File, victim: usize, polls: usize, unlocked_after: usize) {
    let case = format!("victim {victim}, {polls} polls, unlocked after {unlocked_after}");
    let File { saver, writer, .. } = file;
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    let names: Vec<String> = (0..RUNS).map(|run| format!("stands: {case}, run {run}")).collect();
    let mut puts: Vec<Option<Storing<'_>>> = names.iter().map(|name| Some(saver.put(put(name)))).collect();
    for round in 0..polls {
        if unlocked_after == round {
            writer.execute_batch("ROLLBACK").unwrap();
        }
        for slot in &mut puts {
            let Some(storing) = slot else { continue };
            if let std::task::Poll::Ready(stored) = poll!(storing) {
                stored.unwrap();
                *slot = None;
            }
        }
        tokio::time::advance(Duration::from_millis(20)).await;
    }
    if unlocked_after >= polls {
        writer.execute_batch("ROLLBACK").unwrap();
    }
    let unpolled = puts[victim].take();
    for stored in join_all(puts.into_iter().flatten()).await {
        stored.unwrap();
    }
    let after = format!("stands: {case}, after");
    saver.put(put(&after)).await.unwrap();
    let writes = [PendingWrite { task: TaskId::from_u128(1), slot: 0, bytes: vec![1] }];
    let at = CheckpointId::new(0, 0);
    saver.put_writes(PutWrites::new(Place::root(&after), at, &writes)).await.unwrap();
    if let Some(unpolled) = unpolled {
        unpolled.await.unwrap();
    }
    for name in &names {
        assert!(is_stored(saver, name).await, "{name}");
    }
}

/// Locks the file and polls the put of every run this many times. Drops the put of one run, unlocks the
/// file if it is still locked, and checks which rows are stored.
async fn drop_one(file: &File, victim: usize, polls: usize, unlocked_after: Option<usize>) {
    let case = format!("victim {victim}, {polls} polls, unlocked after {unlocked_after:?}");
    let File { saver, writer, .. } = file;
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    let names: Vec<String> = (0..RUNS).map(|run| format!("{case}, run {run}")).collect();
    let mut puts: Vec<Option<Storing<'_>>> = names.iter().map(|name| Some(saver.put(put(name)))).collect();
    let mut victim_finished = false;
    for round in 0..polls {
        if unlocked_after == Some(round) {
            writer.execute_batch("ROLLBACK").unwrap();
        }
        for (run, slot) in puts.iter_mut().enumerate() {
            let Some(storing) = slot else { continue };
            if let std::task::Poll::Ready(stored) = poll!(storing) {
                stored.unwrap();
                victim_finished |= run == victim;
                *slot = None;
            }
        }
        tokio::time::advance(Duration::from_millis(20)).await;
    }
    puts[victim] = None;
    let stored_when_dropped = is_stored(saver, &names[victim]).await;
    assert!(stored_when_dropped || !victim_finished, "{case}");
    if unlocked_after.is_none_or(|after| after >= polls) {
        writer.execute_batch("ROLLBACK").unwrap();
    }
    for stored in join_all(puts.into_iter().flatten()).await {
        stored.unwrap();
    }
    saver.put(put(&format!("{case}, after"))).await.unwrap();
    for (run, name) in names.iter().enumerate() {
        let expected = run != victim || stored_when_dropped;
        assert_eq!(is_stored(saver, name).await, expected, "{case}: run {run}");
    }
    let again = saver.put(put(&names[victim])).await.map_err(|error| error.code());
    assert_eq!(again, if stored_when_dropped { Err(StoreCode::Stale) } else { Ok(()) }, "{case}");
}

#[tokio::test(start_paused = true)]
async fn a_put_dropped_at_any_poll_while_the_file_is_locked_affects_no_other_run() {
    let file = File::new().await;
    for victim in 0..RUNS {
        for polls in 0..POLLS {
            drop_one(&file, victim, polls, None).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_put_dropped_at_any_poll_after_the_file_is_unlocked_affects_no_other_run() {
    let file = File::new().await;
    for victim in 0..RUNS {
        for polls in 0..POLLS {
            for after in 0..polls {
                drop_one(&file, victim, polls, Some(after)).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_put_that_is_no_longer_polled_delays_no_other_run() {
    let file = File::new().await;
    for victim in 0..RUNS {
        for polls in 0..POLLS {
            for after in 0..=polls {
                stop_polling_one(&file, victim, polls, after).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn puts_that_are_all_dropped_store_nothing() {
    let File { saver, writer, .. } = &File::new().await;
    for polls in 0..POLLS {
        writer.execute_batch("BEGIN IMMEDIATE").unwrap();
        let names: Vec<String> = (0..RUNS).map(|run| format!("{polls}.{run}")).collect();
        let mut puts: Vec<Storing<'_>> = names.iter().map(|name| saver.put(put(name))).collect();
        for _ in 0..polls {
            for storing in &mut puts {
                assert!(poll!(storing).is_pending());
            }
            tokio::time::advance(Duration::from_millis(20)).await;
        }
        drop(puts);
        writer.execute_batch("ROLLBACK").unwrap();
        saver.put(put(&format!("after {polls}"))).await.unwrap();
        for name in &names {
            assert!(!is_stored(saver, name).await, "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aborted_runs_do_not_delay_other_runs() {
    const STEPS: u64 = 30;
    let folder = Folder::new();
    let saver = Arc::new(SqliteSaver::open(folder.file("threads.db")).await.unwrap());
    let run = |name: String| {
        let saver = Arc::clone(&saver);
        tokio::spawn(async move {
            for step in 0..STEPS {
                let mut put = put(&name);
                put.id.step = step;
                saver.put(put).await.unwrap();
            }
        })
    };
    let kept: Vec<_> = (0..8).map(|number| run(format!("kept {number}"))).collect();
    for number in 0..200 {
        let aborted = run(format!("aborted {number}"));
        for _ in 0..number % 7 {
            tokio::task::yield_now().await;
        }
        aborted.abort();
        let _ = aborted.await;
    }
    for run in kept {
        run.await.unwrap();
    }
    for number in 0..8 {
        let tail = saver.list(Place::root(&format!("kept {number}")), Default::default()).await.unwrap();
        assert_eq!(tail.len(), STEPS as usize);
    }
}
