//! A scene as text.

use std::collections::BTreeMap;

use super::layout::{Area, Point};
use super::scene::{Arrow, Look, MARGIN, Scene, Shape, width};
use crate::graph::EdgeKind;

/// Directions in which lines leave a cell, and the characters by their sums.
const UP: u8 = 1;
const DOWN: u8 = 2;
const LEFT: u8 = 4;
const RIGHT: u8 = 8;
const GLYPHS: [char; 16] = [' ', '╵', '╷', '│', '╴', '┘', '┐', '┤', '╶', '└', '┌', '├', '─', '┴', '┬', '┼'];

/// The lines that pass a cell.
#[derive(Clone, Copy, Default)]
struct Cell {
    /// The directions of corners.
    corners: u8,
    /// Those of straight lines.
    straight: u8,
    /// Whether a line is neither conditional nor temporary.
    is_solid: bool,
    is_temporary: bool,
    /// What is drawn over the lines.
    over: Option<char>,
}

struct Canvas {
    width: usize,
    cells: Vec<Cell>,
    /// By row and column.
    labels: BTreeMap<Point, String>,
}

pub(super) fn write(scene: &Scene) -> String {
    let labels = scene.arrows.iter().filter_map(Arrow::label);
    let mut canvas = Canvas {
        width: scene.width as usize,
        cells: vec![Cell::default(); scene.width as usize * scene.height as usize],
        labels: labels.map(|(label, (x, y))| ((y, x), label.to_owned())).collect(),
    };
    scene.shapes.iter().for_each(|shape| canvas.shape(shape));
    scene.arrows.iter().for_each(|arrow| canvas.arrow(arrow));
    let mut out: String =
        (0..scene.height).map(|row| canvas.line(row).trim_end().to_owned() + "\n").collect();
    for shape in scene.shapes.iter().filter(|shape| shape.label != shape.name) {
        out += &format!("{}: {}\n", shape.label, shape.name);
    }
    out
}

impl Canvas {
    fn cell(&mut self, (x, y): Point) -> &mut Cell {
        &mut self.cells[y as usize * self.width + x as usize]
    }

    fn shape(&mut self, shape: &Shape) {
        let [mut across, mut along, corners @ ..] = match shape.look {
            Look::End => ['─', '│', '╭', '╮', '╰', '╯'],
            Look::Node | Look::Open => ['─', '│', '┌', '┐', '└', '┘'],
            Look::Folded => ['═', '║', '╔', '╗', '╚', '╝'],
        };
        if shape.is_temporary {
            (across, along) = ('╌', '╎');
        }
        let Area { left, top, right, bottom } = shape.area;
        let sides = (left..right).flat_map(|x| [((x, top), across), ((x, bottom), across)]);
        let sides = sides.chain((top..bottom).flat_map(|y| [((left, y), along), ((right, y), along)]));
        let ends = [(left, top), (right, top), (left, bottom), (right, bottom)].into_iter().zip(corners);
        sides.chain(ends).for_each(|(point, one)| self.cell(point).over = Some(one));
        let x = match shape.look {
            Look::Open => left + MARGIN,
            _ => (left + right + 1 - width(&shape.label) as i32) / 2,
        };
        self.labels.insert((top + 1, x), shape.label.clone());
    }

    fn arrow(&mut self, arrow: &Arrow) {
        let [first, .., last] = arrow.points[..] else { return };
        if arrow.is_loop {
            self.cell(last).over = Some('↺');
            return;
        }
        let mut before = None;
        for pair in arrow.points.windows(2) {
            let [mut point, end] = [pair[0], pair[1]];
            let step = ((end.0 - point.0).signum(), (end.1 - point.1).signum());
            while point != end {
                if let Some(before) = before {
                    self.pass(point, before, step, arrow);
                }
                before = Some(step);
                point = (point.0 + step.0, point.1 + step.1);
            }
        }
        // A line leaves its box through a tee. All its steps go down, or all go up.
        let (tee, head, tip) =
            if first.1 < last.1 { ('┬', '▼', last.1 - 1) } else { ('┴', '▲', last.1 + 1) };
        let start = self.cell(first);
        start.over = start.over.map(|border| if border == '─' { tee } else { border });
        self.cell((last.0, tip)).over = Some(head);
    }

    /// A line enters a cell by one step and leaves it by the next.
    fn pass(&mut self, point: Point, before: Point, step: Point, arrow: &Arrow) {
        let directions = direction((-before.0, -before.1)) | direction(step);
        let cell = self.cell(point);
        if before == step {
            cell.straight |= directions
        } else {
            cell.corners |= directions
        }
        cell.is_temporary |= arrow.is_temporary;
        cell.is_solid |= !arrow.is_temporary && !arrow.is_conditional() && arrow.kind != EdgeKind::Order;
    }

    fn line(&self, row: i32) -> String {
        let (mut line, mut x) = (String::new(), 0);
        while x < self.width {
            if let Some(label) = self.labels.get(&(row, x as i32)) {
                line += label;
                x += width(label);
            } else {
                line.push(self.cells[row as usize * self.width + x].glyph());
                x += 1;
            }
        }
        line
    }
}

fn direction(step: Point) -> u8 {
    match step {
        (0, ..0) => UP,
        (0, _) => DOWN,
        (..0, _) => LEFT,
        _ => RIGHT,
    }
}

impl Cell {
    fn glyph(self) -> char {
        // Where lines only cross, the one across passes below.
        let along = if self.corners == 0 { self.straight & (UP | DOWN) } else { 0 };
        let directions = if along > 0 { along } else { self.corners | self.straight };
        let dashed = if self.is_temporary { ['╎', '╌'] } else { ['┊', '┄'] };
        self.over.unwrap_or(match GLYPHS[usize::from(directions)] {
            '│' if !self.is_solid => dashed[0],
            '─' if !self.is_solid => dashed[1],
            glyph => glyph,
        })
    }
}
