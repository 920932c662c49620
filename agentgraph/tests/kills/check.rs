//! What the log has to show, whoever was killed when.

use std::collections::{HashMap, HashSet};
use std::fmt;

use agentgraph::Durability;

use super::log::{Event, Line};
use super::mark::Mark;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// A task whose result was stored has no effect again.
    NeverAgain,
    /// An attempt of a task has at most one effect in a process: so one more for every kill, at most.
    OnceAProcess,
    /// What was stored is found by the next process, once and nothing beside what was done.
    StaysStored,
    /// A task is stored when it has had its effect.
    StoredAfterwards,
    /// Sync: a superstep begins when the one before is stored. All: supersteps are stored in order.
    StoredBeforeTheNext,
    /// Exit: what a call did is stored as a whole, when it returns.
    AllOrNothing,
    /// A run that has something stored goes on as the same run.
    SameRun,
    /// A process whose thread another one took stores nothing.
    OneWriter,
    /// The last state is that of the run that nobody killed.
    SameEnd,
    /// Every process is killed, or comes to the end of the run.
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

/// Everything that a log shows against the rules. `end` is the last state of the run that nobody killed.
pub fn violations(lines: &[Line], durability: Durability, end: Option<&[Mark]>) -> Vec<Violation> {
    let mut check = Check { durability, end, ..Check::default() };
    for (number, line) in lines.iter().enumerate() {
        check.line = number + 1;
        check.take(line);
    }
    if end.is_some() && !check.ended {
        check.report(Rule::ComesToItsEnd, "nobody came to the end".into());
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
    /// The run of each effect, the newest.
    effects: HashMap<Mark, String>,
    /// The runs in which each was stored.
    stored: HashMap<Mark, HashSet<String>>,
    /// Those whose newest effect was not stored.
    open: HashSet<Mark>,
    /// By process, run and whether it failed.
    attempts: HashSet<(u32, String, Mark, u32, bool)>,
    /// The run that has something stored, and is not of a subgraph.
    run: Option<String>,
    /// The process that took the thread last.
    writer: Option<u32>,
    /// The process that has stored something since a call began.
    has_stored: Option<u32>,
}

impl Check<'_> {
    fn report(&mut self, rule: Rule, what: String) {
        self.found.push(Violation { rule, line: self.line, what });
    }

    fn take(&mut self, Line { by, event }: &Line) {
        match event {
            Event::Found { marks, inside } => self.begins(marks, inside),
            Event::Took { .. } => self.writer = Some(*by),
            Event::Tried { run, mark, attempt } => self.attempted(*by, run, mark, *attempt, true),
            Event::Effect { run, mark, attempt } => {
                self.attempted(*by, run, mark, *attempt, false);
                self.acted(*by, run, mark);
            }
            Event::Stored { mark } => self.was_stored(*by, mark),
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

    fn begins(&mut self, marks: &[Mark], inside: &[Mark]) {
        self.has_stored = None;
        let shown: HashSet<&Mark> = marks.iter().collect();
        if shown.len() < marks.len() {
            self.report(Rule::StaysStored, format!("found twice: {marks:?}"));
        }
        let outside = self.stored.iter().filter(|(mark, runs)| !mark.is_inside() && self.is_of_the_run(runs));
        let lost: Vec<_> =
            outside.map(|(mark, _)| mark.clone()).filter(|mark| !shown.contains(mark)).collect();
        if !lost.is_empty() {
            self.report(Rule::StaysStored, format!("stored, and not found: {lost:?}"));
        }
        let made_up: Vec<_> = marks.iter().filter(|mark| !self.effects.contains_key(*mark)).collect();
        if !made_up.is_empty() {
            let what = format!("found, and never done: {made_up:?}");
            self.report(Rule::StaysStored, what);
        }
        // The process before may have been killed between a commit and its line here.
        for mark in marks.iter().chain(inside) {
            if let Some(run) = self.effects.get(mark) {
                self.stored.entry(mark.clone()).or_default().insert(run.clone());
                self.open.remove(mark);
            }
        }
    }

    fn is_of_the_run(&self, runs: &HashSet<String>) -> bool {
        self.run.as_ref().is_none_or(|run| runs.contains(run))
    }

    fn attempted(&mut self, by: u32, run: &str, mark: &Mark, attempt: u32, failed: bool) {
        if !self.attempts.insert((by, run.to_owned(), mark.clone(), attempt, failed)) {
            self.report(Rule::OnceAProcess, format!("{mark:?} again in process {by}"));
        }
    }

    fn acted(&mut self, by: u32, run: &str, mark: &Mark) {
        let was_stored = self.stored.get(mark).is_some_and(|runs| runs.contains(run));
        if was_stored {
            self.report(Rule::NeverAgain, format!("{mark:?} was stored, and is run again"));
        }
        if !mark.is_inside() && self.run.as_deref().is_some_and(|it| it != run) {
            self.report(Rule::SameRun, format!("{mark:?} is of run {run}"));
        }
        self.effects.insert(mark.clone(), run.to_owned());
        if !was_stored {
            self.open.insert(mark.clone());
        }
        match self.durability {
            Durability::Sync => self.is_not_ahead(mark),
            Durability::Exit if self.has_stored == Some(by) && !mark.is_inside() => {
                self.report(Rule::AllOrNothing, format!("{mark:?} after something was stored in its call"));
            }
            _ => {}
        }
    }

    /// Everything that was done in the supersteps before is stored. With Exit a subgraph stores at the end of
    /// its own call, which is before that of the call around it.
    fn is_not_ahead(&mut self, mark: &Mark) {
        let exit = self.durability == Durability::Exit;
        let is_before = |other: &Mark| {
            mark.comes_after(other) && (!exit || mark.is_of_subgraph() == other.is_of_subgraph())
        };
        let missing: Vec<_> = self.open.iter().filter(|other| is_before(other)).cloned().collect();
        if !missing.is_empty() {
            self.report(Rule::StoredBeforeTheNext, format!("{mark:?} before {missing:?}"));
        }
    }

    fn was_stored(&mut self, by: u32, mark: &Mark) {
        if self.writer.is_some_and(|writer| writer != by) {
            self.report(Rule::OneWriter, format!("process {by} stored {mark:?}"));
        }
        let Some(run) = self.effects.get(mark).cloned() else {
            return self.report(Rule::StoredAfterwards, format!("{mark:?} has had no effect yet"));
        };
        self.is_not_ahead(mark);
        if !mark.is_inside() {
            self.run = Some(run.clone());
            self.has_stored = Some(by);
        }
        self.stored.entry(mark.clone()).or_default().insert(run);
        self.open.remove(mark);
    }
}
