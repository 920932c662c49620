//! The open work inside the tasks of a superstep: started subgraphs, and their questions.

use std::any::Any;
use std::sync::Arc;

use async_trait::async_trait;

use crate::context::RequiredContext;
use crate::context::host::{FarSide, TaskCall, TaskReply};
use crate::engine::driver::Driver;
use crate::engine::flow::record::stored_id;
use crate::engine::frontier::{Dispatched, Frontier};
use crate::engine::left_over::{Leftovers, TaskRemains};
use crate::engine::load::{check_fields, finished, read_remains, replay};
use crate::engine::stored::{OF_RUN, StoredStep};
use crate::engine::task_id::{StepPlace, handler_id, task_id};
use crate::engine::unknown_fields::{Misfit, check_kept_states, check_results, is_unknown};
use crate::error::Error;
use crate::failure::Failure;
use crate::graph::GraphCore;
use crate::graph::run_graph::RunGraph;
use crate::node::inner::{AnyGraph, InnerCall, OpenPart};
use crate::record::codec::Codec;
use crate::record::header::Header;
use crate::run::nested::Callee;
use crate::run::task::run_far;
use crate::step::{EncodeParent, InputValue, Step};
use crate::typed::{AnyState, AnyUpdate};
use crate::words::namespace;
use crate::words::{DoneStep, Interrupt, Memory, Open, OpenChild, OpenRequest};
use agentgraph_checkpoint::{CheckpointId, Checkpointer, Place, Tail, TaskId};

#[async_trait]
impl AnyGraph for Callee {
    fn memory(&self) -> Memory {
        self.memory
    }

    fn fingerprint(&self) -> &str {
        &self.graph.core.stored.fingerprint
    }

    fn secrets(&self) -> &[String] {
        &self.graph.core.about.secrets
    }

    fn durable_nodes(&self) -> &[String] {
        &self.graph.core.about.durable_nodes
    }

    fn contexts(&self) -> &[RequiredContext] {
        &self.graph.core.about.contexts
    }

    fn core(&self) -> Arc<dyn Any + Send + Sync> {
        Arc::clone(&self.graph.core) as _
    }

    fn attached(&self) -> Box<dyn Any + Send> {
        Box::new((self.graph.clone(), self.codec))
    }

    async fn run_task(
        &self,
        call: TaskCall,
        depth: usize,
        far: FarSide,
        parent: EncodeParent,
    ) -> Result<TaskReply, Error> {
        run_far(&self.graph, self.codec, call, depth, far, Some(parent)).await
    }

    async fn open(
        &self,
        saver: &dyn Checkpointer,
        place: Place<'_>,
        node: &str,
        call: TaskId,
    ) -> Result<Vec<OpenPart>, Error> {
        let mut found = Open::default();
        let Some(mut tail) = saver.get(place, None).await? else { return Ok(Vec::new()) };
        let header = Header::of_rows(place, &tail.rows)?;
        let id = tail.rows.last().map(|row| row.id).unwrap_or_default();
        if header.call.is_some_and(|stored| stored.task == call) {
            found.refused = self.check(saver, place, &header, &mut tail).await.err();
        }
        if header.next.is_empty() || header.call.is_none_or(|stored| stored.task != call) {
            return Ok(vec![OpenPart::Found(found)]);
        }
        let graph = RunGraph::restore(&self.graph.core, &header, &mut Vec::new());
        let left = read_remains(&self.graph.core, place, (id, &header), &tail.writes)?.tasks;
        if found.refused.is_none() {
            found.refused = check_results(&self.graph.core, &self.codec, place, &left).err();
        }
        let tasks = StoredTasks { core: &graph, place, header: &header, id, left: &left };
        let open: Vec<OpenTask<'_>> = tasks.open().collect();
        let next = open.iter().map(|task| task.node.clone()).collect();
        let namespace = place.namespace.to_owned();
        found.children.push(OpenChild { node: node.to_owned(), namespace, next });
        Ok([OpenPart::Found(found)].into_iter().chain(tasks.parts(&open)).collect())
    }
}

impl Callee {
    /// Checks that continuing the call would lose nothing that it has stored.
    async fn check(
        &self,
        saver: &dyn Checkpointer,
        place: Place<'_>,
        header: &Header,
        tail: &mut Tail,
    ) -> Result<(), Error> {
        let core = &self.graph.core;
        check_kept_states(core, place, &header.eager.kept)?;
        // The values are only read if a name is unknown.
        if header.fields.iter().any(|name| is_unknown(core, name)) {
            check_fields(core, place, &*replay(saver, place, tail).await?)
        } else {
            Ok(())
        }
    }
}

/// An open task, by its stored names.
pub(super) struct OpenTask<'a> {
    pub(in crate::run) id: TaskId,
    pub(in crate::run) node: String,
    pub(in crate::run) left: Option<&'a TaskRemains>,
}

impl OpenTask<'_> {
    /// The failure of its last call.
    pub(super) fn failure(&self, place: Place<'_>) -> Option<Failure> {
        Some(self.left?.failed()?.clone().within(place.namespace))
    }

    /// The durable steps that it has done, in the order in which their results came.
    pub(super) fn steps(&self, place: Place<'_>) -> Vec<DoneStep> {
        let done = self.left.filter(|left| left.has_steps()).map_or_else(Vec::new, TaskRemains::once);
        done.iter().map(|(_, step)| step.shown(&self.node, place.namespace)).collect()
    }
}

/// The failure of a superstep that belongs to no task.
pub(super) fn failure_of_all(place: Place<'_>, left: &Leftovers) -> Option<Failure> {
    Some(Failure::clone(left.get(&OF_RUN)?.error.as_ref()?).within(place.namespace))
}

/// Replays the finished nodes of a pass on its state. Returns the nodes that run next, including those that
/// have asked.
pub(super) fn replay_pass(
    driver: &Arc<dyn Driver>,
    core: &GraphCore,
    codec: &Codec,
    thread: &str,
    left: &Leftovers,
    state: &mut AnyState,
) -> Result<Vec<String>, Error> {
    let results = left.values().filter_map(|left| left.result.as_deref());
    let done = results.filter_map(|result| {
        let turn = match StoredStep::from_bytes(result) {
            Ok(step) => step.turn?,
            Err(error) => return Some(Err(error.on_thread(Some(thread)))),
        };
        let step = finished(core, codec, thread, result, Misfit::LeaveOut);
        Some(step.map(|(step, _)| (turn, update_of(step))))
    });
    let mut done = done.collect::<Result<Vec<_>, Error>>()?;
    done.sort_by(|(a, _), (b, _)| a.order().cmp(&b.order()));
    let asked = left.values().filter_map(TaskRemains::asked_by).collect();
    Arc::clone(driver).upcoming(thread, state, done, &asked)
}

/// The update of a finished task.
pub(super) fn update_of(step: Step<AnyState>) -> Option<AnyUpdate> {
    match step {
        Step::None => None,
        Step::Update(update) => Some(update),
        Step::Command(command) => command.update,
    }
}

/// The tasks of a stored frontier. Names are taken as stored, so that threads of another version of the graph
/// can be read.
#[derive(Clone, Copy)]
pub(super) struct StoredTasks<'a> {
    pub(super) core: &'a RunGraph,
    pub(super) place: Place<'a>,
    pub(super) header: &'a Header,
    pub(super) id: CheckpointId,
    pub(super) left: &'a Leftovers,
}

impl<'a> StoredTasks<'a> {
    /// Those that are not done, in task order.
    pub(super) fn open(self) -> impl Iterator<Item = OpenTask<'a>> {
        self.all().into_iter().filter(|task| task.left.is_none_or(|left| left.result.is_none()))
    }

    /// The results of those that are done, in task order.
    pub(super) fn results(self) -> impl Iterator<Item = &'a [u8]> {
        self.all().into_iter().filter_map(|task| task.left?.result.as_deref())
    }

    /// The items of open tasks and of the calls inside them.
    pub(super) async fn open_work(
        self,
        saver: &dyn Checkpointer,
        open: &[OpenTask<'_>],
    ) -> Result<Open, Error> {
        OpenPart::gather(self.parts(open), saver, self.place.thread).await
    }

    /// In task order; the failure that belongs to no task comes last.
    fn parts(self, open: &[OpenTask<'_>]) -> Vec<OpenPart> {
        let StoredTasks { core, place, id, left, .. } = self;
        let mut parts = Vec::new();
        for task in open {
            let mut own = Open { steps: task.steps(place), ..Open::default() };
            own.failures.extend(task.failure(place));
            let inside = if task.left.is_some_and(TaskRemains::waits) {
                let asked = interrupts(place, task);
                own.requests.extend(asked.map(|interrupt| OpenRequest { interrupt, at: id }));
                None
            } else {
                call_inside(core, place, task)
            };
            parts.push(OpenPart::Found(own));
            parts.extend(inside.map(OpenPart::Inside));
        }
        let failures = failure_of_all(place, left).into_iter().collect();
        parts.push(OpenPart::Found(Open { failures, ..Open::default() }));
        parts
    }

    fn all(self) -> Vec<OpenTask<'a>> {
        let StoredTasks { core, place, header, id, left } = self;
        if header.discipline == "eager" {
            let open = header.next.iter().filter_map(|activation| {
                let (mut id, place, key) = stored_id(place, header, id, activation)?;
                let mut node = activation.node.clone();
                if left.get(&id).is_some_and(|left| left.failure.is_some())
                    && let Some(handler) = handler_of(core, &node)
                {
                    id = handler_id(place, &node, key.index as usize, handler);
                    handler.clone_into(&mut node);
                }
                Some(OpenTask { left: left.get(&id), id, node })
            });
            return open.collect();
        }
        let (frontier, names) = named_frontier(header);
        let step = step_place(place, header, id);
        let tasks = (0..frontier.len()).map(|index| {
            let mut node = names[frontier.task(index).0 as usize].clone();
            let mut id = task_id(step, &frontier, index, &|node| &names[node as usize]);
            if let Some(failure) = left.get(&id).and_then(|left| left.failure.as_ref())
                && let Some(handler) = handler_of(core, failure.node())
            {
                id = handler_id(step, &node, index, handler);
                handler.clone_into(&mut node);
            }
            OpenTask { left: left.get(&id), id, node }
        });
        tasks.collect()
    }

    /// Their ids, and the ids under which they called subgraphs.
    pub(super) fn ids_and_calls(self) -> Vec<TaskId> {
        let StoredTasks { place, header, id, left, .. } = self;
        let mut ids: Vec<TaskId> = left.values().filter_map(|left| left.call).collect();
        // A failed node may have called subgraphs itself: its handler has another id.
        let (frontier, names) = named_frontier(header);
        let step = step_place(place, header, id);
        let own =
            (0..frontier.len()).map(|index| task_id(step, &frontier, index, &|node| &names[node as usize]));
        ids.extend(own);
        ids.extend(self.all().into_iter().map(|task| task.id));
        ids
    }
}

fn step_place<'a>(place: Place<'a>, header: &Header, id: CheckpointId) -> StepPlace<'a> {
    StepPlace {
        thread: place.thread,
        namespace: place.namespace,
        run: header.run,
        branch: id.branch,
        parent: id.step.saturating_add(header.ahead),
    }
}

/// The open work inside a task.
pub(super) async fn open_work_inside(
    core: &RunGraph,
    saver: &dyn Checkpointer,
    place: Place<'_>,
    task: &OpenTask<'_>,
) -> Result<Open, Error> {
    match call_inside(core, place, task) {
        Some(call) => call.open(saver, place.thread).await,
        None => Ok(Open::default()),
    }
}

/// The call of a graph that the task may have started.
fn call_inside(core: &RunGraph, place: Place<'_>, task: &OpenTask<'_>) -> Option<InnerCall> {
    // The node may have been removed since it started.
    let graph = core.entry(core.id_of_any(&task.node)?)?.graph.clone()?;
    if graph.memory() == Memory::None {
        return None;
    }
    let call = task.left.and_then(|left| left.call).unwrap_or(task.id);
    let namespace = namespace(place.namespace, &task.node, graph.memory(), call);
    Some(InnerCall::new(graph, namespace, &task.node, call))
}

/// The interrupts of a task's open requests.
pub(super) fn interrupts(place: Place<'_>, task: &OpenTask<'_>) -> impl Iterator<Item = Interrupt> {
    let requests = task.left.map_or_else(Vec::new, |left| left.asks().requests);
    requests.into_iter().map(move |request| {
        let mut interrupt = Interrupt::of_request(task.id, task.node.clone(), request);
        place.namespace.clone_into(&mut interrupt.namespace);
        interrupt
    })
}

/// The current handler of a node's failures.
fn handler_of<'a>(core: &'a RunGraph, failed: &str) -> Option<&'a str> {
    Some(core.name(core.handler(core.id_of_any(failed)?)?))
}

/// The stored frontier with ids of its own, one per name.
fn named_frontier(header: &Header) -> (Frontier, Vec<String>) {
    let mut names: Vec<String> = Vec::new();
    let mut frontier = Frontier::default();
    let mut id = |name: &str| match names.iter().position(|known| known == name) {
        Some(at) => at as u32,
        None => {
            names.push(name.to_owned());
            names.len() as u32 - 1
        }
    };
    for activation in &header.next {
        let node = id(&activation.node);
        match &activation.dispatch {
            None => frontier.pull(node),
            Some(dispatch) => {
                let from = id(&dispatch.from);
                let input = InputValue::stored(dispatch.input.0.clone(), dispatch.limits);
                frontier.add_dispatch(Dispatched { node, from, index: dispatch.index, input });
            }
        }
    }
    (frontier, names)
}
