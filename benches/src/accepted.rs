//! The allocations that were accepted, in a file beside the sources: they are the same on all machines.
//!
//! The file is of a build without optimisation, as in continuous integration. Optimised ones allocate as
//! often or less.

use std::collections::BTreeMap;

use crate::Problem;
use crate::measure::EntrantAllocations;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/allocations.csv");

/// The factors by which a count and its bytes may grow: profiles of the compiler differ a little.
const TOLERANCE: Allocations = Allocations { count: 1.05, bytes: 1.1 };
/// One allocation in a hundred units is none of the unit's.
const NOTHING: f64 = 0.01;

/// The allocations of one unit.
#[derive(Clone, Copy)]
pub(crate) struct Allocations {
    pub(crate) count: f64,
    pub(crate) bytes: f64,
}

/// What was accepted, by case and entrant.
pub(crate) struct Accepted(BTreeMap<(String, String), Allocations>);

impl Accepted {
    pub(crate) fn read() -> Result<Self, Problem> {
        let mut rows = csv::Reader::from_path(FILE).map_err(|error| format!("{FILE}: {error}"))?;
        let mut found = BTreeMap::new();
        for row in rows.deserialize::<(String, String, f64, f64)>() {
            let (case, entrant, count, bytes) = row?;
            found.insert((case, entrant), Allocations { count, bytes });
        }
        Ok(Accepted(found))
    }

    pub(crate) fn of(&self, line: &EntrantAllocations) -> Option<Allocations> {
        self.0.get(&(line.case.to_owned(), line.label.to_owned())).copied()
    }

    /// Whether an entrant allocates more than before, or is not in the file.
    pub(crate) fn has_grown(&self, line: &EntrantAllocations) -> bool {
        self.of(line).is_none_or(|accepted| {
            line.count > accepted.count * TOLERANCE.count + NOTHING
                || line.bytes > accepted.bytes * TOLERANCE.bytes + NOTHING
        })
    }

    /// Fails if an entrant [has grown](Self::has_grown).
    pub(crate) fn check(&self, lines: &[EntrantAllocations]) -> Result<(), Problem> {
        let grown = lines.iter().filter(|line| self.has_grown(line));
        let grown: Vec<_> = grown.map(|line| format!("`{}`, {}", line.case, line.label)).collect();
        if grown.is_empty() {
            return Ok(());
        }
        let remedy = "`cargo bench --profile dev -p agentgraph-benches --bench allocations -- --accept`";
        Err(format!("more allocations than were accepted: {}; {remedy} accepts them", grown.join("; "))
            .into())
    }

    /// Writes the figures, and keeps those of the cases that were not counted this time.
    pub(crate) fn replace(&mut self, lines: &[EntrantAllocations]) -> Result<(), Problem> {
        self.0.retain(|(case, _), _| !lines.iter().any(|line| line.case == case));
        for &EntrantAllocations { case, label, count, bytes, .. } in lines {
            self.0.insert((case.to_owned(), label.to_owned()), Allocations { count, bytes });
        }
        let mut rows = csv::Writer::from_path(FILE)?;
        rows.write_record(["case", "entrant", "allocations", "bytes"])?;
        for ((case, entrant), Allocations { count, bytes }) in &self.0 {
            rows.write_record([case, entrant, &format!("{count:.3}"), &format!("{bytes:.3}")])?;
        }
        Ok(rows.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_allocations_more_bytes_and_unknown_cases_are_refused() {
        let key = ("chain/10".to_owned(), "engine".to_owned());
        let accepted = Accepted([(key, Allocations { count: 2.0, bytes: 600.0 })].into());
        let check = |case, count, bytes| {
            let line = EntrantAllocations { case, unit: "step", label: "engine", count, bytes, most: None };
            accepted.check(&[line]).is_ok()
        };
        assert!(check("chain/10", 2.0, 600.0));
        assert!(check("chain/10", 1.0, 100.0), "fewer are fine");
        assert!(!check("chain/10", 2.2, 600.0));
        assert!(!check("chain/10", 2.0, 700.0));
        assert!(!check("chain/100", 2.0, 600.0));
    }
}
