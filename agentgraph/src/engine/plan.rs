//! Planning: from a frontier to the tasks of a superstep. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;

use crate::context::Asks;
use crate::engine::stored::{StoredAnswer, StoredRequest};
use crate::failure::Failure;
use crate::step::InputValue;
use crate::words::{Answered, Asked};
use agentgraph_checkpoint::engine::TaskPlace;
use agentgraph_checkpoint::{RunId, TaskId};

/// What runs next: nodes whose trigger fired, and dispatches.
///
/// The *task order* is: nodes in order of declaration, then dispatches in the order they were made.
/// Everything that merges, reports or stores tasks goes by it, never by the order of completion.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frontier {
    pub(crate) pulled: Vec<u32>,
    pub(crate) dispatched: Vec<Dispatched>,
    /// Deferred nodes that were reached: they wait until nothing else can run.
    pub(crate) deferred: Vec<u32>,
}

/// One dispatch to come.
#[derive(Clone, Debug)]
pub(crate) struct Dispatched {
    pub(crate) node: u32,
    /// Who dispatched it.
    pub(crate) from: u32,
    /// Its place among all dispatches of the frontier, so that (from, index) is unique.
    pub(crate) index: u32,
    pub(crate) input: InputValue,
}

impl Frontier {
    /// Whether nothing runs next.
    pub(crate) fn is_empty(&self) -> bool {
        self.pulled.is_empty() && self.dispatched.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.pulled.len() + self.dispatched.len()
    }

    /// Empties it of what runs next; what is deferred waits on.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.pulled.clear();
        self.dispatched.clear();
    }

    /// The node of the task at `index`, and its input if it is a dispatch.
    #[inline]
    pub(crate) fn task(&self, index: usize) -> (u32, Option<&InputValue>) {
        match self.pulled.get(index) {
            Some(node) => (*node, None),
            None => {
                let dispatch = &self.dispatched[index - self.pulled.len()];
                (dispatch.node, Some(&dispatch.input))
            }
        }
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = u32> {
        self.pulled.iter().copied().chain(self.dispatched.iter().map(|dispatch| dispatch.node))
    }

    pub(crate) fn pull(&mut self, node: u32) {
        self.pulled.push(node);
    }

    pub(crate) fn dispatch(&mut self, node: u32, from: u32, input: InputValue) {
        let index = self.dispatched.len() as u32;
        self.dispatched.push(Dispatched { node, from, index, input });
    }

    /// Puts the pulled nodes in task order, each once.
    #[inline]
    pub(crate) fn settle(&mut self) {
        if self.pulled.len() > 1 {
            self.pulled.sort_unstable();
            self.pulled.dedup();
        }
    }

    /// Takes out the nodes that are gone.
    pub(crate) fn cancel(&mut self, is_gone: impl Fn(u32) -> bool) {
        self.pulled.retain(|node| !is_gone(*node));
        self.dispatched.retain(|dispatch| !is_gone(dispatch.node));
        self.deferred.retain(|node| !is_gone(*node));
    }

    /// Puts the deferred nodes among the pulled aside.
    pub(crate) fn put_off(&mut self, is_deferred: impl Fn(u32) -> bool) {
        self.deferred.extend(self.pulled.extract_if(.., |node| is_deferred(*node)));
        self.deferred.sort_unstable();
        self.deferred.dedup();
    }
}

/// A task that failed, and who stands in its place.
#[derive(Debug)]
pub(crate) struct Handled {
    pub(crate) index: u32,
    pub(crate) handler: u32,
    pub(crate) failure: Arc<Failure>,
    /// The failure is in the store.
    pub(crate) stored: bool,
}

impl Handled {
    pub(crate) fn copy(&self) -> Self {
        Handled { failure: Arc::clone(&self.failure), ..*self }
    }
}

/// Notes that one handles a task, in task order.
pub(crate) fn add_handled(all: &mut Vec<Handled>, handled: Handled) {
    let at = all.partition_point(|other| other.index < handled.index);
    all.insert(at, handled);
}

/// The one that handles the task at `index`.
pub(crate) fn handled(all: &[Handled], index: u32) -> Option<&Handled> {
    let at = all.binary_search_by_key(&index, |handled| handled.index).ok()?;
    all.get(at)
}

/// Who acts in a superstep.
#[derive(Clone, Copy)]
pub(crate) struct Actors<'a> {
    pub(crate) frontier: &'a Frontier,
    pub(crate) handled: &'a [Handled],
}

impl Actors<'_> {
    /// The node that acts at `index`: the one of its task, or the one that handles its failure.
    #[inline]
    pub(crate) fn node(self, index: usize) -> u32 {
        match handled(self.handled, index as u32) {
            None => self.frontier.task(index).0,
            Some(handled) => handled.handler,
        }
    }
}

/// Where a superstep stands, for the ids of its tasks.
#[derive(Clone, Copy)]
pub(crate) struct StepPlace<'a> {
    pub(crate) thread: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) run: RunId,
    pub(crate) branch: u32,
    pub(crate) parent: u64,
}

/// The id of the task at `index` of a frontier.
pub(crate) fn task_id(
    place: StepPlace<'_>,
    frontier: &Frontier,
    index: usize,
    name: &dyn Fn(u32) -> String,
) -> TaskId {
    let dispatch = index.checked_sub(frontier.pulled.len()).map(|at| &frontier.dispatched[at]);
    let node = name(frontier.task(index).0);
    let from = dispatch.map(|dispatch| (name(dispatch.from), dispatch.index));
    TaskId::derive(&TaskPlace {
        thread: place.thread,
        run: place.run,
        namespace: place.namespace,
        branch: place.branch,
        parent: place.parent,
        node: &node,
        dispatch: from.as_ref().map(|(from, index)| (&**from, *index)),
    })
}

/// The id of an activation of an eager run: `place` is that of the commit that made it.
pub(crate) fn activation_id(place: StepPlace<'_>, node: &str, from: &str, index: u32) -> TaskId {
    TaskId::derive(&TaskPlace {
        thread: place.thread,
        run: place.run,
        namespace: place.namespace,
        branch: place.branch,
        parent: place.parent,
        node,
        dispatch: Some((from, index)),
    })
}

/// The id of the task that handles the failure at `index`. Its origin begins as no node's name may.
pub(crate) fn handler_id(place: StepPlace<'_>, failed: &str, index: usize, handler: &str) -> TaskId {
    TaskId::derive(&TaskPlace {
        thread: place.thread,
        run: place.run,
        namespace: place.namespace,
        branch: place.branch,
        parent: place.parent,
        node: handler,
        dispatch: Some((&format!("__error__{failed}"), index as u32)),
    })
}

/// What tasks left behind when their superstep was not committed, by task.
pub(crate) type LeftOver = HashMap<TaskId, TaskLeft>;

/// What one task left behind.
#[derive(Debug, Default)]
pub(crate) struct TaskLeft {
    pub(crate) result: Option<Vec<u8>>,
    /// By their numbers.
    pub(crate) requests: Vec<(u32, StoredRequest)>,
    /// Those to its requests, by their numbers.
    pub(crate) answers: BTreeMap<u32, Value>,
    /// The requests whose answers are delivered to nobody.
    pub(crate) voided: BTreeSet<u32>,
    /// It failed, and its handler stands in its place.
    pub(crate) failure: Option<Failure>,
    /// The error of its last call, if it is open and no handler has taken over.
    pub(crate) error: Option<Failure>,
    /// It goes on with the call of that task, which stood in its place before an edit.
    pub(crate) call: Option<TaskId>,
}

impl TaskLeft {
    /// What it failed with, if nothing came of it since.
    pub(crate) fn failed(&self) -> Option<&Failure> {
        self.error.as_ref().filter(|_| self.result.is_none() && !self.waits())
    }

    /// Whether nothing but its error is known of it.
    pub(crate) fn is_bare(&self) -> bool {
        let TaskLeft { result, requests, answers, voided, failure, error: _, call } = self;
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
    pub(crate) fn asks(&self) -> Asks {
        let requests = self.open().map(|(n, request)| request.request(*n));
        Asks { requests: requests.collect(), voided: Vec::new() }
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
    pub(crate) fn asked(&self) -> Vec<Asked> {
        let asked = self.requests.iter().map(|(n, request)| Asked {
            n: *n,
            spot: request.spot(*n),
            value: request.value.clone(),
            schema: request.schema.clone(),
            voided_before: request.spot.replaces.as_ref().map_or(0, |replaces| replaces.times),
            answer: match self.answers.get(n) {
                _ if self.voided.contains(n) => Answered::Voided,
                Some(answer) => Answered::With(answer.clone()),
                None => Answered::NotYet,
            },
        });
        asked.collect()
    }
}
