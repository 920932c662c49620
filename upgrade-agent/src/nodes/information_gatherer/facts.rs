//! Reads the server data that the judgement of an action needs, and no more.
//!
//! Without the contexts and the names nothing can be checked, so a failure to read them ends the request. All
//! other data only serve warnings, and a failure to read them is reported among the warnings.

use crate::actions::{self, Action, ActionKind, Facts};
use crate::client::{
    ClientError, ContextMetadata, Dialect, EnrollmentDetail, Experiment, ExperimentName, ExperimentState,
    GlobalExclusion, UpgradeClient,
};
use crate::tools::Desk;

/// The limit of experiments whose enrolments are read for a point.
const MOST_ASKED: usize = 5;

/// The data read.
#[derive(Default)]
pub(super) struct ServerFacts {
    contexts: Option<ContextMetadata>,
    names: Vec<ExperimentName>,
    pub(super) experiment: Option<Experiment>,
    experiments: Vec<Experiment>,
    enrollment: Option<EnrollmentDetail>,
    globally_excluded: Option<GlobalExclusion>,
    seen_before: Option<u64>,
    dialect: Option<Dialect>,
    untold: Vec<&'static str>,
}

impl ServerFacts {
    /// Reads the data for the judgement of this action.
    pub(super) async fn about(
        desk: &Desk,
        action: &Action,
        experiment: Option<Experiment>,
    ) -> Result<Self, ClientError> {
        let kind = action.kind();
        let mut known = ServerFacts { experiment, ..ServerFacts::default() };
        if needs_contexts(kind) {
            known.contexts = Some(desk.contexts().await?);
        }
        if needs_names(kind) {
            known.names = desk.names().await?;
        }
        known.read_more(desk, action).await;
        Ok(known)
    }

    pub(super) fn facts(&self) -> Facts<'_> {
        Facts {
            contexts: self.contexts.as_ref(),
            names: &self.names,
            experiment: self.experiment.as_ref(),
            experiments: &self.experiments,
            enrollment: self.enrollment.as_ref(),
            globally_excluded: self.globally_excluded.as_ref(),
            seen_before: self.seen_before,
            max_students: None,
            dialect: self.dialect,
            untold: &self.untold,
        }
    }

    /// Reads the data for the warnings.
    async fn read_more(&mut self, desk: &Desk, action: &Action) {
        let client = desk.client();
        self.dialect = client.dialect().await.ok();
        if wants_contexts(action) {
            match desk.contexts().await {
                Ok(contexts) => self.contexts = Some(contexts),
                Err(_) => self.untold.push("which contexts it has"),
            }
        }
        if needs_neighbours(action, self.experiment.as_ref()) {
            match client.experiments().await {
                Ok(all) => self.experiments = all,
                Err(_) => self.untold.push("which experiments share its decision points"),
            }
        }
        if let Some(context) = assigning_context(action, self.experiment.as_ref()) {
            match client.global_exclusion(context).await {
                Ok(excluded) => self.globally_excluded = Some(excluded),
                Err(_) => self.untold.push("whom its context excludes from everything"),
            }
        }
        let Some(experiment) = &self.experiment else { return };
        if needs_enrollment(action, experiment) {
            match client.enrollment(&experiment.id).await {
                Ok(detail) => self.enrollment = Some(detail),
                Err(_) => self.untold.push("who is enrolled"),
            }
        }
        if shuts_out(action, experiment) {
            self.seen_before = Some(self.seen_at(client, &marked(experiment)).await);
        }
    }

    /// A lower bound for the number of students seen at these points. Each experiment reports those it
    /// enrolled at each point; a student may be in several experiments, so only the largest number is
    /// certain.
    async fn seen_at(&self, client: &UpgradeClient, places: &[(String, String)]) -> u64 {
        let own = self.experiment.iter();
        let own_id = self.experiment.as_ref().map(|experiment| &experiment.id);
        let others = self.experiments.iter().filter(|other| Some(&other.id) != own_id);
        let here =
            own.chain(others).filter(|one| one.decision_points.iter().any(|point| is_among(point, places)));
        let mut most = 0;
        for experiment in here.take(MOST_ASKED) {
            let Ok(detail) = client.enrollment(&experiment.id).await else { continue };
            for point in experiment.decision_points.iter().filter(|point| is_among(point, places)) {
                let entries = detail.conditions.iter().flat_map(|condition| &condition.decision_points);
                most = most.max(entries.filter(|one| one.id == point.id).map(|one| one.users).sum());
            }
        }
        most
    }
}

fn is_among(point: &crate::client::DecisionPoint, places: &[(String, String)]) -> bool {
    places.iter().any(|(site, target)| *site == point.site && *target == point.target)
}

/// The points that exclude early visitors.
fn marked(experiment: &Experiment) -> Vec<(String, String)> {
    let marked = experiment.decision_points.iter().filter(|point| point.exclude_if_reached);
    marked.map(|point| (point.site.clone(), point.target.clone())).collect()
}

fn needs_contexts(kind: ActionKind) -> bool {
    use ActionKind::{
        CreateExperiment, GetDecisionPointAssignments, SimulateUserJourney, UpdateExperiment,
        VisitDecisionPoint,
    };
    let simulates = matches!(kind, VisitDecisionPoint | SimulateUserJourney);
    simulates || matches!(kind, CreateExperiment | UpdateExperiment | GetDecisionPointAssignments)
}

/// Whether a check of the action's words against the contexts is useful though not necessary.
fn wants_contexts(action: &Action) -> bool {
    match action {
        Action::InitExperimentUser(init) => init.group.is_some() || init.working_group.is_some(),
        Action::MarkDecisionPoint(mark) => mark.assigned_condition.is_none(),
        _ => false,
    }
}

fn needs_names(kind: ActionKind) -> bool {
    matches!(kind, ActionKind::CreateExperiment | ActionKind::UpdateExperiment)
}

/// Whether the action involves other experiments.
fn needs_neighbours(action: &Action, experiment: Option<&Experiment>) -> bool {
    match action {
        _ if experiment.is_some_and(|experiment| actions::starts(action, experiment)) => true,
        Action::CreateExperiment(_) => true,
        Action::UpdateExperiment(update) => update.decision_points.is_some() || update.context.is_some(),
        _ => false,
    }
}

/// The context in which the action assigns students, or which it asks about.
fn assigning_context<'a>(action: &'a Action, experiment: Option<&'a Experiment>) -> Option<&'a str> {
    match action {
        Action::GetDecisionPointAssignments(asked) => Some(&asked.context),
        Action::VisitDecisionPoint(visit) => Some(&visit.context),
        Action::SimulateUserJourney(journey) => Some(&journey.context),
        _ => {
            let experiment = experiment.filter(|experiment| actions::starts(action, experiment))?;
            experiment.context.first().map(String::as_str)
        }
    }
}

/// Whether the action may affect enrolled students.
fn needs_enrollment(action: &Action, experiment: &Experiment) -> bool {
    let live = matches!(experiment.state, ExperimentState::Enrolling | ExperimentState::EnrollmentComplete);
    match action {
        Action::DeleteExperiment(_) => true,
        Action::UpdateExperimentStatus(change) => live && change.status != ExperimentState::Enrolling,
        Action::UpdateExperiment(update) => {
            let rule = update.post_experiment_rule.is_some() && live;
            rule || update.conditions.is_some() || update.decision_points.is_some()
        }
        _ => false,
    }
}

/// Whether the server excludes early visitors when the action is done.
fn shuts_out(action: &Action, experiment: &Experiment) -> bool {
    let resumes = experiment.state == ExperimentState::EnrollmentComplete;
    actions::starts(action, experiment)
        && !resumes
        && experiment.decision_points.iter().any(|point| point.exclude_if_reached)
}
