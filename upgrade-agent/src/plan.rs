//! Plans: actions of several steps, made of what the server says, shown and confirmed as a whole, and run a
//! step at a time.
//!
//! A plan that changes an experiment's status notes the first one before it does, and restores it however it
//! ends.

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
    /// The status to be restored after them, if they change it.
    pub restores: Option<ExperimentState>,
}

/// A step of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PlanStep {
    /// Move the experiment to a status.
    SetStatus {
        /// Where to.
        to: ExperimentState,
    },
    /// Play students who each come to one place.
    Crowd {
        /// How many.
        students: u32,
        /// The place.
        site: String,
        /// What is at the place.
        target: String,
    },
    /// Make the students of a journey known.
    Begin {
        /// How many.
        students: usize,
    },
    /// A step of a journey, for all of its students.
    Journey(JourneyStep),
    /// A visit at every place where a student is assigned something.
    VisitAssigned,
}

impl Plan {
    /// The plan of an action as things stand; none for an action of one step.
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

/// A plan that the person said yes to, as far as it has come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanRun {
    approved: Approval,
    /// The step that comes next.
    pub(crate) next: usize,
    /// The status to be restored; none once it is, or if nothing was changed.
    pub(crate) restore: Option<ExperimentState>,
    /// What the last status step set, so that somebody else's change can be told.
    pub(crate) set: Option<ExperimentState>,
    /// What each step that was done came to.
    pub(crate) done: Vec<Value>,
    /// Why it ends before its last step.
    pub(crate) ends: Option<EarlyEnd>,
}

/// Why a plan ends early.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum EarlyEnd {
    /// A step failed.
    Failed(TurnError),
    /// Somebody else changed the status meanwhile: it is his now.
    Overtaken(TurnError),
    /// The process, or the turn, was stopped in the middle.
    Interrupted,
    /// The person did not want the step that was asked about.
    Declined,
}

impl PlanRun {
    /// A plan that begins. Only an approval begins one.
    pub(crate) fn begin(approved: Approval, restore: Option<ExperimentState>) -> Self {
        PlanRun { approved, next: 0, restore, set: None, done: Vec::new(), ends: None }
    }

    /// What was approved.
    pub fn approved(&self) -> &Approval {
        &self.approved
    }

    /// The plan.
    pub(crate) fn plan(&self) -> Option<&Plan> {
        self.approved.proposal().plan.as_ref()
    }

    /// The next step; none if there is none left, or the plan ends early.
    pub(crate) fn step(&self) -> Option<&PlanStep> {
        self.plan()?.steps.get(self.next).filter(|_| self.ends.is_none())
    }

    /// Whether a step that plays students was begun.
    pub(crate) fn has_played(&self) -> bool {
        let begun =
            self.next + usize::from(matches!(self.ends, Some(EarlyEnd::Failed(_) | EarlyEnd::Interrupted)));
        let steps = self.plan().map_or(&[][..], |plan| &plan.steps);
        steps.iter().take(begun).any(|step| matches!(step, PlanStep::Crowd { .. } | PlanStep::Begin { .. }))
    }

    /// The status that the experiment has if nobody else changed it.
    pub(crate) fn standing(&self) -> Option<&ExperimentState> {
        self.set.as_ref().or(self.approved.proposal().current.as_ref())
    }

    pub(crate) fn ending(&self, why: EarlyEnd) -> Self {
        PlanRun { ends: Some(self.ends.clone().unwrap_or(why)), ..self.clone() }
    }

    pub(crate) fn after(&self, result: Value) -> Self {
        let mut run = self.clone();
        run.next += 1;
        run.done.push(result);
        run
    }
}

/// Whether students take part for real in an experiment of this status.
pub(crate) fn is_live(state: &ExperimentState) -> bool {
    matches!(state, ExperimentState::Enrolling | ExperimentState::EnrollmentComplete)
}

/// Whether a step takes something from students who take part for real, so that it is asked about when it
/// comes: in every other status they get the default, whatever they had.
pub(crate) fn is_destructive(step: &PlanStep, first: Option<&ExperimentState>) -> bool {
    first.is_some_and(is_live) && matches!(step, PlanStep::SetStatus { to } if !is_live(to))
}
