//! Runs the approved action, or a restore that an approved plan still owes, and nothing else.
//!
//! The approval was committed before this node runs and is cleared by its update, so after a kill in between
//! the node runs again. UpGrade has no idempotency keys. Each action therefore first checks whether it was
//! done already (see `execution`), and one approval has one effect however often it runs.

pub(crate) mod crowd;
mod execution;
mod journey;
mod patch;
mod plan;
mod report;
mod restores;
mod status;
mod visit;

use agentgraph::{Ctx, Dep, Snapshot};
use serde_json::Value;

use super::{begin, failure};
use crate::actions::{self, Action, ActionKind, ExperimentRef, Proposal};
use crate::agent::Settings;
use crate::client::UpgradeClient;
use crate::server::timestamp;
use crate::state::{
    Approval, ConversationState, ConversationStateUpdate, ErrorClass, LogEntry, LogStatus, PresetReply,
    ResponseKind, TurnError,
};
use execution::{ActionFailure, ActionOutcome};

pub(crate) async fn run(
    state: Snapshot<ConversationState>,
    settings: Dep<Settings>,
    client: Dep<UpgradeClient>,
    ctx: Ctx,
) -> ConversationStateUpdate {
    let update = begin(&ctx).await.approved(None);
    let visit = plan::Visit { client: &client, settings: &settings, state: &state, ctx: &ctx };
    if let Some(going) = plan::under_way(&state) {
        return plan::go_on(&visit, update, &going, state.approved.is_some()).await;
    }
    let Some(approved) = &state.approved else { return restores::settle(&visit, update).await };
    if approved.proposal().plan.is_some() {
        return plan::begin(&visit, update, approved).await;
    }
    let outcome = execution::execute(&client, approved.proposal(), approved.key()).await;
    let entry = entry(&visit, approved, outcome);
    let kind = approved.proposal().action.kind();
    let changed = entry.status == LogStatus::Success || may_have_acted(&entry);
    let mut update = update
        .preset(Some(PresetReply::new(ResponseKind::Report, entry.summary.clone())))
        .errors(entry.error.clone())
        .last_experiment(last_experiment(kind, &entry, &state));
    if changed && changes_experiments(kind) {
        update = update.experiment_names(None).experiments(None);
    }
    update.execution_log([entry])
}

fn entry(
    visit: &plan::Visit<'_>,
    approved: &Approval,
    outcome: Result<ActionOutcome, ActionFailure>,
) -> LogEntry {
    let proposal = approved.proposal();
    let (about, told) = match outcome {
        Ok(done) => (done.experiment, (LogStatus::Success, done.result, None, done.summary)),
        Err(failed) => {
            let error = failed.error(visit.ctx.node());
            let summary = failure_summary(proposal, &failed, &error);
            (proposal.about.clone(), (LogStatus::Error, Value::Null, Some(error), summary))
        }
    };
    entry_of(visit, proposal, about, told)
}

/// The status, result, error and summary of an ended action.
type EntryParts = (LogStatus, Value, Option<TurnError>, String);

fn entry_of(
    visit: &plan::Visit<'_>,
    proposal: &Proposal,
    experiment: Option<ExperimentRef>,
    (status, result, error, summary): EntryParts,
) -> LogEntry {
    LogEntry {
        timestamp: timestamp((visit.settings.clock)()),
        turn: visit.state.turns,
        action: proposal.action.clone(),
        experiment,
        status,
        result,
        error,
        summary,
    }
}

fn failure_summary(proposal: &Proposal, failed: &ActionFailure, error: &TurnError) -> String {
    let title = actions::title(proposal);
    let certainty = if failed.may_have_acted() {
        "The server may have done it nevertheless: look before you ask again."
    } else {
        "Nothing was changed."
    };
    format!("I could not {title}. {certainty}\n- {}", error.message)
}

/// After a failure with an unknown effect, the cached lists are as stale as after a success.
fn may_have_acted(entry: &LogEntry) -> bool {
    entry.error.as_ref().is_some_and(|error| error.class == ErrorClass::Api)
}

fn changes_experiments(kind: ActionKind) -> bool {
    use ActionKind::{CreateExperiment, DeleteExperiment, UpdateExperiment, UpdateExperimentStatus};
    matches!(kind, CreateExperiment | DeleteExperiment | UpdateExperiment | UpdateExperimentStatus)
}

/// The experiment that "that experiment" means from now on; none if it was deleted.
fn last_experiment(kind: ActionKind, entry: &LogEntry, state: &ConversationState) -> Option<ExperimentRef> {
    match (&entry.experiment, kind) {
        (Some(gone), ActionKind::DeleteExperiment) if entry.status == LogStatus::Success => {
            state.last_experiment.clone().filter(|last| last.id != gone.id)
        }
        (Some(experiment), _) => Some(experiment.clone()),
        (None, _) => state.last_experiment.clone(),
    }
}

/// The report of a successful action.
fn success_summary(action: &Action, name: &str, detail: &str) -> String {
    let name = actions::display(name);
    match action {
        Action::CreateExperiment(create) => {
            format!("Experiment '{name}' was created in context '{}' ({detail}).", create.context)
        }
        Action::UpdateExperiment(update) => {
            let changes = actions::changes(update)
                .iter()
                .map(|line| format!("\n{}", actions::on_one_line(line)))
                .collect::<String>();
            format!("Experiment '{name}' was updated:{changes}")
        }
        Action::UpdateExperimentStatus(to) => {
            format!("The status of experiment '{name}' is now {}. {}", to.status, actions::effect(&to.status))
        }
        Action::DeleteExperiment(_) => format!("Experiment '{name}' was deleted{detail}."),
        Action::InitExperimentUser(init) => format!("User '{}' is initialized.", init.user_id),
        Action::GetDecisionPointAssignments(asked) => {
            format!("User '{}' in context '{}':{detail}", asked.user_id, asked.context)
        }
        Action::MarkDecisionPoint(mark) => {
            let place = &mark.decision_point;
            format!(
                "The visit of user '{}' at {} / {} was marked{detail}.",
                mark.user_id, place.site, place.target
            )
        }
        Action::VisitDecisionPoint(visit) => {
            format!("User '{}' came to {} / {}{detail}.", visit.user_id, visit.site, visit.target)
        }
        Action::TestConditionBalance(_) => format!("The split of experiment '{name}', played on the server:"),
        Action::SimulateUserJourney(journey) => {
            let students = journey.students();
            let word = if students == 1 { "student" } else { "students" };
            format!("The journey of {students} {word} in context '{}' is done.", journey.context)
        }
    }
}

/// The error in the form in which a turn reports it.
impl ActionFailure {
    fn error(&self, node: &str) -> TurnError {
        match self {
            ActionFailure::Server(error) => failure::of_server(error, node),
            ActionFailure::Changed(message) => {
                TurnError { class: ErrorClass::Validation, message: message.clone(), node: node.to_owned() }
            }
        }
    }
}
