//! A case: its floor, its entrants and its figures.

use serde::{Deserialize, Serialize};

/// A named measurement.
pub struct Case {
    pub(crate) name: &'static str,
    /// The name of one unit of work.
    pub(crate) unit: &'static str,
    /// The number of units in one run.
    pub(crate) units: u64,
    pub(crate) clock: Clock,
    /// Whether allocations are counted: only those of this thread can be.
    pub(crate) counted: bool,
    pub(crate) needs_postgres: bool,
    /// Makes the entrants, the floor first. Called in the process that measures them.
    pub(crate) entrants: fn() -> Vec<Entrant>,
    /// Figures that are not times: bytes on disk, polls.
    pub(crate) figures: fn() -> Vec<Figure>,
}

/// The clock that times the entrants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// Processor time of this process; other processes do not affect it.
    Cpu,
    /// Elapsed time, for work that a second thread or a server shares.
    Wall,
}

/// One way to do the work.
pub struct Entrant {
    pub(crate) label: &'static str,
    /// The highest allowed ratio to the floor; `None` for the floor and for entrants shown for comparison.
    pub(crate) budget: Option<f64>,
    /// The highest allowed number of allocations a unit.
    pub(crate) allocations: Option<f64>,
    /// Does the work the given number of times.
    pub(crate) run: Box<dyn FnMut(u64)>,
}

/// A figure beside the times of the entrants.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figure {
    pub(crate) what: String,
    pub(crate) value: f64,
    pub(crate) unit: String,
    pub(crate) budget: Option<f64>,
}

impl Case {
    /// A case whose entrants do `units` units of work in each run, timed by the processor.
    pub fn new(name: &'static str, unit: &'static str, units: u64, entrants: fn() -> Vec<Entrant>) -> Self {
        Case {
            name,
            unit,
            units,
            clock: Clock::Cpu,
            counted: true,
            needs_postgres: false,
            entrants,
            figures: Vec::new,
        }
    }

    /// Marks a case whose work is not all on this thread: its allocations are not counted.
    pub fn on_two_threads(mut self) -> Self {
        self.counted = false;
        self
    }

    pub(crate) fn by_wall_clock(mut self) -> Self {
        self.clock = Clock::Wall;
        self
    }

    /// Marks a case that needs Postgres: timed by the wall clock, without counting allocations.
    #[cfg(feature = "postgres")]
    pub(crate) fn on_postgres(mut self) -> Self {
        self.counted = false;
        self.needs_postgres = true;
        self.by_wall_clock()
    }

    /// Adds figures that are not times.
    pub fn with_figures(mut self, figures: fn() -> Vec<Figure>) -> Self {
        self.figures = figures;
        self
    }
}

impl Entrant {
    /// An entrant without a budget; `run` does the work the given number of times.
    pub fn new(label: &'static str, run: impl FnMut(u64) + 'static) -> Self {
        Entrant { label, budget: None, allocations: None, run: Box::new(run) }
    }

    pub(crate) fn within(mut self, budget: f64) -> Self {
        self.budget = Some(budget);
        self
    }

    pub(crate) fn allocating(mut self, most: f64) -> Self {
        self.allocations = Some(most);
        self
    }
}

impl Figure {
    /// A figure without a budget.
    pub fn new(what: &str, value: f64, unit: &str) -> Self {
        Figure { what: what.to_owned(), value, unit: unit.to_owned(), budget: None }
    }

    pub(crate) fn within(mut self, budget: f64) -> Self {
        self.budget = Some(budget);
        self
    }
}
