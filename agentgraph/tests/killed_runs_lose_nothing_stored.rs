//! A stored result stays stored and its task never runs again, at whatever moment a process is killed.
//!
//! Real processes work on one thread, are killed by SIGKILL and started again until the run has ended. A log
//! outside of the store records what they did. `kills/check.rs` has the rules for that log, `kills/faults.rs`
//! the faults that the rules catch. `soak_kills.sh` runs more trials.
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
    kill_at_named_points, kill_at_random, number_from_env, rules_that_detect, run_without_room,
    sample_points, stop_at,
};
use kills::race::run_races;
use kills::stories::Story;
use kills::trial::{Home, ORDERS, run_unkilled};

/// The process that a trial starts and kills. Does nothing without orders.
#[test]
fn a_process_that_is_killed() {
    if let Some(orders) = std::env::var_os(ORDERS) {
        child::run(&serde_json::from_str(orders.to_str().unwrap()).unwrap());
    }
}

fn rounds() -> u64 {
    number_from_env("AGENTGRAPH_ROUNDS", 100)
}

#[cfg(feature = "postgres")]
fn postgres() -> Home {
    Home::Postgres(postgres_server::PostgresServer::get())
}

#[test]
fn sqlite_sync_killed_at_named_points() {
    kill_at_named_points(&Home::Sqlite, Mode::Sync, false);
}

#[test]
fn sqlite_async_killed_at_named_points() {
    kill_at_named_points(&Home::Sqlite, Mode::Async, false);
}

#[test]
fn sqlite_exit_killed_at_named_points() {
    kill_at_named_points(&Home::Sqlite, Mode::Exit, false);
}

#[cfg(feature = "postgres")]
#[test]
fn postgres_killed_at_named_points() {
    let home = postgres();
    for mode in Mode::ALL {
        kill_at_named_points(&home, mode, true);
    }
}

#[test]
fn sqlite_killed_at_random() {
    for mode in Mode::ALL {
        kill_at_random(&Home::Sqlite, mode);
    }
}

#[cfg(feature = "postgres")]
#[test]
fn postgres_killed_at_random() {
    let home = postgres();
    for mode in Mode::ALL {
        kill_at_random(&home, mode);
    }
}

/// Each fault is found by one of its own rules when stories are killed at some of their points.
#[test]
fn every_fault_made_by_hand_is_found() {
    for (fault, mode, rules) in Fault::ALL {
        let seen = rules_that_detect(fault, mode, rules);
        assert!(seen.iter().any(|rule| rules.contains(rule)), "{fault:?} was found only by {seen:?}");
        println!("{fault:?}: {seen:?}");
    }
    let seen: BTreeSet<Rule> = Fault::ALL.iter().map(|(_, _, rules)| rules[0]).collect();
    let unseen = |rule: &Rule| !seen.contains(rule);
    let unseen: Vec<Rule> = Rule::ALL.into_iter().filter(unseen).collect();
    assert_eq!(unseen, [Rule::OneWriter], "this rule needs two processes at a time and is tested below");
}

#[test]
fn a_process_that_slept_past_its_lease_stores_nothing_more() {
    let homes = [
        Home::Sqlite,
        #[cfg(feature = "postgres")]
        postgres(),
    ];
    for (home, mode) in homes.iter().flat_map(|home| Mode::ALL.map(|mode| (home, mode))) {
        let (end, passed) = run_unkilled(home, Story::Join, mode);
        // Stops the process only while it has the lease and its last word is not stored.
        let last = passed.iter().rposition(|name| name.starts_with("before a commit")).unwrap();
        for at in sample_points(&passed[..=last], 5).into_iter().filter(|at| *at > 0) {
            let trial = stop_at(home, at, mode, None);
            let lines = trial.lines();
            let second = |line: &Line| line.by == 2 && matches!(line.event, Event::Ended { .. });
            let Some(ended) = lines.iter().position(second) else {
                panic!("{} {mode:?}, stopped {}: no end of the run: {lines:#?}", home.name(), passed[at])
            };
            assert!(matches!(&lines[ended].event, Event::Ended { marks, .. } if *marks == end));
            let after = &lines[ended + 1..];
            let context = format!("{} {mode:?}, stopped {}: {lines:#?}", home.name(), passed[at]);
            // A statement that was under way when the process was stopped may have been carried out by the
            // server: then the second process has found what it stored.
            let found = lines.iter().find_map(|line| match &line.event {
                Event::Found { marks, .. } if line.by == 2 => Some(marks),
                _ => None,
            });
            let found = found.unwrap();
            let late = |line: &Line| matches!(&line.event, Event::Stored { mark } if !found.contains(mark));
            assert!(!after.iter().any(late), "{context}");
            // The server may also have ended the open transaction of the process and closed its connection.
            let is_refusal = |code: &str, message: &str| {
                code == "E_LEASE_LOST" || code == "E_STORE" && message.contains("connection closed")
            };
            let refused = |line: &Line| matches!(&line.event, Event::Failed { code, message } if is_refusal(code, message));
            assert!(after.iter().any(refused), "{context}");
        }
    }
}

#[test]
fn a_store_that_ignores_fences_is_found() {
    let (_, passed) = run_unkilled(&Home::Sqlite, Story::Join, Mode::Sync);
    let at = passed.iter().position(|name| name == "before writes").unwrap();
    let trial = stop_at(&Home::Sqlite, at, Mode::Sync, Some(Fault::IgnoresFences));
    let found = trial.violations(&[]);
    assert!(found.iter().any(|violation| violation.rule == Rule::OneWriter), "{found:#?}");
}

/// The log of SQLite reaches the size limit after some hundred supersteps. The log of the trial does not.
#[test]
fn a_full_disk_is_an_error_and_the_run_continues_when_there_is_room() {
    for mode in [Mode::Sync, Mode::Async] {
        let (end, _) = run_unkilled(&Home::Sqlite, Story::LongLoop, mode);
        let (trial, error) = run_without_room(mode, 2_000_000).expect("the limit holds");
        trial.check_except_failures(&end);
        assert!(error.starts_with("E_STORE") && error.contains("threads.db"), "{error}");
        assert!(error.contains("no room left") || error.contains("could not be read or written"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_when_one_of_many_fails_in_memory() {
    for mode in Mode::ALL {
        run_races("memory", Arc::new(MemorySaver::new()), mode, rounds()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_when_one_of_many_fails_in_sqlite() {
    let folder = Folder::new();
    for mode in Mode::ALL {
        run_races("SQLite", Arc::new(SqliteSaver::open(folder.fresh()).await.unwrap()), mode, rounds()).await;
    }
}

/// Runs a fifth of the rounds, because each takes some hundred round trips to the server.
#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_when_one_of_many_fails_in_postgres() {
    let server = postgres_server::PostgresServer::get();
    let saver =
        Arc::new(agentgraph::PostgresSaver::builder(server.url()).schema("races").connect().await.unwrap());
    for mode in Mode::ALL {
        run_races("Postgres", saver.clone(), mode, rounds().div_ceil(5)).await;
    }
}
