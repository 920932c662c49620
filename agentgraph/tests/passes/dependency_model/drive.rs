//! Drives passes whose nodes end in a chosen order. The driver also answers questions, drops the call and
//! continues with another graph of the same shape. After each event the engine must agree with [`Course`].

use std::collections::{BTreeMap, HashMap};
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use agentgraph::dependency::{Join, NotRunReason, Outputs};
use agentgraph::prelude::*;
use agentgraph::{
    BoxError, CompiledDependencyGraph, DependencyNode, Error, InterruptId, MemorySaver, RunBuilder,
};

use super::gates::Gates;
use super::{Course, Edit, Model, Reason, Shape, output};

/// An event that a node reports.
#[derive(Debug, PartialEq)]
enum Event {
    /// The node and its output.
    Starts(String, String),
    /// The node, an edit, and whether it was accepted.
    Edits(String, Edit, bool),
}

/// The state that all graphs of one shape share.
#[derive(Clone, Default)]
struct World {
    gates: Gates,
    events: Arc<Mutex<Vec<Event>>>,
    asks: Arc<Vec<String>>,
    edits: Arc<HashMap<String, Vec<Edit>>>,
}

impl World {
    /// Returns the edits of a node before it waits for the first time, and those after it.
    fn edits(&self, name: &str, is_permanent: bool) -> [Vec<Edit>; 2] {
        let edits = self.edits.get(name).filter(|_| is_permanent).cloned().unwrap_or_default();
        let (first, second) = edits.split_at(edits.len() / 2);
        [first.to_vec(), second.to_vec()]
    }

    fn note(&self, event: Event) {
        self.events.lock().unwrap().push(event);
    }

    fn node(&self, name: &str, join: Join, is_permanent: bool) -> DependencyNode<String> {
        let world = self.clone();
        let name = name.to_owned();
        let called = move |deps: Deps<'static, String>, edits: PassEdits<String>, ctx: Ctx| {
            let world = world.clone();
            let name = name.clone();
            async move {
                let value = output(&name, deps.names());
                world.note(Event::Starts(name.clone(), value.clone()));
                for half in world.edits(&name, is_permanent) {
                    for edit in half {
                        let accepted = make_edit(&edits, &edit).is_ok();
                        world.note(Event::Edits(name.clone(), edit, accepted));
                    }
                    world.gates.pass(&name).await;
                }
                if world.asks.contains(&name) {
                    let _: bool = ctx.interrupt(&name)?;
                }
                Ok::<_, BoxError>(value)
            }
        };
        DependencyNode::of(called).join(join)
    }

    fn graph(&self, shape: &Shape, saver: &Arc<MemorySaver>) -> CompiledDependencyGraph<String> {
        let world = self.clone();
        let mut graph = DependencyGraph::<String>::new().template("node", move |args: &serde_json::Value| {
            Ok(world.node(args.as_str().ok_or("a name")?, Join::All, false))
        });
        for (name, join) in &shape.nodes {
            graph = graph.node(name, self.node(name, *join, true));
        }
        graph = shape.edges.iter().fold(graph, |graph, (from, to)| graph.edge(from, to));
        graph = shape.orders.iter().fold(graph, |graph, (from, to)| graph.order(from, to));
        graph.compile().unwrap().checkpointer(Arc::clone(saver))
    }
}

fn make_edit(edits: &PassEdits<String>, edit: &Edit) -> Result<(), agentgraph::edit::EditError> {
    match edit {
        Edit::AddNode(name, _) => edits.add_node(name, "node", name),
        Edit::AddEdge(from, to) => edits.add_edge(from, to),
        Edit::PrependEdge(from, to) => edits.prepend_edge(from, to),
        Edit::RemoveEdge(from, to) => edits.remove_edge(from, to),
        Edit::RemoveNode(name) => edits.remove_node(name),
        Edit::Skip(names) => edits.skip(names),
    }
}

type Call = RunBuilder<Outputs<String>>;
type Ended = Result<Outcome<Outputs<String>>, Error>;

fn poll<T>(future: &mut Pin<Box<impl Future<Output = T>>>) -> Poll<T> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// Returns the output of a future that is ready at its first poll.
fn now<T>(future: impl Future<Output = T>) -> T {
    match poll(&mut Box::pin(future)) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the future is not ready"),
    }
}

/// A source of pseudo-random choices.
pub(crate) struct Choices(pub(crate) u64);

impl Choices {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }
}

/// The second pass of a thread. All nodes have run in the first one.
struct Driver<'a> {
    shape: &'a Shape,
    world: World,
    saver: Arc<MemorySaver>,
    course: Course,
    /// The running nodes, each with whether it has passed its first gate.
    phases: BTreeMap<String, bool>,
    choices: Choices,
}

/// Runs two passes of a shape, and compares the second one with a [`Course`].
pub(crate) fn check(shape: &Shape, asks: Vec<String>, mut choices: Choices) {
    let saver = Arc::new(MemorySaver::new());
    let mut model = Model::of(&Shape { edits: HashMap::new(), ..shape.clone() });
    model.pass(&[]).unwrap();
    let plain = World::default();
    // Runs one node after the other, as the model does: a node with `Join::Any` reads the dependencies that
    // are done, and its output is kept for the second pass.
    let call = plain.graph(shape, &saver).invoke(()).thread("t").max_concurrency(1);
    let mut first: Pin<Box<_>> = Box::pin(call.into_future());
    while poll(&mut first).is_pending() {
        plain.gates.waiting().iter().for_each(|name| plain.gates.open(name));
    }
    let world = World { asks: Arc::new(asks), edits: Arc::new(shape.edits.clone()), ..World::default() };
    let call = world.graph(shape, &saver).invoke(()).thread("t").for_this_pass(|edits| {
        for edit in &shape.before {
            match edit {
                Edit::AddNode(name, _) => edits.add_node(name, "node", name),
                Edit::AddEdge(from, to) => edits.add_edge(from, to),
                Edit::PrependEdge(from, to) => edits.prepend_edge(from, to),
                Edit::RemoveEdge(from, to) => edits.remove_edge(from, to),
                Edit::RemoveNode(name) => edits.remove_node(name),
                Edit::Skip(names) => edits.skip(names),
            };
        }
    });
    let Some(course) = Course::begin(&model, &shape.before) else {
        let refused = now(call.into_future()).unwrap_err();
        assert!(["E_EDIT_REJECTED", "E_NOTHING_TO_REUSE"].contains(&refused.code().as_str()), "{refused}");
        return;
    };
    let drop_percent = choices.below(3) * 7;
    let mut driver = Driver { shape, world, saver, course, phases: BTreeMap::new(), choices };
    let mut call = call;
    while !driver.drive(call, drop_percent) {
        call = driver.next_call();
    }
}

impl Driver<'_> {
    /// Drives one call, which may be dropped with a probability of `drop_percent` at each step. Returns
    /// whether the pass is over.
    fn drive(&mut self, call: Call, drop_percent: usize) -> bool {
        let mut call: Pin<Box<_>> = Box::pin(call.into_future());
        loop {
            let polled = poll(&mut call);
            self.starts();
            assert_eq!(*self.world.events.lock().unwrap(), [], "events that the course does not have");
            let waiting = self.world.gates.waiting();
            if let Poll::Ready(ended) = polled {
                return self.ended(ended);
            }
            assert_eq!(waiting, self.phases.keys().cloned().collect::<Vec<_>>());
            if waiting.is_empty() || self.choices.below(100) < drop_percent {
                assert!(!waiting.is_empty(), "the call is pending, but no node runs");
                drop(call);
                self.end_call();
                return false;
            }
            let name = &waiting[self.choices.below(waiting.len())];
            self.world.gates.open(name);
            if self.phases[name] {
                self.phases.remove(name);
                if self.world.asks.contains(name) && !self.course.is_answered(name) {
                    self.course.ask(name)
                } else {
                    self.course.end(name)
                }
            } else {
                // The node makes its edits in this poll, before another node starts.
                let polled = poll(&mut call);
                assert!(polled.is_pending());
                self.phases.insert(name.clone(), true);
                self.edits(name, 1);
            }
        }
    }

    fn take(&self) -> Option<Event> {
        let mut events = self.world.events.lock().unwrap();
        (!events.is_empty()).then(|| events.remove(0))
    }

    /// Asserts that all nodes that may start have started, in order.
    fn starts(&mut self) {
        while let Some((name, value)) = self.course.start() {
            assert_eq!(self.take(), Some(Event::Starts(name.clone(), value)));
            self.phases.insert(name.clone(), false);
            self.edits(&name, 0);
        }
    }

    /// Asserts that the engine and the course accept the same edits in one half of a node's edits.
    fn edits(&mut self, name: &str, half: usize) {
        let is_permanent = self.course.is_permanent(name);
        let [first, second] = self.world.edits(name, is_permanent);
        for edit in if half == 0 { first } else { second } {
            let accepted = self.course.edit(name, &edit);
            assert_eq!(self.take(), Some(Event::Edits(name.to_owned(), edit, accepted)));
        }
    }

    /// Ends the call of the course, and compares it with the stored state.
    fn end_call(&mut self) {
        self.phases.clear();
        self.course.end_call();
        let state = now(self.world.graph(self.shape, &self.saver).state("t")).unwrap().unwrap();
        assert_eq!(state.next, self.course.next());
        let asked: Vec<_> = state.interrupts.iter().map(|asked| asked.node.clone()).collect();
        assert_eq!(sorted(asked), sorted(self.course.waiting()));
        self.outputs_are(&state.values);
    }

    fn outputs_are(&self, outputs: &Outputs<String>) {
        let order: Vec<_> = outputs.iter().map(|(name, gave)| (name.to_owned(), gave.clone())).collect();
        assert_eq!(order, self.course.report().order);
        let dropped: Vec<_> = outputs.dropped().iter().map(|dropped| dropped.by.clone()).collect();
        assert_eq!(dropped, self.course.dropped());
    }

    /// Compares the outcome of a call with the course. Returns whether the pass is over.
    fn ended(&mut self, ended: Ended) -> bool {
        let outcome = ended.unwrap();
        self.outputs_are(outcome.output());
        let is_over = matches!(outcome, Outcome::Finished { .. });
        if is_over {
            let reason = |reason: &NotRunReason| match reason {
                NotRunReason::WaitsFor(nodes) => Reason::WaitsFor(nodes.clone()),
                NotRunReason::Pruned => Reason::Pruned,
                other => panic!("{other:?}"),
            };
            let missed = outcome.output().not_run().iter();
            let missed: Vec<_> = missed.map(|missed| (missed.node.clone(), reason(&missed.reason))).collect();
            assert_eq!(missed, self.course.report().not_run);
        }
        assert_eq!(is_over, self.course.waiting().is_empty());
        if !is_over {
            self.end_call();
        }
        is_over
    }

    /// Returns the next call, which answers some of the open questions, or none.
    fn next_call(&mut self) -> Call {
        let graph = self.world.graph(self.shape, &self.saver);
        let open = now(graph.state("t")).unwrap().unwrap().interrupts;
        let mut answers: Vec<(InterruptId, bool)> = Vec::new();
        for asked in open {
            if self.choices.below(3) > 0 {
                self.course.answer(&asked.node);
                answers.push((asked.id.unwrap(), true));
            }
        }
        if answers.is_empty() { graph.proceed().thread("t") } else { graph.resume_many(answers).thread("t") }
    }
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}
