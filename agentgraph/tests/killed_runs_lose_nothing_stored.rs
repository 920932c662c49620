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

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use agentgraph::prelude::*;
use agentgraph::{Code, Siblings};
use folder::Folder;
use kills::chance::mix;
use kills::check::{Rule, violations};
use kills::child::{self, Mode};
use kills::faults::Fault;
use kills::log::{Event, Line, Log};
use kills::mark::Mark;
use kills::points::{Fate, Manner, Points};
use kills::stories::{Ledger, Story, World, race};
use kills::trial::{Ended, ORDERS, Trial, unkilled};
use kills::watched::Watched;

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

/// Killed wherever it may be, several times a run.
fn killed_at_random(mode: Mode) {
    let (wanted, seed) = (of_environment("AGENTGRAPH_KILLS", 20), of_environment("AGENTGRAPH_SEED", 1));
    let ends: Vec<_> = Story::ALL.map(|story| unkilled(story, mode)).into();
    let (long_end, long_passed) = unkilled(Story::LongLoop, mode);
    let (mut kills, mut trials) = (0, 0);
    while kills < wanted {
        let number = trials as usize % (Story::ALL.len() + 1);
        let (story, (end, passed)) = match Story::ALL.get(number) {
            Some(story) => (*story, (&ends[number].0, ends[number].1.len())),
            None => (Story::LongLoop, (&long_end, long_passed.len())),
        };
        let mut trial = Trial::new(story, mode);
        for kill in 0..3 {
            let chance = mix(seed, trials * 8 + kill);
            let nanos = mix(chance, 0) % 400_000;
            let at = mix(chance, 1) as usize % passed;
            if trial.process(Some(Fate { at, manner: Manner::DiesAfter { nanos } })) == Ended::ByItself {
                break;
            }
        }
        assert_eq!(trial.process(None), Ended::ByItself);
        trial.check(end);
        kills += u64::from(trial.kills);
        trials += 1;
    }
    println!("| SQLite | {mode:?} | {kills} kills of {trials} runs |");
}

#[test]
fn sync_killed_at_random() {
    killed_at_random(Mode::Sync);
}

#[test]
fn async_killed_at_random() {
    killed_at_random(Mode::Async);
}

#[test]
fn exit_killed_at_random() {
    killed_at_random(Mode::Exit);
}

/// Each fault is seen, by a rule that is meant for it, when stories are killed at some of their points.
#[test]
fn every_fault_made_by_hand_is_seen() {
    for (fault, rules) in Fault::ALL {
        let modes = match fault {
            Fault::SyncInsteadOfExit => Mode::Exit,
            _ => Mode::Sync,
        };
        let seen = seen_with(fault, modes);
        assert!(seen.iter().any(|rule| rules.contains(rule)), "{fault:?} was seen by {seen:?} only");
        println!("{fault:?}: {seen:?}");
    }
}

/// The rules that a fault breaks.
fn seen_with(fault: Fault, mode: Mode) -> BTreeSet<Rule> {
    let mut seen = BTreeSet::new();
    for story in fault.stories() {
        let (end, usual) = unkilled(story, mode);
        let mut whole = Trial::new(story, mode).with_fault(Some(fault));
        whole.process(None);
        let passed = whole.end().map_or(usual, |(_, passed)| passed);
        for at in some_of(&passed, 7) {
            let mut trial = Trial::new(story, mode).with_fault(Some(fault));
            trial.process(Some(Fate { at, manner: Manner::Dies }));
            trial.process(None);
            seen.extend(trial.violations(&end).iter().map(|violation| violation.rule));
        }
    }
    seen
}

/// One process stands still for longer than its lease, another one takes the thread and ends the run, and the first wakes up.
fn stopped_at(at: usize, mode: Mode, fault: Option<Fault>) -> Trial {
    let mut trial = Trial::new(Story::Join, mode).with_fault(fault);
    trial.orders.lease = Some(100);
    let first = trial.start(Some(Fate { at, manner: Manner::Stops }));
    Trial::until_stopped(&first);
    trial.orders.queues = true;
    assert_eq!(trial.process(None), Ended::ByItself);
    trial.wake(&first);
    assert_eq!(trial.wait_for(first), Ended::ByItself);
    trial
}

#[test]
fn who_slept_past_his_lease_stores_nothing_any_more() {
    for mode in Mode::ALL {
        let (end, passed) = unkilled(Story::Join, mode);
        // From the time it has the lease, and before its last word is stored.
        let last = passed.iter().rposition(|name| name.starts_with("before a commit")).unwrap();
        for at in some_of(&passed[..=last], 5).into_iter().filter(|at| *at > 0) {
            let trial = stopped_at(at, mode, None);
            let lines = trial.lines();
            let second = |line: &Line| line.by == 2 && matches!(line.event, Event::Ended { .. });
            let ended = lines.iter().position(second).expect("the second process ends the run");
            assert!(matches!(&lines[ended].event, Event::Ended { marks, .. } if *marks == end));
            let after = &lines[ended + 1..];
            let says = format!("{mode:?}, stopped {}: {lines:#?}", passed[at]);
            assert!(!after.iter().any(|line| matches!(line.event, Event::Stored { .. })), "{says}");
            let refused =
                |line: &Line| matches!(&line.event, Event::Failed { code, .. } if code == "E_LEASE_LOST");
            assert!(after.iter().any(refused), "{says}");
        }
    }
}

#[test]
fn a_store_that_lets_everybody_write_is_seen() {
    let (_, passed) = unkilled(Story::Join, Mode::Sync);
    let at = passed.iter().position(|name| name == "before writes").unwrap();
    let trial = stopped_at(at, Mode::Sync, Some(Fault::IgnoresFences));
    let found = trial.violations(&[]);
    assert!(found.iter().any(|violation| violation.rule == Rule::OneWriter), "{found:#?}");
}

/// 200 nodes finish at once and one fails: nothing of the 200 is lost, and nothing of them is run again.
async fn races(name: &str, saver: Arc<dyn Checkpointer>, mode: Mode) {
    let (rounds, seed) = (of_environment("AGENTGRAPH_ROUNDS", 100), of_environment("AGENTGRAPH_SEED", 1));
    let log = Arc::new(Log::in_memory());
    let points = Arc::new(Points::new(&log, None, PathBuf::new()));
    let world = World { log: Arc::clone(&log), points: Arc::clone(&points), fault: None };
    let watched = Arc::new(Watched { inner: saver, log: Arc::clone(&log), points, speaks_too_soon: false });
    for round in 0..rounds {
        let siblings = if round % 2 == 0 { Siblings::Drain } else { Siblings::Cancel };
        let graph = race(&world, mix(seed, round)).compile().unwrap().checkpointer(Arc::clone(&watched));
        let durability = mode.durability();
        let first = graph.invoke(Ledger::update().round(200)).thread("t").durability(durability);
        let error = first.siblings(siblings).await.unwrap_err();
        assert_eq!(error.code(), Code::NodeFailed, "{error}");
        let marks = graph.state("t").await.unwrap().unwrap().values.marks;
        log.write(Event::Left { marks: marks.clone() });
        log.write(Event::Found { marks: marks.clone(), inside: Vec::new() });
        assert!(siblings == Siblings::Cancel || marks.len() == 200, "{} of 200 are kept", marks.len());
        let outcome = graph.proceed().thread("t").durability(durability).await.unwrap();
        let Outcome::Finished { output, .. } = outcome else { panic!("{outcome:?}") };
        let all: Vec<Mark> = (0..200).map(|number| Mark::new(2, format_args!("work_{number}"))).collect();
        log.write(Event::Ended { marks: output.marks, passed: Vec::new() });
        let found = violations(&log.take(), durability, Some(&all));
        assert!(found.is_empty(), "round {round}, {siblings:?}: {:#?}", &found[..found.len().min(9)]);
        watched.delete_thread("t").await.unwrap();
    }
    println!("| {name} | {mode:?} | {rounds} rounds |");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_when_one_of_many_fails_in_memory() {
    for mode in Mode::ALL {
        races("memory", Arc::new(MemorySaver::new()), mode).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_when_one_of_many_fails_in_sqlite() {
    let folder = Folder::new();
    for mode in Mode::ALL {
        races("SQLite", Arc::new(SqliteSaver::open(folder.fresh()).await.unwrap()), mode).await;
    }
}
