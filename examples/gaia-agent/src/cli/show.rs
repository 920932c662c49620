//! The commands `show`, `score` and `report`.

use std::path::Path;
use std::process::ExitCode;

use gaia_agent::GaiaAgent;
use gaia_agent::report::{Report, prices};
use gaia_agent::run::Run;
use gaia_agent::trace::{Step, StepEvent, steps_of};

use super::failure::Failure;
use super::run::truths;
use super::screen::Screen;
use super::setup::{reader, runs};
use crate::config::Config;

/// The run of this name, or the newest.
fn find(config: &Config, id: Option<&str>) -> Result<Run, Failure> {
    let book = runs(config);
    let found = match id {
        Some(id) => book.open(id)?,
        None => book.latest()?,
    };
    found.ok_or_else(|| match id {
        None => Failure::Unknown("there is no run yet: `gaia-agent run` begins one".to_owned()),
        Some(id) => {
            let ids = book.ids().unwrap_or_default().join(", ");
            Failure::Unknown(format!("there is no run {id}; there are: {ids}"))
        }
    })
}

pub(super) async fn report_of(config: &Config, run: &Run, agent: &GaiaAgent) -> Result<Report, Failure> {
    let mut solutions = Vec::new();
    for question in &run.questions {
        solutions.extend(agent.finished(&run.thread(&question.task_id)).await?);
    }
    Ok(Report::new(run, solutions, &truths(&run.plan.source), prices(&config.prices)))
}

pub(super) async fn score(config: &Config, id: Option<&str>, screen: Screen) -> Result<ExitCode, Failure> {
    let run = find(config, id)?;
    let report = report_of(config, &run, &reader(config).await?).await?;
    let Some(right) = report.right() else {
        let why =
            "the answers of these questions are not known here: `gaia-agent run --submit` asks their server";
        return Err(Failure::Questions(why.to_owned()));
    };
    for row in &report.rows {
        let word = match row.is_right {
            Some(true) => "right",
            Some(false) => "wrong",
            None => "",
        };
        let answer = row.solution.as_ref().map_or("[not answered yet]", |solution| &*solution.answer);
        screen.line(&format!("{word:6} {:24} {answer}", row.question.task_id));
    }
    let count = report.known();
    screen.line(&format!(
        "{right} of {count} answers are right ({:.1} %).",
        100.0 * right as f64 / count.max(1) as f64
    ));
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn report(
    config: &Config,
    id: Option<&str>,
    html: Option<&Path>,
    screen: Screen,
) -> Result<ExitCode, Failure> {
    let run = find(config, id)?;
    let report = report_of(config, &run, &reader(config).await?).await?;
    screen.line(&report.to_text());
    if let Some(path) = html {
        std::fs::write(path, report.to_html()).map_err(|why| Failure::Data { path: path.to_owned(), why })?;
        screen.note(&format!("The page is {}.", path.display()));
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn steps(
    config: &Config,
    task: &str,
    id: Option<&str>,
    json: bool,
    screen: Screen,
) -> Result<ExitCode, Failure> {
    let thread = match task.contains('/') {
        true => task.to_owned(),
        false => find(config, id)?.thread(task),
    };
    let agent = reader(config).await?;
    let steps = steps_of(&agent, &thread).await?;
    if steps.is_empty() {
        return Err(Failure::Unknown(format!(
            "there is no thread {thread}: the question was not begun, or has another id"
        )));
    }
    for step in &steps {
        match json {
            true => screen.line(&serde_json::to_string(step).unwrap_or_default()),
            false => show(step, screen),
        }
    }
    if let Some(solution) = agent.finished(&thread).await?.filter(|_| !json) {
        screen.line(&format!("ANSWER ({}): {}", solution.in_words(), solution.answer));
    }
    Ok(ExitCode::SUCCESS)
}

fn show(step: &Step, screen: Screen) {
    let after = format!("{:.3} s", step.after.as_secs_f64());
    for event in &step.events {
        let (head, text) = match event {
            StepEvent::Instructions { text } => ("INSTRUCTIONS".to_owned(), text.clone()),
            StepEvent::Question { text } => ("QUESTION".to_owned(), text.clone()),
            StepEvent::Reasoning { text } => ("REASONING".to_owned(), text.clone()),
            StepEvent::Text { by, text } => (format!("TEXT of {by}"), text.clone()),
            StepEvent::Call { id, tool, arguments } => (format!("CALL {id} {tool}"), arguments.clone()),
            StepEvent::Result { id, text, failed: false } => (format!("RESULT {id}"), text.clone()),
            StepEvent::Result { id, text, failed: true } => (format!("ERROR {id}"), text.clone()),
            StepEvent::Tokens { round, usage } => {
                (format!("ROUND {round}"), format!("{} + {} tokens", usage.input_total, usage.output_total))
            }
            StepEvent::Failure { node, error } => (format!("FAILED {node}"), error.clone()),
            _ => continue,
        };
        screen.line(&format!("[{after}] {head}"));
        for line in text.lines() {
            screen.line(&format!("    {line}"));
        }
    }
}
