//! The layout of all drawings: boxes in layers, and links between them of horizontal and vertical lines.
//!
//! It measures in cells of a terminal, so that SVG and text share every place. Between two layers is a
//! channel, in which each link has a track of its own unless it shares an end with another. No line is
//! elsewhere but in channels and beside boxes, so none crosses a box.
//!
//! It knows sizes and links, and neither names nor how they are drawn.

mod columns;
mod layers;
mod ranks;
mod tracks;

use layers::{Layers, Segment};

/// A box to be placed.
pub(super) struct Item {
    /// The cells on each side of its middle column.
    pub(super) half: i32,
    pub(super) height: i32,
    /// The links to itself, for which the right side needs room.
    pub(super) loops: i32,
}

/// A link between two boxes.
pub(super) struct Link {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Links of one group leave a box at one point, and reach it at one point.
    pub(super) group: usize,
}

/// A point: its column and its row.
pub(super) type Point = (i32, i32);

/// A box in its place.
#[derive(Clone, Copy, Default)]
pub(super) struct Area {
    pub(super) left: i32,
    pub(super) top: i32,
    pub(super) right: i32,
    pub(super) bottom: i32,
}

pub(super) struct Layout {
    pub(super) width: i32,
    pub(super) height: i32,
    pub(super) areas: Vec<Area>,
    /// The corners of each link from its source to its target; of a link to its own box, the point on the
    /// border and the point that it reaches.
    pub(super) routes: Vec<Vec<Point>>,
}

/// Rows of a channel beside its tracks: one for the lines that leave upwards, one for those that arrive.
const ENDS: i32 = 2;

/// `labels` has the cells of the label of each group, which stands where a link arrives.
pub(super) fn layout(items: &[Item], links: &[Link], labels: &[i32]) -> Layout {
    let is_back = ranks::back_links(items.len(), links);
    let ranks = ranks::ranks(items.len(), links, &is_back);
    let (mut layers, firsts) = Layers::of(items, links, (&is_back, &ranks));
    layers.untangle();
    layers.set_ports(labels);
    let mut columns = columns::columns(&mut layers);
    let vertices = &layers.vertices;
    let first = vertices.iter().zip(&columns).map(|(vertex, x)| x - vertex.left).min().unwrap_or(0);
    columns.iter_mut().for_each(|x| *x -= first);
    let width = vertices.iter().zip(&columns).map(|(vertex, x)| x + vertex.right + 1).max().unwrap_or(0);

    let (mut tops, mut height) = (Vec::with_capacity(layers.rows.len()), 0);
    let mut corners = vec![Vec::new(); layers.segments.len()];
    for (at, row) in layers.rows.iter().enumerate() {
        tops.push(height);
        height += row.iter().map(|vertex| vertices[*vertex].height).max().unwrap_or(0);
        if at + 1 < layers.rows.len() {
            let below = row.iter().flat_map(|vertex| vertices[*vertex].down.iter().copied());
            height += 1;
            height += tracks::route(&layers, below, &columns, (width, height), &mut corners) + ENDS - 1;
        }
    }
    let areas: Vec<Area> = (0..items.len())
        .map(|item| {
            let (vertex, x, top) = (&vertices[item], columns[item], tops[vertices[item].layer]);
            Area { left: x - vertex.left, top, right: x + vertex.left, bottom: top + vertex.height - 1 }
        })
        .collect();
    let mut loops = vec![0; items.len()];
    let routes = links.iter().zip(&firsts).zip(&is_back).map(|((link, first), is_back)| {
        let Some(first) = first else {
            loops[link.from] += 1;
            let Area { right, top, bottom, .. } = areas[link.from];
            let middle = (top + bottom) / 2;
            return vec![(right, middle), (right + 2 * loops[link.from], middle)];
        };
        let end = |segment: usize, end: usize| {
            let Segment { ends, ports, .. } = &layers.segments[segment];
            let area = areas[ends[end]];
            (columns[ends[end]] + ports[end], if end == 0 { area.bottom } else { area.top })
        };
        let [begins, ends] = if *is_back { [1, 0] } else { [0, 1] };
        let mut route = vec![end(*first, begins)];
        let mut last = *first;
        for segment in layers.chain(*first) {
            let corners = corners[segment].iter().copied();
            if *is_back {
                route.extend(corners.rev())
            } else {
                route.extend(corners)
            }
            last = segment;
        }
        route.push(end(last, ends));
        route
    });
    Layout { width, height, routes: routes.collect(), areas }
}
