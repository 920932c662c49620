//! [`ShownGraph`]: what the page shows of a graph and its threads, beside what clients read.

use std::time::SystemTime;

use agentgraph::graph::Drawing;
use agentgraph::run::{Branch, Checkpoint, OpenReason};
use agentgraph::state::StoredState;
use agentgraph::{CheckpointId, CompiledGraph, Error};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, TryStreamExt};
use serde_json::{Value, json};

use super::TypedGraph;
use crate::ids;

/// The subgraphs that are drawn as graphs.
#[derive(Clone, Debug)]
pub(crate) enum Opened {
    /// All of them, or none if that would be more than [`MOST_NODES`] nodes.
    AsFit,
    /// Those with these paths.
    Paths(Vec<String>),
}

/// The order in which an eager run merged its tasks.
pub(crate) struct Order {
    /// The nodes of the last ones, with the steps of their commits.
    pub(crate) merged: Vec<(String, u64)>,
    /// Whether these are all.
    pub(crate) is_whole: bool,
}

/// How many merges of an eager run are read: each reads a state.
const MOST_MERGED: usize = 100;

/// A drawing with more nodes has its subgraphs as single nodes.
const MOST_NODES: usize = 300;

impl Opened {
    fn svg<S: StoredState>(&self, graph: &CompiledGraph<S>, drawing: Drawing) -> String {
        match self {
            Opened::Paths(paths) => paths.iter().fold(drawing, |drawing, path| drawing.expand(path)).svg(),
            Opened::AsFit if nodes(graph) <= MOST_NODES => drawing.expand_all().svg(),
            Opened::AsFit => drawing.svg(),
        }
    }
}

/// How many nodes a graph has, with those of its subgraphs. Mermaid declares each on a line that ends with
/// its bracket; it costs little beside a layout.
fn nodes<S: StoredState>(graph: &CompiledGraph<S>) -> usize {
    graph.mermaid_with_subgraphs().lines().filter(|line| line.ends_with([']', ')'])).count()
}

pub(crate) trait ShownGraph {
    /// The drawing, whose nodes and edges can be found by their names.
    fn svg(&self, opened: &Opened) -> String;

    fn mermaid(&self) -> String;

    fn is_eager(&self) -> bool;

    /// The drawing of a run's graph with its temporary edits, at a checkpoint or the newest one.
    fn svg_at(
        &self,
        thread: &str,
        at: Option<CheckpointId>,
        opened: Opened,
    ) -> BoxFuture<'_, Result<Option<String>, Error>>;

    fn branches(&self, thread: &str) -> BoxFuture<'_, Result<Vec<Branch>, Error>>;

    /// The order of an eager run: that of the checkpoint `last` or the newest one, from `began` on.
    fn order(
        &self,
        thread: &str,
        began: Option<CheckpointId>,
        last: Option<CheckpointId>,
    ) -> BoxFuture<'_, Result<Order, Error>>;

    /// The joins of a thread that wait, the run that has it, and the temporary edits at a checkpoint or the
    /// newest one.
    fn report(&self, thread: &str, at: Option<CheckpointId>) -> BoxFuture<'_, Result<Option<Value>, Error>>;
}

impl<S: StoredState> ShownGraph for TypedGraph<S> {
    fn svg(&self, opened: &Opened) -> String {
        opened.svg(&self.graph, self.graph.drawing())
    }

    fn mermaid(&self) -> String {
        self.graph.mermaid_with_subgraphs()
    }

    fn is_eager(&self) -> bool {
        self.graph.is_eager()
    }

    fn svg_at(
        &self,
        thread: &str,
        at: Option<CheckpointId>,
        opened: Opened,
    ) -> BoxFuture<'_, Result<Option<String>, Error>> {
        let thread = thread.to_owned();
        async move {
            let found = match at {
                None => self.graph.state(&thread).await?,
                Some(id) => self.graph.state_at(&thread, id).await?,
            };
            Ok(found.map(|found| opened.svg(&self.graph, found.drawing())))
        }
        .boxed()
    }

    fn branches(&self, thread: &str) -> BoxFuture<'_, Result<Vec<Branch>, Error>> {
        let thread = thread.to_owned();
        async move { self.graph.branches(thread).await }.boxed()
    }

    fn order(
        &self,
        thread: &str,
        began: Option<CheckpointId>,
        last: Option<CheckpointId>,
    ) -> BoxFuture<'_, Result<Order, Error>> {
        let thread = thread.to_owned();
        async move {
            let found = match last {
                None => self.graph.state(&thread).await?,
                Some(id) => self.graph.state_at(&thread, id).await?,
            };
            let Some(last) = found else { return Ok(Order { merged: Vec::new(), is_whole: true }) };
            let (run, end) = (last.run, last.id);
            let mut history = self.graph.history(&thread).before(end).stream();
            let (mut merged, mut next) = (Vec::new(), Some(last));
            let is_of_run = |one: &mut Checkpoint<S>| one.run == run && Some(one.id) != began;
            while merged.len() < MOST_MERGED
                && let Some(one) = next.take_if(is_of_run)
            {
                merged.extend(one.merged.into_iter().rev().map(|node| (node, one.id.step)));
                next = history.try_next().await?;
            }
            let is_whole = next.take_if(is_of_run).is_none();
            merged.reverse();
            Ok(Order { merged, is_whole })
        }
        .boxed()
    }

    fn report(&self, thread: &str, at: Option<CheckpointId>) -> BoxFuture<'_, Result<Option<Value>, Error>> {
        let thread = thread.to_owned();
        async move {
            let Some(report) = self.graph.report(&thread).await? else { return Ok(None) };
            let found = self.graph.state_at(&thread, at.unwrap_or(report.checkpoint)).await?;
            let Some(found) = found else { return Ok(None) };
            let time = |time: SystemTime| ids::system_time(time);
            let joins = report.open.iter().filter_map(|open| match &open.why {
                OpenReason::Joins { arrived, missing, until } => Some(json!({
                    "to": open.node, "arrived": arrived, "missing": missing, "until": until.map(time),
                })),
                _ => None,
            });
            let holder = report.running.as_ref().map(|running| {
                json!({
                    "is_here": running.is_here, "until": time(running.until),
                    "is_cancelled": running.is_cancelled,
                })
            });
            Ok(Some(json!({
                "joins": joins.collect::<Value>(), "holder": holder, "deferred": found.deferred,
                "edits": found.edits, "skips": found.skips,
            })))
        }
        .boxed()
    }
}
