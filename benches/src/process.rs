//! The measuring processes: the parent starts one child for each case and turn, and reads its figures.

use std::hint::black_box;
use std::process::{Command, Stdio};

use crate::Problem;
use crate::arguments::Arguments;
use crate::case::{Case, Entrant};
use crate::measure::{self, CaseResults};
use crate::postgres::{self, Server};
use crate::{cases, report};

pub(crate) fn main(arguments: &Arguments) -> Result<(), Problem> {
    match (&arguments.child, arguments.solo) {
        (Some(name), _) => child(&named(name)?, arguments.quick),
        (None, Some(entrant)) => solo(arguments, entrant),
        (None, None) => parent(arguments),
    }
}

fn parent(arguments: &Arguments) -> Result<(), Problem> {
    let wanted: Vec<Case> = cases::all().into_iter().filter(|case| arguments.wants(case.name)).collect();
    if wanted.is_empty() {
        let names: Vec<&str> = cases::all().iter().map(|case| case.name).collect();
        return Err(format!("no case is called that; there are: {}", names.join(", ")).into());
    }
    // All cases share one server, because starting it takes longer than most cases.
    let postgres = wanted.iter().any(|case| case.needs_postgres).then(Server::get).flatten();
    report::print_head(arguments);
    for case in &wanted {
        if case.needs_postgres && postgres.is_none() {
            report::print_left_out(case);
            continue;
        }
        let turns = (0..arguments.processes).map(|_| ask_child(case, postgres.as_ref(), arguments.quick));
        let measured = turns.collect::<Result<Vec<CaseResults>, Problem>>()?;
        report::times(case, &measured);
    }
    if !cfg!(feature = "postgres") && arguments.wants("postgres") {
        report::print_not_built();
    }
    Ok(())
}

fn ask_child(case: &Case, postgres: Option<&Server>, quick: bool) -> Result<CaseResults, Problem> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--child", case.name]).stdout(Stdio::piped());
    if quick {
        command.arg("--quick");
    }
    if let Some(server) = postgres {
        command.env(postgres::URL, server.url());
    }
    let output = command.spawn()?.wait_with_output()?;
    if !output.status.success() {
        return Err(format!("the process that measured `{}` failed: {}", case.name, output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn child(case: &Case, quick: bool) -> Result<(), Problem> {
    let measured = measure::times(case, quick);
    println!("{}", serde_json::to_string(&measured)?);
    Ok(())
}

/// Runs one entrant of the first case that the arguments name.
fn solo(arguments: &Arguments, entrant: usize) -> Result<(), Problem> {
    let mut wanted = cases::all().into_iter().filter(|case| arguments.wants(case.name));
    let case = wanted.next().ok_or("`--solo` needs the name of a case")?;
    let mut entrants = (case.entrants)();
    let last = entrants.len() - 1;
    let entrant = entrants.get_mut(entrant).ok_or_else(|| format!("the entrants are 0 to {last}"))?;
    eprintln!("{}: {}, {} {}s each", case.name, entrant.label, case.units, case.unit);
    counted_runs(entrant, arguments.times);
    Ok(())
}

/// Runs the entrant. `instructions.sh` counts the instructions of this function and finds it by its name.
#[inline(never)]
fn counted_runs(entrant: &mut Entrant, times: u64) {
    (entrant.run)(black_box(times));
    black_box(());
}

fn named(name: &str) -> Result<Case, Problem> {
    let found = cases::all().into_iter().find(|case| case.name == name);
    found.ok_or_else(|| format!("there is no case `{name}`").into())
}
