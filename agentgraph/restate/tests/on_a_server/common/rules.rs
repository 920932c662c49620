//! What must hold for the marks of a run, however often something was killed. The rules follow from the
//! promise: a finished task never runs again, and one in flight runs at least once.

use std::collections::HashMap;

use super::graphs::Kind;
use super::marks::{Mark, What};

/// The nodes of a kind of graph that may run side by side. Of two tasks of other nodes, the later one begins
/// when the earlier one is finished.
fn side_by_side(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Chain | Kind::Chatty => &[],
        Kind::Fan => &["left", "right", "page"],
        // Branches do not wait for each other.
        Kind::Eager => &["left", "right", "page", "both", "spread", "last"],
        Kind::Pass => &["plan", "look"],
        Kind::Nested => &["a", "b", "c"],
        Kind::Edited => &["read#0", "read#1"],
        Kind::Asking => &["one", "two", "done"],
        Kind::Retried => &["beside", "never", "mend"],
        Kind::Session => &["bread", "note"],
        Kind::Durable => &["pay", "ship"],
    }
}

/// The nodes that run again when their question is answered.
fn asks(node: &str) -> bool {
    ["one", "two", "deep"].contains(&node)
}

/// The durable steps of a task.
const STEPS: usize = 2;

/// Checks the marks of one thread after a number of interruptions: kills, or elections of a leader.
pub fn check(kind: Kind, marks: &[Mark], interruptions: usize) {
    let context = || format!("{kind:?} after {interruptions} interruptions: {}", listed(marks));
    let mut begun: HashMap<(&str, u32), usize> = HashMap::new();
    for mark in marks.iter().filter(|mark| mark.what == What::Began && !asks(&mark.node)) {
        let times = begun.entry((&mark.task, mark.attempt)).or_default();
        *times += 1;
        assert!(*times <= 1 + interruptions, "{} began {times} times; {}", mark.node, context());
    }
    for (at, mark) in marks.iter().enumerate() {
        if mark.what == What::Ended && !asks(&mark.node) {
            assert!(!runs_again(kind, mark, &marks[at..]), "{} ran again; {}", mark.node, context());
        }
    }
    let mut steps: HashMap<&str, usize> = HashMap::new();
    for mark in marks.iter().filter(|mark| mark.what == What::Step) {
        let times = steps.entry(&mark.task).or_default();
        *times += 1;
        assert!(*times <= STEPS + interruptions, "a step of {} was done again; {}", mark.node, context());
    }
    if interruptions == 0 {
        assert!(steps.values().all(|times| *times == STEPS), "{}", context());
    }
}

/// Whether an ended task begins again after a task has begun that waits for it.
fn runs_again(kind: Kind, ended: &Mark, later: &[Mark]) -> bool {
    let group = side_by_side(kind);
    let waits_for_it = |mark: &Mark| {
        mark.what == What::Began
            && mark.task != ended.task
            && !(group.contains(&&*mark.node) && group.contains(&&*ended.node))
    };
    let Some(from) = later.iter().position(waits_for_it) else { return false };
    later[from..]
        .iter()
        .any(|mark| mark.what == What::Began && (&mark.task, mark.attempt) == (&ended.task, ended.attempt))
}

fn listed(marks: &[Mark]) -> String {
    let one = |mark: &Mark| {
        format!("{:?} {} {} #{} of {}", mark.what, mark.node, &mark.task[..6], mark.attempt, mark.process)
    };
    marks.iter().map(one).collect::<Vec<_>>().join("\n")
}
