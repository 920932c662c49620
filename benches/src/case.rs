//! What is measured: a case, its floor and its entrants.

use serde::{Deserialize, Serialize};

/// A named measurement.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// What one unit is, and how many of them one run does.
    pub(crate) unit: &'static str,
    pub(crate) units: u64,
    pub(crate) clock: Clock,
    /// Whether it stays on one thread, so that its allocations can be counted.
    pub(crate) counted: bool,
    pub(crate) needs_postgres: bool,
    /// Makes the entrants, the floor first. Called in the process that measures them.
    pub(crate) entrants: fn() -> Vec<Entrant>,
    /// Figures that are not times: bytes on disk, polls.
    pub(crate) figures: fn() -> Vec<Figure>,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// The time that the process had a processor. Does not see others on the machine.
    Cpu,
    /// The time that went by: for what is spread over two threads.
    Wall,
}

/// One way to do the work.
pub(crate) struct Entrant {
    pub(crate) label: &'static str,
    /// The highest ratio to the floor that is allowed; none for the floor and for those that are shown to
    /// compare.
    pub(crate) budget: Option<f64>,
    /// The most allocations a unit that are allowed.
    pub(crate) allocations: Option<f64>,
    /// Does the work so many times.
    pub(crate) run: Box<dyn FnMut(u64)>,
}

/// A figure that is no ratio.
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

    /// Nothing is counted: what a server allocates is not seen.
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
