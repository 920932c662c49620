//! Boxes and the bends of long links in layers, in an order with few crossings.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::{Item, Link};

/// A box, or the place where links pass a layer.
pub(super) struct Vertex {
    pub(super) layer: usize,
    /// Its place in the layer.
    pub(super) pos: usize,
    /// The cells on both sides of its column; those on the right include links to itself.
    pub(super) left: i32,
    pub(super) right: i32,
    pub(super) height: i32,
    pub(super) is_bend: bool,
    /// Segments from above, and to below.
    pub(super) up: Vec<usize>,
    pub(super) down: Vec<usize>,
}

/// The part of links between two layers.
pub(super) struct Segment {
    /// The vertices above and below.
    pub(super) ends: [usize; 2],
    /// The columns of its ends, from those of the vertices.
    pub(super) ports: [i32; 2],
    /// The group of its links, and whether they lead up.
    group: (usize, bool),
}

pub(super) struct Layers {
    /// Boxes first, in their order.
    pub(super) vertices: Vec<Vertex>,
    pub(super) segments: Vec<Segment>,
    pub(super) rows: Vec<Vec<usize>>,
}

/// From here on the number of crossings hardly falls.
const SWEEPS: usize = 24;

impl Layers {
    /// Also returns the first segment of each link; none for a link to its own box. Links of a group to one
    /// target share their bends: a thousand links to END are one line with a thousand inlets.
    pub(super) fn of(
        items: &[Item],
        links: &[Link],
        (is_back, ranks): (&[bool], &[usize]),
    ) -> (Self, Vec<Option<usize>>) {
        let rows = vec![Vec::new(); ranks.iter().max().map_or(0, |last| last + 1)];
        let mut layers = Layers { vertices: Vec::with_capacity(items.len()), segments: Vec::new(), rows };
        for (item, rank) in items.iter().zip(ranks) {
            let loops = if item.loops > 0 { 2 * item.loops + 1 } else { 0 };
            layers.add_vertex(*rank, [item.half, item.half + loops, item.height], false);
        }
        let mut bends = HashMap::new();
        let mut firsts = Vec::with_capacity(links.len());
        for (link, is_back) in links.iter().zip(is_back) {
            let (mut from, mut layer, group) = (link.from, ranks[link.from], (link.group, *is_back));
            let mut first = None;
            while from != link.to {
                layer = if *is_back { layer - 1 } else { layer + 1 };
                let (to, is_new) = if layer == ranks[link.to] {
                    (link.to, true)
                } else {
                    match bends.entry((link.to, group, layer)) {
                        Entry::Occupied(bend) => (*bend.get(), false),
                        Entry::Vacant(place) => {
                            (*place.insert(layers.add_vertex(layer, [0, 0, 0], true)), true)
                        }
                    }
                };
                let segment = layers.add_segment(if *is_back { [to, from] } else { [from, to] }, group);
                first = first.or(Some(segment));
                if !is_new {
                    break;
                }
                from = to;
            }
            firsts.push(first);
        }
        (layers, firsts)
    }

    /// The segments of a link from its first one to its target.
    pub(super) fn chain(&self, first: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(first), |segment| {
            let Segment { ends, group: (_, is_back), .. } = &self.segments[*segment];
            let next = &self.vertices[ends[usize::from(!is_back)]];
            // A bend has one segment towards the target.
            let onward = if *is_back { next.up.first() } else { next.down.first() };
            onward.copied().filter(|_| next.is_bend)
        })
    }

    fn add_vertex(&mut self, layer: usize, [left, right, height]: [i32; 3], is_bend: bool) -> usize {
        let (up, down) = (Vec::new(), Vec::new());
        self.vertices.push(Vertex { layer, pos: 0, left, right, height, is_bend, up, down });
        self.vertices.len() - 1
    }

    fn add_segment(&mut self, ends: [usize; 2], group: (usize, bool)) -> usize {
        let segment = self.segments.len();
        self.segments.push(Segment { ends, ports: [0, 0], group });
        self.vertices[ends[0]].down.push(segment);
        self.vertices[ends[1]].up.push(segment);
        segment
    }

    /// Orders each layer by the middle of the neighbours, down and up in turn. Counting crossings to keep the
    /// best order took three of 261 away, in a graph of 60 nodes.
    pub(super) fn untangle(&mut self) {
        self.set_first_order();
        (0..SWEEPS).for_each(|sweep| self.sweep(sweep % 2 == 0));
    }

    /// The order in which a walk from the first box finds them.
    fn set_first_order(&mut self) {
        let mut is_found = vec![false; self.vertices.len()];
        for root in 0..self.vertices.len() {
            let mut open = vec![root];
            while let Some(found) = open.pop() {
                if std::mem::replace(&mut is_found[found], true) {
                    continue;
                }
                let vertex = &self.vertices[found];
                self.rows[vertex.layer].push(found);
                open.extend(vertex.down.iter().rev().map(|segment| self.segments[*segment].ends[1]));
            }
        }
        (0..self.rows.len()).for_each(|row| self.number(row));
    }

    fn number(&mut self, row: usize) {
        for (pos, vertex) in self.rows[row].iter().enumerate() {
            self.vertices[*vertex].pos = pos;
        }
    }

    fn sweep(&mut self, down: bool) {
        let count = self.rows.len();
        for at in 1..count {
            let row = if down { at } else { count - 1 - at };
            let middle = |vertex: usize| {
                let Vertex { up, down: below, pos, .. } = &self.vertices[vertex];
                let (segments, end) = if down { (up, 0) } else { (below, 1) };
                let places =
                    segments.iter().map(|segment| self.vertices[self.segments[*segment].ends[end]].pos);
                // In thousandths, since floats have no order.
                match segments.len() {
                    0 => pos * 1000,
                    count => places.sum::<usize>() * 1000 / count,
                }
            };
            let mut keyed: Vec<(usize, usize)> =
                self.rows[row].iter().map(|vertex| (middle(*vertex), *vertex)).collect();
            keyed.sort_by_key(|(middle, _)| *middle);
            self.rows[row] = keyed.into_iter().map(|(_, vertex)| vertex).collect();
            self.number(row);
        }
    }

    /// Gives each group of links a point on the border of its boxes, and widens boxes that lack the room.
    pub(super) fn set_ports(&mut self, labels: &[i32]) {
        for vertex in 0..self.vertices.len() {
            if self.vertices[vertex].is_bend {
                continue;
            }
            for side in [0, 1] {
                let Vertex { up, down, .. } = &self.vertices[vertex];
                let segments = if side == 0 { down.clone() } else { up.clone() };
                self.set_ports_of(vertex, side, &segments, labels);
            }
        }
    }

    /// `side`: 0 for the lower side of the box, which is above the segments, 1 for the upper one.
    fn set_ports_of(&mut self, vertex: usize, side: usize, segments: &[usize], labels: &[i32]) {
        // By group: the sum and the number of the places at the other ends.
        let mut groups: Vec<((usize, bool), usize, usize)> = Vec::new();
        for segment in segments {
            let Segment { ends, group, .. } = &self.segments[*segment];
            let pos = self.vertices[ends[1 - side]].pos;
            match groups.iter_mut().find(|(known, ..)| known == group) {
                Some((_, sum, count)) => (*sum, *count) = (*sum + pos, *count + 1),
                None => groups.push((*group, pos, 1)),
            }
        }
        groups.sort_by_key(|(group, sum, count)| (sum * 1000 / count, *group));
        // Links arrive from above, or, if they lead up, from below.
        let label = |(group, is_back): (usize, bool)| if is_back == (side == 0) { labels[group] } else { 0 };
        let widths: Vec<i32> = groups.iter().map(|(group, ..)| 2 + label(*group)).collect();
        let total: i32 = widths.iter().sum();
        let (mut port, mut half) = (1 - total / 2, total / 2 + 1);
        if let [only] = widths[..] {
            (port, half) = (0, only);
        }
        let grown = (half - self.vertices[vertex].left).max(0);
        self.vertices[vertex].left += grown;
        self.vertices[vertex].right += grown;
        for ((group, ..), width) in groups.iter().zip(widths) {
            for segment in segments {
                if self.segments[*segment].group == *group {
                    self.segments[*segment].ports[side] = port;
                }
            }
            port += width;
        }
    }
}
