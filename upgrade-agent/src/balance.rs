//! Whether a split of students comes out as the weights say: counts, what was expected, and a chi-square test.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ChiSquared, ContinuousCDF};

use crate::client::{AssignmentUnit, Experiment};
use crate::server::{condition_at, first_draw};

/// Below this p-value a split is taken to be off. At 0.01 one fair test in a hundred is called unfair.
pub const SIGNIFICANCE: f64 = 0.01;

/// With fewer expected students in a condition the chi-square test says little (Cochran's rule).
const FEWEST_EXPECTED: f64 = 5.0;

/// How a split came out.
///
/// ```
/// use upgrade_agent::balance::{BalanceReport, Verdict};
///
/// let report = BalanceReport::of([("control", 50.0, 48), ("variant", 50.0, 52)]);
/// assert_eq!((report.users, report.verdict), (100, Verdict::Balanced));
/// assert!((report.chi_square.unwrap() - 0.16).abs() < 1e-9);
/// assert!((report.p_value.unwrap() - 0.6892).abs() < 1e-4);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BalanceReport {
    /// The conditions, in the order of the experiment.
    pub conditions: Vec<ConditionCount>,
    /// How many students got a condition.
    pub users: u64,
    /// How many did not.
    pub left_out: u64,
    /// Pearson's statistic; none if there is nothing to compare.
    pub chi_square: Option<f64>,
    /// Conditions with a weight, less one.
    pub degrees_of_freedom: u64,
    /// How likely a split at least as uneven is if the weights hold, 0 to 1.
    pub p_value: Option<f64>,
    /// What follows from it.
    pub verdict: Verdict,
}

/// One condition of a split.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConditionCount {
    /// Its code.
    pub code: String,
    /// The share it really has, in percent.
    pub weight: f64,
    /// How many students it should have.
    pub expected: f64,
    /// How many it has.
    pub observed: u64,
}

/// What a split says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As the weights say, as far as chance goes.
    Balanced,
    /// Too uneven for chance.
    Unbalanced,
    /// Too few students to say.
    TooFew,
    /// There is nothing to compare: one condition, or nobody got any.
    NothingToCompare,
}

impl BalanceReport {
    /// The report on conditions with their share in percent and their students.
    pub fn of<C: Into<String>>(conditions: impl IntoIterator<Item = (C, f64, u64)>) -> Self {
        let given: Vec<(String, f64, u64)> =
            conditions.into_iter().map(|(code, weight, observed)| (code.into(), weight, observed)).collect();
        let users: u64 = given.iter().map(|(_, _, observed)| observed).sum();
        let whole: f64 = given.iter().map(|(_, weight, _)| weight).sum();
        let conditions: Vec<ConditionCount> = given
            .into_iter()
            .map(|(code, weight, observed)| {
                let expected = if whole > 0.0 { users as f64 * weight / whole } else { 0.0 };
                ConditionCount { code, weight, expected, observed }
            })
            .collect();
        let mut report = BalanceReport {
            conditions,
            users,
            left_out: 0,
            chi_square: None,
            degrees_of_freedom: 0,
            p_value: None,
            verdict: Verdict::NothingToCompare,
        };
        report.judge();
        report
    }

    /// The report that a step of a plan came to, if it came to one.
    pub(crate) fn try_from_value(value: &serde_json::Value) -> Option<Self> {
        value.get("chi_square")?;
        Self::deserialize(value).ok()
    }

    /// The same report, with students who got nothing.
    #[must_use]
    pub fn leaving_out(mut self, students: u64) -> Self {
        self.left_out = students;
        self
    }

    fn judge(&mut self) {
        // Somebody in a condition that nobody can draw is no matter of chance.
        if self.conditions.iter().any(|one| one.expected == 0.0 && one.observed > 0) && self.users > 0 {
            self.verdict = Verdict::Unbalanced;
            return;
        }
        let weighed: Vec<&ConditionCount> = self.conditions.iter().filter(|one| one.expected > 0.0).collect();
        if weighed.len() < 2 {
            return;
        }
        let statistic: f64 =
            weighed.iter().map(|one| (one.observed as f64 - one.expected).powi(2) / one.expected).sum();
        let too_few = weighed.iter().any(|one| one.expected < FEWEST_EXPECTED);
        self.degrees_of_freedom = weighed.len() as u64 - 1;
        self.chi_square = Some(statistic);
        self.p_value =
            ChiSquared::new(self.degrees_of_freedom as f64).ok().map(|chance| chance.sf(statistic));
        self.verdict = match self.p_value {
            _ if too_few => Verdict::TooFew,
            Some(p) if p < SIGNIFICANCE => Verdict::Unbalanced,
            Some(_) => Verdict::Balanced,
            None => Verdict::NothingToCompare,
        };
    }

    /// The report in lines.
    pub fn in_words(&self) -> String {
        let mut lines: Vec<String> = self.conditions.iter().map(|one| one.in_words(self.users)).collect();
        if self.left_out > 0 {
            lines.push(format!("- no condition: {}", self.left_out));
        }
        lines.push(self.verdict_in_words());
        lines.join("\n")
    }

    fn verdict_in_words(&self) -> String {
        let test = match (self.chi_square, self.p_value) {
            (Some(statistic), Some(p)) => {
                let degrees = self.degrees_of_freedom;
                let word = if degrees == 1 { "degree" } else { "degrees" };
                format!(" (chi-square {statistic:.2}, {degrees} {word} of freedom, p = {p:.3})")
            }
            _ => String::new(),
        };
        match self.verdict {
            Verdict::Balanced => format!("The split is as the weights say{test}."),
            Verdict::Unbalanced => format!("The split is NOT as the weights say{test}."),
            Verdict::TooFew => {
                format!(
                    "These are too few students to say whether the split is as the weights say{test}: play more."
                )
            }
            Verdict::NothingToCompare if self.users == 0 => {
                "Nobody got a condition, so there is no split to judge.".to_owned()
            }
            Verdict::NothingToCompare => {
                "There is only one condition to get, so there is no split to judge.".to_owned()
            }
        }
    }
}

impl ConditionCount {
    fn in_words(&self, users: u64) -> String {
        let share = if users == 0 { 0.0 } else { self.observed as f64 / users as f64 * 100.0 };
        format!(
            "- {}: {} ({share:.1}%), expected {:.1} ({:.1}%)",
            self.code, self.observed, self.expected, self.weight
        )
    }
}

/// The shares that conditions really have, in percent: the running sum of the weights is drawn against, so what lies above
/// 100 is never drawn, and what is missing to 100 goes to the first condition.
pub(crate) fn shares(experiment: &Experiment) -> Vec<(String, f64)> {
    let mut conditions: Vec<_> = experiment.conditions.iter().collect();
    conditions.sort_by_key(|condition| condition.order);
    let mut sum = 0.0_f64;
    let mut shares: Vec<(String, f64)> = conditions
        .iter()
        .map(|condition| {
            let from = sum.clamp(0.0, 100.0);
            sum += condition.weight;
            (condition.code.clone(), sum.clamp(0.0, 100.0) - from)
        })
        .collect();
    if let Some((_, first)) = shares.first_mut() {
        *first += 100.0 - sum.clamp(0.0, 100.0);
    }
    shares
}

/// What these students (or, where groups are assigned, each one's own group) draw: a pure function of ids and weights, the
/// same as the server's. Lists, other experiments at the same places and earlier enrolments are not looked at.
pub(crate) fn offline(experiment: &Experiment, units: impl Iterator<Item = String>) -> BalanceReport {
    let mut conditions: Vec<_> = experiment.conditions.iter().collect();
    conditions.sort_by_key(|condition| condition.order);
    let weights: Vec<f64> = conditions.iter().map(|condition| condition.weight).collect();
    let mut counts = vec![0_u64; conditions.len()];
    for unit in units {
        let point = first_draw(&format!("{}_{unit}", experiment.id)) * 100.0;
        if let Some(count) = counts.get_mut(condition_at(&weights, point)) {
            *count += 1;
        }
    }
    let shares = shares(experiment).into_iter().zip(counts);
    BalanceReport::of(shares.map(|((code, share), count)| (code, share, count)))
}

/// Whether each simulated student needs a group of his own, of which kind.
pub(crate) fn own_group(experiment: &Experiment) -> Option<&str> {
    experiment.group_type.as_deref().filter(|_| experiment.assignment_unit == AssignmentUnit::Group)
}
