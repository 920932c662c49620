//! [`Scene`]: the boxes and arrows of a drawing in their places, as SVG and text write them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use unicode_width::UnicodeWidthChar;

use super::Drawing;
use super::layout::{Area, Item, Link, Point, layout};
use crate::graph::{EdgeKind, GraphCore, GraphTopology, TopologyEdge, shown};
use crate::words::{END, START};

#[derive(Default)]
pub(super) struct Scene {
    pub(super) width: i32,
    pub(super) height: i32,
    /// A box comes before those inside it.
    pub(super) shapes: Vec<Shape>,
    pub(super) arrows: Vec<Arrow>,
}

/// A box.
pub(super) struct Shape {
    /// The path of its node; `None` for the place that stands for any node.
    pub(super) path: Option<String>,
    /// Its name without characters that cannot be shown.
    pub(super) name: String,
    /// The part of the name that is shown.
    pub(super) label: String,
    pub(super) area: Area,
    pub(super) look: Look,
    pub(super) is_temporary: bool,
    pub(super) state: Option<&'static str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// START, END, or any node.
    End,
    Node,
    /// A subgraph as one node.
    Folded,
    /// A subgraph with its nodes inside.
    Open,
}

/// An edge.
pub(super) struct Arrow {
    pub(super) from: String,
    pub(super) to: Option<String>,
    pub(super) kind: EdgeKind,
    pub(super) is_temporary: bool,
    /// Its corners. Of an edge to its own node, the points where it begins and turns round.
    pub(super) points: Vec<Point>,
    pub(super) is_loop: bool,
    /// Whether it is the first of those that arrive at its end.
    pub(super) has_label: bool,
}

/// By kind of edge: its class, and the label where it arrives.
pub(super) const CLASSES: [&str; 7] = ["", "join", "route", "dispatch", "command", "error", "order"];
const LABELS: [&str; 7] = ["", "join", "", "dispatch", "", "error", ""];

/// The cells of the longest name that is not cut.
const LONGEST: usize = 32;
/// The rows of a box, and those of an open subgraph above and below its nodes.
const ROWS: i32 = 3;
const ABOVE: i32 = 2;
const BELOW: i32 = 1;
/// The cells between the border of a box and its content.
pub(super) const MARGIN: i32 = 2;

impl Scene {
    /// `prefix` is the path of the graph with a slash after it, or empty.
    pub(super) fn of(
        drawing: &Drawing,
        topology: &GraphTopology,
        core: Option<&Arc<GraphCore>>,
        prefix: &str,
    ) -> Self {
        let mut boxes: Vec<(Shape, Option<Scene>)> = Vec::new();
        let mut places = HashMap::new();
        let end = |name: &str, label| (Shape::of(Some(format!("{prefix}{name}")), label, Look::End), None);
        if topology.edges.iter().any(|edge| edge.from == START) {
            places.insert(START, boxes.len());
            boxes.push(end(START, "START"));
        }
        for node in &topology.nodes {
            let path = format!("{prefix}{}", node.name);
            let core = core.filter(|_| node.is_graph && !node.is_temporary && drawing.is_expanded(&path));
            let inner = core.and_then(|core| core.subgraph(core.names.id(&node.name)? as usize));
            let inner = inner
                .map(|core| Scene::of(drawing, &shown::of_compiled(&core), Some(&core), &format!("{path}/")));
            let look = match inner {
                Some(_) => Look::Open,
                None if node.is_graph => Look::Folded,
                None => Look::Node,
            };
            let state = drawing.states.get(&path).copied().or(node.is_skipped.then_some("skipped"));
            let shape = Shape::of(Some(path), &node.name, look);
            places.insert(&*node.name, boxes.len());
            boxes.push((Shape { is_temporary: node.is_temporary, state, ..shape }, inner));
        }
        if topology.edges.iter().any(|edge| edge.to.as_deref() == Some(END)) {
            places.insert(END, boxes.len());
            boxes.push(end(END, "END"));
        }
        let (mut links, mut drawn) = (Vec::new(), Vec::new());
        for edge in &topology.edges {
            let to = edge.to.as_ref().map_or(Some(boxes.len()), |to| places.get(&**to).copied());
            let Some((from, to)) = places.get(&*edge.from).copied().zip(to) else { continue };
            if to == boxes.len() {
                boxes.push((Shape::of(None, "any node", Look::End), None));
            }
            links.push(Link { from, to, group: 2 * edge.kind as usize + usize::from(edge.is_temporary) });
            drawn.push(edge);
        }
        let mut items: Vec<Item> = boxes.iter().map(|(shape, inside)| shape.size(inside)).collect();
        links.iter().filter(|link| link.from == link.to).for_each(|link| items[link.from].loops += 1);
        // With a space before it.
        let labels = LABELS.map(|label| if label.is_empty() { 0 } else { label.len() as i32 + 1 });
        let layout = layout(&items, &links, &labels.iter().flat_map(|cells| [*cells; 2]).collect::<Vec<_>>());

        let mut scene = Scene { width: layout.width, height: layout.height, ..Scene::default() };
        let mut arrived = HashSet::new();
        for ((edge, link), points) in drawn.into_iter().zip(links).zip(layout.routes) {
            let is_first = arrived.insert(points.last().copied());
            scene.arrows.push(Arrow::of(edge, points, prefix, link.from == link.to, is_first));
        }
        for ((shape, mut inside), area) in boxes.into_iter().zip(layout.areas) {
            scene.shapes.push(Shape { area, ..shape });
            let (right, down) = (area.left + MARGIN, area.top + ABOVE);
            for shape in inside.iter_mut().flat_map(|inside| inside.shapes.drain(..)) {
                let Area { left, top, right: last, bottom } = shape.area;
                let area =
                    Area { left: left + right, top: top + down, right: last + right, bottom: bottom + down };
                scene.shapes.push(Shape { area, ..shape });
            }
            for mut arrow in inside.into_iter().flat_map(|inside| inside.arrows) {
                arrow.points.iter_mut().for_each(|(x, y)| (*x, *y) = (*x + right, *y + down));
                scene.arrows.push(arrow);
            }
        }
        scene
    }
}

impl Shape {
    fn of(path: Option<String>, name: &str, look: Look) -> Self {
        let name: String = name.chars().map(|one| if is_shown(one) { one } else { ' ' }).collect();
        let mut label = name.clone();
        if width(&label) > LONGEST {
            while width(&label) >= LONGEST {
                label.pop();
            }
            label.push('…');
        }
        Shape { path, name, label, area: Area::default(), look, is_temporary: false, state: None }
    }

    fn size(&self, inside: &Option<Scene>) -> Item {
        let (columns, rows) = inside
            .as_ref()
            .map_or((0, ROWS), |inside| (inside.width + 2 * MARGIN, inside.height + ABOVE + BELOW));
        Item { half: columns.max(width(&self.label) as i32 + 2 * MARGIN) / 2, height: rows, loops: 0 }
    }
}

impl Arrow {
    fn of(edge: &TopologyEdge, points: Vec<Point>, prefix: &str, is_loop: bool, is_first: bool) -> Self {
        Arrow {
            from: format!("{prefix}{}", edge.from),
            to: edge.to.as_ref().map(|to| format!("{prefix}{to}")),
            kind: edge.kind,
            is_temporary: edge.is_temporary,
            points,
            is_loop,
            has_label: is_first && !is_loop,
        }
    }

    /// Whether it depends on a decision.
    pub(super) fn is_conditional(&self) -> bool {
        !matches!(self.kind, EdgeKind::Edge | EdgeKind::Join | EdgeKind::Order)
    }

    /// Its label, and where that begins: beside the head of the arrow.
    pub(super) fn label(&self) -> Option<(&'static str, Point)> {
        let label = Some(LABELS[self.kind as usize]).filter(|label| self.has_label && !label.is_empty())?;
        let [.., (_, before), (x, y)] = self.points[..] else { return None };
        Some((label, (x + 2, if before < y { y - 1 } else { y + 1 })))
    }
}

/// Line breaks and control characters would move what comes after them, and marks of direction turn it round.
fn is_shown(one: char) -> bool {
    !one.is_control()
        && !matches!(one, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The cells that a text takes in a terminal.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(|one| one.width().unwrap_or(0)).sum()
}
