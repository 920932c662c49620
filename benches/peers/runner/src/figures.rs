//! What was measured.

use std::collections::BTreeMap;

use harness::Case;
use serde::Serialize;

use crate::entrant::{Entrant, Measured, Said, Size};

#[derive(Serialize, Default)]
pub struct Figures {
    pub versions: BTreeMap<&'static str, String>,
    pub sizes: BTreeMap<&'static str, Size>,
    /// Why an entrant was not built.
    pub dropped: BTreeMap<&'static str, String>,
    /// By case and entrant.
    pub cases: BTreeMap<String, BTreeMap<&'static str, Figure>>,
}

/// An entrant in a case.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    Lacks(String),
    Rounds { rounds: Vec<Measured>, note: String },
}

impl Figures {
    pub fn add_build(&mut self, entrant: &Entrant, with_sizes: bool) {
        let built = entrant.build().and_then(|()| if with_sizes { entrant.size() } else { Ok(None) });
        match built {
            Ok(size) => {
                self.versions.insert(entrant.name, entrant.version());
                self.sizes.extend(size.map(|size| (entrant.name, size)));
            }
            Err(problem) => {
                let text = problem.to_string();
                let reason =
                    text.lines().find(|line| line.starts_with("error")).unwrap_or("it does not build");
                eprintln!("{text}\n{} is left out: {reason}", entrant.name);
                self.dropped.insert(entrant.name, reason.to_owned());
            }
        }
    }

    /// Measures one round. An entrant whose process fails, as it does when a result is wrong, has no figure.
    pub fn measure(&mut self, case: Case, entrant: &Entrant, is_quick: bool) {
        let own = self.cases.entry(case.name()).or_default();
        if matches!(own.get(entrant.name), Some(Figure::Lacks(_))) {
            return;
        }
        match entrant.ask(&case.name(), is_quick) {
            Err(problem) => {
                eprintln!("{} fails in {}: {problem}", entrant.name, case.name());
                own.insert(entrant.name, Figure::Lacks("fails".to_owned()));
            }
            Ok(Said::Lacks { lacks }) => drop(own.insert(entrant.name, Figure::Lacks(lacks))),
            Ok(Said::Measured(measured)) => {
                let note = measured.note.clone();
                let figure = own.entry(entrant.name).or_insert(Figure::Rounds { rounds: Vec::new(), note });
                if let Figure::Rounds { rounds, .. } = figure {
                    rounds.push(measured);
                }
            }
        }
    }

    pub fn figure(&self, case: Case, entrant: &str) -> Option<&Figure> {
        self.cases.get(&case.name())?.get(entrant)
    }

    /// A value of each round.
    pub fn values(&self, case: Case, entrant: &str, value: impl Fn(&Measured) -> Option<f64>) -> Vec<f64> {
        match self.figure(case, entrant) {
            Some(Figure::Rounds { rounds, .. }) => rounds.iter().filter_map(value).collect(),
            _ => Vec::new(),
        }
    }

    /// The ratio of one entrant's processor time to another's: the median of the rounds.
    pub fn ratio(&self, case: Case, entrant: &str, to: &str) -> Option<f64> {
        let own = self.values(case, entrant, |round| Some(round.cpu));
        let other = self.values(case, to, |round| Some(round.cpu));
        Span::of(own.iter().zip(&other).map(|(own, other)| own / other)).map(|span| span.median)
    }
}

/// The median of some values, and their range.
pub struct Span {
    pub lowest: f64,
    pub median: f64,
    pub highest: f64,
}

impl Span {
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Span> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let median = *values.get(values.len() / 2)?;
        Some(Span { lowest: values[0], median, highest: values[values.len() - 1] })
    }
}
