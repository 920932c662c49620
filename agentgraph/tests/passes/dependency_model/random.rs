//! Random graphs and edits. Edges lead from any node to any later one in a random order, which is independent
//! of the ids.

use std::collections::HashMap;

use agentgraph::dependency::Join;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::{Edit, Shape};

pub(crate) fn shapes() -> impl Strategy<Value = Shape> {
    let ends = || (any::<Index>(), any::<Index>());
    (
        prop::collection::vec(joins(), 1..10),
        prop::collection::vec(any::<u32>(), 10),
        prop::collection::vec(ends(), 0..24),
        prop::collection::vec(ends(), 0..4),
        prop::collection::vec((any::<Index>(), prop::collection::vec(edits(), 1..7)), 0..4),
        prop::collection::vec(edits(), 0..3),
    )
        .prop_map(|(joins, keys, edges, orders, edits, before)| {
            let nodes: Vec<(String, Join)> =
                joins.into_iter().enumerate().map(|(at, join)| (format!("n{at}"), join)).collect();
            let mut order: Vec<usize> = (0..nodes.len()).collect();
            order.sort_by_key(|at| keys[*at]);
            let pair = |(a, b): &(Index, Index)| {
                let a = a.index(order.len());
                let b = b.index(order.len());
                let from = order[a.min(b)];
                let to = order[a.max(b)];
                (a != b).then(|| (nodes[from].0.clone(), nodes[to].0.clone()))
            };
            let mut edges: Vec<_> = edges.iter().filter_map(pair).collect();
            keep_first(&mut edges);
            let mut orders: Vec<_> = orders.iter().filter_map(pair).collect();
            keep_first(&mut orders);
            orders.retain(|order| !edges.contains(order));
            let by = |(at, list): (Index, Vec<Edit>)| (nodes[at.index(nodes.len())].0.clone(), list);
            let edits: HashMap<String, Vec<Edit>> = edits.into_iter().map(by).collect();
            Shape { edits, edges, orders, before, nodes }
        })
}

fn keep_first(pairs: &mut Vec<(String, String)>) {
    let mut seen = std::collections::HashSet::new();
    pairs.retain(|pair| seen.insert(pair.clone()));
}

fn joins() -> impl Strategy<Value = Join> {
    prop_oneof![6 => Just(Join::All), 1 => Just(Join::AllNotPruned), 1 => Just(Join::Any)]
}

/// Generates names of permanent nodes, which may not exist, and of temporary ones.
fn names() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => (0_u8..10).prop_map(|at| format!("n{at}")),
        3 => select(vec!["t1", "t2", "t3"]).prop_map(str::to_owned),
    ]
}

fn edits() -> impl Strategy<Value = Edit> {
    let pair = || (names(), names());
    prop_oneof![
        2 => (select(vec!["t1", "t2", "t3", "n4"]), joins()).prop_map(|(name, join)| Edit::AddNode(name.to_owned(), join)),
        4 => pair().prop_map(|(from, to)| Edit::AddEdge(from, to)),
        2 => pair().prop_map(|(from, to)| Edit::PrependEdge(from, to)),
        3 => pair().prop_map(|(from, to)| Edit::RemoveEdge(from, to)),
        1 => names().prop_map(Edit::RemoveNode),
        1 => prop::collection::vec(names(), 1..3).prop_map(Edit::Skip),
    ]
}
