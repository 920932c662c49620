//! [`Report`]: the findings about a host.

use std::fmt;

use crate::clause::Clause;
use crate::clauses::clauses;
use crate::host::{Ability, HostUnderTest, Kit};
use crate::notes::{Notes, fresh_prefix};

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

/// Tries every clause on a host. `notes` are those of the graphs that the host runs.
pub async fn run(host: &dyn HostUnderTest, notes: &Notes) -> Report {
    check(&clauses(), host, notes).await
}

/// Tries some clauses, one after the other, each on threads of its own.
pub async fn check(clauses: &[Clause], host: &dyn HostUnderTest, notes: &Notes) -> Report {
    let abilities = host.abilities();
    let kit = Kit { host, notes, prefix: fresh_prefix() };
    let mut findings = Vec::new();
    for clause in clauses {
        let lacks: Vec<Ability> =
            clause.needs().iter().copied().filter(|need| !abilities.contains(need)).collect();
        let problem = match lacks.is_empty() {
            true => clause.check(&kit).await.err(),
            false => None,
        };
        findings.push(Finding { clause: *clause, problem, lacks });
    }
    Report { findings }
}
