//! Compares a split of students with the weights: counts, expected counts, and a chi-square test.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use statrs::distribution::{ChiSquared, ContinuousCDF};

use crate::actions::display;
use crate::client::{AssignmentAlgorithm, AssignmentUnit, EnrollmentDetail, Experiment, NewUser};
use crate::server::draw_condition;

/// Below this p-value a split counts as uneven. At 0.01, one in a hundred fair splits is misjudged.
pub const SIGNIFICANCE: f64 = 0.01;

/// With fewer expected students in a condition the chi-square test is not valid (Cochran's rule).
const FEWEST_EXPECTED: f64 = 5.0;

/// The result of a balance test.
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
    /// The number of students with a condition.
    pub users: u64,
    /// The number of groups that drew, if groups are assigned. Then groups are counted, because the students
    /// of a group share one draw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<u64>,
    /// The number of students without a condition.
    pub left_out: u64,
    /// Pearson's statistic; none if there is nothing to compare.
    pub chi_square: Option<f64>,
    /// The number of conditions with a weight, minus one.
    pub degrees_of_freedom: u64,
    /// The p-value: the probability of a split at least as uneven if the weights hold.
    pub p_value: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
}

/// One condition of a split.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConditionCount {
    /// The code of the condition.
    pub code: String,
    /// Its effective share in percent.
    pub weight: f64,
    /// The expected number of students (or groups); 0 if the weights do not determine it.
    pub expected: f64,
    /// The actual number.
    pub observed: u64,
}

/// The verdict on a split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Consistent with the weights.
    Balanced,
    /// Too uneven for chance.
    Unbalanced,
    /// Too few students for a verdict.
    TooFew,
    /// Nothing to compare: one condition, or no student with a condition.
    NothingToCompare,
    /// An adaptive experiment: rewards shift the draw, so the weights do not determine the split.
    Adaptive,
}

impl BalanceReport {
    /// The report on conditions, given their shares in percent and their students.
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
            groups: None,
            left_out: 0,
            chi_square: None,
            degrees_of_freedom: 0,
            p_value: None,
            verdict: Verdict::NothingToCompare,
        };
        report.judge();
        report
    }

    /// The report in the result of a plan's step, if it has one.
    pub(crate) fn try_from_value(value: &serde_json::Value) -> Option<Self> {
        value.get("chi_square")?;
        Self::deserialize(value).ok()
    }

    /// Adds the students without a condition.
    #[must_use]
    pub fn leaving_out(mut self, students: u64) -> Self {
        self.left_out = students;
        self
    }

    /// Sets the number of students of the counted groups.
    #[must_use]
    pub fn of_groups(mut self, students: u64) -> Self {
        self.groups = Some(self.draws());
        self.users = students;
        self
    }

    /// Removes the expected counts of an experiment whose weights do not determine the split.
    #[must_use]
    pub fn adaptive(mut self) -> Self {
        if self.draws() > 0 {
            self.verdict = Verdict::Adaptive;
        }
        self.conditions.iter_mut().for_each(|one| one.expected = 0.0);
        (self.chi_square, self.p_value, self.degrees_of_freedom) = (None, None, 0);
        self
    }

    /// The number of counted draws: of students, or of groups.
    pub fn draws(&self) -> u64 {
        self.groups.unwrap_or(self.users)
    }

    fn judge(&mut self) {
        // A count in a condition of no weight cannot be chance.
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

    /// The report as lines of text.
    pub fn in_words(&self) -> String {
        let judged = self.verdict != Verdict::Adaptive;
        let line = |one: &ConditionCount| one.in_words(self.draws(), judged);
        let mut lines: Vec<String> = self.conditions.iter().map(line).collect();
        if let Some(groups) = self.groups {
            let students = counted(self.users, "student");
            lines.push(format!(
                "- counted are groups, since each draws once: {} of {students}",
                counted(groups, "group")
            ));
        }
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
                let (whom, remedy) = match self.groups {
                    None => ("students", "play more"),
                    Some(_) => {
                        ("groups", "play more, and name no group, so that each student has one of his own")
                    }
                };
                format!(
                    "These are too few {whom} to say whether the split is as the weights say{test}: {remedy}."
                )
            }
            Verdict::Adaptive => {
                "The draw adapts to the rewards that the application reports (ts_configurable), so the \
                                  weights do not say how the split should be: I counted, and judge nothing."
                    .to_owned()
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
    fn in_words(&self, draws: u64, judged: bool) -> String {
        let share = if draws == 0 { 0.0 } else { self.observed as f64 / draws as f64 * 100.0 };
        let expected = if judged {
            format!(", expected {:.1} ({:.1}%)", self.expected, self.weight)
        } else {
            String::new()
        };
        format!("- {}: {} ({share:.1}%){expected}", display(&self.code), self.observed)
    }
}

fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// The code of a drawn condition, and the group that drew it, if groups are assigned.
pub(crate) type DrawnCondition<'a> = (&'a str, Option<&'a str>);

/// The report on the students of an experiment, given each student's draw; none for a student who is left
/// out.
pub(crate) fn count<'a>(
    experiment: &Experiment,
    drawn: impl Iterator<Item = Option<DrawnCondition<'a>>>,
) -> BalanceReport {
    let mut users = 0;
    let mut left_out = 0;
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for one in drawn {
        let Some((code, group)) = one else {
            left_out += 1;
            continue;
        };
        users += 1;
        if group.is_none_or(|group| seen.insert((code, group))) {
            *counts.entry(code).or_default() += 1;
        }
    }
    let known = shares(experiment).into_iter().map(|(code, share)| {
        let observed = counts.remove(code.as_str()).unwrap_or(0);
        (code, share, observed)
    });
    let known: Vec<_> = known.collect();
    // A condition that the experiment does not have, or does not have any more.
    let others = counts.into_iter().map(|(code, observed)| (code.to_owned(), 0.0, observed));
    let mut report = BalanceReport::of(known.into_iter().chain(others)).leaving_out(left_out);
    if own_group(experiment).is_some() {
        report = report.of_groups(users);
    }
    match experiment.assignment_algorithm {
        AssignmentAlgorithm::TsConfigurable => report.adaptive(),
        _ => report,
    }
}

/// The effective shares of the conditions in percent. The server draws against the running sum of the
/// weights, so a part above 100 is never drawn, and a part missing to 100 goes to the first condition.
pub(crate) fn shares(experiment: &Experiment) -> Vec<(String, f64)> {
    let mut conditions: Vec<_> = experiment.conditions.iter().collect();
    conditions.sort_by_key(|condition| condition.order);
    let mut sum = 0.0_f64;
    let mut reached = 0.0_f64;
    let mut shares: Vec<(String, f64)> = conditions
        .iter()
        .map(|condition| {
            sum += condition.weight;
            let from = reached;
            if sum > reached {
                reached = sum.min(100.0);
            }
            (condition.code.clone(), reached - from)
        })
        .collect();
    if let Some((_, first)) = shares.first_mut() {
        *first += 100.0 - reached;
    }
    shares
}

/// The unit that draws for a student: the student or their working group; none for a student without one.
pub(crate) fn unit<'a>(experiment: &Experiment, student: &'a NewUser) -> Option<&'a str> {
    let Some(kind) = own_group(experiment) else { return Some(&student.id) };
    let works = student.working_group.as_ref()?.get(kind)?;
    let is_in = student.groups.as_ref()?.get(kind)?.contains(works);
    is_in.then_some(works.as_str())
}

/// The draws of these students, by the server's pure function of ids and weights. Lists, other experiments at
/// the same places and earlier enrolments are ignored.
pub(crate) fn offline(experiment: &Experiment, students: &[NewUser]) -> BalanceReport {
    let mut conditions: Vec<_> = experiment.conditions.iter().collect();
    conditions.sort_by_key(|condition| condition.order);
    let weights: Vec<f64> = conditions.iter().map(|condition| condition.weight).collect();
    let groups = own_group(experiment).is_some();
    let drawn = students.iter().map(|student| {
        let unit = unit(experiment, student)?;
        let condition = conditions.get(draw_condition(&experiment.id, unit, &weights)?)?;
        Some((condition.code.as_str(), groups.then_some(unit)))
    });
    count(experiment, drawn)
}

/// The split of the enrolled students; `None` if every student gets each condition.
pub(crate) fn enrolled(experiment: &Experiment, detail: &EnrollmentDetail) -> Option<BalanceReport> {
    if experiment.assignment_unit == AssignmentUnit::WithinSubjects {
        return None;
    }
    let by_group = own_group(experiment).is_some();
    let id_of = |code: &str| experiment.conditions.iter().find(|one| one.code == code).map(|one| &one.id);
    let count = |code: &str| {
        let found = detail.conditions.iter().find(|one| Some(&one.id) == id_of(code));
        found.map_or(0, |one| if by_group { one.groups } else { one.users })
    };
    let counted = shares(experiment).into_iter().map(|(code, share)| {
        let observed = count(&code);
        (code, share, observed)
    });
    let report = BalanceReport::of(counted);
    let report = if by_group { report.of_groups(detail.users) } else { report };
    Some(match experiment.assignment_algorithm {
        AssignmentAlgorithm::TsConfigurable => report.adaptive(),
        _ => report,
    })
}

/// The kind of group that each simulated student needs, if any.
pub(crate) fn own_group(experiment: &Experiment) -> Option<&str> {
    experiment.group_type.as_deref().filter(|_| experiment.assignment_unit == AssignmentUnit::Group)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{ExperimentState, NewExperiment, UpgradeClient};
    use crate::server::EmbeddedServer;

    async fn experiment(algorithm: AssignmentAlgorithm) -> Experiment {
        let server = EmbeddedServer::builder().in_memory().start().await.unwrap();
        let client = UpgradeClient::builder(server.url()).build().unwrap();
        let new = NewExperiment::new("Foo", "assign-prog")
            .point("SelectSection", "absolute_value_plot_equality")
            .condition("a", 50.0)
            .condition("b", 50.0);
        let made = client.create(&new).await.unwrap();
        assert_eq!(made.state, ExperimentState::Inactive);
        Experiment { assignment_algorithm: algorithm, ..made }
    }

    #[tokio::test]
    async fn adaptive_draws_get_no_verdict_and_a_condition_without_weight_is_unbalanced() {
        let drawn = || ["a", "a", "a", "gone"].map(|code| Some((code, None))).into_iter().chain([None]);
        let adaptive = count(&experiment(AssignmentAlgorithm::TsConfigurable).await, drawn());
        assert_eq!((adaptive.verdict, adaptive.users, adaptive.left_out), (Verdict::Adaptive, 4, 1));
        let random = count(&experiment(AssignmentAlgorithm::Random).await, drawn());
        assert_eq!((random.verdict, random.conditions[2].code.as_str()), (Verdict::Unbalanced, "gone"));
    }
}
