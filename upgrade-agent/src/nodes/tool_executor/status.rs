//! The status that a plan changes: set step by step, restored at the end, and left alone once somebody else
//! has changed it.

use serde_json::{Value, json};

use super::failure;
use super::plan::Visit;
use crate::actions::display;
use crate::client::{ClientError, ErrorKind, Experiment, ExperimentState, UpgradeClient};
use crate::plan::{EarlyEnd, PlanRun, PlanStep};
use crate::restores::RestoreDue;
use crate::state::{ErrorClass, TurnError};

/// The number of attempts to restore the first status in the turn of the plan; later turns try again.
const ATTEMPTS: usize = 3;

/// Sets a status, if the present one is known to the plan.
pub(super) async fn set(visit: &Visit<'_>, run: &PlanRun, to: &ExperimentState) -> Result<Value, EarlyEnd> {
    let node = visit.ctx.node();
    let failed = |error: ClientError| EarlyEnd::Failed(failure::of_server(&error, node));
    let id = run.approved().proposal().action.experiment_id().unwrap_or_default();
    let now = visit.client.experiment(id).await.map_err(failed)?;
    check_status_unchanged(&now, run, node)?;
    if now.state != *to {
        move_to(visit.client, id, to).await.map_err(failed)?;
    }
    Ok(json!({ "from": now.state, "to": to }))
}

/// Ends the plan early unless the experiment has the status that the plan set or found.
pub(super) fn check_status_unchanged(now: &Experiment, run: &PlanRun, node: &str) -> Result<(), EarlyEnd> {
    if run.expected_status().is_none_or(|left| *left == now.state) {
        return Ok(());
    }
    let message = format!(
        "experiment '{}' has become {} meanwhile, by somebody else: I left it as it is and went no further",
        display(&now.name),
        now.state
    );
    Err(EarlyEnd::Overtaken(TurnError { class: ErrorClass::Validation, message, node: node.to_owned() }))
}

/// Sets a status. If the response is lost, checks whether it was set.
async fn move_to(client: &UpgradeClient, id: &str, to: &ExperimentState) -> Result<(), ClientError> {
    match client.set_state(id, to).await {
        Ok(_) => Ok(()),
        Err(error) if error.may_have_acted() => match client.experiment(id).await {
            Ok(seen) if seen.state == *to => Ok(()),
            _ => Err(error),
        },
        Err(error) => Err(error),
    }
}

/// The outcome of restoring the status.
pub(super) enum Restoration {
    Done(ExperimentState),
    /// It has the first status already.
    Unchanged,
    /// Somebody else changed it meanwhile.
    LeftAlone(ExperimentState),
    Failed(TurnError),
}

/// Restores the status that the plan changed.
pub(super) async fn restore(visit: &Visit<'_>, run: &PlanRun) -> Option<Restoration> {
    if matches!(run.early_end(), Some(EarlyEnd::Overtaken(_))) {
        return None;
    }
    let due = due(run)?;
    let mut attempt = 1;
    loop {
        match try_restore(visit.client, &due).await {
            // Nothing was changed yet, or it is restored already.
            Ok(Restoration::Unchanged) => return run.last_set().map(|_| Restoration::Done(due.first)),
            Ok(restored) => return Some(restored),
            // The experiment is gone.
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            Err(error) => {
                let error = failure::of_server(&error, visit.ctx.node());
                if attempt == ATTEMPTS || error.class != ErrorClass::Api {
                    return Some(Restoration::Failed(error));
                }
            }
        }
        attempt += 1;
    }
}

/// The status to restore, and the statuses that the plan may have left. An interrupted step may have set one
/// without recording it.
pub(super) fn due(run: &PlanRun) -> Option<RestoreDue> {
    let left = run.last_set().into_iter().chain(cut_off(run)).cloned().collect();
    let experiment = run.approved().proposal().about.clone()?;
    Some(RestoreDue { experiment, first: run.first_status()?.clone(), left })
}

/// Reads first, so that running it again changes nothing.
pub(super) async fn try_restore(
    client: &UpgradeClient,
    due: &RestoreDue,
) -> Result<Restoration, ClientError> {
    let now = client.experiment(&due.experiment.id).await?.state;
    if now == due.first {
        return Ok(Restoration::Unchanged);
    }
    if !due.left.contains(&now) {
        return Ok(Restoration::LeftAlone(now));
    }
    move_to(client, &due.experiment.id, &due.first).await?;
    Ok(Restoration::Done(due.first.clone()))
}

/// The status that the interrupted step would have set.
fn cut_off(run: &PlanRun) -> Option<&ExperimentState> {
    match run.cut_step()? {
        PlanStep::SetStatus { to } => Some(to),
        _ => None,
    }
}
