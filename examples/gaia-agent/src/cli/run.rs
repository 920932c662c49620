//! The command `run`.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use agentgraph::CancellationToken;
use gaia_agent::agent::{GaiaAgent, Solution, SolveError};
use gaia_agent::evaluation::submission::{self, SubmitError};
use gaia_agent::evaluation::{EvaluationClient, Score, Submission, SubmittedAnswer};
use gaia_agent::question::{Question, read_questions};
use gaia_agent::report::{Report, prices};
use gaia_agent::run::{FileSource, Plan, Progress, Run, RunEnd, Runner};
use gaia_agent::tools::kind_by_content;
use gaia_agent::trace::{reasoning, steps_of};
use serde_json::json;

use super::RunOptions;
use super::failure::{Failure, in_words_of_the_program};
use super::screen::Screen;
use super::setup::{Commits, EMBEDDED, Setup, runs};
use super::status::Status;
use crate::config::Config;

/// Where questions come from.
pub(super) enum Source {
    Embedded,
    Server(EvaluationClient),
    File(PathBuf),
}

impl Source {
    pub(super) fn of(config: &Config, named: Option<&str>) -> Result<Self, Failure> {
        match named {
            None => Ok(Source::Embedded),
            Some(address) if address.contains("://") => Ok(Source::Server(client(config, address)?)),
            Some(file) => {
                let path = std::path::absolute(file)?;
                Ok(Source::File(path))
            }
        }
    }

    /// The server, if it is another one than that of the embedded world.
    pub(super) fn server(&self) -> Option<&EvaluationClient> {
        match self {
            Source::Server(client) => Some(client),
            _ => None,
        }
    }

    /// The questions, and where their files are. The client is that of the source or of the embedded world.
    pub(super) async fn questions(&self, from: Option<&EvaluationClient>) -> Result<Vec<Question>, Failure> {
        match (self, from) {
            (Source::File(path), _) => {
                let wrong = |why: String| Failure::Questions(format!("{}: {why}", path.display()));
                let content = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
                let kind = kind_by_content(&content).map(|kind| format!("; the file is {kind}"));
                read_questions(content).map_err(|why| wrong(why + &kind.unwrap_or_default()))
            }
            (_, Some(client)) => Ok(client.questions().await?),
            (_, None) => Ok(Vec::new()),
        }
    }

    pub(super) fn files(&self, config: &Config, server: Option<&EvaluationClient>) -> FileSource {
        match (self, server) {
            (Source::File(path), _) => FileSource::Folder(path.parent().unwrap_or(Path::new(".")).to_owned()),
            (_, Some(client)) => FileSource::Server(client.clone()),
            (_, None) => FileSource::Folder(config.data_dir.clone()),
        }
    }

    pub(super) fn name(&self) -> String {
        match self {
            Source::Embedded => EMBEDDED.to_owned(),
            Source::Server(client) => client.base().to_string(),
            Source::File(path) => path.display().to_string(),
        }
    }
}

pub(super) fn client(config: &Config, address: &str) -> Result<EvaluationClient, Failure> {
    let client = EvaluationClient::new(address)?;
    Ok(match &config.keys.hugging_face {
        Some(token) => client.token(token.clone()),
        None => client,
    })
}

pub(super) async fn run(config: &Config, options: &RunOptions, screen: Screen) -> Result<ExitCode, Failure> {
    let submitter = submitter(config, options)?;
    let drain = CancellationToken::new();
    let Ready { setup, run, runner, server, _lock } =
        prepare(config, options, Commits::new(1), drain.clone(), screen).await?;
    listen(drain, screen)?;
    let end = work(&runner, &run, screen).await;
    let report = log_report(config, &run, &end, &runner);
    if let Some(path) = &options.export {
        export(path, &setup.agent, &run, &end, screen).await?;
    }
    if end.stopped > 0 {
        screen.note(&stopped(&run, end.stopped));
        return Ok(ExitCode::FAILURE);
    }
    conclude(config, &setup, &run, &report, screen);
    if let Some((username, agent_code)) = submitter {
        let client = server.ok_or_else(no_server)?;
        match submit(config, &run, &end.solutions, &client, (username, agent_code), options.again).await {
            Ok(score) => screen.line(&format!("Submitted: {}", in_words(&score))),
            Err(SubmitError::Accepted(score)) => screen.line(&format!(
                "The answers of this run were submitted before: {score:.1} %. --again submits them once more."
            )),
            Err(error) => return Err(error.into()),
        }
    }
    let is_whole = end.errors.is_empty() && end.solutions.iter().all(|solution| solution.is_done);
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A run to be worked on, and the lock that keeps others out of its folder.
pub(super) struct Ready {
    pub(super) setup: Setup,
    pub(super) run: Run,
    pub(super) runner: Runner,
    pub(super) server: Option<EvaluationClient>,
    pub(super) _lock: File,
}

pub(super) async fn prepare(
    config: &Config,
    options: &RunOptions,
    commits: Commits,
    drain: CancellationToken,
    screen: Screen,
) -> Result<Ready, Failure> {
    let source = Source::of(config, options.questions.as_deref())?;
    let is_embedded = matches!(source, Source::Embedded);
    let setup = Setup::open(config, is_embedded, source.server(), commits, screen).await?;
    let _lock = lock(&config.data_dir)?;
    let server = match (&source, &setup.server) {
        (Source::Embedded, Some(server)) => Some(EvaluationClient::new(server.url())?),
        _ => source.server().cloned(),
    };
    let run = begin_or_go_on(config, options, &source, server.as_ref(), &setup.agent, screen).await?;
    setup.log.line("", "run", &format!("{} of {}", run.id, run.plan.source));
    let runner = Runner {
        agent: setup.agent.clone(),
        files: source.files(config, server.as_ref()),
        concurrency: options.concurrency.into(),
        drain,
        log: setup.log.clone(),
    };
    Ok(Ready { setup, run, runner, server, _lock })
}

/// The report of a run that has ended, which is the last line of its log.
pub(super) fn log_report(config: &Config, run: &Run, end: &RunEnd, runner: &Runner) -> Report {
    let report = Report::new(run, end.solutions.clone(), &truths(&run.plan.source), prices(&config.prices));
    runner.log.line("", "report", &report.to_text());
    report
}

pub(super) fn stopped(run: &Run, left: usize) -> String {
    let of = run.questions.len();
    format!("Stopped: {} of {of} questions are done; `gaia-agent run` goes on with the others.", of - left)
}

/// The name and the code of the submission, if it is asked for. Checked before the run, which may take long.
pub(super) fn submitter(config: &Config, options: &RunOptions) -> Result<Option<(String, String)>, Failure> {
    if !options.submit {
        return Ok(None);
    }
    let missing = |flag: &str| Failure::Usage(format!("--submit needs {flag}"));
    let username = options.username.clone().or_else(|| config.submitter.username.clone());
    let code = options.agent_code.clone().or_else(|| config.submitter.agent_code.clone());
    Ok(Some((username.ok_or_else(|| missing("--username"))?, code.ok_or_else(|| missing("--agent-code"))?)))
}

/// One run at a time works in a data folder.
pub(super) fn lock(folder: &Path) -> Result<File, Failure> {
    let path = folder.join("run.lock");
    let wrong = |why| Failure::Data { path: path.clone(), why };
    let file = File::create(&path).map_err(wrong)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Failure::InUse { path: folder.to_owned() }),
        Err(TryLockError::Error(why)) => Err(Failure::Data { path, why }),
    }
}

/// The last run, if it is about the same and has not ended; else a new one.
async fn begin_or_go_on(
    config: &Config,
    options: &RunOptions,
    source: &Source,
    server: Option<&EvaluationClient>,
    agent: &GaiaAgent,
    screen: Screen,
) -> Result<Run, Failure> {
    let plan = Plan {
        source: source.name(),
        limit: options.limit,
        level: options.level,
        model: config.model_name(),
        prompts: config.prompts_name.clone(),
        python: config.tools.python,
        runs: (options.runs > 1).then_some(options.runs),
    };
    let book = runs(config);
    if !options.new
        && let Some(last) = book.latest()?.filter(|last| last.plan == plan)
    {
        let left = open_questions(agent, &last).await?;
        // Of a run that has ended, its answers can still be submitted or exported.
        let is_wanted = options.submit || options.export.is_some();
        if left > 0 || (is_wanted && !last.questions.is_empty()) {
            let total = last.questions.len();
            screen.note(&format!("Run {} goes on: {left} of {total} questions are left.", last.id));
            return Ok(last);
        }
    }
    let all = source.questions(server).await?;
    let is_wanted = |question: &Question| options.level.is_none_or(|level| question.level == level);
    let questions: Vec<_> =
        all.into_iter().filter(is_wanted).take(options.limit.unwrap_or(usize::MAX)).collect();
    if questions.is_empty() {
        return Err(Failure::Questions(format!("{} has no such questions", plan.source)));
    }
    let run = book.begin(plan, questions, SystemTime::now())?;
    screen.note(&format!("Run {}: {} questions.", run.id, run.questions.len()));
    Ok(run)
}

async fn open_questions(agent: &GaiaAgent, run: &Run) -> Result<usize, Failure> {
    let mut open = 0;
    for question in &run.questions {
        open += usize::from(agent.finished(&run.thread(&question.task_id)).await?.is_none());
    }
    Ok(open)
}

/// The first interrupt drains the run; the second ends the program.
pub(super) fn listen(drain: CancellationToken, screen: Screen) -> Result<(), Failure> {
    let mut interrupts = interrupts()?;
    tokio::spawn(async move {
        interrupts.recv().await;
        screen.status("Stopping after what is under way; interrupt once more to stop at once.");
        drain.cancel();
        interrupts.recv().await;
        std::process::exit(130);
    });
    Ok(())
}

#[cfg(unix)]
fn interrupts() -> std::io::Result<tokio::signal::unix::Signal> {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())
}

#[cfg(windows)]
fn interrupts() -> std::io::Result<tokio::signal::windows::CtrlC> {
    tokio::signal::windows::ctrl_c()
}

async fn work(runner: &Runner, run: &Run, screen: Screen) -> RunEnd {
    let mut status = Status::new(screen, run.questions.len());
    runner
        .run(run, |progress| match progress {
            Progress::Solved(solution) => status.done(&line(solution)),
            // One line at the end counts them.
            Progress::NotSolved(_, SolveError::Stopped) => {}
            Progress::NotSolved(question, error) => status.done(&format!("{:24} {error}", question.task_id)),
        })
        .await
}

pub(super) fn line(solution: &Solution) -> String {
    let answer: String =
        solution.answer.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(60).collect();
    let failed = match &solution.error {
        Some(error) => {
            let error = in_words_of_the_program(error.lines().next().unwrap_or_default());
            format!("; the models failed: {error}")
        }
        None => String::new(),
    };
    format!("{:24} {answer} ({}{failed})", solution.task_id, solution.in_words())
}

/// The figures of the run, and what a person can do about the rest.
fn conclude(config: &Config, setup: &Setup, run: &Run, report: &Report, screen: Screen) {
    screen.line("");
    if let Some(right) = report.right() {
        screen.line(&format!("{right} of {} answers are right.", report.known()));
    }
    let is_code = |question: &&Question| question.file_name.ends_with(".py");
    let code: Vec<_> =
        run.questions.iter().filter(is_code).map(|question| question.task_id.as_str()).collect();
    if !config.tools.python && !code.is_empty() {
        screen.line(&format!("Python code is not run ({}): --allow-python allows it.", code.join(", ")));
    }
    if let Some(path) = setup.log.path() {
        screen.note(&format!("The log is {}.", path.display()));
    }
}

/// Writes the answers in the form that the leaderboard takes, a line each.
async fn export(
    path: &Path,
    agent: &GaiaAgent,
    run: &Run,
    end: &RunEnd,
    screen: Screen,
) -> Result<(), Failure> {
    let mut lines = String::new();
    for solution in &end.solutions {
        let steps = steps_of(agent, &run.thread(&solution.task_id)).await?;
        let line = json!({
            "task_id": solution.task_id,
            "model_answer": solution.answer,
            "reasoning_trace": reasoning(&steps),
        });
        lines += &format!("{line}\n");
    }
    std::fs::write(path, lines).map_err(|why| Failure::Data { path: path.to_owned(), why })?;
    screen.note(&format!("{} answers are in {}.", end.solutions.len(), path.display()));
    Ok(())
}

/// The answers of the embedded questions. The truths of a file are in its run.
pub(super) fn truths(source: &str) -> BTreeMap<String, String> {
    if source == EMBEDDED { gaia_agent::world::World::new().truths } else { BTreeMap::new() }
}

pub(super) fn no_server() -> Failure {
    Failure::Usage("a file of questions has no server to submit to".to_owned())
}

pub(super) fn in_words(score: &Score) -> String {
    format!("{:.1} %, {} right. {}", score.score, score.correct_count, score.message)
}

pub(super) async fn submit(
    config: &Config,
    run: &Run,
    solutions: &[Solution],
    client: &EvaluationClient,
    (username, agent_code): (String, String),
    again: bool,
) -> Result<Score, SubmitError> {
    let answer = |solution: &Solution| SubmittedAnswer {
        task_id: solution.task_id.clone(),
        submitted_answer: solution.answer.clone(),
    };
    let submission = Submission { username, agent_code, answers: solutions.iter().map(answer).collect() };
    submission::submit(client, submission, &runs(config).submission(run), again).await
}
