//! The end of a plan: its log entry and its report.

use serde_json::{Value, json};

use super::journey::LISTED;
use super::plan::Visit;
use super::restores::TRIED_AGAIN;
use super::status::{self, Restoration};
use super::{entry_of, success_summary};
use crate::actions::{self, Action, ExperimentRef, JourneyStep, Proposal, display};
use crate::balance::BalanceReport;
use crate::plan::{EarlyEnd, PlanRun, PlanStep};
use crate::state::{ConversationStateUpdate, LogStatus, PresetReply, ResponseKind};

/// Ends a plan with its log entry and its report.
pub(super) fn finish(
    visit: &Visit<'_>,
    mut update: ConversationStateUpdate,
    run: &PlanRun,
    restored: Option<Restoration>,
) -> ConversationStateUpdate {
    let proposal = run.approved().proposal();
    let experiment = display(name(proposal.about.as_ref()));
    let balance = run.results().iter().find_map(BalanceReport::try_from_value);
    let mut parts = vec![headline(proposal, run)];
    parts.extend(balance.as_ref().map(BalanceReport::in_words));
    parts.extend(journey_lines(proposal, run.results()));
    let mut error = match run.early_end() {
        Some(EarlyEnd::Failed(error) | EarlyEnd::Overtaken(error)) => Some(error.clone()),
        _ => None,
    };
    match restored {
        Some(Restoration::Done(state)) => {
            parts.push(format!("The status of experiment '{experiment}' is {state} again."));
        }
        Some(Restoration::LeftAlone(state)) => parts.push(format!(
            "The status of experiment '{experiment}' has become {state} meanwhile, by somebody else, so I left it as it is."
        )),
        Some(Restoration::Failed(why)) => {
            parts.push(format!(
                "I could NOT restore the status of experiment '{experiment}'. {TRIED_AGAIN}\n- {}",
                why.message
            ));
            error = error.or(Some(why));
            update = update.restores(visit.state.restores.iter().cloned().chain(status::due(run)).collect::<Vec<_>>());
        }
        Some(Restoration::Unchanged) | None => {}
    }
    if run.has_played() {
        parts.push(
            "The students who were played stay on the server: UpGrade cannot take them back.".to_owned(),
        );
    }
    let status =
        if run.early_end().is_none() && error.is_none() { LogStatus::Success } else { LogStatus::Error };
    let summary = parts.join("\n");
    let result = json!({ "steps": run.results() });
    let about = proposal.about.clone();
    let entry = entry_of(visit, proposal, about.clone(), (status, result, error.clone(), summary.clone()));
    update
        .plan(None)
        .balance(balance)
        .preset(Some(PresetReply::new(ResponseKind::Report, summary)))
        .errors(error)
        .experiment_names(None)
        .experiments(None)
        .last_experiment(about.or_else(|| visit.state.last_experiment.clone()))
        .execution_log([entry])
}

fn headline(proposal: &Proposal, run: &PlanRun) -> String {
    let title = actions::title(proposal);
    let steps = run.plan().map_or(0, |plan| plan.steps.len());
    let far = format!("{} of {steps} steps were done", run.position());
    match run.early_end() {
        None => success_summary(&proposal.action, name(proposal.about.as_ref()), ""),
        Some(EarlyEnd::Failed(error) | EarlyEnd::Overtaken(error)) => {
            format!("I could not {title}: {far}.\n- {}", error.message)
        }
        Some(EarlyEnd::Interrupted) => {
            format!("I was stopped when I was to {title}: {far}. Ask again if you still want it.")
        }
        Some(EarlyEnd::Declined) => format!("I stopped there and did not {title} to its end: {far}."),
    }
}

fn name(about: Option<&ExperimentRef>) -> &str {
    about.map_or("", |about| &about.name)
}

/// The result of each step of a journey, with a line for each student where the step is about students.
fn journey_lines(proposal: &Proposal, done: &[Value]) -> Option<String> {
    let (Action::SimulateUserJourney(_), Some(plan)) = (&proposal.action, &proposal.plan) else {
        return None;
    };
    let lines: Vec<String> =
        plan.steps.iter().zip(done).flat_map(|(step, done)| step_lines(step, done)).collect();
    let more = lines.len().saturating_sub(LISTED);
    let mut told: Vec<String> = lines.into_iter().take(LISTED).collect();
    if more > 0 {
        told.push(format!("- and {more} lines more"));
    }
    (!told.is_empty()).then(|| told.join("\n"))
}

fn step_lines(step: &PlanStep, done: &Value) -> Vec<String> {
    match step {
        PlanStep::SetStatus { to } => vec![format!("- the status became {to}")],
        PlanStep::Journey(JourneyStep::Assign {}) => {
            lines_of(done, assignment_line, |code| format!("would get {code}"))
        }
        PlanStep::Journey(JourneyStep::SetWorkingGroup { .. }) => {
            vec!["- the students changed their group".to_owned()]
        }
        PlanStep::Journey(JourneyStep::Visit { .. }) | PlanStep::VisitAssigned => {
            lines_of(done, visit_line, |code| format!("got {code}"))
        }
        _ => Vec::new(),
    }
}

/// A line for each student, or one line if all got the same.
fn lines_of(done: &Value, of_student: fn(&Value) -> Option<String>, got: fn(&str) -> String) -> Vec<String> {
    if let Some(students) = done.as_array() {
        return students.iter().filter_map(of_student).collect();
    }
    let tally = done.get("tally").and_then(Value::as_array).into_iter().flatten();
    let mut lines: Vec<String> = tally.filter_map(|row| tally_line(row, got)).collect();
    let nothing = done.get("nothing").and_then(Value::as_u64).filter(|count| *count > 0);
    lines.extend(nothing.map(|count| format!("- {count} of them would get nothing")));
    lines
}

fn tally_line(row: &Value, got: fn(&str) -> String) -> Option<String> {
    let text = |field: &str| row.get(field).and_then(Value::as_str);
    let code = display(text("condition").unwrap_or("no condition"));
    let count = row.get("students")?.as_u64()?;
    let site = text("site")?;
    let target = text("target")?;
    Some(format!("- {count} of them {} at {} / {}", got(&code), display(site), display(target)))
}

fn visit_line(visit: &Value) -> Option<String> {
    let text = |field: &str| visit.get(field).and_then(Value::as_str);
    let user = text("user_id")?;
    let site = text("site")?;
    let target = text("target")?;
    let got = text("condition").unwrap_or("no condition");
    Some(format!("- {} came to {site} / {target} and got {}", display(user), display(got)))
}

fn assignment_line(student: &Value) -> Option<String> {
    let user = display(student.get("user_id")?.as_str()?);
    let places = student.get("assigned")?.as_array()?.iter().filter_map(|place| {
        let text = |field: &str| place.get(field).and_then(Value::as_str);
        Some(format!(
            "{} at {} / {}",
            display(text("condition").unwrap_or("default")),
            text("site")?,
            text("target")?
        ))
    });
    let places: Vec<String> = places.collect();
    Some(if places.is_empty() {
        format!("- {user} would get nothing")
    } else {
        format!("- {user} would get {}", places.join(", "))
    })
}
