//! Prints the table, as Markdown.

use crate::case::Case;
use crate::measure::{Results, SideResults, median};
use crate::side::Side;

/// The most that a graph may take of the time of handlers with the same entries.
const BUDGET: f64 = 1.2;

/// A figure over the budget by less than this factor may be noise.
const TOLERANCE: f64 = 1.25;

pub(crate) fn print_head(rounds: usize) {
    println!(
        "| case | side | steps a second | the graph takes, of {rounds} | budget | | worker us a step | server us a step | entries a step | bytes a step |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
}

pub(crate) fn print(case: &Case, results: &Results) {
    let steps = case.work.steps() as f64;
    for SideResults { side, rounds, journal } in &results.0 {
        let name = if *side == Side::ALL[0] { case.name() } else { String::new() };
        let of = |figure: fn(&crate::measure::Round) -> f64| median(rounds.iter().map(figure).collect());
        println!(
            "| {name} | {} | {:.0} | {} | {:.0} | {:.0} | {:.2} | {:.0} |",
            side.text(),
            of(|round| round.steps_per_second),
            ratio(results, *side),
            of(|round| round.worker_micros),
            of(|round| round.server_micros),
            journal.entries as f64 / steps,
            journal.bytes as f64 / steps,
        );
    }
}

/// The cells of the graph's time to that of a side: the ratio with its limits, the budget and the verdict.
fn ratio(results: &Results, side: Side) -> String {
    let mut ratios = results.ratios(side, Side::Ours, |round| round.steps_per_second);
    ratios.sort_by(f64::total_cmp);
    let (Some(low), Some(high)) = (ratios.first(), ratios.last()) else { return " | | ".to_owned() };
    let middle = median(ratios.clone());
    let shown = format!("{middle:.2}x ({low:.2} - {high:.2})");
    match side {
        Side::Ours => " | | ".to_owned(),
        Side::Least => format!("{shown} | | "),
        Side::Same => format!("{shown} | {BUDGET:.1}x | {}", verdict(middle)),
    }
}

fn verdict(ratio: f64) -> &'static str {
    match ratio {
        ratio if ratio <= BUDGET => "met",
        ratio if ratio <= BUDGET * TOLERANCE => "near",
        _ => "missed",
    }
}
