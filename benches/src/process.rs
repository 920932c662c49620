//! The measuring processes: the parent starts one child for each case and turn, and reads its figures.

use std::hint::black_box;
use std::process::{Command, Stdio};

use crate::Problem;
use crate::arguments::Arguments;
use crate::baseline::Baseline;
use crate::case::{Case, Entrant};
use crate::measure::{self, CaseResults, merge_medians};
use crate::postgres::{self, Server};
use crate::report;

pub(crate) fn main(cases: Vec<Case>, arguments: &Arguments) -> Result<(), Problem> {
    if arguments.list {
        cases.iter().for_each(|case| println!("{}", case.name));
        return Ok(());
    }
    match (&arguments.child, arguments.solo) {
        (Some(name), _) => child(named(&cases, name)?, arguments.quick),
        (None, Some(entrant)) => solo(&cases, arguments, entrant),
        (None, None) => parent(&cases, arguments),
    }
}

fn parent(cases: &[Case], arguments: &Arguments) -> Result<(), Problem> {
    let wanted: Vec<&Case> = cases.iter().filter(|case| arguments.wants(case.name)).collect();
    if wanted.is_empty() {
        let names: Vec<&str> = cases.iter().map(|case| case.name).collect();
        return Err(format!("no case is called that; there are: {}", names.join(", ")).into());
    }
    let before = arguments.baseline.as_deref().map(Baseline::read).transpose()?;
    let mut kept = Baseline::default();
    // All cases share one server, because starting it takes longer than most cases.
    let postgres = wanted.iter().any(|case| case.needs_postgres).then(Server::get).flatten();
    report::print_head(arguments, before.is_some());
    for case in wanted {
        if case.needs_postgres && postgres.is_none() {
            report::print_left_out(case);
            continue;
        }
        let turns = (0..arguments.processes()).map(|_| ask_child(case, postgres.as_ref(), arguments.quick));
        let measured = turns.collect::<Result<Vec<CaseResults>, Problem>>()?;
        kept.add(case.name, &merge_medians(&measured));
        report::times(case, &measured, before.as_ref());
    }
    if !cfg!(feature = "postgres") && arguments.wants("postgres") {
        report::print_not_built();
    }
    arguments.save_baseline.as_deref().map_or(Ok(()), |name| kept.save(name))
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
fn solo(cases: &[Case], arguments: &Arguments, entrant: usize) -> Result<(), Problem> {
    let mut wanted = cases.iter().filter(|case| arguments.wants(case.name));
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

fn named<'a>(cases: &'a [Case], name: &str) -> Result<&'a Case, Problem> {
    let found = cases.iter().find(|case| case.name == name);
    found.ok_or_else(|| format!("there is no case `{name}`").into())
}
