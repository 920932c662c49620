//! Simulated students: many at the same time, up to a limit, with progress events.

use agentgraph::Ctx;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt};
use serde_json::json;
use uuid::Uuid;

use crate::actions::{SimulateUserJourney, TestConditionBalance};
use crate::balance::{self, BalanceReport};
use crate::client::{AssignedCondition, ClientError, Experiment, NewUser, UpgradeClient};
use crate::state::TurnError;

use super::failure;
use super::visit::{Place, mark};

/// The prefix of the ids of simulated students.
const PREFIX: &str = "sim-";

/// The client and the limit of concurrent students, and the context for progress events.
#[derive(Clone, Copy)]
pub(super) struct Stage<'a> {
    pub(super) client: &'a UpgradeClient,
    pub(super) ctx: &'a Ctx,
    pub(super) at_once: usize,
}

/// The call of one student.
pub(super) type StudentAct<'a, T> = BoxFuture<'a, Result<T, ClientError>>;

/// The approximate number of progress events in a step.
const TOLD: u64 = 20;

/// The error that ended a step, and the progress until then.
pub(super) struct StepFailure {
    error: ClientError,
    done: usize,
    total: u64,
}

impl StepFailure {
    /// The error in the form in which a turn reports it.
    pub(super) fn error(&self, node: &str) -> TurnError {
        let error = failure::of_server(&self.error, node);
        match self.total {
            0 | 1 => error,
            total => {
                let message = format!("{} ({} of {total} students were through)", error.message, self.done);
                TurnError { message, ..error }
            }
        }
    }
}

impl Stage<'_> {
    /// Runs one call for each student; the first error ends the step. Results are in the order of the
    /// students.
    pub(super) async fn each<T>(
        &self,
        label: &str,
        acts: Vec<StudentAct<'_, T>>,
    ) -> Result<Vec<T>, StepFailure> {
        let total = acts.len() as u64;
        let mut running = stream::iter(acts).buffered(self.at_once.max(1));
        let mut results = Vec::new();
        while let Some(result) = running.next().await {
            results.push(result.map_err(|error| StepFailure { error, done: results.len(), total })?);
            let done = results.len() as u64;
            if done == total || done.is_multiple_of(total.div_ceil(TOLD)) {
                self.report_progress(label, done, total).await;
            }
        }
        Ok(results)
    }

    async fn report_progress(&self, label: &str, done: u64, total: u64) {
        if self.ctx.has_listener() {
            self.ctx.emit(json!({ "progress": { "label": label, "done": done, "total": total } })).await;
        }
    }
}

/// An id derived from a key and a number, so a step that runs again simulates the same students.
fn id_of(key: Uuid, number: usize) -> Uuid {
    // An odd factor keeps different numbers apart.
    const SPREAD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
    Uuid::from_u128(key.as_u128().wrapping_add((number as u128 + 1).wrapping_mul(SPREAD)))
}

/// The students of a balance test. If groups are assigned, each student has a group of their own, unless one
/// was given.
pub(crate) fn of_balance(test: &TestConditionBalance, experiment: &Experiment, key: Uuid) -> Vec<NewUser> {
    let prefix = test.prefix.as_deref().unwrap_or(PREFIX);
    let student = |number: usize| {
        let id = format!("{prefix}{}", id_of(key, number));
        let group = format!("group-{id}");
        let student = NewUser { id, groups: test.group.clone(), working_group: test.working_group.clone() };
        match balance::own_group(experiment) {
            Some(kind) => grouped(student, kind, group),
            None => student,
        }
    };
    (0..test.students() as usize).map(student).collect()
}

/// Adds a group of this kind if none was given. A student is a member of their working group.
fn grouped(mut student: NewUser, kind: &str, own: String) -> NewUser {
    if student.groups.as_ref().is_some_and(|groups| groups.contains_key(kind)) {
        return student;
    }
    let works = student.working_group.as_mut().and_then(|works| works.remove(kind));
    student.in_group(kind, works.unwrap_or(own))
}

/// The students of a journey.
pub(super) fn of_journey(journey: &SimulateUserJourney, key: Uuid) -> Vec<NewUser> {
    let ids: Vec<String> = if journey.user_ids.is_empty() {
        (0..journey.students()).map(|number| format!("{PREFIX}{}", id_of(key, number))).collect()
    } else {
        journey.user_ids.clone()
    };
    let groups = (journey.group.clone(), journey.working_group.clone());
    ids.into_iter()
        .map(|id| NewUser { id, groups: groups.0.clone(), working_group: groups.1.clone() })
        .collect()
}

/// Lets the students visit one place, and counts the conditions that they get. A student who is left out is
/// not marked, because the mark would count for another experiment.
pub(super) async fn play(
    stage: Stage<'_>,
    students: &[NewUser],
    experiment: &Experiment,
    place: Place<'_>,
) -> Result<BalanceReport, StepFailure> {
    let comes = |(number, student)| run_student(stage.client, student, experiment, place, number).boxed();
    let got = stage.each("Playing students", students.iter().enumerate().map(comes).collect()).await?;
    let groups = balance::own_group(experiment).is_some();
    let drawn = students.iter().zip(&got).map(|(student, code)| {
        let group = balance::unit(experiment, student).filter(|_| groups);
        code.as_deref().map(|code| (code, group))
    });
    Ok(balance::count(experiment, drawn))
}

/// Runs one student of a crowd; returns the condition, or none if the student is left out.
async fn run_student(
    client: &UpgradeClient,
    student: &NewUser,
    experiment: &Experiment,
    place: Place<'_>,
    number: usize,
) -> Result<Option<String>, ClientError> {
    client.init_user(student).await?;
    let assigned = client.assign(&student.id, place.context).await?;
    let is_its =
        |current: &AssignedCondition| current.experiment_id.as_ref().is_none_or(|id| *id == experiment.id);
    let own = assigned.iter().find(|one| {
        one.site == place.site && one.target == place.target && one.current().is_some_and(is_its)
    });
    let Some(own) = own else { return Ok(None) };
    let place = Place { uniquifier: id_of(place.uniquifier, number), ..place };
    Ok(mark(client, &student.id, Some(own), place).await?.condition)
}
