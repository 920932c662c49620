//! [`TaskRemains`]: what a task left behind when its superstep was not committed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use crate::context::NewQuestions;
use crate::engine::stored::{StoredAnswer, StoredRequest};
use crate::engine::task_id::StepPlace;
use crate::failure::Failure;
use crate::words::{AnswerState, AskedQuestion};
use agentgraph_checkpoint::{PendingWrite, TaskId};

/// What tasks left behind when their superstep was not committed, by task.
pub(crate) type Leftovers = HashMap<TaskId, TaskRemains>;

/// What one task left behind.
#[derive(Debug, Default)]
pub(crate) struct TaskRemains {
    pub(crate) result: Option<Vec<u8>>,
    /// By their numbers.
    pub(in crate::engine) requests: Vec<(u32, StoredRequest)>,
    /// Those to its requests, by their numbers.
    pub(in crate::engine) answers: BTreeMap<u32, Value>,
    /// The requests whose answers are delivered to nobody.
    pub(in crate::engine) voided: BTreeSet<u32>,
    /// It failed, and its handler stands in its place.
    pub(crate) failure: Option<Failure>,
    /// The error of its last call, if it is open and no handler has taken over.
    pub(crate) error: Option<Failure>,
    /// It goes on with the call of that task, which stood in its place before an edit.
    pub(crate) call: Option<TaskId>,
}

impl TaskRemains {
    /// What it failed with, if nothing came of it since.
    pub(crate) fn failed(&self) -> Option<&Failure> {
        self.error.as_ref().filter(|_| self.result.is_none() && !self.waits())
    }

    /// Whether nothing but its error is known of it.
    pub(crate) fn is_bare(&self) -> bool {
        let TaskRemains { result, requests, answers, voided, failure, error: _, call } = self;
        let asked = !(requests.is_empty() && answers.is_empty() && voided.is_empty());
        !asked && result.is_none() && failure.is_none() && call.is_none()
    }

    /// The node of a task that has asked and is not done.
    pub(crate) fn asked_by(&self) -> Option<String> {
        let (_, request) = self.requests.first().filter(|_| self.result.is_none())?;
        Some(request.node.clone())
    }

    /// Whether a request has no answer. Its task is not run then.
    pub(crate) fn waits(&self) -> bool {
        self.open().next().is_some()
    }

    /// The requests that have no answer.
    pub(crate) fn open(&self) -> impl Iterator<Item = &(u32, StoredRequest)> {
        let requests = self.requests.iter().filter(|_| self.result.is_none());
        requests.filter(|(n, _)| !self.answers.contains_key(n) && !self.voided.contains(n))
    }

    /// The same, as the task asked them.
    pub(crate) fn asks(&self) -> NewQuestions {
        let requests = self.open().map(|(n, request)| request.request(*n));
        NewQuestions { requests: requests.collect(), voided: Vec::new() }
    }

    /// Takes over what became of the n-th request.
    pub(crate) fn take(&mut self, n: u32, answer: StoredAnswer) {
        self.answers.remove(&n);
        match answer {
            StoredAnswer::Given(value) => drop(self.answers.insert(n, value)),
            StoredAnswer::Refused => {}
            StoredAnswer::Voided => drop(self.voided.insert(n)),
        }
    }

    /// Adds a request of the task, or puts it in the place of the one with its number.
    pub(crate) fn request(&mut self, n: u32, request: StoredRequest) {
        let at = self.requests.partition_point(|(other, _)| *other < n);
        match self.requests.get_mut(at).filter(|(other, _)| *other == n) {
            Some(known) => known.1 = request,
            None => self.requests.insert(at, (n, request)),
        }
    }

    /// What the task has to know of its requests when it runs again.
    pub(crate) fn asked(&self) -> Vec<AskedQuestion> {
        let asked = self.requests.iter().map(|(n, request)| AskedQuestion {
            n: *n,
            spot: request.spot(*n),
            value: request.value.clone(),
            schema: request.schema.clone(),
            voided_before: request.spot.replaces.as_ref().map_or(0, |replaces| replaces.times),
            answer: match self.answers.get(n) {
                _ if self.voided.contains(n) => AnswerState::Voided,
                Some(answer) => AnswerState::With(answer.clone()),
                None => AnswerState::NotYet,
            },
        });
        asked.collect()
    }
}

/// What the tasks of the edited checkpoint left behind, and where it stands.
pub(crate) struct EditedTasks<'a> {
    pub(crate) place: StepPlace<'a>,
    pub(crate) writes: Vec<PendingWrite>,
}
