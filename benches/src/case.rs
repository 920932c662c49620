//! A case: its floor, its entrants and its figures.

use serde::{Deserialize, Serialize};

/// A named measurement.
pub(crate) struct Case {
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
pub(crate) struct Entrant {
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
pub(crate) struct Figure {
    pub(crate) what: String,
    pub(crate) value: f64,
    pub(crate) unit: String,
    pub(crate) budget: Option<f64>,
}

impl Case {
    pub(crate) fn new(
        name: &'static str,
        unit: &'static str,
        units: u64,
        entrants: fn() -> Vec<Entrant>,
    ) -> Self {
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

    pub(crate) fn on_two_threads(mut self) -> Self {
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

    pub(crate) fn with_figures(mut self, figures: fn() -> Vec<Figure>) -> Self {
        self.figures = figures;
        self
    }
}

impl Entrant {
    pub(crate) fn new(label: &'static str, run: impl FnMut(u64) + 'static) -> Self {
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
    pub(crate) fn new(what: &str, value: f64, unit: &str) -> Self {
        Figure { what: what.to_owned(), value, unit: unit.to_owned(), budget: None }
    }

    pub(crate) fn within(mut self, budget: f64) -> Self {
        self.budget = Some(budget);
        self
    }
}
