//! The restores that plans of earlier turns owe.

use serde_json::json;

use super::plan::Visit;
use super::status::{self, Restoration};
use super::{entry_of, failure};
use crate::actions::{Action, Proposal, UpdateExperimentStatus, display};
use crate::client::ErrorKind;
use crate::reply::gives_up_a_restore;
use crate::restores::{self, RestoreDue};
use crate::state::{ConversationStateUpdate, LogStatus, Pending, PresetReply, ResponseKind};

pub(super) const TRIED_AGAIN: &str =
    "I try again with your next message; to leave it as it is, say: give up the restore.";

/// Tries each restore once more, or gives all of them up. Without a message, the outcome is the reply.
pub(super) async fn settle(visit: &Visit<'_>, update: ConversationStateUpdate) -> ConversationStateUpdate {
    let state = visit.state;
    let gives_up = gives_up_a_restore(&state.user_input);
    let (mut open, mut told, mut entries) = (Vec::new(), Vec::new(), Vec::new());
    for due in &state.restores {
        let name = display(&due.experiment.name);
        let first = &due.first;
        if gives_up {
            told.push(format!(
                "All right: I leave experiment '{name}' as it is, and do not restore {first} any more."
            ));
        } else {
            let outcome = status::try_restore(visit.client, due).await;
            told.push(match &outcome {
                Ok(Restoration::LeftAlone(now)) => format!(
                    "The status of experiment '{name}' has become {now} meanwhile, so I do not restore {first} any more."
                ),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    format!("Experiment '{name}' is gone, so there is no status to restore.")
                }
                Err(error) => {
                    open.push(due.clone());
                    let why = failure::of_server(error, visit.ctx.node()).message;
                    format!(
                        "A test of experiment '{name}' was cut off, and I still could NOT restore its status {first}. \
                         {TRIED_AGAIN}\n- {why}"
                    )
                }
                Ok(_) => {
                    let text =
                        format!("The status of experiment '{name}' is {first} again, which a test had not restored.");
                    let proposal = proposal(due);
                    let parts = (LogStatus::Success, json!({ "to": first }), None, text.clone());
                    entries.push(entry_of(visit, &proposal, proposal.about.clone(), parts));
                    text
                }
            });
        }
        if open.last() != Some(due) {
            restores::withdraw(visit.ctx, &due.experiment.id).await;
        }
    }
    let changed = !entries.is_empty();
    let mut update = update.restores(open).execution_log(entries);
    if changed {
        update = update.experiment_names(None).experiments(None);
    }
    if !gives_up && !state.user_input.is_empty() {
        return update.notes(told);
    }
    let suggested = match &state.pending {
        Pending::Nothing => Vec::new(),
        Pending::Missing(missing) => missing.options.clone(),
        Pending::Confirm(asked) => asked.suggested(),
    };
    update.suggested(suggested).preset(Some(PresetReply::new(ResponseKind::Report, told.join("\n"))))
}

/// The restore as an action, for the log.
fn proposal(due: &RestoreDue) -> Proposal {
    let change = UpdateExperimentStatus {
        experiment_id: due.experiment.id.clone(),
        status: due.first.clone(),
        force: true,
    };
    Proposal {
        action: Action::UpdateExperimentStatus(change),
        about: Some(due.experiment.clone()),
        current: due.left.last().cloned(),
        seen: None,
        warnings: Vec::new(),
        plan: None,
    }
}
