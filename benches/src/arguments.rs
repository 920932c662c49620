//! The command line of the measuring programs.

use clap::Parser;

/// The parsed arguments.
#[derive(Parser, Clone, Debug)]
#[command(
    about = "Measures cases against hand-written floors in the same program, and prints Markdown",
    after_help = "A figure is the median of the processes. Only the ratio to the floor is judged; the nanoseconds \
                  depend on the machine."
)]
pub struct Arguments {
    /// Names of cases (`chain/10`) or of groups (`chain`); without any, all cases run.
    names: Vec<String>,
    /// Prints the names of the cases and measures nothing.
    #[arg(long)]
    pub list: bool,
    /// Runs each case once in one process, to see that it runs.
    #[arg(long)]
    pub quick: bool,
    /// The number of fresh processes that measure each case.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    processes: u32,
    /// Keeps the ratios under this name, below `target`.
    #[arg(long, value_name = "NAME")]
    pub(crate) save_baseline: Option<String>,
    /// Shows the change against the ratios kept under this name.
    #[arg(long, value_name = "NAME")]
    pub(crate) baseline: Option<String>,
    /// Takes the counted allocations for those that later ones are compared with: `benches/allocations.csv`.
    #[arg(long)]
    pub(crate) accept: bool,
    /// Runs only this entrant of the first case, for tools that count instructions; 0 is the floor.
    #[arg(long, value_name = "ENTRANT")]
    pub(crate) solo: Option<usize>,
    /// How often the entrant of `--solo` runs.
    #[arg(long, default_value_t = 1)]
    pub(crate) times: u64,
    /// The case that this process measures for its parent.
    #[arg(long, hide = true)]
    pub(crate) child: Option<String>,
    /// Passed by cargo to every bench.
    #[arg(long, hide = true)]
    bench: bool,
}

impl Arguments {
    /// Reads the command line; ends the program after `--help` or a mistake.
    pub fn read() -> Self {
        Self::parse()
    }

    /// Whether a case of this name is wanted: it was named, or its group was.
    pub fn wants(&self, case: &str) -> bool {
        let matches = |name: &String| {
            case.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.names.is_empty() || self.names.iter().any(matches)
    }

    pub(crate) fn processes(&self) -> u32 {
        if self.quick { 1 } else { self.processes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_a_case_or_its_group_and_no_part_of_a_name() {
        let wants = |names: &[&str], case| Arguments::parse_from(["bench"].iter().chain(names)).wants(case);
        assert!(wants(&[], "chain/10"));
        assert!(wants(&["chain/10"], "chain/10"));
        assert!(wants(&["sqlite", "chain"], "chain/10"));
        assert!(!wants(&["chain/10"], "chain/100"));
        assert!(!wants(&["chai"], "chain/10"));
        assert!(!wants(&["10"], "chain/10"));
    }
}
