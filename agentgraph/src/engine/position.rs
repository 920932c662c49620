//! [`Position`]: the position of a run.

use std::sync::Arc;

use crate::engine::activations::Activations;
use crate::engine::flow::order::Order;
use crate::engine::frontier::Frontier;
use crate::graph::joins::Joins;
use crate::graph::run_graph::RunGraph;
use crate::graph::{Discipline, GraphCore};
use crate::typed::AnyState;

/// The position of a run: its graph, its state, and the tasks that run next.
pub(crate) struct Position {
    pub(in crate::engine) graph: RunGraph,
    pub(in crate::engine) state: Arc<AnyState>,
    pub(in crate::engine) frontier: Frontier,
    pub(in crate::engine) joins: Joins,
    /// The open activations of a run without supersteps.
    pub(in crate::engine) eager: Option<Box<Activations>>,
    /// The number of supersteps that this call has started.
    pub(in crate::engine) step: u64,
    /// The number of supersteps that this call has merged. The current one counts for the run once it is
    /// merged.
    pub(in crate::engine) merged: u64,
    /// Whether a merge has started and not ended: the state is then neither the last one nor the next.
    pub(in crate::engine) merging: bool,
}

impl Position {
    /// The position of a run that has not started.
    pub(crate) fn first(core: &Arc<GraphCore>, state: Arc<AnyState>) -> Self {
        let eager = (core.rules.discipline == Discipline::Eager).then(Box::default);
        let joins = Joins::of(&core.topology);
        Position::new(RunGraph::from(Arc::clone(core)), state, Frontier::default(), joins, eager)
    }

    /// The same position with another state.
    pub(crate) fn with_state(self, state: Arc<AnyState>) -> Self {
        Position { state, ..self }
    }

    /// Begins a branch here, in the given order of merges if one is known.
    pub(crate) fn fork(&mut self, order: Option<Order>) {
        if let Some(eager) = &mut self.eager {
            eager.fork(order);
        }
    }

    /// The position of a call that has not started.
    pub(crate) fn new(
        graph: RunGraph,
        state: Arc<AnyState>,
        frontier: Frontier,
        joins: Joins,
        eager: Option<Box<Activations>>,
    ) -> Self {
        Position { graph, state, frontier, joins, eager, step: 0, merged: 0, merging: false }
    }
}
