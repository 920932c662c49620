//! [`Runner`]: works on the questions of a run.

use std::path::{Path, PathBuf};

use agentgraph::CancellationToken;
use futures_util::{StreamExt, stream};

use super::Run;
use crate::agent::{Attachment, GaiaAgent, Solution, SolveError, SolveOptions, Task};
use crate::evaluation::EvaluationClient;
use crate::log::Log;
use crate::question::Question;

/// Where the files of questions come from.
#[derive(Clone, Debug)]
pub enum FileSource {
    /// An evaluation server.
    Server(EvaluationClient),
    /// A folder, in which each file has the name that its question says.
    Folder(PathBuf),
}

/// Works on the questions of a run, several at once.
#[derive(Clone, Debug)]
pub struct Runner {
    /// The agent.
    pub agent: GaiaAgent,
    /// Where files come from.
    pub files: FileSource,
    /// How many questions are worked on at once; at least one.
    pub concurrency: usize,
    /// Ends the run after what is under way when it is cancelled.
    pub drain: CancellationToken,
    /// The log.
    pub log: Log,
}

/// An event of a run.
#[derive(Debug)]
pub enum Progress<'a> {
    /// A question is done, or has the best answer so far.
    Solved(&'a Solution),
    /// A question could not be worked on, or was stopped.
    NotSolved(&'a Question, &'a SolveError),
}

/// The end of a run.
#[derive(Debug, Default)]
pub struct RunEnd {
    /// The solutions, in the order of the questions.
    pub solutions: Vec<Solution>,
    /// The questions that were stopped, or not begun, since the run was told to end.
    pub stopped: usize,
    /// The errors of questions that could not be worked on.
    pub errors: Vec<(String, SolveError)>,
}

impl Runner {
    /// Works on all questions of the run that are not done.
    pub async fn run(&self, run: &Run, mut heard: impl FnMut(Progress<'_>)) -> RunEnd {
        let working = run.questions.iter().cloned().enumerate().map(|(at, question)| {
            let (runner, thread, runs) =
                (self.clone(), run.thread(&question.task_id), run.plan.runs.unwrap_or(1));
            async move {
                // In a task of its own, so that questions share the processors. A run that is dropped drops
                // them.
                let mut tasks = tokio::task::JoinSet::new();
                let asked = question.clone();
                tasks.spawn(async move { runner.solve(&thread, &asked, runs).await });
                let solved = tasks.join_next().await;
                (at, question, solved.and_then(Result::ok).unwrap_or(Err(SolveError::Stopped)))
            }
        });
        let mut working = stream::iter(working).buffer_unordered(self.concurrency.max(1));
        let mut solutions: Vec<Option<Solution>> = vec![None; run.questions.len()];
        let mut end = RunEnd::default();
        while let Some((at, question, solved)) = working.next().await {
            match solved {
                Ok(solution) => {
                    heard(Progress::Solved(&solution));
                    solutions[at] = Some(solution);
                }
                Err(error) => {
                    heard(Progress::NotSolved(&question, &error));
                    match error {
                        SolveError::Stopped => end.stopped += 1,
                        error => end.errors.push((question.task_id, error)),
                    }
                }
            }
        }
        end.solutions = solutions.into_iter().flatten().collect();
        end
    }

    async fn solve(&self, thread: &str, question: &Question, runs: u8) -> Result<Solution, SolveError> {
        let is_done = self.agent.finished(thread).await?.is_some();
        if self.drain.is_cancelled() && !is_done {
            return Err(SolveError::Stopped);
        }
        let attachment = match is_done {
            true => self.agent.attachment(thread).await?.unwrap_or_default(),
            false => self.attachment(thread, question).await?,
        };
        let task = Task { question: question.clone(), attachment };
        let options = SolveOptions { drain: Some(self.drain.clone()), runs, ..SolveOptions::default() };
        self.agent.solve_with(thread, &task, options).await
    }

    /// The file of a question. A thread that has begun keeps its own, if it is still there.
    async fn attachment(&self, thread: &str, question: &Question) -> Result<Attachment, SolveError> {
        let folder = self.agent.downloads_of(&question.task_id);
        match self.agent.attachment(thread).await? {
            Some(begun) if begun.is_in(&folder) => return Ok(begun),
            _ => {}
        }
        let attachment = fetch(&self.files, question, &folder).await?;
        if let Attachment::Missing { name, why } = &attachment {
            self.log.line(&question.task_id, "file missing", &format!("{name}: {why}"));
        }
        Ok(attachment)
    }
}

/// Fetches the file of a question into a folder. A file that cannot be had is missing, and no error.
///
/// # Errors
/// If the folder cannot be written.
pub async fn fetch(files: &FileSource, question: &Question, folder: &Path) -> Result<Attachment, SolveError> {
    let Some(name) = question.file() else { return Ok(Attachment::None) };
    match content(files, question).await {
        Ok(content) => Ok(Attachment::store(folder, name, &content)?),
        Err(why) => Ok(Attachment::Missing { name: name.to_owned(), why }),
    }
}

/// The content of the file of a question.
///
/// # Errors
/// Why it cannot be had.
pub async fn content(files: &FileSource, question: &Question) -> Result<Vec<u8>, String> {
    match (files, question.file()) {
        (_, None) => Err("the question has no file".to_owned()),
        (FileSource::Server(client), _) => {
            client.file(&question.task_id).await.map_err(|error| error.to_string())
        }
        (FileSource::Folder(source), Some(name)) => read(source, name).await,
    }
}

/// A file of a folder; a name that leads out of it has none.
async fn read(source: &Path, name: &str) -> Result<Vec<u8>, String> {
    let (source, name) = (source.to_owned(), name.to_owned());
    let read = tokio::task::spawn_blocking(move || {
        let folder = cap_std::fs::Dir::open_ambient_dir(source, cap_std::ambient_authority())?;
        folder.read(name)
    });
    match read.await {
        Ok(content) => content.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}
