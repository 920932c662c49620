//! The tables, as Markdown.

use harness::Case;

use crate::entrant::{Entrant, FLOOR, Measured, OURS, Size};
use crate::figures::{Figure, Figures, Span};

pub fn print(cases: &[Case], entrants: &[Entrant], figures: &Figures) {
    print_summary(cases, entrants, figures);
    print_all(cases, entrants, figures);
    print_notes(cases, entrants, figures);
}

/// The floor, this engine and the best of the others.
fn print_summary(cases: &[Case], entrants: &[Entrant], figures: &Figures) {
    println!("| processor time | {FLOOR} | {OURS} | to {FLOOR} | best other engine | to {OURS} | |");
    println!("|---|---|---|---|---|---|---|");
    for case in cases {
        let to_floor =
            figures.ratio(*case, OURS, FLOOR).map(|ratio| format!("{ratio:.1}x")).unwrap_or_default();
        let engines = entrants.iter().filter(|entrant| ![FLOOR, OURS, "petgraph"].contains(&entrant.name));
        let ratios =
            engines.filter_map(|entrant| Some((entrant.name, figures.ratio(*case, entrant.name, OURS)?)));
        let (best, ratio, lost) = match ratios.min_by(|(_, one), (_, other)| one.total_cmp(other)) {
            Some((name, ratio)) => {
                let best = format!("{}, {name}", cell(*case, name, figures));
                (best, format!("{ratio:.1}x"), if ratio < 1.0 { "lost" } else { "" })
            }
            None => ("none can".to_owned(), String::new(), ""),
        };
        let (floor, ours) = (cell(*case, FLOOR, figures), cell(*case, OURS, figures));
        println!("| {} | {floor} | {ours} | {to_floor} | {best} | {ratio} | {lost} |", case.title());
    }
}

fn print_all(cases: &[Case], entrants: &[Entrant], figures: &Figures) {
    let name = |entrant: &Entrant| match figures.versions.get(entrant.name).map(String::as_str) {
        None | Some("") => entrant.name.to_owned(),
        Some(version) => format!("{} {version}", entrant.name),
    };
    println!("\n| processor time | {} |", entrants.iter().map(name).collect::<Vec<_>>().join(" | "));
    println!("|---|{}", "---|".repeat(entrants.len()));
    let print_row = |title: &str, cell: &dyn Fn(&str) -> String| {
        let cells: Vec<String> = entrants.iter().map(|entrant| cell(entrant.name)).collect();
        println!("| {title} | {} |", cells.join(" | "));
    };
    for case in cases {
        print_row(&case.title(), &|name| cell(*case, name, figures));
        let more = |value: fn(&Measured) -> Option<f64>, format: fn(f64) -> String| {
            move |name: &str| {
                Span::of(figures.values(*case, name, value))
                    .map(|span| format(span.median))
                    .unwrap_or_default()
            }
        };
        match case {
            Case::Sqlite(_) | Case::Growing(_) => {
                print_row("- elapsed", &more(|round| Some(round.wall), time))
            }
            Case::Waiting(_) => print_row("- memory", &more(|round| round.bytes, bytes)),
            _ => {}
        }
        if matches!(case, Case::Growing(_)) {
            print_row("- on disk, a run", &more(|round| round.bytes, bytes));
        }
    }
    if figures.sizes.is_empty() {
        return;
    }
    let size = |value: fn(&Size) -> Option<String>| {
        move |name: &str| figures.sizes.get(name).and_then(value).unwrap_or_default()
    };
    let seconds = |size: &Size| size.further.map(|(seconds, _)| format!("{seconds:.2} s"));
    print_row("a further graph: processor seconds of its build", &size(seconds));
    print_row("- size", &size(|size| size.further.map(|(_, more)| bytes(more))));
    print_row("program with all cases", &size(|size| Some(bytes(size.program as f64))));
    print_row("crates", &size(|size| Some(size.crates.to_string())));
}

fn cell(case: Case, name: &str, figures: &Figures) -> String {
    match figures.figure(case, name) {
        None => String::new(),
        Some(Figure::Lacks(reason)) => reason.clone(),
        Some(Figure::Rounds { note, .. }) => {
            let Some(span) = Span::of(figures.values(case, name, |round| Some(round.cpu))) else {
                return String::new();
            };
            let mark = if note.is_empty() { "" } else { "*" };
            format!("{}{mark} ({} - {})", time(span.median), time(span.lowest), time(span.highest))
        }
    }
}

fn print_notes(cases: &[Case], entrants: &[Entrant], figures: &Figures) {
    println!();
    for (name, reason) in &figures.dropped {
        println!("- {name} is left out: {reason}");
    }
    let mut said: Vec<(&str, &str)> = Vec::new();
    for entrant in entrants {
        for case in cases {
            let Some(Figure::Rounds { note, .. }) = figures.figure(*case, entrant.name) else { continue };
            if !note.is_empty() && !said.contains(&(entrant.name, note)) {
                said.push((entrant.name, note));
                println!("- *: {}, {}: {note}", entrant.name, case.name());
            }
        }
    }
}

fn time(nanos: f64) -> String {
    match nanos {
        nanos if nanos >= 1e7 => format!("{:.0} ms", nanos / 1e6),
        nanos if nanos >= 1e6 => format!("{:.1} ms", nanos / 1e6),
        nanos if nanos >= 1e5 => format!("{:.0} us", nanos / 1e3),
        nanos if nanos >= 1e4 => format!("{:.1} us", nanos / 1e3),
        nanos => format!("{nanos:.0} ns"),
    }
}

fn bytes(bytes: f64) -> String {
    match bytes {
        bytes if bytes >= 1e6 => format!("{:.1} MB", bytes / 1e6),
        bytes if bytes >= 1e4 => format!("{:.0} KB", bytes / 1e3),
        bytes => format!("{bytes:.0} B"),
    }
}
