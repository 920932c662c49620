//! Prints the table, as Markdown.

use crate::case::Case;
use crate::measure::{Results, SideResults, median};
use crate::side::Side;

pub(crate) fn print_head(rounds: usize) {
    println!(
        "| case | side | steps a second | ours takes, of {rounds} | worker us a step | server us a step | entries a step | bytes a step |"
    );
    println!("|---|---|---|---|---|---|---|---|");
}

pub(crate) fn print(case: &Case, results: &Results) {
    let steps = case.work.steps() as f64;
    for SideResults { side, rounds, journal } in &results.0 {
        let name = if *side == Side::ALL[0] { case.name() } else { String::new() };
        let of = |figure: fn(&crate::measure::Round) -> f64| median(rounds.iter().map(figure).collect());
        // The time of ours to that of the side.
        let mut ratios = results.ratios(*side, Side::Ours, |round| round.steps_per_second);
        ratios.sort_by(f64::total_cmp);
        let ratio = match (*side, ratios.first(), ratios.last()) {
            (Side::Ours, ..) | (_, None, _) | (_, _, None) => String::new(),
            (_, Some(low), Some(high)) => {
                format!("{:.2}x ({low:.2} - {high:.2})", median(ratios.clone()))
            }
        };
        println!(
            "| {name} | {} | {:.0} | {ratio} | {:.0} | {:.0} | {:.2} | {:.0} |",
            side.text(),
            of(|round| round.steps_per_second),
            of(|round| round.worker_micros),
            of(|round| round.server_micros),
            journal.entries as f64 / steps,
            journal.bytes as f64 / steps,
        );
    }
}
