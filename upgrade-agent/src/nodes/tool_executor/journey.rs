//! The steps of a journey, each for all of its students, and their results.

use std::collections::BTreeMap;

use futures_util::FutureExt;
use serde_json::{Value, json};
use uuid::Uuid;

use super::crowd::{self, StepFailure};
use super::plan::{Visit, stage};
use super::visit::{Place, VisitRecord, mark, visit};
use crate::actions::{JourneyStep, SimulateUserJourney};
use crate::client::{Assignment, ClientError, UpgradeClient};
use crate::plan::PlanRun;

/// Above this number, students are counted and not listed: the log is stored with every step and read by
/// models.
pub(super) const LISTED: usize = 20;

/// Runs a step of a journey for all of its students.
pub(super) async fn run_journey_step(
    at: &Visit<'_>,
    journey: &SimulateUserJourney,
    step: &JourneyStep,
    run: &PlanRun,
) -> Result<Value, StepFailure> {
    let client = at.client;
    let context = journey.context.as_str();
    let key = step_key(run);
    let students = crowd::of_journey(journey, run.approved().key());
    let ids = students.iter().map(|student| student.id.as_str());
    match step {
        JourneyStep::Assign {} => {
            let looks = ids.map(|id| look(client, id, context).boxed());
            Ok(assignments_json(&stage(at).each("Looking at assignments", looks.collect()).await?))
        }
        JourneyStep::Visit { site, target } => {
            let place = Place { context, site, target, uniquifier: key };
            let visits = ids.map(|id| visit(client, id, place).boxed());
            Ok(visits_json(&stage(at).each(&format!("Visiting {site} / {target}"), visits.collect()).await?))
        }
        JourneyStep::SetWorkingGroup { working_group } => {
            let moves = ids.map(|id| client.set_working_group(id, working_group).boxed());
            stage(at).each("Changing groups", moves.collect()).await?;
            Ok(json!({ "working_group": working_group }))
        }
        JourneyStep::SetStatus { .. } => Ok(Value::Null),
    }
}

/// The assignments of a student.
struct StudentAssignments {
    user_id: String,
    assigned: Vec<Assignment>,
}

async fn look(client: &UpgradeClient, user: &str, context: &str) -> Result<StudentAssignments, ClientError> {
    Ok(StudentAssignments { user_id: user.to_owned(), assigned: client.assign(user, context).await? })
}

/// The uniquifier of the visits of a step: unique per step, and the same if the step runs again.
fn step_key(run: &PlanRun) -> Uuid {
    Uuid::from_u128(run.approved().key().as_u128().wrapping_add(run.position() as u128))
}

/// Lets each student visit every place that has an assignment for them.
pub(super) async fn visit_assigned(
    at: &Visit<'_>,
    journey: &SimulateUserJourney,
    run: &PlanRun,
) -> Result<Value, StepFailure> {
    let students = crowd::of_journey(journey, run.approved().key());
    let key = step_key(run);
    let visits =
        students.iter().map(|student| visit_all(at.client, &student.id, &journey.context, key).boxed());
    let visited = stage(at).each("Visiting", visits.collect()).await?;
    Ok(visits_json(&visited.into_iter().flatten().collect::<Vec<_>>()))
}

async fn visit_all(
    client: &UpgradeClient,
    user: &str,
    context: &str,
    uniquifier: Uuid,
) -> Result<Vec<VisitRecord>, ClientError> {
    let mut all = Vec::new();
    for here in client.assign(user, context).await? {
        let place = Place { context, site: &here.site, target: &here.target, uniquifier };
        all.push(mark(client, user, Some(&here), place).await?);
    }
    Ok(all)
}

/// The visits, with the condition of each student.
fn visits_json(all: &[VisitRecord]) -> Value {
    if all.len() > LISTED {
        json!({ "tally": tally(all.iter().map(|one| (&one.site, &one.target, one.condition.as_ref()))) })
    } else {
        json!(all)
    }
}

/// The assignments, without visits.
fn assignments_json(all: &[StudentAssignments]) -> Value {
    let code = |here: &Assignment| here.current().and_then(|current| current.condition_code.clone());
    if all.len() <= LISTED {
        let looked = all.iter().map(|one| {
            let places = one
                .assigned
                .iter()
                .map(|here| json!({ "site": here.site, "target": here.target, "condition": code(here) }));
            json!({ "user_id": one.user_id, "assigned": places.collect::<Vec<_>>() })
        });
        return looked.collect();
    }
    let nothing = all.iter().filter(|one| one.assigned.is_empty()).count();
    let places = all.iter().flat_map(|one| &one.assigned);
    let rows = places.map(|here| {
        let code = here.current().and_then(|current| current.condition_code.as_ref());
        (&here.site, &here.target, code)
    });
    json!({ "tally": tally(rows), "nothing": nothing })
}

/// The number of students by place and condition.
fn tally<'a>(rows: impl Iterator<Item = (&'a String, &'a String, Option<&'a String>)>) -> Vec<Value> {
    let mut counts: BTreeMap<_, u64> = BTreeMap::new();
    for row in rows {
        *counts.entry(row).or_default() += 1;
    }
    let told = counts.into_iter().map(|((site, target, condition), students)| {
        json!({ "site": site, "target": target, "condition": condition, "students": students })
    });
    told.collect()
}
