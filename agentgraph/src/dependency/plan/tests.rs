//! The cost of readiness is one check per edge, however many nodes wait. The tests count checks instead of
//! timing.

use std::cell::Cell;
use std::sync::Arc;

use super::Plan;
use crate::dependency::base::{Base, Edges, Join, Pair};

thread_local! {
    /// The number of readiness checks.
    pub(super) static LOOKS: Cell<usize> = const { Cell::new(0) };
}

/// Runs a pass over these edges one node after the other. Returns the nodes in the order in which they ran,
/// and the number of readiness checks.
fn pass(nodes: u32, edges: &[Pair], orders: &[Pair]) -> (Vec<u32>, usize) {
    let joins = vec![Join::All; nodes as usize];
    let mut plan = Plan::new(Arc::new(
        Base::of(nodes, Edges { all: edges, orders, ..Edges::default() }, joins).unwrap(),
    ));
    LOOKS.set(0);
    let mut ran = Vec::new();
    while let Some(node) = plan.next() {
        plan.finish(node);
        ran.push(node);
    }
    (ran, LOOKS.get())
}

#[test]
fn readiness_checks_each_edge_once_in_every_shape() {
    const N: u32 = 300;
    let wide: Vec<Pair> = (0..N).map(|node| (node, N)).collect();
    let fan: Vec<Pair> = (0..N).map(|node| (N, node)).chain((0..N).map(|node| (node, N + 1))).collect();
    let full: Vec<Pair> = (0..N).flat_map(|from| (N..2 * N).map(move |to| (from, to))).collect();
    let chain: Vec<Pair> = (1..N).map(|node| (node - 1, node)).collect();
    for (nodes, edges) in [(N + 1, wide), (N + 2, fan), (2 * N, full), (N, chain)] {
        for (by_data, by_order) in [(&edges[..], &[][..]), (&[][..], &edges[..])] {
            let (ran, looks) = pass(nodes, by_data, by_order);
            assert_eq!((ran.len(), looks), (nodes as usize, edges.len()));
        }
    }
}
