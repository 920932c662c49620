//! One student at one place: initialized, assigned, marked.

use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use super::execution::{ActionOutcome, ActionResult};
use crate::actions::{Action, VisitDecisionPoint, display};
use crate::client::{
    Assignment, AssignmentUnit, ClientError, Experiment, ExperimentState, FilterMode, Mark, NewUser,
    UpgradeClient, User,
};

/// The result of a visit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct VisitRecord {
    pub(super) user_id: String,
    pub(super) site: String,
    pub(super) target: String,
    /// None for the default.
    pub(super) condition: Option<String>,
    pub(super) experiment_id: Option<String>,
}

/// The place of a visit, and the uniquifier that separates it from other visits of the same student.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) context: &'a str,
    pub(super) site: &'a str,
    pub(super) target: &'a str,
    pub(super) uniquifier: Uuid,
}

/// Requests the assignment of a known student at a place and marks the visit with it. The server keeps the
/// first visit of a student at a place, so running it again changes nothing.
pub(super) async fn visit(
    client: &UpgradeClient,
    user: &str,
    place: Place<'_>,
) -> Result<VisitRecord, ClientError> {
    let assigned = client.assign(user, place.context).await?;
    let here = assigned.iter().find(|one| one.site == place.site && one.target == place.target);
    mark(client, user, here, place).await
}

/// Marks a visit with the assigned condition.
pub(super) async fn mark(
    client: &UpgradeClient,
    user: &str,
    here: Option<&Assignment>,
    place: Place<'_>,
) -> Result<VisitRecord, ClientError> {
    let plain = || Mark::new(place.site, place.target);
    let mark = Mark { uniquifier: Some(place.uniquifier.to_string()), ..here.map_or_else(plain, Mark::of) };
    client.mark(user, &mark).await?;
    let current = here.and_then(Assignment::current);
    Ok(VisitRecord {
        user_id: user.to_owned(),
        site: place.site.to_owned(),
        target: place.target.to_owned(),
        condition: current.and_then(|current| current.condition_code.clone()),
        experiment_id: current.and_then(|current| current.experiment_id.clone()),
    })
}

pub(super) async fn visit_point(
    client: &UpgradeClient,
    action: &Action,
    asked: &VisitDecisionPoint,
    key: Uuid,
) -> ActionResult {
    let user = NewUser {
        id: asked.user_id.clone(),
        groups: asked.group.clone(),
        working_group: asked.working_group.clone(),
    };
    let known = client.init_user(&user).await?;
    let context = &asked.context;
    let site = &asked.site;
    let target = &asked.target;
    let place = Place { context, site, target, uniquifier: key };
    let visited = visit(client, &asked.user_id, place).await?;
    let detail = match (&visited.condition, visited.experiment_id.is_some()) {
        (Some(code), _) => format!(" and got condition '{}'", display(code)),
        (None, true) => " and got the default of the experiment there".to_owned(),
        (None, false) => {
            let why = reason_for_no_assignment(client, asked, &known).await;
            format!(" and got no condition: {why}")
        }
    };
    let summary = super::success_summary(action, "", &detail);
    Ok(ActionOutcome { result: json!(visited), experiment: None, summary })
}

/// The reason for which nothing is assigned at a place, as far as its experiments show it.
async fn reason_for_no_assignment(
    client: &UpgradeClient,
    asked: &VisitDecisionPoint,
    known: &User,
) -> String {
    let Ok(all) = client.experiments().await else {
        return "the server did not tell which experiments are there".to_owned();
    };
    let here: Vec<&Experiment> = all.iter().filter(|one| is_here(one, asked)).collect();
    if here.is_empty() {
        return "no experiment of this context has this decision point".to_owned();
    }
    let reasons: Vec<String> = here.iter().map(|experiment| reason(experiment, known)).collect();
    reasons.join("; ")
}

fn is_here(experiment: &Experiment, asked: &VisitDecisionPoint) -> bool {
    experiment.context.contains(&asked.context)
        && experiment
            .decision_points
            .iter()
            .any(|point| point.site == asked.site && point.target == asked.target)
}

/// The reason for which an experiment assigns nothing to a student, given the groups that the server knows.
fn reason(experiment: &Experiment, known: &User) -> String {
    let name = display(&experiment.name);
    if experiment.state != ExperimentState::Enrolling {
        return format!("experiment '{name}' is {}", experiment.state);
    }
    if experiment.conditions.is_empty() {
        return format!("experiment '{name}' has no conditions");
    }
    let groups = || known.groups.iter().flat_map(|(kind, ids)| ids.iter().map(move |id| (kind, id)));
    let is_listed = |list: &crate::client::Members| {
        let of_group = |member: &crate::client::GroupMember| {
            groups().any(|(kind, id)| *kind == member.group_type && *id == member.group_id)
        };
        list.users.contains(&known.id) || list.groups.iter().any(of_group)
    };
    if is_listed(&experiment.exclusion) {
        return format!("experiment '{name}' excludes this student or a group of his");
    }
    if experiment.filter_mode == FilterMode::ExcludeAll && !is_listed(&experiment.inclusion) {
        return format!("experiment '{name}' takes in only who is on its inclusion list");
    }
    let kind = experiment.group_type.as_ref().filter(|_| experiment.assignment_unit == AssignmentUnit::Group);
    let Some(kind) = kind else { return left_out(&name) };
    let is_in = |group: &String| known.groups.get(kind).is_some_and(|groups| groups.contains(group));
    match known.working_group.get(kind) {
        None => {
            format!("experiment '{name}' assigns groups, and he works in none of the type {}", display(kind))
        }
        Some(group) if !is_in(group) => format!(
            "experiment '{name}' assigns groups, and he works in {}, which is none of his groups of the type {}",
            display(group),
            display(kind)
        ),
        Some(_) => left_out(&name),
    }
}

fn left_out(name: &str) -> String {
    format!(
        "experiment '{name}' left him out: he was excluded earlier, is excluded from everything, or takes part in another \
         experiment at this place"
    )
}
