//! [`GaiaAgent`]: a question in, an answer out.
//!
//! The agent is a graph of `agentgraph-llm`: an assistant and its tools in a loop. Each question has a
//! thread, in which every answer of the model and every result of a tool is stored when it is there. A
//! question that was stopped anywhere goes on from there, and one that is done is not asked again.
//!
//! ```text
//! START -> shortcuts (cache, patterns) -> model -> form -> tools (one task per call) -> model .. -> END
//! ```
//!
//! Several runs of a question vote on its answer: a second graph, whose tasks are whole runs.

mod builder;
mod context;
mod form;
mod journal;
mod pattern;
mod prompt;
mod shortcuts;
mod solution;
mod vote;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use agentgraph::{CancellationToken, Checkpoint, Code, CompiledGraph, EventKind, Outcome, View};
use agentgraph_llm::{ChatEvent, CompiledAgent, Message, Origin};
use futures_util::StreamExt;

pub use builder::{BuildError, GaiaAgentBuilder};
pub(crate) use pattern::{expression, opposite};
pub use prompt::{Prompt, PromptChoice};
pub use solution::{AnswerKind, Figures, Solution, Votes};

use shortcuts::{CACHE, Shortcuts};
use vote::Voting;

pub use crate::solving::{Solving, SolvingUpdate};
pub use crate::task::{Attachment, Task, folder_name};

use crate::cache::{AnswerCache, CacheKey};
use crate::log::{Log, chain};
use crate::tools::{Desk, Services};

/// The agent. Cheap to clone.
///
/// ```
/// use agentgraph_llm::{Reply, ScriptedModel};
/// use gaia_agent::agent::{AnswerKind, GaiaAgent, Task};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let model = ScriptedModel::new([
///     Reply::tool_call("calculator", serde_json::json!({"expression": "6 * 7"})),
///     Reply::text("It is six times seven.\nFINAL ANSWER: 42"),
/// ]);
/// let folder = std::env::temp_dir().join(format!("gaia-{}", std::process::id()));
/// let agent = GaiaAgent::builder(model).folder(&folder).build()?;
/// let solution = agent.solve("t-1", &Task::ask("What is six times seven?")).await?;
/// assert_eq!((solution.answer.as_str(), solution.kind), ("42", AnswerKind::Final));
/// # std::fs::remove_dir_all(folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct GaiaAgent {
    agent: CompiledAgent<String, Solving>,
    votes: CompiledGraph<Voting>,
    services: Arc<Services>,
    cache: Option<AnswerCache>,
    prompts: PromptChoice,
    /// The name of the primary model.
    model: String,
    log: Log,
    current: Option<PathBuf>,
    downloads: PathBuf,
    now: fn() -> SystemTime,
}

/// The question of a call, for the shortcuts and the log. Passed to each call, and never stored.
pub(crate) struct Asked {
    pub(crate) task: String,
    pub(crate) question: String,
    /// The facts of its file, in words.
    pub(crate) facts: String,
    /// `None` if the answer depends on a file that is missing.
    pub(crate) key: Option<CacheKey>,
}

/// Why a question could not be worked on. Mistakes of a model or a tool are no such errors: see
/// [`AnswerKind`].
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum SolveError {
    /// The folder of the question's files cannot be used.
    #[error("E_GAIA_DATA: the folder of the files cannot be used: {0}")]
    Folder(#[from] std::io::Error),
    /// The thread cannot be read or written.
    #[error("{0}")]
    Engine(agentgraph::Error),
    /// The run was told to stop before the question was done. It goes on with the next call.
    #[error("the question was stopped before its end; it goes on when it is asked again")]
    Stopped,
}

/// The message, as `fn main() -> Result<()>` prints `Debug`.
impl fmt::Debug for SolveError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// Hears the pieces of a model's answers; `None` if the answer begins anew.
pub type Pieces = Box<dyn FnMut(Option<&str>) + Send>;

/// How a question is worked on, beside the question.
#[derive(Default)]
pub struct SolveOptions {
    /// Stops after what is under way when it is cancelled.
    pub drain: Option<CancellationToken>,
    /// Hears the pieces of the model's answers, if the question is run once.
    pub pieces: Option<Pieces>,
    /// How often the question is run; several runs vote on the answer. 0 is one, too.
    pub runs: u8,
}

impl GaiaAgent {
    /// The settings of an agent over this model.
    pub fn builder(model: impl agentgraph_llm::ChatModel + 'static) -> GaiaAgentBuilder {
        GaiaAgentBuilder::new(Arc::new(model))
    }

    /// Works on a question to its end, in the thread of this name: begins it, goes on with it, or reads its
    /// end.
    ///
    /// # Errors
    /// If the thread cannot be read or written. A model that fails is an [`AnswerKind`].
    pub async fn solve(&self, thread: &str, task: &Task) -> Result<Solution, SolveError> {
        self.solve_with(thread, task, SolveOptions::default()).await
    }

    /// The same with options.
    ///
    /// # Errors
    /// As [`solve`](Self::solve), and [`SolveError::Stopped`] after a drain.
    pub async fn solve_with(
        &self,
        thread: &str,
        task: &Task,
        options: SolveOptions,
    ) -> Result<Solution, SolveError> {
        let id = &task.question.task_id;
        if let Some(done) = self.finished(thread).await? {
            self.log.line(id, "done", "the answer was there already");
            self.keep(task, &done).await;
            return Ok(done);
        }
        self.log.line(id, "question", &task.question.question);
        let solution = match options.runs {
            0 | 1 => self.once(thread, task, options).await,
            _ => self.vote(thread, task, options).await,
        }?;
        self.log.line(id, "answer", &format!("{} ({})", solution.answer, solution.in_words()));
        self.keep(task, &solution).await;
        Ok(solution)
    }

    /// A single run.
    async fn once(&self, thread: &str, task: &Task, options: SolveOptions) -> Result<Solution, SolveError> {
        let id = &task.question.task_id;
        match self.run(thread, task, options).await {
            // The time of the end is that of the last checkpoint, if there are any.
            Ok(_) if self.agent.keeps_threads() => self.finished(thread).await?.ok_or(SolveError::Stopped),
            Ok(state) => Ok(Solution::of(&state, (self.now)())),
            Err(SolveError::Engine(error)) if is_of_models(&error) => {
                self.log.line(id, "failed", &chain(&error));
                self.failed(thread, task, &error).await
            }
            Err(error) => {
                self.log.line(id, "stopped", &chain(&error));
                Err(error)
            }
        }
    }

    /// All runs of a question and their vote. If no run has a final answer and one failed, the next call
    /// votes again: runs that have ended keep their answers.
    async fn vote(&self, thread: &str, task: &Task, options: SolveOptions) -> Result<Solution, SolveError> {
        let call = match self.voting(thread).await?.is_some_and(|last| is_open(&last)) {
            true => self.votes.proceed(),
            false => {
                let kept = self.cached(task, options.runs);
                self.votes.invoke(Voting::update().runs(options.runs).elected(kept))
            }
        };
        let call = if self.agent.keeps_threads() { call.thread(vote::thread(0, thread)) } else { call };
        let drain = options.drain.unwrap_or_default();
        let voters = vote::Voters {
            // Each run is to find an answer of its own.
            agent: GaiaAgent { cache: None, ..self.clone() },
            thread: thread.to_owned(),
            task: task.clone(),
            drain: drain.clone(),
        };
        match ended(call.drain(drain.clone()).context(voters).await) {
            Ok(voting) => voting.elected.ok_or(SolveError::Stopped),
            // A run that was stopped is a failed task.
            Err(_) if drain.is_cancelled() => Err(SolveError::Stopped),
            Err(error) => Err(error),
        }
    }

    async fn voting(&self, thread: &str) -> Result<Option<Checkpoint<Voting>>, SolveError> {
        if !self.agent.keeps_threads() {
            return Ok(None);
        }
        self.votes.state(vote::thread(0, thread)).await.map_err(SolveError::Engine)
    }

    /// The answer of an earlier vote of as many runs or more.
    fn cached(&self, task: &Task, runs: u8) -> Option<Solution> {
        let shortcuts = Shortcuts { cache: self.cache.clone(), patterns: false, log: self.log.clone() };
        let (task_id, key) = (task.question.task_id.clone(), self.key(task, Some(runs))?);
        let kept =
            Message::assistant(shortcuts.cached(&task_id, &key)?).with_origin(Origin::new(CACHE, CACHE));
        let state = Solving { task_id, messages: vec![kept], prompt: key.prompt, ..Solving::default() };
        Some(Solution::of(&state, UNIX_EPOCH))
    }

    /// The end of a question, if its thread has ended.
    ///
    /// # Errors
    /// If the thread cannot be read.
    pub async fn finished(&self, thread: &str) -> Result<Option<Solution>, SolveError> {
        if !self.agent.keeps_threads() {
            return Ok(None);
        }
        if let Some(last) = self.agent.state(thread).await.map_err(SolveError::Engine)? {
            return Ok((!is_open(&last)).then(|| Solution::of(&last.values, last.created)));
        }
        let voting = self.voting(thread).await?.filter(|last| !is_open(last));
        Ok(voting.and_then(|last| last.values.elected).filter(|elected| elected.is_done))
    }

    /// The threads of the runs of a question that are voted on; none if it is run once.
    ///
    /// # Errors
    /// If the thread cannot be read.
    pub async fn runs_of(&self, thread: &str) -> Result<Vec<String>, SolveError> {
        let runs = self.voting(thread).await?.map_or(0, |last| last.values.runs);
        Ok((1..=runs).map(|number| vote::thread(number, thread)).collect())
    }

    /// The file of a question whose thread has begun.
    ///
    /// # Errors
    /// If the thread cannot be read.
    pub async fn attachment(&self, thread: &str) -> Result<Option<Attachment>, SolveError> {
        if !self.agent.keeps_threads() {
            return Ok(None);
        }
        for thread in [thread, &vote::thread(1, thread)] {
            if let Some(last) = self.agent.state(thread).await.map_err(SolveError::Engine)? {
                return Ok(Some(last.values.attachment));
            }
        }
        Ok(None)
    }

    /// The graph, to look at threads.
    pub fn graph(&self) -> &agentgraph::CompiledGraph<Solving> {
        self.agent.graph()
    }

    /// The folder of the files of a question.
    pub fn downloads_of(&self, task_id: &str) -> PathBuf {
        self.downloads.join(folder_name(task_id))
    }

    /// The names of the tools that are offered.
    pub fn tools(&self) -> Vec<String> {
        crate::tools::offered(&self.services).iter().map(|tool| tool.spec().name.clone()).collect()
    }

    /// Gives a call on the [graph](Self::graph) what the tools work with. For callers that do not use
    /// [`solve`](Self::solve).
    ///
    /// # Errors
    /// If the folder of the question's files cannot be opened.
    pub fn set_up<O>(
        &self,
        call: agentgraph::RunBuilder<Solving, O>,
        task: &Task,
    ) -> Result<agentgraph::RunBuilder<Solving, O>, SolveError> {
        let id = &task.question.task_id;
        let own = match &task.attachment {
            Attachment::File { name, .. } => Some(name.as_str()),
            _ => None,
        };
        let services = Arc::clone(&self.services);
        let desk = Desk::new(services, self.current.as_deref(), &self.downloads_of(id), own)?;
        let asked = Asked {
            task: id.clone(),
            question: task.question.question.clone(),
            facts: prompt::facts(&task.attachment, &self.services),
            key: self.key(task, None),
        };
        Ok(call.context(desk).context(asked).max_supersteps(u64::MAX))
    }

    async fn run(&self, thread: &str, task: &Task, options: SolveOptions) -> Result<Solving, SolveError> {
        if let Some(python) = &self.services.python {
            python.learn().await;
        }
        let is_begun = self.agent.keeps_threads()
            && self.agent.state(thread).await.map_err(SolveError::Engine)?.is_some();
        let call = match is_begun {
            true => self.agent.graph().proceed(),
            false => self.agent.graph().invoke(self.input(task)),
        };
        // Without a store there are no threads.
        let call = if self.agent.keeps_threads() { call.thread(thread) } else { call };
        let call = match options.drain {
            Some(drain) => call.drain(drain),
            None => call,
        };
        let call = self.set_up(call, task)?;
        match options.pieces {
            None => ended(call.await),
            Some(pieces) => stream(call.views([View::Messages]), pieces).await,
        }
    }

    /// The first state of a thread: the instructions, which have the facts of the file, and the question.
    pub fn input(&self, task: &Task) -> SolvingUpdate {
        let prompt = self.prompts.of(&task.question.task_id);
        let system = prompt.text(task, &self.services);
        let question = &task.question;
        let now = (self.now)().duration_since(UNIX_EPOCH).unwrap_or_default();
        Solving::update()
            .messages([Message::system(system), Message::user(&question.question)])
            .task_id(&*question.task_id)
            .question(&*question.question)
            .level(question.level)
            .attachment(task.attachment.clone())
            .prompt(prompt.version())
            .model(&*self.model)
            .began(u64::try_from(now.as_millis()).unwrap_or_default())
    }

    /// `None` if there is no cache, or nothing may be kept.
    fn key(&self, task: &Task, runs: Option<u8>) -> Option<CacheKey> {
        self.cache.as_ref()?;
        let files = match &task.attachment {
            Attachment::None => Vec::new(),
            Attachment::File { sha256, .. } => vec![sha256.clone()],
            Attachment::Missing { .. } => return None,
        };
        Some(CacheKey {
            question: task.question.question.clone(),
            files,
            model: self.model.clone(),
            prompt: self.prompts.of(&task.question.task_id).version(),
            runs,
        })
    }

    /// The answer of a question whose models failed: the best so far. The thread stays open, so the next call
    /// goes on.
    async fn failed(
        &self,
        thread: &str,
        task: &Task,
        error: &agentgraph::Error,
    ) -> Result<Solution, SolveError> {
        let stored = match self.agent.keeps_threads() {
            true => self.agent.state(thread).await.map_err(SolveError::Engine)?.map(|last| last.values),
            false => error.state::<Solving>().cloned(),
        };
        let state = stored
            .unwrap_or_else(|| Solving { task_id: task.question.task_id.clone(), ..Solving::default() });
        Ok(Solution::failed(&state, (self.now)(), self.log.secrets().mask(&chain(error))))
    }

    /// Keeps an answer for later runs: a finished one, of the primary model, that had its file.
    async fn keep(&self, task: &Task, solution: &Solution) {
        let runs = solution.votes.map(|votes| votes.runs);
        let (Some(cache), Some(key)) = (&self.cache, self.key(task, runs)) else { return };
        if !solution.may_be_kept() || solution.answered_by.as_deref() != Some(&*self.model) {
            return;
        }
        let (cache, answer) = (cache.clone(), solution.answer.clone());
        let kept = tokio::task::spawn_blocking(move || match cache.get(&key)? {
            Some(hit) if hit.answer == answer && hit.other_question.is_none() => Ok(()),
            _ => cache.put(&key, &answer),
        });
        let id = &task.question.task_id;
        match kept.await {
            Ok(Ok(())) => self.log.line(id, "cache", "the answer is kept"),
            Ok(Err(error)) => self.log.line(id, "cache", &format!("the answer could not be kept: {error}")),
            Err(_) => {}
        }
    }
}

/// Whether the error is of the models, which may work later; the best so far is an answer then.
fn is_of_models(error: &agentgraph::Error) -> bool {
    matches!(error.code(), Code::NodeFailed | Code::NodePanicked | Code::NodeTimeout)
}

/// The pieces of the model's answers, and the outcome.
async fn stream(call: agentgraph::RunBuilder<Solving>, mut pieces: Pieces) -> Result<Solving, SolveError> {
    let mut events = call.stream();
    while let Some(event) = events.next().await {
        if let EventKind::Message { piece, .. } = &event.kind {
            match serde_json::from_value(piece.clone()) {
                Ok(ChatEvent::TextDelta { text, .. }) => pieces(Some(&text)),
                Ok(ChatEvent::Restarted {}) => pieces(None),
                _ => {}
            }
        }
        if let Some(outcome) = event.into_outcome() {
            return ended(outcome);
        }
    }
    Err(SolveError::Stopped)
}

/// Whether a thread has something left to do.
fn is_open<S>(last: &Checkpoint<S>) -> bool {
    !last.next.is_empty() || !last.interrupts.is_empty() || !last.failures.is_empty()
}

fn ended<S>(outcome: Result<Outcome<S>, agentgraph::Error>) -> Result<S, SolveError> {
    match outcome.map_err(SolveError::Engine)? {
        Outcome::Finished { output, .. } => Ok(output),
        Outcome::Interrupted { .. } | Outcome::Stopped { .. } => Err(SolveError::Stopped),
    }
}

impl fmt::Debug for GaiaAgent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = out.debug_struct("GaiaAgent");
        parts.field("model", &self.model).field("services", &self.services).field("cache", &self.cache);
        parts.field("downloads", &self.downloads).finish_non_exhaustive()
    }
}
