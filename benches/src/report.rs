//! Prints the tables as Markdown, ready for a document.

use crate::accepted::{Accepted, Allocations};
use crate::arguments::Arguments;
use crate::baseline::Baseline;
use crate::case::{Case, Figure};
use crate::measure::{CaseResults, EntrantAllocations, merge_medians, spread};
use crate::postgres::URL;

/// The factor by which noise alone may exceed a budget.
const TOLERANCE: f64 = 1.25;

pub(crate) fn print_head(arguments: &Arguments, compared: bool) {
    let processes = arguments.processes();
    let (change, line) = if compared { (" change |", "---|") } else { ("", "") };
    println!(
        "| case | entrant | ns a unit | ratio to the floor | lowest - highest of {processes} | budget | |{change}"
    );
    println!("|---|---|---|---|---|---|---|{line}");
}

pub(crate) fn times(case: &Case, measured: &[CaseResults], before: Option<&Baseline>) {
    let found = merge_medians(measured);
    for (at, taken) in found.entrants.iter().enumerate() {
        let (low, high) = spread(measured, at);
        let name = if at == 0 { format!("{} (a {})", case.name, case.unit) } else { String::new() };
        let (ratio, range) = match at {
            0 => (String::new(), String::new()),
            _ => (format!("{:.2}", taken.ratio), format!("{low:.2} - {high:.2}")),
        };
        let (budget, verdict) = judge(taken.ratio, taken.budget);
        let change = match before.map(|before| before.ratio(case.name, &taken.label)) {
            None => String::new(),
            Some(Some(ratio)) if at > 0 => format!(" {:+.0} % |", (taken.ratio / ratio - 1.0) * 100.0),
            Some(_) => " |".to_owned(),
        };
        println!(
            "| {name} | {} | {:.1} | {ratio} | {range} | {budget} | {verdict} |{change}",
            taken.label, taken.nanos
        );
    }
    for Figure { what, value, unit, budget } in &found.figures {
        let (budget, verdict) = judge(*value, *budget);
        println!("| | {what} | {} {unit} | | | {budget} | {verdict} |", format_number(*value));
    }
}

/// Prints the row of a case that needs a missing server.
pub(crate) fn print_left_out(case: &Case) {
    println!("| {} | left out: Postgres is not installed, and `{URL}` is not set | | | | | |", case.name);
}

/// Prints one row for all Postgres cases, for a program built without them.
pub(crate) fn print_not_built() {
    println!("| postgres | left out: built without `--features postgres` | | | | | |");
}

pub(crate) fn allocations(lines: &[EntrantAllocations], accepted: &Accepted) {
    println!("| case | entrant | allocations a unit | accepted | bytes a unit | accepted | budget | |");
    println!("|---|---|---|---|---|---|---|---|");
    let mut last = "";
    for line in lines {
        let name = if line.case == last { String::new() } else { format!("{} (a {})", line.case, line.unit) };
        last = line.case;
        let (budget, verdict) = judge(line.count, line.most);
        let (accepted, accepted_bytes) = match accepted.of(line) {
            Some(Allocations { count, bytes }) => (format!("{count:.2}"), format!("{bytes:.0}")),
            None => Default::default(),
        };
        println!(
            "| {name} | {} | {:.2} | {accepted} | {:.0} | {accepted_bytes} | {budget} | {verdict} |",
            line.label, line.count, line.bytes
        );
    }
}

fn judge(value: f64, budget: Option<f64>) -> (String, &'static str) {
    let Some(budget) = budget else { return (String::new(), "") };
    let verdict = match value {
        value if value <= budget => "met",
        value if value <= budget * TOLERANCE => "near",
        _ => "missed",
    };
    (format_number(budget), verdict)
}

fn format_number(value: f64) -> String {
    match value {
        value if value >= 1000.0 => format!("{value:.0}"),
        value if value == value.trunc() => format!("{value:.0}"),
        value => format!("{value:.2}"),
    }
}
