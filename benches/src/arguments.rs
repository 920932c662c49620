//! The command line.

use crate::Problem;

/// The parsed arguments.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    /// The case filter: a name must contain one of these words. If there are none, all cases run.
    words: Vec<String>,
    /// Whether to only check that everything runs.
    pub(crate) quick: bool,
    /// The number of processes that measure each case.
    pub(crate) processes: usize,
    /// The case that this process measures, printing the figures for its parent.
    pub(crate) child: Option<String>,
    /// The index of the only entrant to run, for tools that count instructions; 0 is the floor.
    pub(crate) solo: Option<usize>,
    /// How often the `solo` entrant runs.
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
                // cargo passes it to every bench.
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
