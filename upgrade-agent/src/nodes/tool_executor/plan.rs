//! Plans, one step per visit of the executor: each step is committed before the next one starts.
//!
//! However a plan ends (its last step, an error, a stop in the middle, a no), the status that it changed is
//! restored first.

use std::borrow::Cow;

use agentgraph::Ctx;
use futures_util::FutureExt;
use serde_json::{Value, json};

use super::crowd::{self, Stage, StepFailure};
use super::status::Restoration;
use super::visit::Place;
use super::{failure, journey, report, status};
use crate::actions::{
    self, Action, Proposal, TestConditionBalance, UpdateExperimentStatus, Warning, display,
};
use crate::agent::Settings;
use crate::balance::BalanceReport;
use crate::client::{Experiment, UpgradeClient};
use crate::plan::{EarlyEnd, PlanRun, PlanStep, is_destructive};
use crate::restores;
use crate::state::{Approval, ConversationState, ConversationStateUpdate, ErrorClass, TurnError};

/// The inputs of a visit of the executor.
pub(super) struct Visit<'a> {
    pub(super) client: &'a UpgradeClient,
    pub(super) settings: &'a Settings,
    pub(super) state: &'a ConversationState,
    pub(super) ctx: &'a Ctx,
}

/// Starts a plan: stores the status to restore, and changes nothing yet.
pub(super) async fn begin(
    visit: &Visit<'_>,
    update: ConversationStateUpdate,
    approved: &Approval,
) -> ConversationStateUpdate {
    let proposal = approved.proposal();
    let run = PlanRun::begin(approved.clone(), None);
    let Some(id) = proposal.action.experiment_id() else { return update.plan(Some(run)) };
    let ended = match visit.client.experiment(id).await {
        Ok(now) if proposal.current.as_ref().is_none_or(|asked| *asked == now.state) => {
            let restore = proposal.plan.as_ref().and_then(|plan| plan.restores.clone());
            if let Some(first) = &restore {
                restores::announce(visit.ctx, &(&now).into(), first).await;
            }
            return update.plan(Some(PlanRun::begin(approved.clone(), restore)));
        }
        Ok(now) => EarlyEnd::Overtaken(changed_meanwhile(&now, visit.ctx.node())),
        Err(error) => EarlyEnd::Failed(failure::of_server(&error, visit.ctx.node())),
    };
    report::finish(visit, update, &run.ending(ended), None)
}

fn changed_meanwhile(now: &Experiment, node: &str) -> TurnError {
    let message = format!(
        "experiment '{}' has become {} since I asked, so I left it alone: ask again if you still want it",
        display(&now.name),
        now.state
    );
    TurnError { class: ErrorClass::Validation, message, node: node.to_owned() }
}

/// The plan under way. One that was cut off in this turn is ended and not continued.
pub(super) fn under_way(state: &ConversationState) -> Option<Cow<'_, PlanRun>> {
    let run = state.plan.as_ref()?;
    let is_cut_off = state.cut_off == state.turns;
    Some(if is_cut_off { Cow::Owned(run.ending(EarlyEnd::Interrupted)) } else { Cow::Borrowed(run) })
}

/// Runs the next step, or ends the plan.
pub(super) async fn go_on(
    visit: &Visit<'_>,
    update: ConversationStateUpdate,
    run: &PlanRun,
    allowed: bool,
) -> ConversationStateUpdate {
    let Some(step) = run.step() else {
        let restored = status::restore(visit, run).await;
        if !matches!(restored, Some(Restoration::Failed(_)))
            && let Some(id) = run.first_status().and(run.approved().proposal().action.experiment_id())
        {
            restores::withdraw(visit.ctx, id).await;
        }
        return report::finish(visit, update, run, restored);
    };
    let first = run.plan().and_then(|plan| plan.restores.as_ref());
    if !allowed && is_destructive(step, first) {
        return update.plan(Some(run.clone())).proposal(ask_first(step, run));
    }
    match take(visit, run, step).await {
        Ok(result) => update.plan(Some(run.advanced(result))),
        Err(ends) => update.plan(Some(run.ending(ends))),
    }
}

/// The step as an action of its own, for the question about it.
fn ask_first(step: &PlanStep, run: &PlanRun) -> Option<Proposal> {
    let PlanStep::SetStatus { to } = step else { return None };
    let asked = run.approved().proposal();
    let id = asked.action.experiment_id()?.to_owned();
    let current = run.expected_status().cloned();
    let force = current.as_ref().is_some_and(|from| !actions::is_usual(from, to));
    let change = UpdateExperimentStatus { experiment_id: id, status: to.clone(), force };
    let restored = current.clone().zip(run.first_status().cloned()).filter(|(now, first)| now != first);
    let warnings = restored.map(|(now, first)| Warning::PlanWaits { now, first });
    Some(Proposal {
        action: Action::UpdateExperimentStatus(change),
        about: asked.about.clone(),
        current,
        seen: None,
        warnings: warnings.into_iter().collect(),
        plan: None,
    })
}

async fn take(visit: &Visit<'_>, run: &PlanRun, step: &PlanStep) -> Result<Value, EarlyEnd> {
    let cut = |cut: StepFailure| EarlyEnd::Failed(cut.error(visit.ctx.node()));
    let approved = run.approved();
    match (step, &approved.proposal().action) {
        (PlanStep::SetStatus { to }, _) => status::set(visit, run, to).await,
        (PlanStep::Crowd { site, target, .. }, Action::TestConditionBalance(test)) => {
            balance(visit, test, (site, target), run).await.map(|report| json!(report))
        }
        (PlanStep::Begin { .. }, Action::SimulateUserJourney(journey)) => {
            let students = crowd::of_journey(journey, approved.key());
            let known = students.iter().map(|student| visit.client.init_user(student).boxed());
            stage(visit).each("Making students known", known.collect()).await.map_err(cut)?;
            Ok(json!({ "students": students.len() }))
        }
        (PlanStep::Journey(step), Action::SimulateUserJourney(journey)) => {
            journey::run_journey_step(visit, journey, step, run).await.map_err(cut)
        }
        (PlanStep::VisitAssigned, Action::SimulateUserJourney(journey)) => {
            journey::visit_assigned(visit, journey, run).await.map_err(cut)
        }
        // No plan is created with these values.
        _ => Ok(Value::Null),
    }
}

pub(super) fn stage<'a>(visit: &Visit<'a>) -> Stage<'a> {
    Stage { client: visit.client, ctx: visit.ctx, at_once: visit.settings.students_at_once }
}

async fn balance(
    visit: &Visit<'_>,
    test: &TestConditionBalance,
    (site, target): (&str, &str),
    run: &PlanRun,
) -> Result<BalanceReport, EarlyEnd> {
    let node = visit.ctx.node();
    let experiment = visit.client.experiment(&test.experiment_id).await;
    let experiment = experiment.map_err(|error| EarlyEnd::Failed(failure::of_server(&error, node)))?;
    status::check_status_unchanged(&experiment, run, node)?;
    let key = run.approved().key();
    let context = experiment.context.first().cloned().unwrap_or_default();
    let students = crowd::of_balance(test, &experiment, key);
    let place = Place { context: &context, site, target, uniquifier: key };
    let played = crowd::play(stage(visit), &students, &experiment, place).await;
    played.map_err(|cut| EarlyEnd::Failed(cut.error(node)))
}
