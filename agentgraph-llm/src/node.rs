//! [`LlmNode`]: a node of a dependency graph that calls a model.
//!
//! One call of the node has four phases. *Compose*: the request is built from the prompts and answers of the
//! dependencies and from the node's own prompt. *Call*: the model answers. *Check*: the answer is checked.
//! *After*: the node's own code runs, and may edit the graph. A refused answer goes back to the model with
//! the reason, until the limit of attempts.
//!
//! - Edits, changes and texts that belong to a refused answer are undone; only an accepted answer leaves
//!   traces. Tool calls, and other effects outside of the graph, are not undone.
//! - The model has its own timeouts and retries. An error of the model fails the node at once, and a
//!   [`RetryPolicy`](agentgraph::RetryPolicy) on the node starts from the beginning.
//! - A skipped node calls no model; its last output is kept.

mod answer;
mod check;
mod checked_answer;
mod compose;
mod database;
mod meter;
mod tries;

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use agentgraph::dependency::{Deps, Given, IntoDependencyNode, PassEdits};
use agentgraph::{Ctx, DependencyNode, Session};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::Result;
use crate::model::{ChatModel, ChatRequest};
use crate::template::Template;
use crate::tool::Tool;
use crate::tool_loop::{DEFAULT_MAX_CONCURRENCY, DEFAULT_MAX_ROUNDS};
use crate::tool_macro::IntoTool;
use tries::Call;

pub use answer::{Answer, Attempt, Exchange};
pub use check::{JsonCheck, JsonKind};
pub use checked_answer::{CheckedAnswer, Refusal};
pub use compose::Composition;
pub use database::Database;
pub use meter::{Meter, MeterReading};
pub use tries::RefusedAnswers;

/// The default limit of attempts.
pub const DEFAULT_TRIES: usize = 3;

/// A node of a [`DependencyGraph`](agentgraph::DependencyGraph) that calls a model. See the
/// [module](crate::node).
///
/// ```
/// use agentgraph::prelude::*;
/// use agentgraph_llm::prelude::*;
/// use agentgraph_llm::{Answer, JsonCheck, LlmNode};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agentgraph::Result<()> {
/// let model = ScriptedModel::new(["Oslo, Bergen", "I like Bergen.", r#"{"answer": "Bergen"}"#]);
/// let graph = DependencyGraph::<Answer>::new()
///     .node("list", LlmNode::new(model.clone(), "Which towns?").system("Be brief."))
///     .node("pick", LlmNode::new(model.clone(), "Pick one.").json(JsonCheck::object().required(["answer"])))
///     .edge("list", "pick")
///     .compile()?;
///
/// let answers = graph.invoke(()).finish().await?;
/// assert_eq!(answers["pick"].text, r#"{"answer": "Bergen"}"#);
/// assert_eq!(answers["pick"].tries.len(), 2);
///
/// // The second request has the prompt and answer of `list`, and the own prompt. The third adds what was refused.
/// let texts = |n: usize| model.requests()[n].messages.iter().map(Message::text).collect::<Vec<_>>();
/// assert_eq!(texts(1), ["Which towns?", "Oslo, Bergen", "Pick one."]);
/// assert_eq!(texts(2)[3..4], ["I like Bergen."]);
/// # Ok(())
/// # }
/// ```
pub struct LlmNode<O: 'static = Answer, S = ()> {
    model: Arc<dyn ChatModel>,
    prompt: Template,
    system: Option<Template>,
    compose: Option<ComposeWith<O>>,
    tools: Vec<Arc<dyn Tool>>,
    max_rounds: usize,
    max_concurrency: usize,
    check: Option<JsonCheck>,
    shows_schema: bool,
    after: Vec<AfterStep<O, S>>,
    tries: usize,
    feedback: Feedback,
    accepts_cut: bool,
    otherwise: Option<String>,
    db: Option<DatabaseSource<S>>,
    meter: Option<Meter>,
}

type ComposeWith<O> = Arc<dyn Fn(&Composition<'_, O>) -> Result<ChatRequest> + Send + Sync>;
type AfterResult<O, S> = std::result::Result<CheckedAnswer<O, S>, Refusal>;
type AfterStep<O, S> =
    Arc<dyn Fn(CheckedAnswer<O, S>) -> BoxFuture<'static, AfterResult<O, S>> + Send + Sync>;

/// The source of a node's database.
enum DatabaseSource<S> {
    Handle(Database),
    Session,
    Input(Arc<dyn Fn(&S) -> Value + Send + Sync>),
}

/// The refused answers that a repeated request contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Feedback {
    /// The last one, with the reason of its refusal.
    #[default]
    LastOnly,
    /// All of them, each with the reason of its refusal.
    Accumulating,
}

impl<O: 'static, S> LlmNode<O, S> {
    /// A node that calls `model` with this prompt. A text is taken literally; use a [`Template`] for values
    /// of the database.
    pub fn new(model: impl ChatModel + 'static, prompt: impl Into<Template>) -> Self {
        LlmNode {
            model: Arc::new(model),
            prompt: prompt.into(),
            system: None,
            compose: None,
            tools: Vec::new(),
            max_rounds: DEFAULT_MAX_ROUNDS,
            max_concurrency: DEFAULT_MAX_CONCURRENCY,
            check: None,
            shows_schema: false,
            after: Vec::new(),
            tries: DEFAULT_TRIES,
            feedback: Feedback::default(),
            accepts_cut: false,
            otherwise: None,
            db: None,
            meter: None,
        }
    }

    /// Sets the instructions, which become the system message.
    pub fn system(mut self, system: impl Into<Template>) -> Self {
        self.system = Some(system.into());
        self
    }

    /// Sets the database for the values of prompt and instructions and for [`CheckedAnswer::db`]: a
    /// [`Database`] that nodes share, or a JSON value of this node alone.
    pub fn db(mut self, db: impl Into<Database>) -> Self {
        self.db = Some(DatabaseSource::Handle(db.into()));
        self
    }

    /// Uses the run's own [`Database`], which the graph declares with `.session::<Database>("db")`. It starts
    /// as `null` and is stored with the run.
    pub fn session_db(mut self) -> Self {
        self.db = Some(DatabaseSource::Session);
        self
    }

    /// Takes the values from the input of the pass.
    pub fn input_db(mut self, db: impl Fn(&S) -> Value + Send + Sync + 'static) -> Self {
        self.db = Some(DatabaseSource::Input(Arc::new(db)));
        self
    }

    /// Replaces the way in which the request is composed, or adds settings such as the temperature. The
    /// composition contains the database; its handle is locked meanwhile.
    ///
    /// ```
    /// use agentgraph_llm::prelude::*;
    /// use agentgraph_llm::{Answer, Composition, LlmNode};
    ///
    /// let node = LlmNode::<Answer>::new(ScriptedModel::new(["Hm."]), "Which is best?")
    ///     .compose(|question: &Composition<'_, Answer>| Ok(question.request().with_temperature(0.0)));
    /// ```
    pub fn compose(
        mut self,
        compose: impl Fn(&Composition<'_, O>) -> Result<ChatRequest> + Send + Sync + 'static,
    ) -> Self {
        self.compose = Some(Arc::new(compose));
        self
    }

    /// Adds a tool that the model may call before it answers; see [`ToolLoop`](crate::ToolLoop).
    pub fn tool<Form>(mut self, tool: impl IntoTool<Form, Tool: 'static>) -> Self {
        self.tools.push(Arc::new(tool.into_tool()));
        self
    }

    /// Limits the rounds of tool calls for one answer (10 if not set, at least 1).
    pub fn max_rounds(mut self, rounds: usize) -> Self {
        self.max_rounds = rounds.max(1);
        self
    }

    /// Limits the number of tool calls of one message that run at the same time (16 if not set, at least 1).
    /// The graph limits how many nodes run concurrently.
    ///
    /// ```
    /// use agentgraph_llm::prelude::*;
    /// use agentgraph_llm::{Answer, LlmNode};
    ///
    /// # fn search() -> impl Tool + 'static {
    /// #     FnTool::new("search", "Searches.", async |_: serde_json::Value| Ok::<_, ToolError>("nothing"))
    /// # }
    /// // The service behind the tool accepts two calls at once.
    /// let node = LlmNode::<Answer>::new(ScriptedModel::new(["Hm."]), "What is known of tides?").tool(search()).max_concurrency(2);
    /// ```
    pub fn max_concurrency(mut self, calls: usize) -> Self {
        self.max_concurrency = calls.max(1);
        self
    }

    /// Accepts only answers whose last JSON value passes the check. Without a check every text is accepted.
    pub fn json(mut self, check: JsonCheck) -> Self {
        self.check = Some(check);
        self
    }

    /// Accepts only answers whose last JSON value is a `T`. The JSON schema of `T` is added to the
    /// instructions.
    pub fn typed<T: DeserializeOwned + JsonSchema>(mut self) -> Self {
        self.shows_schema = true;
        self.json(JsonCheck::typed::<T>())
    }

    /// Runs code on each answer that passed the check. It may edit the graph, change the database, replace
    /// the text, or refuse the answer. Several of them run in order.
    ///
    /// ```
    /// use agentgraph_llm::prelude::*;
    /// use agentgraph_llm::{Answer, JsonCheck, LlmNode};
    ///
    /// let node = LlmNode::<Answer>::new(ScriptedModel::new([r#"{"answer": "no"}"#]), "Shall we?")
    ///     .json(JsonCheck::object().required(["answer"]).length(1))
    ///     .after(|after| {
    ///         let other = if after.json()?["answer"] == "yes" { "stay" } else { "go" };
    ///         Ok(after.edits().remove_edge(after.node(), other)?)
    ///     });
    /// ```
    pub fn after<F>(self, after: F) -> Self
    where
        F: Fn(&mut CheckedAnswer<O, S>) -> std::result::Result<(), Refusal> + Send + Sync + 'static,
        O: Send + Sync + 'static,
        S: Send + Sync + 'static,
    {
        self.step(move |mut answer| {
            let result = after(&mut answer);
            std::future::ready(result.map(|()| answer)).boxed()
        })
    }

    /// The async form of [`after`](Self::after). The code returns the answer to accept it.
    pub fn after_async<F, Fut>(self, after: F) -> Self
    where
        F: Fn(CheckedAnswer<O, S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = AfterResult<O, S>> + Send + 'static,
    {
        self.step(move |answer| after(answer).boxed())
    }

    fn step(
        mut self,
        step: impl Fn(CheckedAnswer<O, S>) -> BoxFuture<'static, AfterResult<O, S>> + Send + Sync + 'static,
    ) -> Self {
        self.after.push(Arc::new(step));
        self
    }

    /// Limits the number of attempts (3 if not set, at least 1).
    pub fn tries(mut self, tries: usize) -> Self {
        self.tries = tries.max(1);
        self
    }

    /// Sets which refused answers a repeated request contains.
    pub fn feedback(mut self, feedback: Feedback) -> Self {
        self.feedback = feedback;
        self
    }

    /// Accepts an answer that a token limit has cut. Otherwise it is refused, and the model is asked for a
    /// shorter one.
    pub fn accept_cut(mut self) -> Self {
        self.accepts_cut = true;
        self
    }

    /// Uses this text, such as `N/A`, as the answer when all attempts were refused. Otherwise the node fails.
    pub fn otherwise(mut self, text: impl Into<String>) -> Self {
        self.otherwise = Some(text.into());
        self
    }

    /// Adds the node's usage to a meter.
    pub fn meter(mut self, meter: &Meter) -> Self {
        self.meter = Some(meter.clone());
        self
    }
}

/// The marker of the implementation for LLM nodes.
#[derive(Debug)]
pub struct IsLlmNode;

impl<O, S> IntoDependencyNode<O, S, IsLlmNode> for LlmNode<O, S>
where
    O: Exchange + Clone + Send + Sync + 'static,
    S: Send + Sync + 'static,
{
    fn into_node(self) -> DependencyNode<O, S> {
        type Parts<O, S> = (Deps<'static, O>, Ctx, PassEdits<O, S>);
        let node = Arc::new(self);
        let ask = {
            let node = Arc::clone(&node);
            move |(deps, ctx, edits): Parts<O, S>, db: Option<Database>| {
                let node = Arc::clone(&node);
                async move { node.answer(Call { deps, ctx, edits, db }).await }
            }
        };
        match &node.db {
            None => DependencyNode::of(move |deps, ctx, edits| ask((deps, ctx, edits), None)),
            Some(DatabaseSource::Handle(db)) => {
                let db = db.clone();
                DependencyNode::of(move |deps, ctx, edits| ask((deps, ctx, edits), Some(db.clone())))
            }
            Some(DatabaseSource::Session) => {
                DependencyNode::of(move |deps, ctx, edits, session: Session<Database>| {
                    let answer = ask((deps, ctx, edits), Some(session.with(|db| db.clone())));
                    async move {
                        let answer = answer.await;
                        // The answer may have changed the database behind the back of its cell, which stores
                        // the value that was read.
                        session.with(|_| ());
                        answer
                    }
                })
            }
            Some(DatabaseSource::Input(read)) => {
                let read = Arc::clone(read);
                DependencyNode::of(move |deps, ctx, edits, input: Given<S>| {
                    ask((deps, ctx, edits), Some(Database::new(read(&input))))
                })
            }
        }
    }
}

impl<O: 'static, S> Clone for LlmNode<O, S> {
    fn clone(&self) -> Self {
        LlmNode {
            model: Arc::clone(&self.model),
            prompt: self.prompt.clone(),
            system: self.system.clone(),
            compose: self.compose.clone(),
            tools: self.tools.clone(),
            check: self.check.clone(),
            after: self.after.clone(),
            otherwise: self.otherwise.clone(),
            db: self.db.as_ref().map(DatabaseSource::share),
            meter: self.meter.clone(),
            ..*self
        }
    }
}

impl<S> DatabaseSource<S> {
    fn share(&self) -> Self {
        match self {
            DatabaseSource::Handle(db) => DatabaseSource::Handle(db.clone()),
            DatabaseSource::Session => DatabaseSource::Session,
            DatabaseSource::Input(read) => DatabaseSource::Input(Arc::clone(read)),
        }
    }
}

impl<O: 'static, S> fmt::Debug for LlmNode<O, S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = out.debug_struct("LlmNode");
        parts.field("model", &self.model.info().model).field("prompt", &self.prompt);
        parts.field("tries", &self.tries).finish_non_exhaustive()
    }
}
