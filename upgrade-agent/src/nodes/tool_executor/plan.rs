//! Plans, a step a visit: what was noted is committed before the next step begins.
//!
//! However a plan ends (its last step, a failure, a stop in the middle, a no) the status that it changed is restored first.

use agentgraph::Ctx;
use futures_util::FutureExt;
use serde_json::{Value, json};
use uuid::Uuid;

use super::crowd::{self, Stage};
use super::visit::{Place, Visited, mark, visit};
use super::{entry_of, failure, success_summary};
use crate::actions::{
    self, Action, ExperimentRef, JourneyStep, Proposal, SimulateUserJourney, TestConditionBalance,
    UpdateExperimentStatus, shown,
};
use crate::agent::Settings;
use crate::balance::BalanceReport;
use crate::client::{ClientError, Experiment, ExperimentState, UpgradeClient};
use crate::plan::{Ends, PlanRun, Step, is_destructive};
use crate::state::{
    Approved, ConversationState, ConversationStateUpdate, ErrorClass, LogStatus, Preset, ResponseKind,
    TurnError,
};

/// What a visit of the executor looks at.
pub(super) struct Visit<'a> {
    pub(super) client: &'a UpgradeClient,
    pub(super) settings: &'a Settings,
    pub(super) state: &'a ConversationState,
    pub(super) ctx: &'a Ctx,
}

/// Begins a plan: notes the status that is to be restored, and changes nothing yet.
pub(super) async fn begin(
    visit: &Visit<'_>,
    update: ConversationStateUpdate,
    approved: &Approved,
) -> ConversationStateUpdate {
    let proposal = approved.proposal();
    let run = PlanRun::begin(approved.clone(), None);
    let Some(id) = proposal.action.experiment_id() else { return update.plan(Some(run)) };
    let ended = match visit.client.experiment(id).await {
        Ok(now) if proposal.current.as_ref().is_none_or(|asked| *asked == now.state) => {
            let restore = proposal.plan.as_ref().and_then(|plan| plan.restores.clone());
            return update.plan(Some(PlanRun::begin(approved.clone(), restore)));
        }
        Ok(now) => changed_meanwhile(&now, visit.ctx.node()),
        Err(error) => failure::of_server(&error, visit.ctx.node()),
    };
    finish(visit, update, &run.ending(Ends::Failed(ended)), None)
}

fn changed_meanwhile(now: &Experiment, node: &str) -> TurnError {
    let message = format!(
        "experiment '{}' has become {} since I asked, so I left it alone: ask again if you still want it",
        shown(&now.name),
        now.state
    );
    TurnError { class: ErrorClass::Validation, message, node: node.to_owned() }
}

/// Takes the next step, or ends the plan.
pub(super) async fn go_on(
    visit: &Visit<'_>,
    update: ConversationStateUpdate,
    run: &PlanRun,
    allowed: bool,
) -> ConversationStateUpdate {
    let Some(step) = run.step() else {
        let restored = restore(visit, run).await;
        return finish(visit, update, run, restored);
    };
    let first = run.plan().and_then(|plan| plan.restores.as_ref());
    if !allowed && is_destructive(step, first) {
        return update.plan(Some(run.clone())).proposal(ask_first(step, run));
    }
    match take(visit, run, step).await {
        Ok(result) => {
            let mut next = run.after(result);
            if let Step::SetStatus { to } = step {
                next.set = Some(to.clone());
            }
            update.plan(Some(next))
        }
        Err(error) => update.plan(Some(run.ending(Ends::Failed(error)))),
    }
}

/// The step as an action of its own, to be asked about.
fn ask_first(step: &Step, run: &PlanRun) -> Option<Proposal> {
    let Step::SetStatus { to } = step else { return None };
    let asked = run.approved().proposal();
    let id = asked.action.experiment_id()?.to_owned();
    let current = run.set.clone().or_else(|| asked.current.clone());
    let force = current.as_ref().is_some_and(|from| !actions::is_usual(from, to));
    let change = UpdateExperimentStatus { experiment_id: id, status: to.clone(), force };
    Some(Proposal {
        action: Action::UpdateExperimentStatus(change),
        about: asked.about.clone(),
        current,
        warnings: Vec::new(),
        plan: None,
    })
}

async fn take(visit: &Visit<'_>, run: &PlanRun, step: &Step) -> Result<Value, TurnError> {
    let node = visit.ctx.node();
    let server = |error: ClientError| failure::of_server(&error, node);
    let approved = run.approved();
    match (step, &approved.proposal().action) {
        (Step::SetStatus { to }, action) => set_status(visit, action, to).await.map_err(server),
        (Step::Crowd { site, target, .. }, Action::TestConditionBalance(test)) => {
            let report = balance(visit, test, (site, target), approved.key()).await.map_err(server)?;
            Ok(json!(report))
        }
        (Step::Begin { .. }, Action::SimulateUserJourney(journey)) => {
            let students = crowd::of_journey(journey, approved.key());
            let known = students.iter().map(|student| visit.client.init_user(student).boxed());
            stage(visit).each("Making students known", known.collect()).await.map_err(server)?;
            Ok(json!({ "students": students.len() }))
        }
        (Step::Journey(step), Action::SimulateUserJourney(journey)) => {
            travel(visit, journey, step, run).await.map_err(server)
        }
        (Step::VisitAssigned, Action::SimulateUserJourney(journey)) => {
            visit_assigned(visit, journey, run).await.map_err(server)
        }
        // No plan is made like this.
        _ => Ok(Value::Null),
    }
}

fn stage<'a>(visit: &Visit<'a>) -> Stage<'a> {
    Stage { client: visit.client, ctx: visit.ctx, at_once: visit.settings.students_at_once }
}

/// Read first: a step that runs again finds it done.
async fn set_status(visit: &Visit<'_>, action: &Action, to: &ExperimentState) -> Result<Value, ClientError> {
    let id = action.experiment_id().unwrap_or_default();
    let now = visit.client.experiment(id).await?;
    if now.state != *to {
        move_to(visit.client, id, to).await?;
    }
    Ok(json!({ "from": now.state, "to": to }))
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

async fn balance(
    visit: &Visit<'_>,
    test: &TestConditionBalance,
    (site, target): (&str, &str),
    key: Uuid,
) -> Result<BalanceReport, ClientError> {
    let experiment = visit.client.experiment(&test.experiment_id).await?;
    let context = experiment.context.first().cloned().unwrap_or_default();
    let students = crowd::of_balance(test, &experiment, key);
    let place = Place { context: &context, site, target, uniquifier: key };
    crowd::play(stage(visit), &students, &experiment, place).await
}

/// Takes a step of a journey with all of its students.
async fn travel(
    at: &Visit<'_>,
    journey: &SimulateUserJourney,
    step: &JourneyStep,
    run: &PlanRun,
) -> Result<Value, ClientError> {
    let (client, context) = (at.client, journey.context.as_str());
    let key = step_key(run);
    let students = crowd::of_journey(journey, run.approved().key());
    let ids = students.iter().map(|student| student.id.as_str());
    match step {
        JourneyStep::Assign {} => {
            let looks = ids.map(|id| look(client, id, context).boxed());
            Ok(json!(stage(at).each("Looking at assignments", looks.collect()).await?))
        }
        JourneyStep::Visit { site, target } => {
            let place = Place { context, site, target, uniquifier: key };
            let visits = ids.map(|id| visit(client, id, place).boxed());
            Ok(json!(stage(at).each(&format!("Visiting {site} / {target}"), visits.collect()).await?))
        }
        JourneyStep::SetWorkingGroup { working_group } => {
            let moves = ids.map(|id| client.set_working_group(id, working_group).boxed());
            stage(at).each("Changing groups", moves.collect()).await?;
            Ok(json!({ "working_group": working_group }))
        }
        JourneyStep::SetStatus { .. } => Ok(Value::Null),
    }
}

/// What a student would get.
async fn look(client: &UpgradeClient, user: &str, context: &str) -> Result<Value, ClientError> {
    let assigned = client.assign(user, context).await?;
    let places = assigned.iter().map(|here| {
        let code = here.current().and_then(|current| current.condition_code.clone());
        json!({ "site": here.site, "target": here.target, "condition": code })
    });
    Ok(json!({ "user_id": user, "assigned": places.collect::<Vec<_>>() }))
}

/// The uniquifier of the visits of a step: another for each step, and the same when it runs again.
fn step_key(run: &PlanRun) -> Uuid {
    Uuid::from_u128(run.approved().key().as_u128().wrapping_add(run.next as u128))
}

/// Lets each student visit every place where he is assigned something.
async fn visit_assigned(
    at: &Visit<'_>,
    journey: &SimulateUserJourney,
    run: &PlanRun,
) -> Result<Value, ClientError> {
    let students = crowd::of_journey(journey, run.approved().key());
    let key = step_key(run);
    let visits =
        students.iter().map(|student| visit_all(at.client, &student.id, &journey.context, key).boxed());
    let visited = stage(at).each("Visiting", visits.collect()).await?;
    Ok(json!(visited.into_iter().flatten().collect::<Vec<_>>()))
}

async fn visit_all(
    client: &UpgradeClient,
    user: &str,
    context: &str,
    uniquifier: Uuid,
) -> Result<Vec<Visited>, ClientError> {
    let mut all = Vec::new();
    for here in client.assign(user, context).await? {
        let place = Place { context, site: &here.site, target: &here.target, uniquifier };
        all.push(mark(client, user, Some(&here), place).await?);
    }
    Ok(all)
}

/// What became of the status that was to be restored.
enum Restored {
    Done(ExperimentState),
    /// Somebody else moved it meanwhile.
    LeftAlone(ExperimentState),
    Failed(TurnError),
}

/// Restores the status that the plan changed; read first, so that doing it again changes nothing.
async fn restore(visit: &Visit<'_>, run: &PlanRun) -> Option<Restored> {
    let first = run.restore.clone()?;
    let id = run.approved().proposal().action.experiment_id()?;
    let failed = |error| Restored::Failed(failure::of_server(&error, visit.ctx.node()));
    let now = match visit.client.experiment(id).await {
        Ok(now) => now.state,
        Err(error) => return Some(failed(error)),
    };
    if now == first {
        // Nothing was changed yet, or it is restored already.
        return run.set.is_some().then_some(Restored::Done(first));
    }
    // A step that was cut off may have set what it did not come to note.
    let meant = run.set.as_ref().is_some_and(|set| *set == now) || cut_off(run) == Some(&now);
    if !meant {
        return Some(Restored::LeftAlone(now));
    }
    Some(match move_to(visit.client, id, &first).await {
        Ok(()) => Restored::Done(first),
        Err(error) => failed(error),
    })
}

/// The status that the step under way would have set.
fn cut_off(run: &PlanRun) -> Option<&ExperimentState> {
    match run.plan()?.steps.get(run.next)? {
        Step::SetStatus { to } => Some(to),
        _ => None,
    }
}

/// Ends a plan: its log entry, and what is told of it.
fn finish(
    visit: &Visit<'_>,
    update: ConversationStateUpdate,
    run: &PlanRun,
    restored: Option<Restored>,
) -> ConversationStateUpdate {
    let proposal = run.approved().proposal();
    let experiment = shown(name(proposal.about.as_ref()));
    let balance = run.done.iter().find_map(BalanceReport::try_from_value);
    let mut parts = vec![headline(proposal, run)];
    parts.extend(balance.as_ref().map(BalanceReport::in_words));
    parts.extend(journey_lines(proposal, &run.done));
    let mut error = match &run.ends {
        Some(Ends::Failed(error)) => Some(error.clone()),
        _ => None,
    };
    match restored {
        Some(Restored::Done(state)) => {
            parts.push(format!("The status of experiment '{experiment}' is {state} again."));
        }
        Some(Restored::LeftAlone(state)) => parts.push(format!(
            "The status of experiment '{experiment}' has become {state} meanwhile, by somebody else, so I left it as it is."
        )),
        Some(Restored::Failed(why)) => {
            parts.push(format!(
                "I could NOT restore the status of experiment '{experiment}': set it yourself, or ask me to.\n- {}",
                why.message
            ));
            error = error.or(Some(why));
        }
        None => {}
    }
    if run.has_played() {
        parts.push(
            "The students who were played stay on the server: UpGrade cannot take them back.".to_owned(),
        );
    }
    let status = if run.ends.is_none() && error.is_none() { LogStatus::Success } else { LogStatus::Error };
    let summary = parts.join("\n");
    let result = json!({ "steps": run.done });
    let about = proposal.about.clone();
    let entry = entry_of(visit, proposal, about.clone(), (status, result, error.clone(), summary.clone()));
    update
        .plan(None)
        .balance(balance)
        .preset(Some(Preset::new(ResponseKind::Report, summary)))
        .errors(error)
        .experiment_names(None)
        .experiments(None)
        .last_experiment(about.or_else(|| visit.state.last_experiment.clone()))
        .execution_log([entry])
}

fn headline(proposal: &Proposal, run: &PlanRun) -> String {
    let title = actions::title(proposal);
    let steps = run.plan().map_or(0, |plan| plan.steps.len());
    let far = format!("{} of {steps} steps were done", run.done.len());
    match &run.ends {
        None => success_summary(&proposal.action, name(proposal.about.as_ref()), ""),
        Some(Ends::Failed(error)) => format!("I could not {title}: {far}.\n- {}", error.message),
        Some(Ends::Interrupted) => {
            format!("I was stopped when I was to {title}: {far}. Ask again if you still want it.")
        }
        Some(Ends::Declined) => format!("I stopped there and did not {title} to its end: {far}."),
    }
}

fn name(about: Option<&ExperimentRef>) -> &str {
    about.map_or("", |about| &about.name)
}

/// The most lines of a journey that are told; all of it is in the log.
const LINES: usize = 20;

/// What each step of a journey came to, a line for each student where it is about students.
fn journey_lines(proposal: &Proposal, done: &[Value]) -> Option<String> {
    let (Action::SimulateUserJourney(_), Some(plan)) = (&proposal.action, &proposal.plan) else {
        return None;
    };
    let lines: Vec<String> =
        plan.steps.iter().zip(done).flat_map(|(step, done)| step_lines(step, done)).collect();
    let more = lines.len().saturating_sub(LINES);
    let mut told: Vec<String> = lines.into_iter().take(LINES).collect();
    if more > 0 {
        told.push(format!("- and {more} lines more"));
    }
    (!told.is_empty()).then(|| told.join("\n"))
}

fn step_lines(step: &Step, done: &Value) -> Vec<String> {
    let students = || done.as_array().into_iter().flatten();
    match step {
        Step::SetStatus { to } => vec![format!("- the status became {to}")],
        Step::Journey(JourneyStep::Assign {}) => students().filter_map(assignment_line).collect(),
        Step::Journey(JourneyStep::SetWorkingGroup { .. }) => {
            vec!["- the students changed their group".to_owned()]
        }
        Step::Journey(JourneyStep::Visit { .. }) | Step::VisitAssigned => {
            students().filter_map(visit_line).collect()
        }
        _ => Vec::new(),
    }
}

fn visit_line(visit: &Value) -> Option<String> {
    let text = |field: &str| visit.get(field).and_then(Value::as_str);
    let (user, site, target) = (text("user_id")?, text("site")?, text("target")?);
    let got = text("condition").unwrap_or("no condition");
    Some(format!("- {} came to {site} / {target} and got {}", shown(user), shown(got)))
}

fn assignment_line(student: &Value) -> Option<String> {
    let user = shown(student.get("user_id")?.as_str()?);
    let places = student.get("assigned")?.as_array()?.iter().filter_map(|place| {
        let text = |field: &str| place.get(field).and_then(Value::as_str);
        Some(format!(
            "{} at {} / {}",
            shown(text("condition").unwrap_or("default")),
            text("site")?,
            text("target")?
        ))
    });
    let places: Vec<String> = places.collect();
    Some(match places.is_empty() {
        true => format!("- {user} would get nothing"),
        false => format!("- {user} would get {}", places.join(", ")),
    })
}
