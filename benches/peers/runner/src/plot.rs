//! Draws each entrant's times of the floor, a row for each case.

use std::path::Path;

use harness::Case;
use plotters::prelude::*;

use crate::Problem;
use crate::entrant::{Entrant, FLOOR, OURS};
use crate::figures::Figures;

const ROW: u32 = 26;
const WIDTH: u32 = 1000;

pub fn draw(path: &Path, cases: &[Case], entrants: &[Entrant], figures: &Figures) -> Result<(), Problem> {
    let ratio = |case: &Case, entrant: &Entrant| figures.ratio(*case, entrant.name, FLOOR);
    let all =
        || cases.iter().flat_map(|case| entrants.iter().filter_map(move |entrant| ratio(case, entrant)));
    let lowest = all().fold(1.0, f64::min) * 0.8;
    let highest = all().fold(10.0, f64::max) * 1.5;
    let area = SVGBackend::new(path, (WIDTH, 120 + ROW * cases.len() as u32)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption("processor time, times that of the same work by hand", ("sans-serif", 16))
        .margin(10)
        .margin_right(150)
        .x_label_area_size(34)
        .y_label_area_size(230)
        .build_cartesian_2d((lowest..highest).log_scale(), 0.0..cases.len() as f64)?;
    // The first case is on top.
    let height = |at: usize| (cases.len() - at) as f64 - 0.5;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .y_labels(0)
        .x_label_formatter(&|ratio| format!("{ratio}x"))
        .draw()?;
    for (at, case) in cases.iter().enumerate() {
        let left = chart.backend_coord(&(lowest, height(at)));
        let style = ("sans-serif", 12).into_text_style(&area).pos(text_anchor_right());
        area.draw(&Text::new(case.title(), (left.0 - 8, left.1), style))?;
        chart.draw_series([PathElement::new(
            [(lowest, height(at)), (highest, height(at))],
            BLACK.mix(0.12),
        )])?;
    }
    for (number, entrant) in entrants.iter().enumerate().filter(|(_, entrant)| entrant.name != FLOOR) {
        let colour = if entrant.name == OURS { BLACK.to_rgba() } else { Palette99::pick(number).to_rgba() };
        let radius = if entrant.name == OURS { 6 } else { 4 };
        let points =
            cases.iter().enumerate().filter_map(|(at, case)| Some((ratio(case, entrant)?, height(at))));
        let dots: Vec<_> = points.map(|point| Circle::new(point, radius, colour.filled())).collect();
        chart
            .draw_series(dots)?
            .label(entrant.name)
            .legend(move |(x, y)| Circle::new((x - 10, y), radius, colour.filled()));
    }
    let place = SeriesLabelPosition::Coordinate((WIDTH - 380) as i32, 8);
    chart
        .configure_series_labels()
        .position(place)
        .background_style(WHITE.mix(0.9))
        .border_style(BLACK.mix(0.2))
        .draw()?;
    area.present().map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(())
}

fn text_anchor_right() -> plotters::style::text_anchor::Pos {
    use plotters::style::text_anchor::{HPos, Pos, VPos};
    Pos::new(HPos::Right, VPos::Center)
}
