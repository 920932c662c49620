//! Ratios that were kept under a name, to compare later ones with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::Problem;
use crate::measure::CaseResults;

/// The ratios to the floor, by case and entrant.
#[derive(Default)]
pub(crate) struct Baseline(BTreeMap<String, BTreeMap<String, f64>>);

impl Baseline {
    pub(crate) fn read(name: &str) -> Result<Self, Problem> {
        let path = path(name)?;
        let bytes = std::fs::read(&path).map_err(|error| {
            format!(
                "there is no baseline `{name}` ({}: {error}); `--save-baseline {name}` makes one",
                path.display()
            )
        })?;
        Ok(Baseline(serde_json::from_slice(&bytes)?))
    }

    pub(crate) fn add(&mut self, case: &str, results: &CaseResults) {
        let ratios = results.entrants.iter().map(|entrant| (entrant.label.clone(), entrant.ratio));
        self.0.insert(case.to_owned(), ratios.collect());
    }

    /// Returns the ratio that was kept.
    pub(crate) fn ratio(&self, case: &str, entrant: &str) -> Option<f64> {
        self.0.get(case)?.get(entrant).copied()
    }

    /// Keeps the ratios, and those of the cases that were not measured this time.
    pub(crate) fn save(mut self, name: &str) -> Result<(), Problem> {
        let path = path(name)?;
        if path.exists() {
            let mut kept = Self::read(name)?;
            kept.0.append(&mut self.0);
            self = kept;
        }
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        Ok(std::fs::write(path, serde_json::to_vec_pretty(&self.0)?)?)
    }
}

fn path(name: &str) -> Result<PathBuf, Problem> {
    if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_') {
        return Err(format!("`{name}` names no baseline: use letters, digits, `-` and `_`").into());
    }
    // A bench lies in `target/release/deps`.
    let program = std::env::current_exe()?;
    let target = program.ancestors().nth(3).ok_or("the program lies in no target folder")?;
    Ok(target.join("agentgraph-baselines").join(format!("{name}.json")))
}
