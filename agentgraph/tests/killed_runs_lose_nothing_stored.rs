//! What is stored stays stored and is never run again, whatever process is killed at whatever moment.
//!
//! Real processes are killed by SIGKILL and started again on one thread until its run is at its end, and a log outside of the
//! store says what they did: `kills/check.rs` has the rules. How much of it is done can be said: `AGENTGRAPH_KILLS` (60 for
//! each way to store) and `AGENTGRAPH_ROUNDS` (100) by [`soak_kills.sh`](soak_kills.sh).
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "sqlite_folder/mod.rs"]
mod folder;
mod kills;

use std::collections::{BTreeMap, HashMap};

use kills::chance::mix;
use kills::child::{self, Mode};
use kills::points::{Fate, Manner};
use kills::stories::Story;
use kills::trial::{Ended, ORDERS, Trial, unkilled};

/// The other end of every trial: does nothing unless it is told to.
#[test]
fn a_process_that_is_killed() {
    if let Some(orders) = std::env::var_os(ORDERS) {
        child::run(&serde_json::from_str(orders.to_str().unwrap()).unwrap());
    }
}

fn of_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

/// Of the points that a run comes by: the first of each name, and one more that chance has chosen; all if there is time.
fn some_of(passed: &[String], seed: u64) -> Vec<usize> {
    if of_environment("AGENTGRAPH_ALL_POINTS", 0) > 0 {
        return (0..passed.len()).collect();
    }
    let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (number, name) in passed.iter().enumerate() {
        by_name.entry(name).or_default().push(number);
    }
    let chosen = by_name.values().enumerate().flat_map(|(name, numbers)| {
        let other = mix(seed, name as u64) as usize % numbers.len();
        if other == 0 { vec![numbers[0]] } else { vec![numbers[0], numbers[other]] }
    });
    chosen.collect()
}

fn killed_at_every_named_point(mode: Mode) {
    let mut kills: HashMap<String, u32> = HashMap::new();
    for (number, story) in Story::ALL.into_iter().enumerate() {
        let (end, passed) = unkilled(story, mode);
        for at in some_of(&passed, number as u64) {
            let mut trial = Trial::new(story, mode);
            assert_eq!(trial.process(Some(Fate { at, manner: Manner::Dies })), Ended::Killed);
            assert_eq!(trial.process(None), Ended::ByItself);
            trial.check(&end);
            *kills.entry(passed[at].clone()).or_default() += 1;
        }
    }
    println!("{mode:?}: killed at {kills:?}");
}

#[test]
fn sync_killed_at_every_named_point() {
    killed_at_every_named_point(Mode::Sync);
}

#[test]
fn async_killed_at_every_named_point() {
    killed_at_every_named_point(Mode::Async);
}

#[test]
fn exit_killed_at_every_named_point() {
    killed_at_every_named_point(Mode::Exit);
}
