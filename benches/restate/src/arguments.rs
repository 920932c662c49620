//! The command line.

use crate::Problem;

/// The parsed arguments.
pub(crate) struct Arguments {
    /// A case is wanted if its name contains one of these words. If there are none, all are.
    words: Vec<String>,
    /// How often each side makes the calls of a case.
    pub(crate) rounds: usize,
    /// Whether to only check that everything runs.
    pub(crate) quick: bool,
}

impl Arguments {
    pub(crate) fn of(mut given: impl Iterator<Item = String>) -> Result<Self, Problem> {
        let mut found = Arguments { words: Vec::new(), rounds: 5, quick: false };
        while let Some(argument) = given.next() {
            match argument.as_str() {
                "--quick" => (found.quick, found.rounds) = (true, 1),
                "--rounds" => {
                    found.rounds = given.next().ok_or("`--rounds` needs a value")?.parse::<usize>()?.max(1);
                }
                other if other.starts_with('-') => return Err(format!("`{other}` is not an argument").into()),
                _ => found.words.push(argument),
            }
        }
        Ok(found)
    }

    pub(crate) fn wants(&self, case: &str) -> bool {
        self.words.is_empty() || self.words.iter().any(|word| case.contains(word.as_str()))
    }
}
