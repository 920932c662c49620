//! [`Position`]: the position of a run.

use std::sync::Arc;

use crate::engine::activations::Activations;
use crate::engine::frontier::Frontier;
use crate::graph::joins::Joins;
use crate::graph::run_graph::RunGraph;
use crate::graph::{Discipline, GraphCore};
use crate::state::State;

/// The position of a run: its graph, its state, and the tasks that run next.
pub(crate) struct Position<S: State> {
    pub(in crate::engine) graph: RunGraph<S>,
    pub(in crate::engine) state: Arc<S>,
    pub(in crate::engine) frontier: Frontier,
    pub(in crate::engine) joins: Joins,
    /// The open activations of a run without supersteps.
    pub(in crate::engine) eager: Option<Box<Activations<S>>>,
    /// The number of supersteps that this call has started.
    pub(in crate::engine) step: u64,
    /// The number of supersteps that this call has merged. The current one counts for the run once it is
    /// merged.
    pub(in crate::engine) merged: u64,
    /// Whether a merge has started and not ended: the state is then neither the last one nor the next.
    pub(in crate::engine) merging: bool,
}

impl<S: State> Position<S> {
    /// The position of a run that has not started.
    pub(crate) fn first(core: &Arc<GraphCore<S>>, state: Arc<S>) -> Self {
        let eager = (core.discipline == Discipline::Eager).then(Box::default);
        let joins = Joins::of(&core.topology);
        Position::new(RunGraph::from(Arc::clone(core)), state, Frontier::default(), joins, eager)
    }

    /// The same position with another state.
    pub(crate) fn with_state(self, state: Arc<S>) -> Self {
        Position { state, ..self }
    }

    /// The position of a call that has not started.
    pub(crate) fn new(
        graph: RunGraph<S>,
        state: Arc<S>,
        frontier: Frontier,
        joins: Joins,
        eager: Option<Box<Activations<S>>>,
    ) -> Self {
        Position { graph, state, frontier, joins, eager, step: 0, merged: 0, merging: false }
    }
}
