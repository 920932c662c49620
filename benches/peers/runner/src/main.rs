//! Builds the entrants and measures them in turns: each case in a fresh process, all entrants one after the
//! other in each round. See `--help`.

mod entrant;
mod figures;
mod plot;
mod table;

use std::path::PathBuf;

use clap::Parser;
use harness::Case;

use entrant::Entrant;
use figures::Figures;

pub type Problem = Box<dyn std::error::Error>;

#[derive(Parser)]
#[command(
    about = "Measures this engine beside loops by hand and other engines, and prints Markdown",
    after_help = "A figure is the processor time of a unit, the median of the rounds. Ratios are those within a round. \
                  What an entrant cannot do is said in its cell."
)]
struct Arguments {
    /// Names of cases, separated by commas; `--list` shows them.
    #[arg(long, value_delimiter = ',')]
    cases: Vec<String>,
    /// Names of entrants, separated by commas; the loops by hand and this engine always run.
    #[arg(long, value_delimiter = ',')]
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
        entrant::all().iter().for_each(|entrant| println!("{}", entrant.name));
        return Ok(());
    }
    let cases = arguments.cases()?;
    let entrants = arguments.entrants()?;
    let mut figures = Figures::default();
    for entrant in &entrants {
        eprintln!("builds {}", entrant.name);
        figures.add_build(entrant, !arguments.quick);
    }
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
    fn cases(&self) -> Result<Vec<Case>, Problem> {
        if self.cases.is_empty() {
            return Ok(Case::ALL.to_vec());
        }
        let named = |name: &String| {
            Case::named(name).ok_or_else(|| format!("there is no case `{name}`; see `--list`").into())
        };
        self.cases.iter().map(named).collect()
    }

    fn entrants(&self) -> Result<Vec<Entrant>, Problem> {
        let all = entrant::all();
        if let Some(name) = self.entrants.iter().find(|name| all.iter().all(|entrant| entrant.name != **name))
        {
            return Err(format!("there is no entrant `{name}`; see `--list`").into());
        }
        let is_wanted = |entrant: &Entrant| {
            let is_fixed = [entrant::FLOOR, entrant::OURS].contains(&entrant.name);
            is_fixed || self.entrants.is_empty() || self.entrants.iter().any(|name| name == entrant.name)
        };
        Ok(all.into_iter().filter(is_wanted).collect())
    }
}
