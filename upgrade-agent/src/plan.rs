//! Plans: actions of several steps. A plan is built from the server's data, confirmed as a whole, and run
//! step by step.
//!
//! A plan that changes an experiment's status stores the first status, and restores it however the plan ends.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::actions::{Action, JourneyStep, TestConditionBalance, is_offline};
use crate::client::{Experiment, ExperimentState};
use crate::state::{Approval, TurnError};

/// The steps of an action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The steps, in order.
    pub steps: Vec<PlanStep>,
    /// The status to restore after the steps, if they change it.
    pub restores: Option<ExperimentState>,
}

/// A step of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PlanStep {
    /// Sets the status of the experiment.
    SetStatus {
        /// The new status.
        to: ExperimentState,
    },
    /// Lets simulated students visit one place each.
    Crowd {
        /// The number of students.
        students: u32,
        /// The site.
        site: String,
        /// The target.
        target: String,
    },
    /// Initializes the students of a journey.
    Begin {
        /// The number of students.
        students: usize,
    },
    /// Runs a step of a journey for all of its students.
    Journey(JourneyStep),
    /// Visits every place that has an assignment for the student.
    VisitAssigned,
}

impl Plan {
    /// The plan of an action, given the server's data; none for an action of one step.
    pub(crate) fn of(action: &Action, experiment: Option<&Experiment>) -> Option<Plan> {
        match action {
            Action::TestConditionBalance(test) => of_balance(test, experiment?),
            Action::SimulateUserJourney(journey) => {
                let mut steps = vec![PlanStep::Begin { students: journey.students() }];
                match (&journey.steps[..], experiment) {
                    ([], Some(experiment)) => steps.extend(experiment.decision_points.iter().map(|point| {
                        let site = point.site.clone();
                        let target = point.target.clone();
                        PlanStep::Journey(JourneyStep::Visit { site, target })
                    })),
                    ([], None) => steps.push(PlanStep::VisitAssigned),
                    (given, _) => steps.extend(given.iter().map(of_journey)),
                }
                Some(Plan::restoring(steps, experiment))
            }
            _ => None,
        }
    }

    fn restoring(steps: Vec<PlanStep>, experiment: Option<&Experiment>) -> Plan {
        let changes = steps.iter().any(|step| matches!(step, PlanStep::SetStatus { .. }));
        let restores = experiment.filter(|_| changes).map(|experiment| experiment.state.clone());
        Plan { steps, restores }
    }
}

fn of_balance(test: &TestConditionBalance, experiment: &Experiment) -> Option<Plan> {
    if is_offline(test, &experiment.state) {
        return None;
    }
    let first = experiment.decision_points.first();
    let site = test.site.clone().or_else(|| first.map(|point| point.site.clone()))?;
    let target = test.target.clone().or_else(|| first.map(|point| point.target.clone()))?;
    let mut steps = Vec::new();
    if experiment.state != ExperimentState::Enrolling {
        steps.push(PlanStep::SetStatus { to: ExperimentState::Enrolling });
    }
    steps.push(PlanStep::Crowd { students: test.students(), site, target });
    Some(Plan::restoring(steps, Some(experiment)))
}

fn of_journey(step: &JourneyStep) -> PlanStep {
    match step {
        JourneyStep::SetStatus { status } => PlanStep::SetStatus { to: status.clone() },
        other => PlanStep::Journey(other.clone()),
    }
}

/// An approved plan and its progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanRun {
    approved: Approval,
    /// The index of the next step.
    next: usize,
    /// The status to restore; none after it was restored, or if nothing was changed.
    restore: Option<ExperimentState>,
    /// The status of the last status step, to detect changes by others.
    set: Option<ExperimentState>,
    /// The result of each finished step.
    done: Vec<Value>,
    /// The reason of an early end.
    ends: Option<EarlyEnd>,
}

/// The reason for which a plan ends early.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum EarlyEnd {
    /// A step failed.
    Failed(TurnError),
    /// Somebody else changed the status meanwhile, and it stays changed.
    Overtaken(TurnError),
    /// The process, or the turn, was stopped in between.
    Interrupted,
    /// The person did not confirm a step.
    Declined,
}

impl PlanRun {
    /// A plan at its first step. Requires an approval.
    pub(crate) fn begin(approved: Approval, restore: Option<ExperimentState>) -> Self {
        PlanRun { approved, next: 0, restore, set: None, done: Vec::new(), ends: None }
    }

    /// The approval.
    pub fn approved(&self) -> &Approval {
        &self.approved
    }

    /// The plan.
    pub(crate) fn plan(&self) -> Option<&Plan> {
        self.approved.proposal().plan.as_ref()
    }

    /// The next step; none if there is none left, or if the plan ends early.
    pub(crate) fn step(&self) -> Option<&PlanStep> {
        self.plan()?.steps.get(self.next).filter(|_| self.ends.is_none())
    }

    /// Whether a step with simulated students was started.
    pub(crate) fn has_played(&self) -> bool {
        let begun =
            self.next + usize::from(matches!(self.ends, Some(EarlyEnd::Failed(_) | EarlyEnd::Interrupted)));
        let steps = self.plan().map_or(&[][..], |plan| &plan.steps);
        steps.iter().take(begun).any(|step| matches!(step, PlanStep::Crowd { .. } | PlanStep::Begin { .. }))
    }

    /// The number of finished steps, and the index of the next one.
    pub(crate) fn position(&self) -> usize {
        self.next
    }

    /// The results of the finished steps.
    pub(crate) fn results(&self) -> &[Value] {
        &self.done
    }

    /// The reason of an early end.
    pub(crate) fn early_end(&self) -> Option<&EarlyEnd> {
        self.ends.as_ref()
    }

    /// The step that failed or was interrupted.
    pub(crate) fn cut_step(&self) -> Option<&PlanStep> {
        let is_cut = matches!(self.ends, Some(EarlyEnd::Failed(_) | EarlyEnd::Interrupted));
        self.plan()?.steps.get(self.next).filter(|_| is_cut)
    }

    /// The status to restore at the end.
    pub(crate) fn first_status(&self) -> Option<&ExperimentState> {
        self.restore.as_ref()
    }

    /// The status that the last status step set.
    pub(crate) fn last_set(&self) -> Option<&ExperimentState> {
        self.set.as_ref()
    }

    /// The status of the experiment if nobody else changed it.
    pub(crate) fn expected_status(&self) -> Option<&ExperimentState> {
        self.set.as_ref().or(self.approved.proposal().current.as_ref())
    }

    /// The plan with an early end, unless it has one.
    pub(crate) fn ending(&self, why: EarlyEnd) -> Self {
        PlanRun { ends: Some(self.ends.clone().unwrap_or(why)), ..self.clone() }
    }

    /// The plan after its next step, which had this result.
    pub(crate) fn advanced(&self, result: Value) -> Self {
        let mut run = self.clone();
        if let Some(PlanStep::SetStatus { to }) = self.step() {
            run.set = Some(to.clone());
        }
        run.next += 1;
        run.done.push(result);
        run
    }
}

/// Whether an experiment of this status enrols real students.
pub(crate) fn is_live(state: &ExperimentState) -> bool {
    matches!(state, ExperimentState::Enrolling | ExperimentState::EnrollmentComplete)
}

/// Whether a step affects real students, so that it needs a confirmation of its own: in every other status
/// they get the default anyway.
pub(crate) fn is_destructive(step: &PlanStep, first: Option<&ExperimentState>) -> bool {
    first.is_some_and(is_live) && matches!(step, PlanStep::SetStatus { to } if !is_live(to))
}
