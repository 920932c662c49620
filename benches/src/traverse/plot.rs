//! Draws the rows: the cost of a node against the size, and the ratio to the floor.

use std::path::Path;

use plotters::prelude::*;

use super::measure::Row;
use crate::Problem;

const SIZE: (u32, u32) = (1100, 460);
const COLOURS: [RGBColor; 5] = [
    RGBColor(110, 110, 110),
    RGBColor(200, 120, 20),
    RGBColor(20, 100, 190),
    RGBColor(20, 140, 80),
    RGBColor(170, 40, 110),
];

pub(super) fn draw(path: &Path, title: &str, rows: &[Row]) -> Result<(), Problem> {
    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let area = area.titled(title, ("sans-serif", 20))?;
    let halves = area.split_evenly((1, 2));
    chart(&halves[0], "nanoseconds a node", rows, |row| row.nanos_per_node)?;
    chart(&halves[1], "times the walk by hand", rows, |row| row.ratio)?;
    area.present().map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(())
}

fn chart(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    caption: &str,
    rows: &[Row],
    value: fn(&Row) -> f64,
) -> Result<(), Problem> {
    let nodes = span(rows.iter().map(|row| row.nodes as f64));
    let values = span(rows.iter().map(value));
    let mut chart = ChartBuilder::on(area)
        .caption(caption, ("sans-serif", 15))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(56)
        .build_cartesian_2d(nodes.log_scale(), values.log_scale())?;
    chart.configure_mesh().x_desc("nodes").light_line_style(WHITE).draw()?;
    let mut entrants: Vec<&str> = Vec::new();
    rows.iter().filter(|row| row.nodes == rows[0].nodes).for_each(|row| entrants.push(row.entrant));
    for (entrant, colour) in entrants.into_iter().zip(COLOURS) {
        let points: Vec<(f64, f64)> = rows
            .iter()
            .filter(|row| row.entrant == entrant)
            .map(|row| (row.nodes as f64, value(row)))
            .collect();
        let dots = points.iter().map(|point| Circle::new(*point, 3, colour.filled()));
        chart.draw_series(dots)?;
        let line = chart.draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)))?;
        line.label(entrant)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    Ok(())
}

/// A range around the values that is never empty.
fn span(values: impl Iterator<Item = f64> + Clone) -> std::ops::Range<f64> {
    let lowest = values.clone().fold(f64::INFINITY, f64::min);
    let highest = values.fold(0.0, f64::max);
    lowest * 0.8..highest * 1.6
}
