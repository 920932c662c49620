//! What is done to the processes of a trial.

use std::collections::{BTreeMap, BTreeSet};

use super::chance::mix;
use super::check::Rule;
use super::child::Mode;
use super::faults::Fault;
use super::log::Event;
use super::points::{Fate, Manner};
use super::stories::Story;
use super::trial::{Ended, Home, Trial, unkilled};

/// How much is done: a number that the environment may say.
pub fn of_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

/// Whether everything is done that can be, and not only as much as there is time for in between.
fn is_soak() -> bool {
    of_environment("AGENTGRAPH_SOAK", 0) > 0
}

/// Of the points that a run comes by: the first of each name, and one more that chance has chosen; all in a
/// soak.
pub fn some_of(passed: &[String], seed: u64) -> Vec<usize> {
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

/// `thinned`: a third of them, chosen by chance, where processes take long to begin.
pub fn killed_at_named_points(home: &Home, mode: Mode, thinned: bool) {
    let mut kills: BTreeMap<String, u32> = BTreeMap::new();
    for (number, story) in Story::ALL.into_iter().enumerate() {
        let (end, passed) = unkilled(home, story, mode);
        for at in some_of(&passed, number as u64) {
            if thinned && !is_soak() && !mix(number as u64, (at * 3 + mode as usize) as u64).is_multiple_of(3)
            {
                continue;
            }
            let mut trial = Trial::new(home, story, mode);
            // What stores behind itself does not come by the same number of points each time.
            if trial.process(Some(Fate { at, manner: Manner::Dies })) == Ended::Killed {
                *kills.entry(passed[at].clone()).or_default() += 1;
                assert_eq!(trial.process(None), Ended::ByItself);
            }
            trial.check(&end);
        }
    }
    println!("| {} | {mode:?} | killed at {kills:?} |", home.name());
    assert!(kills.len() >= 8, "{kills:?}");
}

/// Killed wherever it may be, several times a run.
pub fn killed_at_random(home: &Home, mode: Mode) {
    let (wanted, seed) = (of_environment("AGENTGRAPH_KILLS", 20), of_environment("AGENTGRAPH_SEED", 1));
    let ends: Vec<_> = Story::ALL.map(|story| unkilled(home, story, mode)).into();
    let (long_end, long_passed) = unkilled(home, Story::LongLoop, mode);
    let (mut kills, mut trials) = (0, 0);
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
            if trial.process(Some(Fate { at, manner: Manner::DiesAfter { nanos } })) == Ended::ByItself {
                break;
            }
        }
        assert_eq!(trial.process(None), Ended::ByItself);
        trial.check(end);
        kills += u64::from(trial.kills);
        trials += 1;
    }
    println!("| {} | {mode:?} | {kills} kills of {trials} runs |", home.name());
}

/// The rules that a fault breaks.
pub fn seen_with(fault: Fault, mode: Mode) -> BTreeSet<Rule> {
    let mut seen = BTreeSet::new();
    for story in fault.stories() {
        let (end, usual) = unkilled(&Home::Sqlite, story, mode);
        let mut whole = Trial::new(&Home::Sqlite, story, mode).with_fault(Some(fault));
        whole.process(None);
        let passed = whole.end().map_or(usual, |(_, passed)| passed);
        for at in some_of(&passed, 7) {
            let mut trial = Trial::new(&Home::Sqlite, story, mode).with_fault(Some(fault));
            trial.process(Some(Fate { at, manner: Manner::Dies }));
            trial.process(None);
            seen.extend(trial.violations(&end).iter().map(|violation| violation.rule));
        }
    }
    seen
}

/// A process may write no file that is larger than so many bytes; what the next one finds when it may. It
/// says nothing when the first one came to the end of the run.
pub fn without_room(mode: Mode, bytes: u64) -> Option<(Trial, String)> {
    let mut trial = Trial::new(&Home::Sqlite, Story::LongLoop, mode);
    // The tables are there before the room is gone.
    trial.process(Some(Fate { at: 8, manner: Manner::Dies }));
    trial.orders.most_bytes = Some(bytes);
    assert_eq!(trial.process(None), Ended::ByItself);
    trial.orders.most_bytes = None;
    let told = match trial.lines().pop()?.event {
        Event::Failed { code, message } => format!("{code}: {message}"),
        _ => return None,
    };
    assert_eq!(trial.process(None), Ended::ByItself);
    Some((trial, told))
}

/// One process stands still for longer than its lease, another one takes the thread and ends the run, and the
/// first wakes up.
pub fn stopped_at(home: &Home, at: usize, mode: Mode, fault: Option<Fault>) -> Trial {
    let mut trial = Trial::new(home, Story::Join, mode).with_fault(fault);
    trial.orders.lease = Some(300);
    let first = trial.start(Some(Fate { at, manner: Manner::Stops }));
    Trial::until_stopped(&first);
    // However slow the machine is, nobody waits for the second one's lease.
    trial.orders.lease = None;
    trial.orders.queues = true;
    assert_eq!(trial.process(None), Ended::ByItself);
    trial.wake(&first);
    assert_eq!(trial.wait_for(first), Ended::ByItself);
    trial
}
