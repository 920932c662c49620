//! The command `ask`.

use std::process::ExitCode;

use gaia_agent::agent::{Attachment, SolveOptions, Task};
use gaia_agent::evaluation::EvaluationClient;
use gaia_agent::run::{FileSource, fetch};

use super::AskOptions;
use super::failure::{Failure, in_words_of_the_program};
use super::run::client;
use super::screen::Screen;
use super::setup::{Commits, Setup};
use crate::config::Config;

pub(super) async fn run(config: &Config, options: &AskOptions, screen: Screen) -> Result<ExitCode, Failure> {
    let named = options.questions.as_deref().map(|address| client(config, address)).transpose()?;
    // The questions of the embedded server are about its world.
    let is_embedded = options.random && named.is_none();
    let setup = Setup::open(config, is_embedded, named.as_ref(), Commits::new(1), screen).await?;
    let embedded = setup.server.as_ref().map(|server| EvaluationClient::new(server.url())).transpose()?;
    let task = match (&options.text, named.or(embedded)) {
        (None, Some(server)) => {
            let question = server.random_question().await?;
            screen.note(&question.question);
            let folder = setup.agent.downloads_of(&question.task_id);
            let attachment = fetch(&FileSource::Server(server), &question, &folder).await?;
            Task { question, attachment }
        }
        (text, _) => with_file(Task::ask(text.clone().unwrap_or_default()), options, &setup)?,
    };
    let thread = format!("ask/{}", uuid::Uuid::new_v4());
    let mut solve = SolveOptions { runs: options.runs, ..SolveOptions::default() };
    if options.stream {
        solve.pieces = Some(Box::new(move |piece| match piece {
            Some(text) => screen.piece(text),
            None => screen.note("\n[the answer begins again]"),
        }));
    }
    let solution = setup.agent.solve_with(&thread, &task, solve).await?;
    if options.stream {
        screen.note("");
    }
    screen.line(&solution.answer);
    screen.note(&format!("({}; `gaia-agent show {thread}` shows the steps)", solution.in_words()));
    if let Some(error) = &solution.error {
        screen.note(&in_words_of_the_program(error));
    }
    Ok(if solution.is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The question with the person's file, copied into its downloads. Questions about other files are others.
fn with_file(mut task: Task, options: &AskOptions, setup: &Setup) -> Result<Task, Failure> {
    let Some(path) = &options.file else { return Ok(task) };
    let content = std::fs::read(path).map_err(|why| Failure::Data { path: path.clone(), why })?;
    task.question.task_id = format!("ask-{}", uuid::Uuid::new_v4());
    let folder = setup.agent.downloads_of(&task.question.task_id);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(task.with(Attachment::store(&folder, &name, &content)?))
}
