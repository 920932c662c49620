//! The layer of each box.

use petgraph::Direction::Incoming;
use petgraph::algo::toposort;
use petgraph::graph::{DiGraph, NodeIndex};

use super::Link;

/// The links that lead back to a box on the path to them. Without these there is no cycle. The search follows
/// the order of declaration: petgraph's `greedy_feedback_arc_set` turns round fewer links, but also some that
/// a reader takes for the way forward.
pub(super) fn back_links(items: usize, links: &[Link]) -> Vec<bool> {
    #[derive(Clone, Copy)]
    enum Seen {
        Never,
        OnPath,
        Done,
    }
    let mut down = vec![Vec::new(); items];
    for (at, link) in links.iter().enumerate().filter(|(_, link)| link.from != link.to) {
        down[link.from].push(at);
    }
    let mut is_back = vec![false; links.len()];
    let mut seen = vec![Seen::Never; items];
    for root in 0..items {
        if !matches!(seen[root], Seen::Never) {
            continue;
        }
        seen[root] = Seen::OnPath;
        let mut path = vec![(root, 0)];
        while let Some((item, next)) = path.last_mut() {
            let Some(link) = down[*item].get(*next) else {
                seen[*item] = Seen::Done;
                path.pop();
                continue;
            };
            *next += 1;
            let to = links[*link].to;
            match seen[to] {
                Seen::OnPath => is_back[*link] = true,
                Seen::Never => {
                    seen[to] = Seen::OnPath;
                    path.push((to, 0));
                }
                Seen::Done => {}
            }
        }
    }
    is_back
}

/// The layer of each box: below all that lead to it.
pub(super) fn ranks(items: usize, links: &[Link], is_back: &[bool]) -> Vec<usize> {
    let mut graph = DiGraph::<(), ()>::with_capacity(items, links.len());
    for _ in 0..items {
        graph.add_node(());
    }
    for (link, is_back) in links.iter().zip(is_back).filter(|(link, _)| link.from != link.to) {
        let (from, to) = (NodeIndex::new(link.from), NodeIndex::new(link.to));
        if *is_back {
            graph.add_edge(to, from, ())
        } else {
            graph.add_edge(from, to, ())
        };
    }
    let mut ranks = vec![0; items];
    for item in toposort(&graph, None).unwrap_or_default() {
        for below in graph.neighbors(item) {
            ranks[below.index()] = ranks[below.index()].max(ranks[item.index()] + 1);
        }
    }
    // What nothing leads to moves down to the first that it leads to.
    for item in graph.externals(Incoming) {
        if let Some(first) = graph.neighbors(item).map(|below| ranks[below.index()]).min() {
            ranks[item.index()] = first - 1;
        }
    }
    ranks
}
