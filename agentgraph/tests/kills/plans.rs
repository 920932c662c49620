//! The plans by which the processes of a trial are killed or stopped.

use std::collections::{BTreeMap, BTreeSet};

use super::chance::mix;
use super::check::Rule;
use super::child::Mode;
use super::faults::Fault;
use super::log::Event;
use super::points::{Fate, Manner};
use super::stories::Story;
use super::trial::{Home, ProcessEnd, Trial, run_unkilled};

/// Returns the number in an environment variable, or the default.
pub fn number_from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

/// Whether this is a soak test, which tries all points and not only a sample.
fn is_soak() -> bool {
    number_from_env("AGENTGRAPH_SOAK", 0) > 0
}

/// Returns a sample of the points that a run passes: the first of each name, and one more at random. In a
/// soak test, returns all points.
pub fn sample_points(passed: &[String], seed: u64) -> Vec<usize> {
    if is_soak() {
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

/// Kills a process at each sampled point of each story. `thinned` keeps a random third of the points, for a
/// store whose processes start slowly.
pub fn kill_at_named_points(home: &Home, mode: Mode, thinned: bool) {
    let mut kills: BTreeMap<String, u32> = BTreeMap::new();
    for (number, story) in Story::ALL.into_iter().enumerate() {
        let (end, passed) = run_unkilled(home, story, mode);
        for at in sample_points(&passed, number as u64) {
            if thinned && !is_soak() && !mix(number as u64, (at * 3 + mode as usize) as u64).is_multiple_of(3)
            {
                continue;
            }
            let mut trial = Trial::new(home, story, mode);
            // An `Async` run does not pass the same number of points each time, so it may not reach this one.
            if trial.run_process(Some(Fate { at, manner: Manner::Dies })) == ProcessEnd::Killed {
                *kills.entry(passed[at].clone()).or_default() += 1;
                assert_eq!(trial.run_process(None), ProcessEnd::ByItself);
            }
            trial.check(&end);
        }
    }
    println!("| {} | {mode:?} | killed at {kills:?} |", home.name());
    assert!(kills.len() >= 8, "{kills:?}");
}

/// Kills processes at random moments, up to three times per run.
pub fn kill_at_random(home: &Home, mode: Mode) {
    let wanted = number_from_env("AGENTGRAPH_KILLS", 20);
    let seed = number_from_env("AGENTGRAPH_SEED", 1);
    let ends: Vec<_> = Story::ALL.map(|story| run_unkilled(home, story, mode)).into();
    let (long_end, long_passed) = run_unkilled(home, Story::LongLoop, mode);
    let mut kills = 0;
    let mut trials = 0;
    while kills < wanted {
        let number = trials as usize % (Story::ALL.len() + 1);
        let (story, (end, passed)) = match Story::ALL.get(number) {
            Some(story) => (*story, (&ends[number].0, ends[number].1.len())),
            None => (Story::LongLoop, (&long_end, long_passed.len())),
        };
        let mut trial = Trial::new(home, story, mode);
        for kill in 0..3 {
            let chance = mix(seed, trials * 8 + kill);
            let nanos = mix(chance, 0) % 400_000;
            let at = mix(chance, 1) as usize % passed;
            if trial.run_process(Some(Fate { at, manner: Manner::DiesAfter { nanos } }))
                == ProcessEnd::ByItself
            {
                break;
            }
        }
        assert_eq!(trial.run_process(None), ProcessEnd::ByItself);
        trial.check(end);
        kills += u64::from(trial.kills);
        trials += 1;
    }
    println!("| {} | {mode:?} | {kills} kills of {trials} runs |", home.name());
}

/// Returns the rules that detect a fault: all of them in a soak test, else those up to the first that it
/// breaks.
pub fn rules_that_detect(fault: Fault, mode: Mode, broken: &[Rule]) -> BTreeSet<Rule> {
    let mut seen = BTreeSet::new();
    for story in fault.stories() {
        let (end, usual) = run_unkilled(&Home::Sqlite, story, mode);
        let mut whole = Trial::new(&Home::Sqlite, story, mode).with_fault(Some(fault));
        whole.run_process(None);
        let passed = whole.end().map_or(usual, |(_, passed)| passed);
        for at in sample_points(&passed, 7) {
            let mut trial = Trial::new(&Home::Sqlite, story, mode).with_fault(Some(fault));
            trial.run_process(Some(Fate { at, manner: Manner::Dies }));
            trial.run_process(None);
            seen.extend(trial.violations(&end).iter().map(|violation| violation.rule));
            if !is_soak() && seen.iter().any(|rule| broken.contains(rule)) {
                return seen;
            }
        }
    }
    seen
}

/// Runs a process that may write no file larger than `bytes`, then one without the limit. Returns the trial
/// and the error of the first process, or `None` if the first process finished the run.
pub fn run_without_room(mode: Mode, bytes: u64) -> Option<(Trial, String)> {
    let mut trial = Trial::new(&Home::Sqlite, Story::LongLoop, mode);
    // A process without the limit creates the tables.
    trial.run_process(Some(Fate { at: 8, manner: Manner::Dies }));
    trial.orders.most_bytes = Some(bytes);
    assert_eq!(trial.run_process(None), ProcessEnd::ByItself);
    trial.orders.most_bytes = None;
    let error = match trial.lines().pop()?.event {
        Event::Failed { code, message } => format!("{code}: {message}"),
        _ => return None,
    };
    assert_eq!(trial.run_process(None), ProcessEnd::ByItself);
    Some((trial, error))
}

/// Stops a process for longer than its lease. A second process takes the thread and finishes the run, and
/// then the first one wakes up.
pub fn stop_at(home: &Home, at: usize, mode: Mode, fault: Option<Fault>) -> Trial {
    let mut trial = Trial::new(home, Story::Join, mode).with_fault(fault);
    trial.orders.lease = Some(300);
    let first = trial.start(Some(Fate { at, manner: Manner::Stops }));
    Trial::wait_until_stopped(&first);
    // The second process has the default lease, which is long enough even on a slow machine.
    trial.orders.lease = None;
    trial.orders.queues = true;
    assert_eq!(trial.run_process(None), ProcessEnd::ByItself);
    trial.wake(&first);
    assert_eq!(trial.wait_for(first), ProcessEnd::ByItself);
    trial
}
