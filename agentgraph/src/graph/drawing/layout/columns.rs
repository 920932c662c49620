//! The column of each vertex, by the method of Brandes and Köpf ("Fast and simple horizontal coordinate
//! assignment", 2001): vertices are aligned with a median neighbour, from the top and from the bottom, to the
//! left and to the right, and each gets the mean of its two middle columns. Here it is the points at which a
//! segment meets its boxes that are aligned, not the middles of the boxes.

use super::layers::Layers;

/// Vertices in one line.
struct Blocks {
    /// The vertex that stands for the block of each.
    root: Vec<usize>,
    /// Its column, from that of the root.
    offset: Vec<i32>,
}

pub(super) fn columns(layers: &mut Layers) -> Vec<i32> {
    let is_crossed = crossed_by_bends(layers);
    let ways = [(true, true), (true, false), (false, true), (false, false)];
    let mut found = ways.map(|(down, left)| compact(layers, &align(layers, down, left, &is_crossed), left));
    let bounds = |columns: &[i32]| {
        let ends = |end: fn(i32, i32) -> i32| columns.iter().copied().reduce(end).unwrap_or(0);
        (ends(i32::min), ends(i32::max))
    };
    let width = |columns: &[i32]| bounds(columns).1 - bounds(columns).0;
    let (first, last) = found.iter().min_by_key(|columns| width(columns)).map_or((0, 0), |best| bounds(best));
    for (columns, (_, left)) in found.iter_mut().zip(ways) {
        let bounds = bounds(columns);
        let shift = if left { first - bounds.0 } else { last - bounds.1 };
        columns.iter_mut().for_each(|column| *column += shift);
    }
    let middle = |vertex| {
        let mut columns: [i32; 4] = [0, 1, 2, 3].map(|way: usize| found[way][vertex]);
        columns.sort_unstable();
        (columns[1] + columns[2]).div_euclid(2)
    };
    (0..layers.vertices.len()).map(middle).collect()
}

/// The segments that cross a segment between two bends, which stays straight instead.
fn crossed_by_bends(layers: &Layers) -> Vec<bool> {
    let Layers { vertices, segments, rows } = layers;
    let mut is_crossed = vec![false; segments.len()];
    for (above, row) in rows.iter().zip(rows.iter().skip(1)) {
        // The upper ends of the inner segments around those vertices that are looked at.
        let (mut first, mut checked) = (0, 0);
        for (at, vertex) in row.iter().enumerate() {
            let mut ends = vertices[*vertex].up.iter().map(|segment| segments[*segment].ends[0]);
            let inner = ends.find(|above| vertices[*vertex].is_bend && vertices[*above].is_bend);
            if inner.is_none() && at + 1 < row.len() {
                continue;
            }
            let last = inner.map_or(above.len(), |inner| vertices[inner].pos);
            for vertex in &row[checked..=at] {
                for segment in &vertices[*vertex].up {
                    let end = &vertices[segments[*segment].ends[0]];
                    let is_inner = end.is_bend && vertices[*vertex].is_bend;
                    is_crossed[*segment] |= !is_inner && (end.pos < first || end.pos > last);
                }
            }
            (first, checked) = (last, at + 1);
        }
    }
    is_crossed
}

fn align(layers: &Layers, down: bool, left: bool, is_crossed: &[bool]) -> Blocks {
    let Layers { vertices, segments, rows } = layers;
    let (root, offset) = ((0..vertices.len()).collect(), vec![0; vertices.len()]);
    let mut blocks = Blocks { root, offset };
    let mirrored = |pos: usize| if left { pos as i64 } else { -(pos as i64) };
    for at in 0..rows.len() {
        let row = &rows[if down { at } else { rows.len() - 1 - at }];
        let mut limit = i64::MIN;
        for at in 0..row.len() {
            let vertex = row[if left { at } else { row.len() - 1 - at }];
            let near = if down { &vertices[vertex].up } else { &vertices[vertex].down };
            let mut near: Vec<_> = near
                .iter()
                .map(|at| {
                    let segment = &segments[*at];
                    let (end, offset) =
                        (segment.ends[usize::from(!down)], segment.ports[0] - segment.ports[1]);
                    (mirrored(vertices[end].pos), end, if down { offset } else { -offset }, is_crossed[*at])
                })
                .collect();
            near.sort_by_key(|(pos, ..)| *pos);
            if near.is_empty() {
                continue;
            }
            for median in [(near.len() - 1) / 2, near.len() / 2] {
                let (pos, end, offset, is_crossed) = near[median];
                if blocks.root[vertex] == vertex && !is_crossed && limit < pos {
                    blocks.root[vertex] = blocks.root[end];
                    blocks.offset[vertex] = blocks.offset[end] + offset;
                    limit = pos;
                }
            }
        }
    }
    blocks
}

/// Moves the blocks to one side as far as their distances allow, then back to their neighbours.
fn compact(layers: &Layers, blocks: &Blocks, left: bool) -> Vec<i32> {
    let Layers { vertices, rows, .. } = layers;
    let mut after = vec![Vec::new(); vertices.len()];
    let mut waits = vec![0; vertices.len()];
    for pair in rows.iter().flat_map(|row| row.windows(2)) {
        let [a, b] = [pair[0], pair[1]];
        let gap = if vertices[a].is_bend || vertices[b].is_bend { 2 } else { 4 };
        let distance = vertices[a].right + gap + vertices[b].left + blocks.offset[a] - blocks.offset[b];
        let [a, b] = [blocks.root[a], blocks.root[b]];
        let [from, to] = if left { [a, b] } else { [b, a] };
        after[from].push((to, distance));
        waits[to] += 1;
    }
    let mut order: Vec<usize> = (0..vertices.len()).filter(|vertex| waits[*vertex] == 0).collect();
    let mut columns = vec![0; vertices.len()];
    let mut at = 0;
    while let Some(block) = order.get(at).copied() {
        for (next, distance) in &after[block] {
            columns[*next] = columns[*next].max(columns[block] + distance);
            waits[*next] -= 1;
            if waits[*next] == 0 {
                order.push(*next);
            }
        }
        at += 1;
    }
    for block in order.into_iter().rev() {
        let room = after[block].iter().map(|(next, distance)| columns[*next] - distance).min();
        columns[block] = room.unwrap_or(columns[block]);
    }
    let column = |vertex| {
        let column: i32 = columns[blocks.root[vertex]];
        blocks.offset[vertex] + if left { column } else { -column }
    };
    (0..vertices.len()).map(column).collect()
}
