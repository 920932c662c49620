//! Builds the entrants and measures them in turns: each case in a fresh process, all entrants one after the
//! other in each round. See `--help`.

mod entrant;
mod figures;
mod plot;
mod table;

use std::path::PathBuf;

use clap::Parser;
use clap::builder::PossibleValuesParser;
use harness::Case;

use entrant::Entrant;
use figures::Figures;

pub type Problem = Box<dyn std::error::Error>;

#[derive(Parser)]
#[command(
    bin_name = "benches/peers/run",
    about = "Measures this engine beside loops by hand and other engines, and prints Markdown",
    after_help = "A figure is the processor time of a unit, the median of the rounds. Ratios are those within a round. \
                  What an entrant cannot do is said in its cell."
)]
struct Arguments {
    /// Names of cases, separated by commas.
    #[arg(long, value_delimiter = ',', value_parser = case_names())]
    cases: Vec<String>,
    /// Names of entrants, separated by commas; the loops by hand and this engine always run.
    #[arg(long, value_delimiter = ',', value_parser = entrant_names())]
    entrants: Vec<String>,
    /// How often each case is measured.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Runs each case once and measures no sizes and no builds: to see that everything runs.
    #[arg(long)]
    quick: bool,
    /// Prints all figures as JSON in the place of tables.
    #[arg(long)]
    json: bool,
    /// Draws the times of the floor to this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Prints the names of the cases and of the entrants, and measures nothing.
    #[arg(long)]
    list: bool,
}

fn main() -> Result<(), Problem> {
    let arguments = Arguments::parse();
    if arguments.list {
        Case::ALL.iter().for_each(|case| println!("{}", case.name()));
        println!();
        entrant::ALL.iter().for_each(|entrant| println!("{}", entrant.name));
        return Ok(());
    }
    let (cases, mut entrants) = (arguments.cases(), arguments.entrants());
    let mut figures = Figures::default();
    for entrant in &entrants {
        eprintln!("builds {}", entrant.name);
        figures.add_build(entrant, !arguments.quick);
    }
    entrants.retain(|entrant| !figures.dropped.contains_key(entrant.name));
    for round in 1..=arguments.rounds {
        for case in &cases {
            for entrant in &entrants {
                eprintln!("round {round}: {}, {}", case.name(), entrant.name);
                figures.measure(*case, entrant, arguments.quick);
            }
        }
    }
    if let Some(path) = &arguments.svg {
        plot::draw(path, &cases, &entrants, &figures)?;
    }
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&figures)?);
    } else {
        table::print(&cases, &entrants, &figures);
    }
    Ok(())
}

impl Arguments {
    fn cases(&self) -> Vec<Case> {
        let is_wanted = |case: &Case| self.cases.is_empty() || self.cases.contains(&case.name());
        Case::ALL.into_iter().filter(is_wanted).collect()
    }

    fn entrants(&self) -> Vec<Entrant> {
        let is_wanted = |entrant: &Entrant| {
            let is_fixed = [entrant::FLOOR, entrant::OURS].contains(&entrant.name);
            is_fixed || self.entrants.is_empty() || self.entrants.iter().any(|name| name == entrant.name)
        };
        entrant::ALL.into_iter().filter(is_wanted).collect()
    }
}

fn case_names() -> PossibleValuesParser {
    Case::ALL.map(Case::name).into()
}

fn entrant_names() -> PossibleValuesParser {
    entrant::ALL.map(|entrant| entrant.name).into()
}
