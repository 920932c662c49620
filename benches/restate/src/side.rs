//! [`Side`]: who does the work.

use crate::Problem;

/// Who does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Handlers that make the same durable entries as a graph.
    Same,
    /// Handlers that do no more than the work needs.
    Least,
    /// A graph.
    Ours,
}

impl Side {
    pub(crate) const ALL: [Side; 3] = [Side::Same, Side::Least, Side::Ours];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Side::Same => "same",
            Side::Least => "least",
            Side::Ours => "ours",
        }
    }

    /// The name in the table.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Side::Same => "SDK, the same entries",
            Side::Least => "SDK, the fewest entries",
            Side::Ours => "graph",
        }
    }

    pub(crate) fn named(name: &str) -> Result<Self, Problem> {
        let found = Side::ALL.into_iter().find(|side| side.name() == name);
        Ok(found.ok_or_else(|| format!("no side is called {name}"))?)
    }
}
