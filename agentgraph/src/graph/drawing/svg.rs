//! A scene as an SVG document.

use std::fmt::{self, Display, Write};

use super::layout::Point;
use super::scene::{Arrow, CLASSES, Look, MARGIN, Scene, Shape};

/// The size of a cell, and the space around the drawing, in pixels.
const CELL: Point = (8, 16);
const SPACE: i32 = 12;
/// The radius of corners, and the length of the head of an arrow.
const ROUND: i32 = 6;
const HEAD: i32 = 7;

/// Each rule begins with the class of the document, since in a page it would hold for all of it. The page may
/// set the colours.
const STYLE: &str = include_str!("style.css");

pub(super) fn write(scene: &Scene) -> String {
    let [width, height] = [scene.width * CELL.0, scene.height * CELL.1].map(|size| size + 2 * SPACE);
    let (width, height) = (width - CELL.0, height - CELL.1);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"agentgraph\" role=\"img\" width=\"{width}\" \
         height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n<style>\n{STYLE}</style>\n"
    );
    // A string takes everything that is written.
    scene.shapes.iter().for_each(|shape| _ = write_shape(&mut out, shape));
    scene.arrows.iter().for_each(|arrow| _ = write_arrow(&mut out, arrow));
    out + "</svg>\n"
}

/// The pixel of a point.
fn at((x, y): Point) -> Point {
    (SPACE + x * CELL.0, SPACE + y * CELL.1)
}

/// Classes, without those that are empty.
fn classes(all: &[&str]) -> String {
    all.iter().filter(|class| !class.is_empty()).copied().collect::<Vec<_>>().join(" ")
}

fn write_shape(out: &mut String, shape: &Shape) -> fmt::Result {
    let look = match shape.look {
        Look::End => "end",
        Look::Node => "",
        Look::Folded => "graph",
        Look::Open => "graph open",
    };
    let temporary = if shape.is_temporary { "temporary" } else { "" };
    match &shape.path {
        Some(path) => {
            let classes = classes(&["node", look, temporary, shape.state.unwrap_or_default()]);
            write!(out, "<g class=\"{classes}\" data-node=\"{}\">", Escaped(path))?;
        }
        None => out.write_str("<g class=\"any\">")?,
    }
    if shape.label != shape.name {
        write!(out, "<title>{}</title>", Escaped(&shape.name))?;
    }
    let area = shape.area;
    let ((left, top), (right, bottom)) = (at((area.left, area.top)), at((area.right, area.bottom)));
    let (width, height) = (right - left, bottom - top);
    let round = if shape.look == Look::End { height / 2 } else { 4 };
    let borders: &[i32] = if shape.look == Look::Folded { &[0, 3] } else { &[0] };
    for inset in borders {
        let (x, y, width, height) = (left + inset, top + inset, width - 2 * inset, height - 2 * inset);
        write!(out, "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"{round}\"/>")?;
    }
    let (x, y) = match shape.look {
        Look::Open => at((area.left + MARGIN, area.top + 1)),
        _ => (left + width / 2, top + height / 2),
    };
    writeln!(out, "<text x=\"{x}\" y=\"{y}\">{}</text></g>", Escaped(&shape.label))
}

fn write_arrow(out: &mut String, arrow: &Arrow) -> fmt::Result {
    let conditional = if arrow.is_conditional() { "conditional" } else { "" };
    let temporary = if arrow.is_temporary { "temporary" } else { "" };
    let kind = CLASSES[arrow.kind as usize];
    let (classes, from) = (classes(&["edge", conditional, temporary, kind]), Escaped(&arrow.from));
    write!(out, "<g class=\"{classes}\" data-from=\"{from}\"")?;
    if let Some(to) = &arrow.to {
        write!(out, " data-to=\"{}\"", Escaped(to))?;
    }
    let to = Escaped(arrow.to.as_deref().unwrap_or("any node"));
    write!(out, "><title>{from} → {to} {kind}</title><path class=\"line\" d=\"")?;
    if arrow.is_loop {
        write_loop(out, &arrow.points)?
    } else {
        write_line(out, &arrow.points)?
    }
    if let Some((label, point)) = arrow.label() {
        let (x, y) = at(point);
        write!(out, "<text x=\"{}\" y=\"{y}\">{label}</text>", x - CELL.0 / 2)?;
    }
    out.write_str("</g>\n")
}

/// A line with round corners, and its head.
fn write_line(out: &mut String, points: &[Point]) -> fmt::Result {
    let mut corners: Vec<Point> = Vec::with_capacity(points.len());
    for (x, y) in points.iter().map(|point| at(*point)) {
        // In one line with the two before it.
        if let [.., (a, b), (c, d)] = corners[..]
            && ((a == c && c == x) || (b == d && d == y))
        {
            corners.pop();
        }
        corners.push((x, y));
    }
    let [first, .., tip] = corners[..] else { return Ok(()) };
    write!(out, "M{} {}", first.0, first.1)?;
    for corner in corners.windows(3) {
        let [before, (x, y), after] = [corner[0], corner[1], corner[2]];
        let round = ROUND.min(distance(before, (x, y)) / 2).min(distance((x, y), after) / 2);
        let (begin, end) = (towards((x, y), before, round), towards((x, y), after, round));
        write!(out, "L{} {}Q{x} {y} {} {}", begin.0, begin.1, end.0, end.1)?;
    }
    let ((x, y), (_, neck)) = (tip, towards(tip, corners[corners.len() - 2], HEAD));
    write!(out, "L{x} {neck}\"/><path class=\"head\" d=\"M{x} {y}L{} {neck}L{} {neck}Z\"/>", x - 4, x + 4)
}

fn write_loop(out: &mut String, points: &[Point]) -> fmt::Result {
    let [(x, y), (reach, _)] = [0, 1].map(|point| at(points[point]));
    // A curve reaches three quarters of the way to its handles.
    let (handle, above, below, neck) = (x + (reach - x) * 4 / 3, y - 9, y + 7, x + HEAD);
    write!(out, "M{x} {above}C{handle} {above} {handle} {below} {neck} {below}\"/>")?;
    write!(out, "<path class=\"head\" d=\"M{x} {below}L{neck} {}L{neck} {}Z\"/>", below - 4, below + 4)
}

fn distance(a: Point, b: Point) -> i32 {
    (a.0 - b.0).abs() + (a.1 - b.1).abs()
}

/// The point at that distance from `a` on the horizontal or vertical line to `b`.
fn towards(a: Point, b: Point, distance: i32) -> Point {
    (a.0 + distance * (b.0 - a.0).signum(), a.1 + distance * (b.1 - a.1).signum())
}

/// A text as the content of an element or of an attribute in quotes.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|one| match one {
            // A reader takes line breaks for spaces unless they are written as numbers.
            '&' | '<' | '>' | '"' | '\'' | '\t' | '\n' | '\r' => write!(out, "&#{};", u32::from(one)),
            // Not in a document, even as numbers.
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.write_char('\u{fffd}'),
            _ => out.write_char(one),
        })
    }
}
