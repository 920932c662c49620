//! The rules that every log must satisfy, whichever process was killed at whichever moment.

use std::collections::{HashMap, HashSet};
use std::fmt;

use agentgraph::Durability;

use super::log::{Event, Line};
use super::mark::Mark;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// A task has no further effect after its result was stored.
    NeverAgain,
    /// An attempt of a task has at most one effect per process, so a kill adds at most one effect.
    OnceAProcess,
    /// The next process finds every stored mark exactly once, and no mark without an effect.
    StaysStored,
    /// A task is stored after its effect.
    StoredAfterwards,
    /// Supersteps are stored in order. With `Sync`, a superstep begins after the one before is stored.
    StoredBeforeTheNext,
    /// With `Exit`, all results of a call are stored together when it returns.
    AllOrNothing,
    /// A run that has stored a result keeps its run id.
    SameRun,
    /// A process stores nothing after another process took its thread.
    OneWriter,
    /// The last state equals that of a run without kills.
    SameEnd,
    /// Every process is killed or finishes the run.
    ComesToItsEnd,
}

impl Rule {
    pub const ALL: [Rule; 10] = [
        Rule::NeverAgain,
        Rule::OnceAProcess,
        Rule::StaysStored,
        Rule::StoredAfterwards,
        Rule::StoredBeforeTheNext,
        Rule::AllOrNothing,
        Rule::SameRun,
        Rule::OneWriter,
        Rule::SameEnd,
        Rule::ComesToItsEnd,
    ];
}

#[derive(Clone, PartialEq, Eq)]
pub struct Violation {
    pub rule: Rule,
    pub line: usize,
    pub what: String,
}

impl fmt::Debug for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?} in line {}: {}", self.rule, self.line, self.what)
    }
}

/// Returns all violations of the rules in a log. `end` is the last state of a run without kills.
pub fn violations(lines: &[Line], durability: Durability, end: Option<&[Mark]>) -> Vec<Violation> {
    let mut check = Check { durability, end, ..Check::default() };
    for (number, line) in lines.iter().enumerate() {
        check.line = number + 1;
        check.read(line);
    }
    if end.is_some() && !check.ended {
        check.report(Rule::ComesToItsEnd, "no process finished the run".into());
    }
    check.found
}

#[derive(Default)]
struct Check<'a> {
    durability: Durability,
    end: Option<&'a [Mark]>,
    line: usize,
    ended: bool,
    found: Vec<Violation>,
    /// The run of the newest effect of each mark.
    effects: HashMap<Mark, String>,
    /// The runs in which each mark was stored.
    stored: HashMap<Mark, HashSet<String>>,
    /// The marks whose newest effect is not stored.
    open: HashSet<Mark>,
    /// The attempts: process, run, mark, number of the attempt, and whether it failed.
    attempts: HashSet<(u32, String, Mark, u32, bool)>,
    /// The run of the thread itself, once it has stored a mark.
    run: Option<String>,
    /// The last process that took the thread.
    writer: Option<u32>,
    /// The process that has stored a mark since its call began.
    has_stored: Option<u32>,
}

impl Check<'_> {
    fn report(&mut self, rule: Rule, what: String) {
        self.found.push(Violation { rule, line: self.line, what });
    }

    fn read(&mut self, Line { by, event }: &Line) {
        match event {
            Event::Found { marks, inside } => self.check_found(marks, inside),
            Event::Took { .. } => self.writer = Some(*by),
            Event::Tried { run, mark, attempt } => self.check_attempt(*by, run, mark, *attempt, true),
            Event::Effect { run, mark, attempt } => {
                self.check_attempt(*by, run, mark, *attempt, false);
                self.check_effect(*by, run, mark);
            }
            Event::Stored { mark } => self.check_stored(*by, mark),
            Event::Left { .. } => self.has_stored = None,
            Event::Ended { marks, .. } => {
                self.ended = true;
                if self.end.is_some_and(|end| end != marks) {
                    self.report(Rule::SameEnd, format!("{marks:?}"));
                }
            }
            Event::Failed { code, message } => {
                self.report(Rule::ComesToItsEnd, format!("{code}: {message}"));
            }
            Event::Dies { .. } | Event::Stops { .. } => {}
        }
    }

    fn check_found(&mut self, marks: &[Mark], inside: &[Mark]) {
        self.has_stored = None;
        let shown: HashSet<&Mark> = marks.iter().collect();
        if shown.len() < marks.len() {
            self.report(Rule::StaysStored, format!("found twice: {marks:?}"));
        }
        let outside =
            self.stored.iter().filter(|(mark, runs)| !mark.is_inside() && self.is_of_this_run(runs));
        let lost: Vec<_> =
            outside.map(|(mark, _)| mark.clone()).filter(|mark| !shown.contains(mark)).collect();
        if !lost.is_empty() {
            self.report(Rule::StaysStored, format!("stored, but not found: {lost:?}"));
        }
        let made_up: Vec<_> = marks.iter().filter(|mark| !self.effects.contains_key(*mark)).collect();
        if !made_up.is_empty() {
            let what = format!("found, but never had an effect: {made_up:?}");
            self.report(Rule::StaysStored, what);
        }
        // The process before may have been killed between a commit and its line in the log.
        for mark in marks.iter().chain(inside) {
            if let Some(run) = self.effects.get(mark) {
                self.stored.entry(mark.clone()).or_default().insert(run.clone());
                self.open.remove(mark);
            }
        }
    }

    fn is_of_this_run(&self, runs: &HashSet<String>) -> bool {
        self.run.as_ref().is_none_or(|run| runs.contains(run))
    }

    fn check_attempt(&mut self, by: u32, run: &str, mark: &Mark, attempt: u32, failed: bool) {
        if !self.attempts.insert((by, run.to_owned(), mark.clone(), attempt, failed)) {
            self.report(Rule::OnceAProcess, format!("{mark:?} again in process {by}"));
        }
    }

    fn check_effect(&mut self, by: u32, run: &str, mark: &Mark) {
        let was_stored = self.stored.get(mark).is_some_and(|runs| runs.contains(run));
        if was_stored {
            self.report(Rule::NeverAgain, format!("{mark:?} has an effect after it was stored"));
        }
        if !mark.is_inside() && self.run.as_deref().is_some_and(|it| it != run) {
            self.report(Rule::SameRun, format!("{mark:?} belongs to run {run}"));
        }
        self.effects.insert(mark.clone(), run.to_owned());
        if !was_stored {
            self.open.insert(mark.clone());
        }
        match self.durability {
            Durability::Sync => self.check_order(mark),
            Durability::Exit if self.has_stored == Some(by) && !mark.is_inside() => {
                self.report(
                    Rule::AllOrNothing,
                    format!("{mark:?} has an effect after its call has stored a mark"),
                );
            }
            _ => {}
        }
    }

    /// Checks that all effects of earlier supersteps are stored. With `Exit`, a subgraph stores at the end of
    /// its own call, before the call around it, so the check compares the two separately.
    fn check_order(&mut self, mark: &Mark) {
        let exit = self.durability == Durability::Exit;
        let is_before = |other: &Mark| {
            mark.comes_after(other) && (!exit || mark.is_of_subgraph() == other.is_of_subgraph())
        };
        let missing: Vec<_> = self.open.iter().filter(|other| is_before(other)).cloned().collect();
        if !missing.is_empty() {
            self.report(Rule::StoredBeforeTheNext, format!("{mark:?} before {missing:?}"));
        }
    }

    fn check_stored(&mut self, by: u32, mark: &Mark) {
        if self.writer.is_some_and(|writer| writer != by) {
            self.report(Rule::OneWriter, format!("process {by} stored {mark:?}"));
        }
        let Some(run) = self.effects.get(mark).cloned() else {
            return self.report(Rule::StoredAfterwards, format!("{mark:?} is stored before its effect"));
        };
        self.check_order(mark);
        if !mark.is_inside() {
            self.run = Some(run.clone());
            self.has_stored = Some(by);
        }
        self.stored.entry(mark.clone()).or_default().insert(run);
        self.open.remove(mark);
    }
}
