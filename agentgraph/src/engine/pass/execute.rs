//! Starting a node: calling it with the outputs it depends on, and polling it once in place.

use std::sync::Arc;
use std::task::{Context, Poll};

use crate::attempt::{CatchPanic, call_with_policies, guarded, invoke, invoke_in_span};
use crate::context::TaskRequest;
use crate::dependency::deps::{Deps, HeldOutput, Slot};
use crate::dependency::node::{CallKind, begin};
use crate::dependency::wiring::WiredNode;
use crate::dependency::{Output, PassInput};
use crate::engine::executor::timed;
use crate::engine::pass::{Pass, outputs, outputs_mut};
use crate::engine::running_tasks::RunningTask;
use crate::erased::NodeFuture;
use crate::error::{BoxError, Error};
use crate::event::EventKind;
use crate::extract::Task;
use crate::panic::NodePanic;
use crate::step::Step;
use crate::typed::AnyState;

impl<O: Output, S: PassInput> Pass<'_, O, S> {
    /// Starts a node, or takes its last output if it is skipped.
    pub(super) fn start(&mut self, node: u32, cx: &mut Context<'_>) -> Result<(), Error> {
        let index = self.started;
        self.started += 1;
        if let Some(halt) = &self.run.listeners.halt {
            halt.report_steps(u64::from(self.started));
        }
        let origin = self.origin;
        let request = TaskRequest { step: 1, node, index, attempt: 1, handles: false, origin };
        if self.run.listeners.events.is_some() {
            self.announce_start(request);
        }
        if self.is_skipped(node) {
            return self.skipped(request);
        }
        self.recall(index, node);
        match self.entry(request) {
            Invocation::Plain(output) => self.returned(request, output.map(Some)),
            Invocation::Entry(entry) if self.is_bare(&entry) => self.start_bare(&entry, request, cx),
            Invocation::Entry(entry) if entry.kind() == CallKind::Async || self.is_on_host() => {
                let future = self.call(&entry, request);
                let polled = guarded(|_| {
                    let mut future = future;
                    match future.as_mut().poll(cx) {
                        Poll::Ready(result) => Ok(result),
                        Poll::Pending => Err(future),
                    }
                });
                match polled {
                    Ok(Ok(result)) => self.ended(request, result),
                    Ok(Err(future)) => {
                        self.goes_on(request, future);
                        Ok(())
                    }
                    Err(panicked) => self.ended(request, Err(panicked.into())),
                }
            }
            Invocation::Entry(entry) => {
                let output = self.call_now(&entry, request);
                self.returned(request, output.map(Some))
            }
        }
    }

    /// Whether a node is async, has no policies, and runs in this process without a trace, a stream of
    /// messages or a watch on its polls.
    fn is_bare(&self, entry: &WiredNode<O, S>) -> bool {
        let shared = &self.run.runtime.shared;
        let is_heard = self.run.listeners.spans.is_some()
            || shared.audience.messages
            || shared.graph.slow_polls.times_nodes();
        entry.kind() == CallKind::Async && entry.policies.is_none() && !is_heard && !self.is_on_host()
    }

    /// Calls a bare node and polls it once, with the type of its output: if it is ready, nothing is boxed but
    /// its future.
    fn start_bare(
        &mut self,
        entry: &WiredNode<O, S>,
        request: TaskRequest,
        cx: &mut Context<'_>,
    ) -> Result<(), Error> {
        let held = self.held();
        self.show(held);
        let task =
            Task { state: &self.view, shared: &self.run.runtime.shared, request, input: None, failure: None };
        let polled = guarded(|_| {
            let mut call = entry.call.call(&task)?;
            match call.as_mut().poll_step(cx) {
                Poll::Ready(result) => Ok(Ok(result?)),
                Poll::Pending => Ok(Err(call)),
            }
        });
        match polled.unwrap_or_else(|panicked: NodePanic| Err(panicked.into())) {
            Ok(Ok(Step::Update(update))) => self.returned(request, Ok(update.own)),
            Ok(Ok(_)) => self.returned(request, Ok(None)),
            Ok(Err(call)) => {
                self.goes_on(request, call);
                Ok(())
            }
            Err(error) => self.returned(request, Err(error)),
        }
    }

    /// Keeps a task that is not ready.
    fn goes_on(&mut self, request: TaskRequest, future: NodeFuture<AnyState>) {
        self.running.add([RunningTask { request, task: CatchPanic::of(future) }]);
    }

    /// Gives a task what it asked and did in earlier calls.
    fn recall(&mut self, index: u32, node: u32) {
        let earlier = &mut self.earlier;
        let asked = if earlier.answers.is_empty() { None } else { earlier.answers.remove(&node) };
        let once =
            if self.earlier.once.is_empty() { None } else { self.earlier.once.remove(&self.task_id(node)) };
        if asked.is_some() || once.is_some() {
            let control = &self.run.runtime.shared.control;
            control.recall(index, asked.unwrap_or_default(), once.unwrap_or_default());
        }
    }

    fn announce_start(&self, request: TaskRequest) {
        let Some(events) = &self.run.listeners.events else { return };
        events.enter(request, self.task_id(request.node), request.index);
        if let Some(at) = (request.node as usize).checked_sub(self.wiring.names.len()) {
            events.name(request, Arc::clone(&outputs::<O, S>(&self.run.position.state).temporary[at]));
        }
        if events.views().tasks {
            let node = self.name(request.node).to_owned();
            events.push_of(request, EventKind::TaskStarted { node, input: None });
        }
    }

    fn is_skipped(&self, node: u32) -> bool {
        let pass = self.desk.pass();
        pass.plan.skips(node)
    }

    /// Finds a node and its dependencies. Calls the node at once if it takes only outputs.
    fn entry(&mut self, request: TaskRequest) -> Invocation<O, S> {
        let node = request.node;
        let pass = self.desk.pass();
        match self.earlier.began_with.get(&node) {
            Some(sources) => self.sources.clone_from(sources),
            None => {
                pass.plan.done_sources(node, &mut self.sources);
                if self.run.records.journal.is_some() && pass.plan.is_lenient(node) {
                    self.earlier.began_with.insert(node, self.sources.clone());
                }
            }
        }
        let Some(entry) = self.wiring.nodes.get(node as usize) else {
            let added = pass.added[node as usize - self.wiring.nodes.len()].clone();
            return Invocation::Entry(WiredNode::of(added, &self.wiring.policies));
        };
        // The node is called without the lock, since it may take it: its edits go to the same desk.
        drop(pass);
        if entry.kind() != CallKind::Plain || self.is_on_host() {
            return Invocation::Entry(entry.clone());
        }
        let outputs = outputs::<O, S>(&self.run.position.state);
        let deps = Deps::borrowed(outputs.all_names(), &outputs.slots, &self.sources);
        Invocation::Plain(self.now(request, || entry.call.call_now(deps, None)))
    }

    /// Calls a synchronous node, in its span if the call is traced.
    fn now(&self, request: TaskRequest, call: impl FnOnce() -> Result<O, BoxError>) -> Result<O, BoxError> {
        let shared = &self.run.runtime.shared;
        let call = || match &self.run.listeners.spans {
            None => call_guarded(call),
            Some(spans) => spans.call_now(self.name(request.node), request, shared, || call_guarded(call)),
        };
        match shared.graph.slow_polls.times_nodes() {
            false => call(),
            true => {
                let name = || self.name(request.node).to_owned();
                shared.graph.slow_polls.watch_node(&*shared.services, name, call)
            }
        }
    }

    fn call_now(&mut self, entry: &WiredNode<O, S>, request: TaskRequest) -> Result<O, BoxError> {
        self.show(None);
        let outputs = outputs::<O, S>(&self.run.position.state);
        let task =
            Task { state: &self.view, shared: &self.run.runtime.shared, request, input: None, failure: None };
        let deps = Deps::borrowed(outputs.all_names(), &outputs.slots, &self.sources);
        self.now(request, || {
            begin(&task)?;
            entry.call.call_now(deps, Some(&task))
        })
    }

    #[inline]
    fn is_on_host(&self) -> bool {
        self.run.runtime.runner.as_host().is_some()
    }

    /// Makes the future of an async node, which owns the outputs that it depends on.
    fn call(&mut self, entry: &WiredNode<O, S>, request: TaskRequest) -> NodeFuture<AnyState> {
        let held = self.held();
        if self.is_on_host() {
            return self.send(entry, request, held);
        }
        self.show(held);
        let view = &self.view;
        let task =
            Task { state: view, shared: &self.run.runtime.shared, request, input: None, failure: None };
        let spans = self.run.listeners.spans.as_ref();
        let traced = spans.is_some();
        let call = || {
            let view = Arc::new(AnyState::new(Arc::clone(view)));
            let Task { shared, request, input, failure, .. } = task;
            let task = Task { state: &view, shared, request, input, failure };
            match &entry.policies {
                None if traced => invoke_in_span(&*entry.any(), &task),
                None => invoke(&*entry.any(), &task),
                Some(policies) => call_with_policies(entry.any(), Arc::clone(policies), &task, traced),
            }
        };
        let called = guarded(|_| match spans {
            None => call(),
            Some(spans) => spans.in_node(self.name(request.node), request, call),
        });
        let shared = &self.run.runtime.shared;
        match called {
            Ok(call) if shared.graph.slow_polls.times_nodes() => timed(shared, request.node, call),
            Ok(call) => call,
            Err(panicked) => Box::pin(std::future::ready(Err(panicked.into()))),
        }
    }

    /// Points the view of the next node at these outputs. It is that of the last node, unless a task still
    /// holds that one.
    fn show(&mut self, held: Option<Arc<[HeldOutput<O>]>>) {
        match Arc::get_mut(&mut self.view) {
            Some(view) => view.hold(held),
            None => self.view = Arc::new(outputs::<O, S>(&self.run.position.state).view(held, &self.desk)),
        }
    }

    /// The outputs of [`sources`](Pass::sources), kept alive while others are added.
    fn held(&mut self) -> Option<Arc<[HeldOutput<O>]>> {
        if self.sources.is_empty() {
            return None;
        }
        let outputs = outputs_mut::<O, S>(&mut self.run.position.state);
        let sources = self.sources.iter().filter_map(|source| {
            let output = outputs.slots.get_mut(*source as usize).and_then(Slot::share)?;
            let name = outputs.shared_name(*source)?;
            Some((name, output))
        });
        Some(sources.collect())
    }
}

/// The invocation of a node.
enum Invocation<O, S> {
    Plain(Result<O, BoxError>),
    Entry(WiredNode<O, S>),
}

fn call_guarded<O>(call: impl FnOnce() -> Result<O, BoxError>) -> Result<O, BoxError> {
    let called: Result<_, NodePanic> = guarded(|_| call());
    called.unwrap_or_else(|panicked| Err(panicked.into()))
}
