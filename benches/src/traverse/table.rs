//! Prints the rows as a Markdown table.

use super::measure::Row;

pub(super) fn print_head() {
    println!(
        "| nodes | edges | walk | nodes/s | edges/s | steps/s | ns a node | to the floor | run p50 | p99 | build | bytes a node |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
}

pub(super) fn print(rows: &[Row]) {
    for (at, row) in rows.iter().enumerate() {
        let (nodes, edges) =
            if at == 0 { (row.nodes.to_string(), row.edges.to_string()) } else { Default::default() };
        let bytes = row.bytes_per_node.map(|bytes| format!("{bytes:.0}")).unwrap_or_default();
        let steps = row.steps_per_second.map(count).unwrap_or_default();
        println!(
            "| {nodes} | {edges} | {} | {} | {} | {steps} | {:.1} | {:.2} | {} | {} | {} | {bytes} |",
            row.entrant,
            count(row.nodes_per_second),
            count(row.edges_per_second),
            row.nanos_per_node,
            row.ratio,
            time(row.run_p50),
            time(row.run_p99),
            time(row.build),
        );
    }
}

pub(super) fn print_notes(rows: &[Row]) {
    println!();
    println!(
        "Every run visited as many nodes as petgraph's walk. Nodes that do not wait for each other run:"
    );
    let mut said: Vec<&str> = Vec::new();
    for row in rows {
        if !said.contains(&row.entrant) {
            said.push(row.entrant);
            println!("- {}: {}", row.entrant, row.order);
        }
    }
}

fn count(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{:.1} M", value / 1e6),
        value if value >= 1e4 => format!("{:.0} k", value / 1e3),
        value => format!("{value:.0}"),
    }
}

fn time(nanos: f64) -> String {
    match nanos {
        nanos if nanos >= 1e9 => format!("{:.2} s", nanos / 1e9),
        nanos if nanos >= 1e6 => format!("{:.2} ms", nanos / 1e6),
        nanos => format!("{:.2} us", nanos / 1e3),
    }
}
