//! Walks of a graph in which each node runs once, after all that lead to it.
//!
//! All entrants walk the same graph in one process and in turns. Each run counts the nodes that it visited,
//! and the count must be the one of petgraph's walk.

mod bare;
mod engine;
mod file;
mod graph;
mod measure;
mod plot;
mod table;

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::Problem;
use graph::{Graph, Shape};

/// The options of `traverse`.
#[derive(Args, Debug)]
pub struct Options {
    /// The shape of the graphs.
    #[arg(long, value_enum, default_value_t = Shape::Chain)]
    shape: Shape,
    /// The numbers of nodes: `1000`, `10,500`, or `10..100000` for each power of ten between.
    #[arg(long, default_value = "10..100000", value_name = "NODES")]
    nodes: Sizes,
    /// The edges into each node, of the shapes `random` and `scale-free`.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    edges: u32,
    /// How the engine walks; all ways that can, unless named. May be given several times.
    #[arg(long, value_enum)]
    discipline: Vec<Discipline>,
    /// The size of the state that each node reads.
    #[arg(long, value_enum, default_value_t = StateSize::Small)]
    state: StateSize,
    /// Where the engine keeps a checkpoint of each step. The walks beside it keep none.
    #[arg(long, value_enum, default_value_t = Store::None)]
    store: Store,
    /// Walks the graph of this file instead: DOT (`.dot`, `.gv`), or a CSV of edges (from, to).
    #[arg(long, conflicts_with_all = ["shape", "nodes", "edges"])]
    file: Option<PathBuf>,
    /// Prints JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Draws the cost of a node against the size, and the ratio to the floor, into this SVG file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// How long the entrants of one graph run, in milliseconds. Each runs three times at least.
    #[arg(long, default_value_t = 1000, value_name = "MILLISECONDS")]
    time: u64,
}

/// How the engine walks a graph.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Discipline {
    /// A state graph: all nodes that are ready run together, and their updates are merged.
    Superstep,
    /// An eager state graph: a node starts as soon as those before it are done.
    Eager,
    /// A dependency graph, whose nodes read the outputs of those before them.
    Pass,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum StateSize {
    Small,
    #[value(name = "1mb")]
    OneMegabyte,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Store {
    None,
    Memory,
    Sqlite,
}

/// Numbers of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sizes(Vec<u32>);

/// The largest graph: a node takes up to a kilobyte while it is built.
const MOST_NODES: u32 = 10_000_000;

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| match text.trim().replace('_', "").parse() {
            Ok(nodes @ 2..=MOST_NODES) => Ok(nodes),
            _ => Err(format!("`{text}` is no number of nodes from 2 to {MOST_NODES}")),
        };
        let Some((from, to)) = text.split_once("..") else {
            return text.split(',').map(number).collect::<Result<_, _>>().map(Sizes);
        };
        let (from, to) = (number(from)?, number(to)?);
        if from > to {
            return Err(format!("`{text}` is empty: the first number is the larger one"));
        }
        let tens = std::iter::successors(Some(10_u32), |ten| ten.checked_mul(10));
        let between = tens.filter(|ten| (from + 1..to).contains(ten));
        let mut sizes = vec![from];
        sizes.extend(between);
        sizes.extend((from < to).then_some(to));
        Ok(Sizes(sizes))
    }
}

/// Measures what the options name, and prints it.
///
/// # Errors
/// When the file cannot be read or its graph cannot be walked, a discipline does not fit, or a file cannot be
/// written.
pub fn main(options: &Options) -> Result<(), Problem> {
    let mut rows = Vec::new();
    let mut measure = |graph: &Graph| -> Result<(), Problem> {
        let measured = measure::graph(graph, options)?;
        if !options.json {
            if rows.is_empty() {
                table::print_head();
            }
            table::print(&measured);
        }
        rows.extend(measured);
        Ok(())
    };
    match &options.file {
        Some(path) => measure(&file::read(path)?)?,
        None => {
            for nodes in &options.nodes.0 {
                measure(&Graph::of(options.shape, *nodes, options.edges))?;
            }
        }
    }
    if options.json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    } else {
        table::print_notes(&rows);
    }
    if let Some(path) = &options.svg {
        plot::draw(path, &title(options), &rows)?;
    }
    Ok(())
}

fn title(options: &Options) -> String {
    match &options.file {
        Some(path) => path.display().to_string(),
        None => options.shape.to_possible_value().map_or_else(String::new, |name| name.get_name().to_owned()),
    }
}

impl Options {
    fn time(&self) -> Duration {
        Duration::from_millis(self.time)
    }

    /// The text in the state.
    fn text(&self) -> String {
        match self.state {
            StateSize::Small => crate::states::TEXT.to_owned(),
            StateSize::OneMegabyte => "x".repeat(1 << 20),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Sizes;

    #[test]
    fn sizes_are_a_number_a_list_or_powers_of_ten_between_two() {
        let sizes = |text: &str| text.parse::<Sizes>().map(|sizes| sizes.0);
        assert_eq!(sizes("1_000"), Ok(vec![1000]));
        assert_eq!(sizes("10, 500"), Ok(vec![10, 500]));
        assert_eq!(sizes("10..1000"), Ok(vec![10, 100, 1000]));
        assert_eq!(sizes("5..2500"), Ok(vec![5, 10, 100, 1000, 2500]));
        assert_eq!(sizes("7..7"), Ok(vec![7]));
        for wrong in ["", "1", "10..", "..10", "1000..10", "10000001", "a", "-5"] {
            assert!(sizes(wrong).is_err(), "{wrong}");
        }
    }
}
