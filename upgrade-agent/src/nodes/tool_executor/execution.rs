//! The actions on the server. Each of them can run twice with the effect of once.
//!
//! - create: the key is the experiment's id, and the client looks it up before it posts
//! - status and delete: read first; nothing is sent if the change is already there
//! - update: read first, and only the missing part is written; the action fails if somebody else changed the
//!   experiment after the question
//! - init: the same request again changes nothing
//! - mark and visit: the key is the visit's uniquifier, and the server keeps the first visit
//!
//! After a call with an unknown outcome (a timeout, a broken connection, a status 500), the server's data
//! show whether it was done.

use serde_json::{Value, json};
use uuid::Uuid;

use super::patch::{conditions, members, missing_changes, patch, points, post_rule, was_begun};
use super::success_summary;
use super::visit::visit_point;
use crate::actions::{
    self, Action, CreateExperiment, DeleteExperiment, ExperimentRef, GetDecisionPointAssignments,
    InitExperimentUser, MarkDecisionPoint, Proposal, UpdateExperiment, UpdateExperimentStatus, display,
};
use crate::client::{
    Assignment, AssignmentUnit, ClientError, ErrorKind, Experiment, ExperimentPatch, ExperimentState,
    FilterMode, Mark, MarkStatus, NewExperiment, NewUser, UpgradeClient,
};

/// The outcome of a successful action.
pub(super) struct ActionOutcome {
    pub(super) result: Value,
    pub(super) experiment: Option<ExperimentRef>,
    pub(super) summary: String,
}

/// The failure of an action.
pub(super) enum ActionFailure {
    Server(ClientError),
    /// The experiment differs from the one in the question.
    Changed(String),
}

impl From<ClientError> for ActionFailure {
    fn from(error: ClientError) -> Self {
        ActionFailure::Server(error)
    }
}

impl ActionFailure {
    pub(super) fn may_have_acted(&self) -> bool {
        matches!(self, ActionFailure::Server(error) if error.may_have_acted())
    }
}

pub(super) type ActionResult = Result<ActionOutcome, ActionFailure>;

pub(super) async fn execute(client: &UpgradeClient, proposal: &Proposal, key: Uuid) -> ActionResult {
    let action = &proposal.action;
    match action {
        Action::CreateExperiment(create) => create_experiment(client, action, create, key).await,
        Action::UpdateExperiment(update) => update_experiment(client, proposal, update).await,
        Action::UpdateExperimentStatus(change) => set_status(client, proposal, change).await,
        Action::DeleteExperiment(delete) => delete_experiment(client, proposal, delete).await,
        Action::InitExperimentUser(init) => init_user(client, action, init).await,
        Action::GetDecisionPointAssignments(asked) => assignments(client, action, asked).await,
        Action::MarkDecisionPoint(mark) => mark_point(client, action, mark, key).await,
        Action::VisitDecisionPoint(visit) => visit_point(client, action, visit, key).await,
        // These actions have plans, or execute nothing.
        Action::TestConditionBalance(_) | Action::SimulateUserJourney(_) => Err(ActionFailure::Changed(
            "this action was confirmed without its steps: ask for it again".to_owned(),
        )),
    }
}

async fn create_experiment(
    client: &UpgradeClient,
    action: &Action,
    create: &CreateExperiment,
    key: Uuid,
) -> ActionResult {
    let new = new_experiment(create, key);
    let created = match client.create(&new).await {
        Err(error) if error.kind() == ErrorKind::Conflict || error.may_have_acted() => {
            complete(client, &new, key, error).await?
        }
        created => created?,
    };
    Ok(about_experiment(action, &created, &format!("id {}, {}", created.id, created.state)))
}

/// The experiment with this key, if it exists and matches. The rule `assign`, which a POST cannot set, may
/// still be missing.
async fn complete(
    client: &UpgradeClient,
    new: &NewExperiment,
    key: Uuid,
    error: ClientError,
) -> Result<Experiment, ClientError> {
    let found = match client.experiment(&key.to_string()).await {
        Ok(found) if found.name == new.name && found.context.contains(&new.context) => found,
        _ => return Err(error),
    };
    if found.post_rule == new.post_rule {
        return Ok(found);
    }
    let rule = ExperimentPatch { post_rule: Some(new.post_rule.clone()), ..ExperimentPatch::default() };
    client.update(&found.id, &rule).await
}

async fn update_experiment(
    client: &UpgradeClient,
    proposal: &Proposal,
    update: &UpdateExperiment,
) -> ActionResult {
    let action = &proposal.action;
    let id = &update.experiment_id;
    let now = client.experiment(id).await?;
    let patch = patch(update, &now);
    let rest = missing_changes(&patch, &now);
    if rest.is_empty() {
        return Ok(about_experiment(action, &now, ""));
    }
    let facts = actions::Facts { experiment: Some(&now), ..actions::Facts::default() };
    let problems = actions::check(action, &facts);
    if !problems.is_empty() {
        return Err(ActionFailure::Changed(problems.join("; ")));
    }
    if lists_changed(proposal, &rest, &now) {
        return Err(redesigned(&now));
    }
    let written = match &proposal.seen {
        // This agent was interrupted between the calls of one change.
        Some(_) if was_begun(&patch, &rest) => client.update(id, &rest).await,
        Some(seen) => client.update_unchanged(id, &patch, &seen.revision).await,
        None => client.update(id, &patch).await,
    };
    let updated = match written {
        Err(error) if error.kind() == ErrorKind::Conflict && !error.may_have_acted() => {
            return Err(redesigned(&now));
        }
        Err(error) => finish(client, error).await?,
        Ok(updated) => updated,
    };
    Ok(about_experiment(action, &updated, ""))
}

fn redesigned(now: &Experiment) -> ActionFailure {
    ActionFailure::Changed(format!(
        "experiment '{}' was changed by somebody since I asked, so I left it alone: ask again if you still want it",
        display(&now.name)
    ))
}

/// Whether a list that is about to be written differs from the one in the question.
fn lists_changed(proposal: &Proposal, rest: &ExperimentPatch, now: &Experiment) -> bool {
    let Some(seen) = &proposal.seen else { return false };
    rest.inclusion.is_some() && seen.inclusion != now.inclusion
        || rest.exclusion.is_some() && seen.exclusion != now.exclusion
}

/// Tries once more to complete a change of several calls.
async fn finish(client: &UpgradeClient, error: ClientError) -> Result<Experiment, ClientError> {
    match error.unfinished() {
        Some(rest) => client.update(&rest.experiment_id, &rest.missing).await,
        None => Err(error),
    }
}

async fn set_status(
    client: &UpgradeClient,
    proposal: &Proposal,
    change: &UpdateExperimentStatus,
) -> ActionResult {
    let id = &change.experiment_id;
    let to = &change.status;
    let now = client.experiment(id).await?;
    if now.state == *to {
        return Ok(about_experiment(&proposal.action, &now, ""));
    }
    check_unchanged(proposal, &now)?;
    let changed = match client.set_state(id, to).await {
        Err(error) if error.may_have_acted() => match client.experiment(id).await {
            Ok(seen) if seen.state == *to => seen,
            _ => return Err(error.into()),
        },
        changed => changed?,
    };
    Ok(about_experiment(&proposal.action, &changed, ""))
}

/// Fails unless the experiment has the name and the status in the question.
fn check_unchanged(proposal: &Proposal, now: &Experiment) -> Result<(), ActionFailure> {
    let renamed = proposal.about.as_ref().filter(|asked| asked.name != now.name);
    let moved = proposal.current.as_ref().filter(|asked| **asked != now.state);
    let became = match (renamed, moved) {
        (Some(asked), _) => format!("'{}' is called '{}'", display(&asked.name), display(&now.name)),
        (None, Some(_)) => format!("'{}' has become {}", display(&now.name), now.state),
        (None, None) => return Ok(()),
    };
    Err(ActionFailure::Changed(format!(
        "experiment {became} since I asked, so I left it alone: ask again if you still want it"
    )))
}

async fn delete_experiment(
    client: &UpgradeClient,
    proposal: &Proposal,
    delete: &DeleteExperiment,
) -> ActionResult {
    let id = &delete.experiment_id;
    let done = |detail: &str| {
        let about = proposal.about.clone();
        let name = about.as_ref().map_or(id.as_str(), |about| &about.name).to_owned();
        let summary = success_summary(&proposal.action, &name, detail);
        Ok(ActionOutcome { result: json!({ "id": id, "name": name }), experiment: about, summary })
    };
    match client.experiment(id).await {
        // The change was made meanwhile, by somebody else or by this agent before it was killed.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return done(" (it was gone already when I looked)");
        }
        found => check_unchanged(proposal, &found?)?,
    }
    match client.delete(id).await {
        Err(error) if error.kind() == ErrorKind::NotFound => done(""),
        Err(error) if error.may_have_acted() => match client.experiment(id).await {
            Err(gone) if gone.kind() == ErrorKind::NotFound => done(""),
            _ => Err(error.into()),
        },
        deleted => {
            deleted?;
            done("")
        }
    }
}

async fn init_user(client: &UpgradeClient, action: &Action, init: &InitExperimentUser) -> ActionResult {
    let new = NewUser {
        id: init.user_id.clone(),
        groups: init.group.clone(),
        working_group: init.working_group.clone(),
    };
    let user = client.init_user(&new).await?;
    Ok(ActionOutcome { result: json!(user), experiment: None, summary: success_summary(action, "", "") })
}

async fn assignments(
    client: &UpgradeClient,
    action: &Action,
    asked: &GetDecisionPointAssignments,
) -> ActionResult {
    let assigned = client.assign(&asked.user_id, &asked.context).await?;
    let summary = success_summary(action, "", &in_words(&assigned));
    Ok(ActionOutcome { result: json!(assigned), experiment: None, summary })
}

fn in_words(assigned: &[Assignment]) -> String {
    if assigned.is_empty() {
        return " no experiment applies, so the default is shown everywhere.".to_owned();
    }
    let line = |point: &Assignment| {
        let first = point.conditions.first().and_then(|condition| condition.condition_code.as_deref());
        format!("\n- {} / {}: {}", point.site, point.target, first.unwrap_or("default"))
    };
    assigned.iter().map(line).collect()
}

async fn mark_point(
    client: &UpgradeClient,
    action: &Action,
    mark: &MarkDecisionPoint,
    key: Uuid,
) -> ActionResult {
    let shown = mark.assigned_condition.as_ref();
    let visit = Mark {
        condition_code: shown.and_then(|shown| shown.condition_code.clone()),
        experiment_id: shown.map(|shown| shown.experiment_id.clone()),
        status: shown.map(|_| MarkStatus::Applied),
        uniquifier: Some(key.to_string()),
        ..Mark::new(&mark.decision_point.site, &mark.decision_point.target)
    };
    let marked = client.mark(&mark.user_id, &visit).await?;
    let detail = match &marked.condition {
        Some(code) => format!(" with condition '{code}'"),
        None => String::new(),
    };
    let summary = success_summary(action, "", &detail);
    Ok(ActionOutcome { result: json!(marked), experiment: None, summary })
}

fn about_experiment(action: &Action, experiment: &Experiment, detail: &str) -> ActionOutcome {
    ActionOutcome {
        result: json!({ "id": experiment.id, "name": experiment.name, "status": experiment.state }),
        experiment: Some(experiment.into()),
        summary: success_summary(action, &experiment.name, detail),
    }
}

fn new_experiment(create: &CreateExperiment, key: Uuid) -> NewExperiment {
    NewExperiment {
        id: Some(key.to_string()),
        description: create.description.clone(),
        state: ExperimentState::Inactive,
        tags: create.tags.clone(),
        assignment_unit: create.assignment_unit.clone().unwrap_or(AssignmentUnit::Individual),
        group_type: create.group_type.clone(),
        consistency_rule: create.consistency_rule.clone(),
        post_rule: create.post_experiment_rule.as_ref().map(post_rule).unwrap_or_default(),
        filter_mode: create.filter_mode.clone().unwrap_or(FilterMode::ExcludeAll),
        inclusion: members(&create.inclusion_users, &create.inclusion_groups),
        exclusion: members(&create.exclusion_users, &create.exclusion_groups),
        conditions: conditions(&create.conditions),
        decision_points: points(&create.decision_points),
        ..NewExperiment::new(&create.name, &create.context)
    }
}
