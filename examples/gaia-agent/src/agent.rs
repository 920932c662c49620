//! [`GaiaAgent`]: a question in, an answer out.
//!
//! The agent is a graph of `agentgraph-llm`: an assistant and its tools in a loop. Each question has a
//! thread, in which every answer of the model and every result of a tool is stored when it is there. A
//! question that was stopped anywhere goes on from there, and one that is done is not asked again.
//!
//! ```text
//! START -> shortcuts (cache, patterns) -> model -> form -> tools (one task per call) -> model .. -> END
//! ```

mod builder;
mod context;
mod form;
mod journal;
mod pattern;
mod prompt;
mod shortcuts;
mod solution;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use agentgraph::{CancellationToken, Code, EventKind, Outcome, View};
use agentgraph_llm::{ChatEvent, CompiledAgent, Message};
use futures_util::StreamExt;

pub use builder::{BuildError, GaiaAgentBuilder};
pub(crate) use pattern::expression;
pub use prompt::{Prompt, PromptChoice};
pub use solution::{AnswerKind, Figures, Solution};

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
    /// Hears the pieces of the model's answers.
    pub pieces: Option<Pieces>,
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
        let ended = self.run(thread, task, options).await;
        let solution = match ended {
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
        }?;
        self.log.line(id, "answer", &format!("{} ({})", solution.answer, solution.kind.in_words()));
        self.keep(task, &solution).await;
        Ok(solution)
    }

    /// The end of a question, if its thread has ended.
    ///
    /// # Errors
    /// If the thread cannot be read.
    pub async fn finished(&self, thread: &str) -> Result<Option<Solution>, SolveError> {
        if !self.agent.keeps_threads() {
            return Ok(None);
        }
        let Some(last) = self.agent.state(thread).await.map_err(SolveError::Engine)? else { return Ok(None) };
        let is_open = !last.next.is_empty() || !last.interrupts.is_empty() || !last.failures.is_empty();
        Ok((!is_open).then(|| Solution::of(&last.values, last.created)))
    }

    /// The file of a question whose thread has begun.
    ///
    /// # Errors
    /// If the thread cannot be read.
    pub async fn attachment(&self, thread: &str) -> Result<Option<Attachment>, SolveError> {
        if !self.agent.keeps_threads() {
            return Ok(None);
        }
        let last = self.agent.state(thread).await.map_err(SolveError::Engine)?;
        Ok(last.map(|last| last.values.attachment))
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
            key: self.key(task),
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

    fn key(&self, task: &Task) -> Option<CacheKey> {
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
        let (Some(cache), Some(key)) = (&self.cache, self.key(task)) else { return };
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

fn ended(outcome: Result<Outcome<Solving>, agentgraph::Error>) -> Result<Solving, SolveError> {
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
