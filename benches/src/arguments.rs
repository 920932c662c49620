//! The command line.

use crate::Problem;

/// What was asked for.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    /// Words of which a case's name must contain one; none means all cases.
    words: Vec<String>,
    /// Only prove that everything runs.
    pub(crate) quick: bool,
    /// How many processes measure each case.
    pub(crate) processes: usize,
    /// This process measures one case and prints its figures for its parent.
    pub(crate) child: Option<String>,
    /// Run one entrant of one case and nothing else, for tools that count instructions: its place, 0 being
    /// the floor.
    pub(crate) solo: Option<usize>,
    /// How often `solo` runs it.
    pub(crate) times: u64,
}

impl Arguments {
    pub(crate) fn read() -> Result<Self, Problem> {
        Self::of(std::env::args().skip(1))
    }

    fn of(mut given: impl Iterator<Item = String>) -> Result<Self, Problem> {
        let mut found = Arguments { processes: 5, times: 1, ..Arguments::default() };
        while let Some(argument) = given.next() {
            let mut value = || given.next().ok_or_else(|| format!("`{argument}` needs a value"));
            match argument.as_str() {
                // cargo adds it to every bench.
                "--bench" => {}
                "--quick" => found.quick = true,
                "--processes" => found.processes = value()?.parse::<usize>()?.max(1),
                "--child" => found.child = Some(value()?),
                "--solo" => found.solo = Some(value()?.parse()?),
                "--times" => found.times = value()?.parse()?,
                other if other.starts_with('-') => return Err(format!("`{other}` is not an argument").into()),
                _ => found.words.push(argument),
            }
        }
        if found.quick {
            found.processes = 1;
        }
        Ok(found)
    }

    pub(crate) fn wants(&self, case: &str) -> bool {
        self.words.is_empty() || self.words.iter().any(|word| case.contains(word.as_str()))
    }
}
