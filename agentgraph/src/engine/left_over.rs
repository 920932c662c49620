//! [`TaskRemains`]: the remains of a task whose superstep was not committed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::context::NewQuestions;
use crate::engine::stored::{StoredAnswer, StoredRequest};
use crate::engine::task_id::StepPlace;
use crate::failure::Failure;
use crate::record::once::StoredOnce;
use crate::words::{AnswerState, AskedQuestion, InterruptId, OpenId};
use agentgraph_checkpoint::{PendingWrite, TaskId};

/// The remains of tasks whose superstep was not committed, by task.
pub(crate) type Leftovers = BTreeMap<TaskId, TaskRemains>;

/// The remains of one task.
#[derive(Debug, Default)]
pub(crate) struct TaskRemains {
    pub(crate) result: Option<Vec<u8>>,
    /// The requests, with their numbers.
    pub(in crate::engine) requests: Vec<(u32, StoredRequest)>,
    /// The answers to the requests, by number.
    pub(in crate::engine) answers: BTreeMap<u32, Value>,
    /// The requests whose answers are not delivered to the task.
    pub(in crate::engine) voided: BTreeSet<u32>,
    /// The failure that its handler handles.
    pub(crate) failure: Option<Arc<Failure>>,
    /// The error of its last call, if it is open and no handler has taken over.
    pub(crate) error: Option<Arc<Failure>>,
    /// The task whose call it continues; that task had its place before an edit.
    pub(crate) call: Option<TaskId>,
    /// The results of its durable steps, by place.
    pub(in crate::engine) once: BTreeMap<u32, StoredOnce>,
}

impl TaskRemains {
    /// The error of its last call, unless it has a result or asks now.
    pub(crate) fn failed(&self) -> Option<&Failure> {
        self.error.as_deref().filter(|_| self.result.is_none() && !self.waits())
    }

    /// Whether only its error is known.
    pub(super) fn is_bare(&self) -> bool {
        let TaskRemains { result, requests, answers, voided, failure, error: _, call, once } = self;
        let asked = !(requests.is_empty() && answers.is_empty() && voided.is_empty());
        !asked && result.is_none() && failure.is_none() && call.is_none() && once.is_empty()
    }

    /// The node of a task that has asked and is not done.
    pub(crate) fn asked_by(&self) -> Option<String> {
        let (_, request) = self.requests.first().filter(|_| self.result.is_none())?;
        Some(request.node.clone())
    }

    /// Whether a request has no answer. Such a task is not run.
    pub(crate) fn waits(&self) -> bool {
        self.open().next().is_some()
    }

    /// The requests that have no answer.
    pub(crate) fn open(&self) -> impl Iterator<Item = &(u32, StoredRequest)> {
        let requests = self.requests.iter().filter(|_| self.result.is_none());
        requests.filter(|(n, _)| !self.answers.contains_key(n) && !self.voided.contains(n))
    }

    /// The ids of the open requests, with the ends of sleeps.
    pub(crate) fn open_ids(&self, task: TaskId) -> impl Iterator<Item = OpenId> {
        self.open()
            .map(move |(n, request)| OpenId { id: InterruptId { task, n: *n }, until: request.until() })
    }

    /// The open requests, as the task asked them.
    pub(crate) fn asks(&self) -> NewQuestions {
        let requests = self.open().map(|(n, request)| request.request(*n));
        NewQuestions { requests: requests.collect(), voided: Vec::new() }
    }

    /// Applies the stored answer to the n-th request.
    pub(super) fn take(&mut self, n: u32, answer: StoredAnswer) {
        self.answers.remove(&n);
        match answer {
            StoredAnswer::Given(value) => drop(self.answers.insert(n, value)),
            StoredAnswer::Refused => {}
            StoredAnswer::Voided => drop(self.voided.insert(n)),
        }
    }

    /// Adds a request of the task, or replaces the request with that number.
    pub(super) fn request(&mut self, n: u32, request: StoredRequest) {
        let at = self.requests.partition_point(|(other, _)| *other < n);
        match self.requests.get_mut(at).filter(|(other, _)| *other == n) {
            Some(known) => known.1 = request,
            None => self.requests.insert(at, (n, request)),
        }
    }

    /// The requests and answers that the task needs when it runs again.
    pub(super) fn asked(&self) -> Vec<AskedQuestion> {
        let asked = self.requests.iter().map(|(n, request)| AskedQuestion {
            n: *n,
            spot: request.spot(*n),
            value: request.value.clone(),
            schema: request.schema.clone(),
            voided_before: request.spot.replaces.as_ref().map_or(0, |replaces| replaces.times),
            refused_before: request.spot.replaces.as_ref().and_then(|replaces| replaces.reason.clone()),
            answer: match self.answers.get(n) {
                _ if self.voided.contains(n) => AnswerState::Voided,
                Some(answer) => AnswerState::With(answer.clone()),
                None => AnswerState::NotYet,
            },
        });
        asked.collect()
    }
}

/// The durable steps of a task, by place.
impl TaskRemains {
    /// Whether the task is not done and has done durable steps.
    pub(crate) fn has_steps(&self) -> bool {
        self.result.is_none() && !self.once.is_empty()
    }

    /// Adds the result of a durable step.
    pub(super) fn keep_once(&mut self, place: u32, result: StoredOnce) {
        self.once.insert(place, result);
    }

    /// The results of its durable steps, for its next call.
    pub(crate) fn once(&self) -> Vec<(u32, StoredOnce)> {
        self.once.iter().map(|(place, result)| (*place, result.clone())).collect()
    }
}

/// The remains of the tasks of an edited checkpoint, and the place of these tasks.
pub(crate) struct EditedTasks<'a> {
    pub(crate) place: StepPlace<'a>,
    pub(crate) writes: Vec<PendingWrite>,
}
