//! [`Position`]: where a run stands.

use std::sync::Arc;

use crate::engine::activations::Activations;
use crate::engine::frontier::Frontier;
use crate::graph::joins::Joins;
use crate::graph::run_graph::RunGraph;
use crate::graph::{Discipline, GraphCore};
use crate::state::State;

/// Where a run stands: its graph, its state, and what runs next.
pub(crate) struct Position<S: State> {
    pub(in crate::engine) graph: RunGraph<S>,
    pub(in crate::engine) state: Arc<S>,
    pub(in crate::engine) frontier: Frontier,
    pub(in crate::engine) joins: Joins,
    /// The open activations of a run without supersteps.
    pub(in crate::engine) eager: Option<Box<Activations<S>>>,
    /// The supersteps that this call has begun.
    pub(in crate::engine) step: u64,
    /// The supersteps that this call has merged. The one under way counts for the run once it is merged.
    pub(in crate::engine) merged: u64,
    /// A merge has begun and not ended, so the state is neither the last one nor the next.
    pub(in crate::engine) merging: bool,
}

impl<S: State> Position<S> {
    /// That of a run that has not begun.
    pub(crate) fn first(core: &Arc<GraphCore<S>>, state: Arc<S>) -> Self {
        let eager = (core.discipline == Discipline::Eager).then(Box::default);
        let joins = Joins::of(&core.topology);
        Position::new(RunGraph::from(Arc::clone(core)), state, Frontier::default(), joins, eager)
    }

    /// The same with another state.
    pub(crate) fn with_state(self, state: Arc<S>) -> Self {
        Position { state, ..self }
    }

    /// That of a call that has not begun.
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
