//! [`RestateGraph`]: a graph that workers run on Restate as a [`ServedGraph`]. The compiled graph beside its
//! client describes it, and runs nothing.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use agentgraph::run::{Branch, StopReason};
use agentgraph::state::StoredState;
use agentgraph::{CancellationToken, CheckpointId, Code, Error};
use agentgraph_restate::{Headers, RemoteCall, RemoteEvent, RemoteGraph};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use serde_json::{Value, json};

use super::typed::ended_as;
use super::{Begin, Call, Edit, End, Ended, GraphEvent, Moment, RunConfig, RunEvent, ServedGraph};
use super::{HistoryStart, Opened, Order, ShownGraph, Start, TypedGraph};
use crate::error::not_on_restate;
use crate::messages;

/// The header of a call that has what its nodes may ask about its run.
const RUN: &str = "agentgraph-run";

/// How long a request to cancel a call that has not begun waits for the next one.
const AGAIN: Duration = Duration::from_millis(200);

/// The most checkpoints of one look at a history.
const PAGE: usize = 64;

pub(crate) struct RestateGraph<S: StoredState> {
    pub(crate) shape: TypedGraph<S>,
    pub(crate) remote: RemoteGraph<S>,
}

impl RunConfig {
    /// What nodes on a worker of Restate may ask about their run; empty for a call that no server made.
    ///
    /// ```
    /// use agentgraph_restate::RestateWorker;
    /// use agentgraph_server::RunConfig;
    ///
    /// let worker = RestateWorker::new().context_from(|headers, _| Ok(RunConfig::from_headers(headers)?));
    /// # drop(worker);
    /// ```
    ///
    /// # Errors
    /// If the header is not that of this release.
    pub fn from_headers(headers: &Headers) -> Result<Self, serde_json::Error> {
        headers.get(RUN).map_or_else(|| Ok(RunConfig::default()), serde_json::from_str)
    }
}

impl<S: StoredState> RestateGraph<S> {
    fn begun(&self, start: Start, from: Begin) -> Result<RemoteCall<S>, Error> {
        if from != Begin::Head {
            return Err(not_on_restate(
                "a run goes on from the newest checkpoint, and not from an older one",
            ));
        }
        Ok(match start {
            Start::Input(input) => self.remote.invoke(self.shape.update(&input)?).abandon(),
            Start::Resume(answer) => self.remote.resume(answer),
            Start::ResumeMany(answers) => self.remote.resume_many(answers),
            Start::Proceed => self.remote.proceed(),
        })
    }

    /// The checkpoints that are stored. Without a checkpointer of the workers' graph that is the newest one.
    async fn listed(
        &self,
        thread: &str,
        before: Option<CheckpointId>,
        limit: usize,
    ) -> Result<Vec<Moment>, Error> {
        let mut history = self.remote.history(thread).limit(limit);
        if let Some(before) = before {
            history = history.before(before);
        }
        match history.await {
            Ok(found) => Ok(found.into_iter().map(|found| self.shape.moment(found)).collect()),
            Err(error) if error.code() == Code::NoCheckpointer && before.is_none() && limit > 0 => {
                Ok(self.head(thread).await?.into_iter().collect())
            }
            Err(error) if error.code() == Code::NoCheckpointer => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    async fn head(&self, thread: &str) -> Result<Option<Moment>, Error> {
        Ok(self.remote.state(thread).await?.map(|found| self.shape.moment(found)))
    }

    async fn at(&self, thread: &str, id: CheckpointId) -> Result<Option<Moment>, Error> {
        let head = self.head(thread).await?;
        if head.as_ref().is_none_or(|head| head.id == id) {
            return Ok(head);
        }
        let mut before = None;
        loop {
            let page = self.listed(thread, before, PAGE).await?;
            if let Some(found) = page.iter().find(|moment| moment.id == id) {
                return Ok(Some(found.clone()));
            }
            match page.last() {
                Some(last) if page.len() == PAGE => before = Some(last.id),
                _ => return Ok(None),
            }
        }
    }
}

impl<S: StoredState> ServedGraph for RestateGraph<S> {
    fn schema(&self) -> Option<&Value> {
        self.shape.schema()
    }

    fn drawing(&self, depth: usize) -> Value {
        self.shape.drawing(depth)
    }

    fn initial(&self) -> Value {
        self.shape.initial()
    }

    fn check(&self, input: &Value) -> Result<(), Error> {
        self.shape.check(input)
    }

    fn is_elsewhere(&self) -> bool {
        true
    }

    fn call(&self, call: Call) -> Result<BoxStream<'static, GraphEvent>, Error> {
        let Call { thread, name, start, from, views, max_supersteps, cancel, drain, config, .. } = call;
        let about = serde_json::to_string(&config)
            .map_err(|error| Error::new(Code::Encode, format!("the run cannot be described: {error}")))?;
        let mut run = self.begun(start, from)?.thread(&thread).idempotency_key(name).header(RUN, about);
        if let Some(steps) = max_supersteps {
            run = run.max_supersteps(steps);
        }
        let events = if self.remote.has_relay() {
            run.views(views).subgraphs().stream().boxed()
        } else {
            stream::once(async move { RemoteEvent::Ended(run.await) }).boxed()
        };
        let canceller = cancelled(self.remote.clone(), thread, cancel).boxed();
        let shape = self.shape.graph.clone();
        let shown = move |state: &S| shape.state_json(state);
        let under_way = UnderWay {
            events,
            canceller,
            drain,
            shown: Arc::new(shown),
            last: None,
            end: None,
            is_over: false,
        };
        Ok(stream::unfold(under_way, UnderWay::next).boxed())
    }

    fn state(&self, thread: &str, at: Option<CheckpointId>) -> BoxFuture<'_, Result<Option<Moment>, Error>> {
        let thread = thread.to_owned();
        async move {
            match at {
                None => self.head(&thread).await,
                Some(id) => self.at(&thread, id).await,
            }
        }
        .boxed()
    }

    fn history(
        &self,
        thread: &str,
        from: HistoryStart,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Moment>, Error>> {
        let thread = thread.to_owned();
        let before = match from {
            HistoryStart::Branch(_) => None,
            HistoryStart::Before(id) => Some(id),
        };
        async move { self.listed(&thread, before, limit).await }.boxed()
    }

    fn state_inside(&self, _: &str, _: &str) -> BoxFuture<'_, Result<Option<Moment>, Error>> {
        async { Ok(None) }.boxed()
    }

    fn history_inside(
        &self,
        _: &str,
        _: &str,
        _: Option<CheckpointId>,
        _: usize,
    ) -> BoxFuture<'_, Result<Vec<Moment>, Error>> {
        async { Err(not_on_restate("the checkpoints of subgraphs cannot be read")) }.boxed()
    }

    fn edit(&self, thread: &str, edit: Edit) -> BoxFuture<'_, Result<CheckpointId, Error>> {
        let thread = thread.to_owned();
        async move {
            if !edit.goto.is_empty() {
                return Err(not_on_restate("command.goto is not served"));
            }
            if edit.at.is_some() && edit.at != self.head(&thread).await?.map(|head| head.id) {
                return Err(not_on_restate("only the newest checkpoint can be changed"));
            }
            if !edit.siblings.is_empty() {
                return Err(not_on_restate("only one node at a time can be played"));
            }
            let update = self.shape.update(&edit.values.unwrap_or_else(|| json!({})))?;
            let change = self.remote.update_state(&thread);
            match edit.as_node.as_deref() {
                None | Some("__copy__") => change.update(update),
                Some("__start__" | "__input__") => change.as_start(update),
                Some("__end__") => change.as_end(update),
                Some(node) => change.as_node(node, update),
            }
            .await
        }
        .boxed()
    }

    fn delete(&self, thread: &str) -> BoxFuture<'_, Result<(), Error>> {
        let thread = thread.to_owned();
        async move { self.remote.delete_thread(thread).await }.boxed()
    }

    fn copy(&self, _: &str, _: &str) -> BoxFuture<'_, Result<(), Error>> {
        async { Err(not_on_restate("a thread cannot be copied")) }.boxed()
    }
}

impl<S: StoredState> ShownGraph for RestateGraph<S> {
    fn svg(&self, opened: &Opened) -> String {
        self.shape.svg(opened)
    }

    fn mermaid(&self) -> String {
        self.shape.mermaid()
    }

    fn is_eager(&self) -> bool {
        self.shape.is_eager()
    }

    fn svg_at(
        &self,
        _: &str,
        _: Option<CheckpointId>,
        opened: Opened,
    ) -> BoxFuture<'_, Result<Option<String>, Error>> {
        async move { Ok(Some(self.svg(&opened))) }.boxed()
    }

    fn branches(&self, _: &str) -> BoxFuture<'_, Result<Vec<Branch>, Error>> {
        async { Ok(Vec::new()) }.boxed()
    }

    fn order(
        &self,
        _: &str,
        _: Option<CheckpointId>,
        _: Option<CheckpointId>,
    ) -> BoxFuture<'_, Result<Order, Error>> {
        async { Ok(Order { merged: Vec::new(), is_whole: false }) }.boxed()
    }

    fn report(&self, thread: &str, at: Option<CheckpointId>) -> BoxFuture<'_, Result<Option<Value>, Error>> {
        let thread = thread.to_owned();
        async move {
            let head = self.remote.state(&thread).await?;
            let found = head.filter(|head| at.is_none_or(|at| at == head.id));
            Ok(found.map(|head| {
                json!({
                    "joins": [], "holder": null, "deferred": head.deferred, "edits": head.edits,
                    "skips": head.skips,
                })
            }))
        }
        .boxed()
    }
}

/// A call that other processes run, and its events here.
struct UnderWay<S: StoredState> {
    events: BoxStream<'static, RemoteEvent<S>>,
    canceller: BoxFuture<'static, Infallible>,
    drain: CancellationToken,
    shown: Arc<dyn Fn(&S) -> Value + Send + Sync>,
    /// The last values of the graph that were told.
    last: Option<Value>,
    /// The end, while the values before it are told.
    end: Option<GraphEvent>,
    is_over: bool,
}

impl<S: StoredState> UnderWay<S> {
    async fn next(mut self) -> Option<(GraphEvent, Self)> {
        if self.is_over {
            return None;
        }
        if let Some(end) = self.end.take() {
            self.is_over = true;
            return Some((end, self));
        }
        loop {
            let event = tokio::select! {
                event = self.events.next() => event?,
                never = &mut self.canceller => match never {},
                // The call goes on, and the next process finds it by its name.
                () = self.drain.cancelled() => {
                    self.is_over = true;
                    let end = End::Stopped(StopReason::Drained);
                    let ended = Ended { end, stuck: Value::Null, last: None };
                    return Some((GraphEvent::Ended(ended), self));
                }
            };
            if let Some(shown) = self.taken(event) {
                return Some((shown, self));
            }
        }
    }

    fn taken(&mut self, event: RemoteEvent<S>) -> Option<GraphEvent> {
        match event {
            RemoteEvent::Event(event) => {
                let event = event.json().clone();
                if event["type"] == "values" && event["namespace"] == "" {
                    self.last = Some(event["values"].clone());
                }
                Some(GraphEvent::Event(RunEvent::of_json(event)))
            }
            // Pieces of the message that the task was sending come again.
            RemoteEvent::Restarted { task } => {
                let piece = json!({ "restarted": {} });
                let event =
                    json!({ "type": "message", "namespace": "", "task": { "id": task }, "piece": piece });
                Some(GraphEvent::Event(RunEvent::of_json(event)))
            }
            RemoteEvent::Ended(ended) => {
                let output = ended.as_ref().ok().map(|outcome| (self.shown)(outcome.output()));
                let shown = Arc::clone(&self.shown);
                let end = ended_as(ended, move |state| shown(state));
                match output.filter(|output| self.last.as_ref() != Some(output)) {
                    // Events may be lost, and are lost while there is no listener. The end is not.
                    Some(values) => {
                        self.end = Some(end);
                        Some(GraphEvent::Event(RunEvent::of_values(messages::shown(values))))
                    }
                    None => {
                        self.is_over = true;
                        Some(end)
                    }
                }
            }
            // Events were lost.
            _ => None,
        }
    }
}

/// Asks for the end of the call that has a thread until this is dropped, since that may not have begun.
async fn cancelled<S: StoredState>(
    remote: RemoteGraph<S>,
    thread: String,
    cancel: CancellationToken,
) -> Infallible {
    cancel.cancelled().await;
    loop {
        if let Err(error) = remote.cancel(&thread).await {
            tracing::warn!(%error, thread, "a call on Restate could not be cancelled yet");
        }
        tokio::time::sleep(AGAIN).await;
    }
}
