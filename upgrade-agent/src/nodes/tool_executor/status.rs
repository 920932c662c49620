//! The status that a plan changes: set step by step, restored at the end, and left alone once somebody else
//! has set it.

use serde_json::{Value, json};

use super::failure;
use super::plan::Visit;
use crate::actions::display;
use crate::client::{ClientError, Experiment, ExperimentState, UpgradeClient};
use crate::plan::{EarlyEnd, PlanRun, PlanStep};
use crate::state::{ErrorClass, TurnError};

/// How often the first status is tried to be restored: what is given up here stays.
const ATTEMPTS: usize = 3;

/// Sets a status, if the one that is there is the one that the plan knows of.
pub(super) async fn set(visit: &Visit<'_>, run: &PlanRun, to: &ExperimentState) -> Result<Value, EarlyEnd> {
    let node = visit.ctx.node();
    let failed = |error: ClientError| EarlyEnd::Failed(failure::of_server(&error, node));
    let id = run.approved().proposal().action.experiment_id().unwrap_or_default();
    let now = visit.client.experiment(id).await.map_err(failed)?;
    is_as_left(&now, run, node)?;
    if now.state != *to {
        move_to(visit.client, id, to).await.map_err(failed)?;
    }
    Ok(json!({ "from": now.state, "to": to }))
}

/// Whether the experiment has the status that the plan gave it, or found.
pub(super) fn is_as_left(now: &Experiment, run: &PlanRun, node: &str) -> Result<(), EarlyEnd> {
    if run.standing().is_none_or(|left| *left == now.state) {
        return Ok(());
    }
    let message = format!(
        "experiment '{}' has become {} meanwhile, by somebody else: I left it as it is and went no further",
        display(&now.name),
        now.state
    );
    Err(EarlyEnd::Overtaken(TurnError { class: ErrorClass::Validation, message, node: node.to_owned() }))
}

/// Sets a status, and looks whether it was set if the answer does not say.
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

/// What became of the status that was to be restored.
pub(super) enum Restoration {
    Done(ExperimentState),
    /// Somebody else moved it meanwhile.
    LeftAlone(ExperimentState),
    Failed(TurnError),
}

/// Restores the status that the plan changed. Nobody else would do it, so that a failure is not the last word
/// at once.
pub(super) async fn restore(visit: &Visit<'_>, run: &PlanRun) -> Option<Restoration> {
    let first = run.restore.as_ref()?;
    if matches!(run.ends, Some(EarlyEnd::Overtaken(_))) {
        return None;
    }
    let id = run.approved().proposal().action.experiment_id()?;
    let mut attempt = 1;
    loop {
        match try_restore(visit.client, run, id, first).await {
            Ok(restored) => return restored,
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

/// Read first, so that doing it again changes nothing.
async fn try_restore(
    client: &UpgradeClient,
    run: &PlanRun,
    id: &str,
    first: &ExperimentState,
) -> Result<Option<Restoration>, ClientError> {
    let now = client.experiment(id).await?.state;
    if now == *first {
        // Nothing was changed yet, or it is restored already.
        return Ok(run.set.is_some().then_some(Restoration::Done(now)));
    }
    // A step that was cut off may have set what it did not come to note.
    let meant = run.set.as_ref() == Some(&now) || cut_off(run) == Some(&now);
    if !meant {
        return Ok(Some(Restoration::LeftAlone(now)));
    }
    move_to(client, id, first).await?;
    Ok(Some(Restoration::Done(first.clone())))
}

/// The status that the step under way would have set, if it was cut off.
fn cut_off(run: &PlanRun) -> Option<&ExperimentState> {
    if !matches!(run.ends, Some(EarlyEnd::Failed(_) | EarlyEnd::Interrupted)) {
        return None;
    }
    match run.plan()?.steps.get(run.next)? {
        PlanStep::SetStatus { to } => Some(to),
        _ => None,
    }
}
