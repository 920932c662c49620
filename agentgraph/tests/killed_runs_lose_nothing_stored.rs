//! What is stored stays stored and is never run again, whatever process is killed at whatever moment.
//!
//! Real processes are killed by SIGKILL and started again on one thread until its run is at its end, and a
//! log outside of the store says what they did: `kills/check.rs` has the rules, `kills/faults.rs` the faults
//! that they were seen to catch. More of the same is done by `soak_kills.sh`.
#![cfg(all(unix, feature = "sqlite"))]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "sqlite_folder/mod.rs"]
mod folder;
mod kills;
#[cfg(feature = "postgres")]
mod postgres_server;

use std::collections::BTreeSet;
use std::sync::Arc;

use agentgraph::MemorySaver;
use agentgraph::checkpoint::SqliteSaver;
use folder::Folder;
use kills::check::Rule;
use kills::child::{self, Mode};
use kills::faults::Fault;
use kills::log::{Event, Line};
use kills::plans::{
    killed_at_named_points, killed_at_random, of_environment, seen_with, some_of, stopped_at, without_room,
};
use kills::race::races;
use kills::stories::Story;
use kills::trial::{Home, ORDERS, unkilled};

/// The other end of every trial: does nothing unless it is told to.
#[test]
fn a_process_that_is_killed() {
    if let Some(orders) = std::env::var_os(ORDERS) {
        child::run(&serde_json::from_str(orders.to_str().unwrap()).unwrap());
    }
}

fn rounds() -> u64 {
    of_environment("AGENTGRAPH_ROUNDS", 100)
}

#[cfg(feature = "postgres")]
fn postgres() -> Home {
    Home::Postgres(postgres_server::PostgresServer::get())
}

#[test]
fn sqlite_sync_killed_at_named_points() {
    killed_at_named_points(&Home::Sqlite, Mode::Sync, false);
}

#[test]
fn sqlite_async_killed_at_named_points() {
    killed_at_named_points(&Home::Sqlite, Mode::Async, false);
}

#[test]
fn sqlite_exit_killed_at_named_points() {
    killed_at_named_points(&Home::Sqlite, Mode::Exit, false);
}

#[cfg(feature = "postgres")]
#[test]
fn postgres_killed_at_named_points() {
    let home = postgres();
    for mode in Mode::ALL {
        killed_at_named_points(&home, mode, true);
    }
}

#[test]
fn sqlite_killed_at_random() {
    for mode in Mode::ALL {
        killed_at_random(&Home::Sqlite, mode);
    }
}

#[cfg(feature = "postgres")]
#[test]
fn postgres_killed_at_random() {
    let home = postgres();
    for mode in Mode::ALL {
        killed_at_random(&home, mode);
    }
}

/// Each fault is seen, by a rule that is meant for it, when stories are killed at some of their points.
#[test]
fn every_fault_made_by_hand_is_seen() {
    for (fault, mode, rules) in Fault::ALL {
        let seen = seen_with(fault, mode);
        assert!(seen.iter().any(|rule| rules.contains(rule)), "{fault:?} was seen by {seen:?} only");
        println!("{fault:?}: {seen:?}");
    }
    let seen: BTreeSet<Rule> = Fault::ALL.iter().map(|(_, _, rules)| rules[0]).collect();
    let unseen = |rule: &Rule| !seen.contains(rule);
    let unseen: Vec<Rule> = Rule::ALL.into_iter().filter(unseen).collect();
    assert_eq!(unseen, [Rule::OneWriter], "which takes two at a time, below");
}

#[test]
fn who_slept_past_his_lease_stores_nothing_any_more() {
    let homes = [
        Home::Sqlite,
        #[cfg(feature = "postgres")]
        postgres(),
    ];
    for (home, mode) in homes.iter().flat_map(|home| Mode::ALL.map(|mode| (home, mode))) {
        let (end, passed) = unkilled(home, Story::Join, mode);
        // From the time it has the lease, and before its last word is stored.
        let last = passed.iter().rposition(|name| name.starts_with("before a commit")).unwrap();
        for at in some_of(&passed[..=last], 5).into_iter().filter(|at| *at > 0) {
            let trial = stopped_at(home, at, mode, None);
            let lines = trial.lines();
            let second = |line: &Line| line.by == 2 && matches!(line.event, Event::Ended { .. });
            let Some(ended) = lines.iter().position(second) else {
                panic!("{} {mode:?}, stopped {}: nobody ended the run: {lines:#?}", home.name(), passed[at])
            };
            assert!(matches!(&lines[ended].event, Event::Ended { marks, .. } if *marks == end));
            let after = &lines[ended + 1..];
            let says = format!("{} {mode:?}, stopped {}: {lines:#?}", home.name(), passed[at]);
            assert!(!after.iter().any(|line| matches!(line.event, Event::Stored { .. })), "{says}");
            // Or the server has ended the transaction in which it stood, and its connection with it.
            let is_refusal = |code: &str, message: &str| {
                code == "E_LEASE_LOST" || code == "E_STORE" && message.contains("connection closed")
            };
            let refused = |line: &Line| matches!(&line.event, Event::Failed { code, message } if is_refusal(code, message));
            assert!(after.iter().any(refused), "{says}");
        }
    }
}

#[test]
fn a_store_that_lets_everybody_write_is_seen() {
    let (_, passed) = unkilled(&Home::Sqlite, Story::Join, Mode::Sync);
    let at = passed.iter().position(|name| name == "before writes").unwrap();
    let trial = stopped_at(&Home::Sqlite, at, Mode::Sync, Some(Fault::IgnoresFences));
    let found = trial.violations(&[]);
    assert!(found.iter().any(|violation| violation.rule == Rule::OneWriter), "{found:#?}");
}

/// The log of SQLite meets the limit after some hundred supersteps, that of the trial does not.
#[test]
fn a_disk_without_room_is_an_error_and_the_run_goes_on_when_there_is_some() {
    for mode in [Mode::Sync, Mode::Async] {
        let (end, _) = unkilled(&Home::Sqlite, Story::LongLoop, mode);
        let (trial, told) = without_room(mode, 2_000_000).expect("the limit holds");
        trial.check_but_for_failures(&end);
        assert!(told.starts_with("E_STORE") && told.contains("threads.db"), "{told}");
        assert!(told.contains("no room left") || told.contains("could not be read or written"), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_when_one_of_many_fails_in_memory() {
    for mode in Mode::ALL {
        races("memory", Arc::new(MemorySaver::new()), mode, rounds()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_when_one_of_many_fails_in_sqlite() {
    let folder = Folder::new();
    for mode in Mode::ALL {
        races("SQLite", Arc::new(SqliteSaver::open(folder.fresh()).await.unwrap()), mode, rounds()).await;
    }
}

/// A fifth of the rounds: each is some hundred round trips to the server.
#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_when_one_of_many_fails_in_postgres() {
    let server = postgres_server::PostgresServer::get();
    let saver =
        Arc::new(agentgraph::PostgresSaver::builder(server.url()).schema("races").connect().await.unwrap());
    for mode in Mode::ALL {
        races("Postgres", saver.clone(), mode, rounds().div_ceil(5)).await;
    }
}
