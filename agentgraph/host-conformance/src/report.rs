//! [`Report`]: the findings about a host.

use std::fmt;

use super::{Ability, Clause};

/// The findings about a host.
#[derive(Clone, Debug)]
#[must_use = "a report says whether the host holds"]
pub struct Report {
    /// One for each clause.
    pub findings: Vec<Finding>,
}

/// The finding about one clause.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// The clause.
    pub clause: Clause,
    /// What the host did instead; `None` if it holds, or if it was not tried.
    pub problem: Option<String>,
    /// The abilities that the clause needs and the host lacks: then it was not tried.
    pub lacks: Vec<Ability>,
}

impl Report {
    /// Whether every clause holds that was tried.
    pub fn holds(&self) -> bool {
        self.broken().next().is_none()
    }

    /// The clauses that do not hold.
    pub fn broken(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.problem.is_some())
    }

    /// The clauses that were not tried, since the host lacks an ability.
    pub fn lacking(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| !finding.lacks.is_empty())
    }
}

/// One line for each clause; below a broken one its text and the problem.
impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Finding { clause, problem, lacks } in &self.findings {
            let name = clause.name();
            match problem {
                None if lacks.is_empty() => writeln!(out, "holds   {name}")?,
                None => writeln!(out, "lacks   {name} ({lacks:?})")?,
                Some(problem) => {
                    writeln!(out, "BROKEN  {name}\n        {}", clause.text())?;
                    problem.lines().try_for_each(|line| writeln!(out, "        > {line}"))?;
                }
            }
        }
        let without = self.broken().count() + self.lacking().count();
        let all = self.findings.len();
        write!(out, "{} of {all} clauses hold", all - without)
    }
}
