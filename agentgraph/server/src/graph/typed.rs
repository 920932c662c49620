//! [`TypedGraph`]: a compiled graph as a [`ServedGraph`]. The only code that is compiled for each state.

use std::sync::Arc;

use agentgraph::run::{Checkpoint, RunBuilder, TaskEnd, WhenBusy};
use agentgraph::state::StoredState;
use agentgraph::{CheckpointId, CompiledGraph, Error, Event, EventKind, Outcome};
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt};
use serde_json::{Value, json};

use super::drawn::Drawn;
use super::input::{shown_update, update_of};
use super::{Begin, Call, Content, Edit, End, Ended, EventTask, GraphEvent, HistoryStart, Last, Moment};
use super::{RunEvent, ServedGraph, Start};
use crate::error::Failed;
use crate::ids;
use crate::messages;

/// A compiled graph with a checkpointer.
pub(crate) struct TypedGraph<S: StoredState> {
    pub(crate) graph: CompiledGraph<S>,
    pub(crate) schema: Option<Value>,
}

impl<S: StoredState> TypedGraph<S> {
    pub(super) fn update(&self, values: &Value) -> Result<S::Update, Error> {
        update_of::<S>(self.graph.schema(), values)
    }

    pub(super) fn moment(&self, found: Checkpoint<S>) -> Moment {
        let values = self.graph.state_json(&found.values);
        moment(found, values)
    }
}

fn moment<T>(found: Checkpoint<T>, values: Value) -> Moment {
    Moment {
        id: found.id,
        parent: found.parent,
        run: found.run,
        source: json!(found.source),
        created: ids::micros_of(found.created),
        values: messages::shown(values),
        next: found.next,
        finished: found.finished,
        interrupts: found.interrupts,
        failures: found
            .failures
            .iter()
            .map(|failure| (failure.node().to_owned(), failure.message().to_owned()))
            .collect(),
        children: found.children,
    }
}

fn moment_inside(mut found: Checkpoint<Value>) -> Moment {
    let values = found.values.take();
    moment(found, values)
}

impl<S: StoredState> ServedGraph for TypedGraph<S> {
    fn schema(&self) -> Option<&Value> {
        self.schema.as_ref()
    }

    fn drawing(&self, depth: usize) -> Value {
        Drawn::of(&self.graph, depth).json()
    }

    fn initial(&self) -> Value {
        messages::shown(self.graph.state_json(&S::initial(self.graph.schema())))
    }

    fn call(&self, call: Call) -> Result<BoxStream<'static, GraphEvent>, Error> {
        let Call { thread, start, from, views, max_supersteps, durability, .. } = call;
        // Only a call that goes on from wherever the other one is may take its thread.
        let when_busy = match start {
            Start::Proceed if call.takes_over => WhenBusy::Replace,
            _ => WhenBusy::Refuse,
        };
        let mut run: RunBuilder<S> = match start {
            Start::Input(input) => self.graph.invoke(self.update(&input)?).abandon(),
            Start::Resume(answer) => self.graph.resume(answer),
            Start::ResumeMany(answers) => self.graph.resume_many(answers),
            Start::Proceed => self.graph.proceed(),
        };
        run = match from {
            Begin::Head => run,
            Begin::At(id) => run.from(id),
            Begin::Start => run.from_start(),
        };
        if let Some(steps) = max_supersteps {
            run = run.max_supersteps(steps);
        }
        // Whatever the client reads, the run's trace has the tasks of subgraphs.
        let run = run.subgraphs().thread(thread).when_busy(when_busy).views(views);
        let run = run.durability(durability).context(call.config);
        let graph = self.graph.clone();
        let events = run.cancel(call.cancel).drain(call.drain).stream();
        Ok(events.map(move |event| seen(&graph, event)).boxed())
    }

    fn check(&self, input: &Value) -> Result<(), Error> {
        self.update(input).map(drop)
    }

    fn head(&self, thread: &str) -> BoxFuture<'_, Result<Option<Moment>, Error>> {
        let thread = thread.to_owned();
        async move { Ok(self.graph.state(&thread).await?.map(|found| moment(found, Value::Null))) }.boxed()
    }

    fn state(&self, thread: &str, at: Option<CheckpointId>) -> BoxFuture<'_, Result<Option<Moment>, Error>> {
        let thread = thread.to_owned();
        async move {
            let found = match at {
                None => self.graph.state(&thread).await?,
                Some(id) => self.graph.state_at(&thread, id).await?,
            };
            Ok(found.map(|found| self.moment(found)))
        }
        .boxed()
    }

    fn history(
        &self,
        thread: &str,
        from: HistoryStart,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Moment>, Error>> {
        let history = self.graph.history(thread).limit(limit);
        let history = match from {
            HistoryStart::Branch(branch) => history.branch(branch),
            HistoryStart::Before(id) => history.before(id),
        };
        async move { Ok(history.await?.into_iter().map(|found| self.moment(found)).collect()) }.boxed()
    }

    fn state_inside(&self, thread: &str, namespace: &str) -> BoxFuture<'_, Result<Option<Moment>, Error>> {
        let (thread, inside) = (thread.to_owned(), self.graph.inside(namespace));
        async move {
            let Some(inside) = inside else { return Ok(None) };
            Ok(inside.state(&thread).await?.map(moment_inside))
        }
        .boxed()
    }

    fn history_inside(
        &self,
        thread: &str,
        namespace: &str,
        before: Option<CheckpointId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Moment>, Error>> {
        let (thread, inside) = (thread.to_owned(), self.graph.inside(namespace));
        async move {
            let Some(inside) = inside else { return Ok(Vec::new()) };
            let found = inside.history(&thread, before, limit).await?;
            Ok(found.into_iter().map(moment_inside).collect())
        }
        .boxed()
    }

    fn edit(&self, thread: &str, edit: Edit) -> BoxFuture<'_, Result<CheckpointId, Error>> {
        let thread = thread.to_owned();
        async move {
            let update = edit.values.as_ref().map(|values| self.update(values)).transpose()?;
            let mut change = self.graph.update_state(&thread);
            if let Some(at) = edit.at {
                change = change.at(at);
            }
            let given = || update.clone().unwrap_or_default();
            change = match edit.as_node.as_deref() {
                None | Some("__copy__") => match update {
                    Some(update) => change.update(update),
                    None => change,
                },
                Some("__start__" | "__input__") => change.as_start(given()),
                Some("__end__") => change.as_end(given()),
                Some(node) => change.as_node(node, given()),
            };
            for (node, values) in edit.siblings {
                change = change.as_node(node, self.update(&values)?);
            }
            if !edit.goto.is_empty() {
                change = change.goto(edit.goto);
            }
            change.await
        }
        .boxed()
    }

    fn delete(&self, thread: &str) -> BoxFuture<'_, Result<(), Error>> {
        self.graph.delete_thread(thread.to_owned()).boxed()
    }

    fn copy(&self, from: &str, to: &str) -> BoxFuture<'_, Result<(), Error>> {
        self.graph.copy_thread(from.to_owned(), to.to_owned()).boxed()
    }
}

/// An event without the type of its state. The JSON form of an event is a map that takes longer than the
/// event; those that every superstep has are read without it.
fn seen<S: StoredState>(graph: &CompiledGraph<S>, event: Event<S>) -> GraphEvent {
    let fields = match &event.kind {
        EventKind::Ended(_) => {
            let (graph, ended) = (graph.clone(), event.into_outcome());
            let shown = move |state: &S| graph.state_json(state);
            return ended.map_or(GraphEvent::Event(RunEvent::new("", Vec::new())), |it| ended_as(it, shown));
        }
        EventKind::TaskStarted { input: Some(input), .. } => vec![("input".into(), input.clone())],
        EventKind::Values(_) | EventKind::Update { .. } | EventKind::TaskStarted { .. } => Vec::new(),
        EventKind::TaskEnded { end: TaskEnd::Done, .. } => vec![("status".into(), "done".into())],
        EventKind::Checkpoint { id, source, next } => vec![
            ("checkpoint".into(), id.to_string().into()),
            ("source".into(), json!(source)),
            ("next".into(), json!(next)),
        ],
        _ => return GraphEvent::Event(RunEvent::of_json(json_of(&event))),
    };
    let task = event.task.map(|task| EventTask {
        id: task.id.to_string(),
        index: task.index.into(),
        attempt: task.attempt.into(),
    });
    let (kind, namespace, step) = (event.kind.type_name(), Arc::clone(&event.namespace), event.step);
    let node = event.node().unwrap_or_default().to_owned();
    let content: Option<Content> = match &event.kind {
        EventKind::Values(state) => {
            let (graph, state) = (graph.clone(), state.clone());
            Some(Box::new(move || messages::shown(graph.state_json(&state))))
        }
        EventKind::Update { .. } => Some(Box::new(move || shown_update(json_of(&event)["update"].take()))),
        _ => None,
    };
    GraphEvent::Event(RunEvent { namespace, step, task, node, content, ..RunEvent::new(kind, fields) })
}

fn json_of<S: StoredState>(event: &Event<S>) -> Value {
    event.to_json().unwrap_or_else(|error| {
        json!({ "type": "unreadable", "namespace": "", "step": event.step, "message": error.to_string() })
    })
}

pub(super) fn ended_as<S: StoredState>(
    ended: Result<Outcome<S>, Error>,
    shown: impl FnOnce(&S) -> Value + Send + Sync + 'static,
) -> GraphEvent {
    let stuck = ended.as_ref().map(stuck_joins).unwrap_or_default();
    let mut last = None;
    let end = match ended {
        Ok(Outcome::Finished { output, run, checkpoint, .. }) => {
            let values = Box::new(move || messages::shown(shown(&output)));
            last = checkpoint.map(|id| Last { id, run, values, finished: true });
            End::Finished
        }
        Ok(Outcome::Interrupted { interrupts, .. }) => End::Interrupted(interrupts),
        Ok(Outcome::Stopped { reason, .. }) => End::Stopped(reason),
        Err(error) => End::Failed(Failed::of(&error)),
    };
    GraphEvent::Ended(Ended { end, stuck, last })
}

fn stuck_joins<S>(outcome: &Outcome<S>) -> Value {
    let stuck = outcome.stuck().iter().map(|join| {
        json!({ "namespace": join.namespace, "to": join.to, "arrived": join.arrived, "missing": join.missing })
    });
    stuck.collect()
}
