//! The tables, as Markdown, so that they can go into a document as they are.

use crate::arguments::Arguments;
use crate::case::{Case, Figure};
use crate::measure::{Counted, Measured, middle, spread};
use crate::postgres::URL;

/// Over a budget by less than this share it may be noise.
const TOLERANCE: f64 = 1.25;

pub(crate) fn head(arguments: &Arguments) {
    println!(
        "| case | entrant | ns a unit | ratio to the floor | lowest - highest of {} | budget | |",
        arguments.processes
    );
    println!("|---|---|---|---|---|---|---|");
}

pub(crate) fn times(case: &Case, measured: &[Measured]) {
    let found = middle(measured);
    for (at, taken) in found.entrants.iter().enumerate() {
        let (low, high) = spread(measured, at);
        let name = if at == 0 { format!("{} (a {})", case.name, case.unit) } else { String::new() };
        let (ratio, range) = match at {
            0 => (String::new(), String::new()),
            _ => (format!("{:.2}", taken.ratio), format!("{low:.2} - {high:.2}")),
        };
        let (budget, verdict) = judged(taken.ratio, taken.budget);
        println!(
            "| {name} | {} | {:.1} | {ratio} | {range} | {budget} | {verdict} |",
            taken.label, taken.nanos
        );
    }
    for Figure { what, value, unit, budget } in &found.figures {
        let (budget, verdict) = judged(*value, *budget);
        println!("| | {what} | {} {unit} | | | {budget} | {verdict} |", number(*value));
    }
}

/// For a case that needs a server where there is none.
pub(crate) fn left_out(case: &Case) {
    println!("| {} | left out: Postgres is not installed, and `{URL}` is not set | | | | | |", case.name);
}

/// For all cases that need a server, where the program was built without them.
pub(crate) fn not_built() {
    println!("| postgres | left out: built without `--features postgres` | | | | | |");
}

pub(crate) fn allocations(lines: &[Counted]) {
    println!("| case | entrant | allocations a unit | bytes a unit | budget | |");
    println!("|---|---|---|---|---|---|");
    let mut last = "";
    for line in lines {
        let name = if line.case == last { String::new() } else { format!("{} (a {})", line.case, line.unit) };
        last = line.case;
        let (budget, verdict) = judged(line.count, line.most);
        println!(
            "| {name} | {} | {:.2} | {:.0} | {budget} | {verdict} |",
            line.label, line.count, line.bytes
        );
    }
}

fn judged(value: f64, budget: Option<f64>) -> (String, &'static str) {
    let Some(budget) = budget else { return (String::new(), "") };
    let verdict = match value {
        value if value <= budget => "met",
        value if value <= budget * TOLERANCE => "near",
        _ => "missed",
    };
    (number(budget), verdict)
}

fn number(value: f64) -> String {
    match value {
        value if value >= 1000.0 => format!("{value:.0}"),
        value if value == value.trunc() => format!("{value:.0}"),
        value => format!("{value:.2}"),
    }
}
