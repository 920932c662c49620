//! The graphs that are walked.

use clap::ValueEnum;

/// How often a cycle is walked.
const ROUNDS: u32 = 10;
/// The nodes of one layer of `layers`.
const LAYER: u32 = 10;

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    /// One node after the other.
    Chain,
    /// A binary tree, from its root.
    Tree,
    /// A square: edges to the right and down.
    Grid,
    /// Layers of ten nodes; each node leads to the whole next layer.
    Layers,
    /// Edges from random earlier nodes.
    Random,
    /// Edges from earlier nodes, the more likely the more a node has: few hubs, many leaves.
    ScaleFree,
    /// A ring, which is walked ten times.
    Cycle,
}

/// A graph in which each edge leads to a node of a higher number, but for the last edge of a cycle.
pub(crate) struct Graph {
    /// The sources of each node.
    pub(crate) sources: Vec<Vec<u32>>,
    pub(crate) edges: u64,
    /// Whether the last node leads to the first, and how often the ring is walked then.
    pub(crate) rounds: Option<u32>,
}

impl Graph {
    pub(super) fn of(shape: Shape, nodes: u32, edges: u32) -> Self {
        let mut random = Random(1);
        let mut ends = Vec::new();
        let width = nodes.isqrt();
        let sources = (0..nodes).map(|node| match shape {
            Shape::Chain | Shape::Cycle => node.checked_sub(1).into_iter().collect(),
            Shape::Tree => node.checked_sub(1).map(|before| before / 2).into_iter().collect(),
            Shape::Grid => {
                let left = (!node.is_multiple_of(width)).then(|| node - 1);
                left.into_iter().chain(node.checked_sub(width)).collect()
            }
            Shape::Layers => {
                let first = node / LAYER * LAYER;
                (first.saturating_sub(LAYER)..first).collect()
            }
            Shape::Random => distinct((0..edges.min(node)).map(|_| random.below(node))),
            Shape::ScaleFree => {
                let sources = match node {
                    0 => Vec::new(),
                    1 => vec![0],
                    _ => distinct((0..edges).map(|_| ends[random.below(ends.len() as u32) as usize])),
                };
                ends.extend(sources.iter().copied().chain(std::iter::repeat_n(node, sources.len())));
                sources
            }
        });
        Self::new(sources.collect(), (shape == Shape::Cycle).then_some(ROUNDS))
    }

    pub(super) fn new(sources: Vec<Vec<u32>>, rounds: Option<u32>) -> Self {
        let edges = sources.iter().map(|sources| sources.len() as u64).sum::<u64>();
        Graph { edges: edges + u64::from(rounds.is_some()), sources, rounds }
    }

    pub(crate) fn nodes(&self) -> usize {
        self.sources.len()
    }

    /// The number of nodes that a walk visits.
    pub(crate) fn visits(&self) -> u64 {
        self.nodes() as u64 * u64::from(self.rounds.unwrap_or(1))
    }

    /// The number of supersteps of a walk: the nodes of the longest path.
    pub(super) fn levels(&self) -> u64 {
        let mut levels = vec![1_u64; self.nodes()];
        for (node, sources) in self.sources.iter().enumerate() {
            let before = sources.iter().map(|source| levels[*source as usize]).max();
            levels[node] += before.unwrap_or(0);
        }
        levels.into_iter().max().unwrap_or(0) * u64::from(self.rounds.unwrap_or(1))
    }
}

fn distinct(sources: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut sources: Vec<u32> = sources.collect();
    sources.sort_unstable();
    sources.dedup();
    sources
}

/// The same numbers on each run: a linear congruence (Knuth's MMIX).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(bound)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(shape: Shape, nodes: u32) -> (u64, u64, u64) {
        let graph = Graph::of(shape, nodes, 2);
        for (node, sources) in graph.sources.iter().enumerate() {
            assert!(sources.iter().all(|source| (*source as usize) < node), "{shape:?}: {node}");
        }
        (graph.edges, graph.levels(), graph.visits())
    }

    #[test]
    fn shapes_have_their_edges_levels_and_visits() {
        assert_eq!(counts(Shape::Chain, 100), (99, 100, 100));
        assert_eq!(counts(Shape::Tree, 15), (14, 4, 15));
        // 5 * 4 to the right and as many down; the longest path goes along two sides.
        assert_eq!(counts(Shape::Grid, 25), (40, 9, 25));
        assert_eq!(counts(Shape::Layers, 30), (200, 3, 30));
        assert_eq!(counts(Shape::Cycle, 10), (10, 100, 100));
        let (edges, ..) = counts(Shape::Random, 1000);
        assert!((1900..2000).contains(&edges), "{edges}");
    }

    #[test]
    fn few_nodes_of_a_scale_free_graph_have_most_edges() {
        let graph = Graph::of(Shape::ScaleFree, 10_000, 2);
        let mut targets = vec![0_u32; graph.nodes()];
        graph.sources.iter().flatten().for_each(|source| targets[*source as usize] += 1);
        targets.sort_unstable_by(|a, b| b.cmp(a));
        assert!(targets[0] > 100, "{}", targets[0]);
        assert!(u64::from(targets[..1000].iter().sum::<u32>()) > graph.edges / 3);
    }
}
