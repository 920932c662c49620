//! [`LlmNode`]: a node of a dependency graph that asks a model.
//!
//! One call of the node is: *compose* the question of what its dependencies asked and answered and of its own
//! prompt, *call* the model, *check* the answer, and run the node's own code *after* it, which may edit the
//! graph. An answer that is refused goes back to the model with the reason, as often as there are tries.
//!
//! - What a refused answer's own code has edited, changed or put in place of the text is gone; only an
//!   accepted answer leaves traces. Tools that it called, and what else the code did outside, are not undone.
//! - Timeouts and retries of the wire are the model's. An error of the model is the node's error at once, and
//!   a [`RetryPolicy`](agentgraph::RetryPolicy) on the node asks from the start.
//! - A node that is skipped asks nothing: its last output stands.

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

use agentgraph::{Ctx, DependencyNode, Deps, Given, IntoDependencyNode, PassEdits, Session};
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
use tries::Call;

pub use answer::{Answer, Attempt, Exchange};
pub use check::{JsonCheck, JsonKind};
pub use checked_answer::{CheckedAnswer, Refusal};
pub use compose::Composition;
pub use database::Database;
pub use meter::{Meter, MeterReading};
pub use tries::RefusedAnswers;

/// How often a node asks for one answer, unless told otherwise.
pub const DEFAULT_TRIES: usize = 3;

/// A node of a [`DependencyGraph`](agentgraph::DependencyGraph) that asks a model. See the
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
/// let answers = graph.invoke(()).await?.into_finished()?;
/// assert_eq!(answers["pick"].text, r#"{"answer": "Bergen"}"#);
/// assert_eq!(answers["pick"].tries.len(), 2);
///
/// // The first question: what `list` was asked and said, and the own prompt. The second: the answer and what is wrong.
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

/// Where a node's database is.
enum DatabaseSource<S> {
    Handle(Database),
    Session,
    Input(Arc<dyn Fn(&S) -> Value + Send + Sync>),
}

/// What a model sees of its refused answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Feedback {
    /// The last one, and what was wrong with it.
    #[default]
    LastOnly,
    /// All of them, each with what was wrong with it.
    Accumulating,
}

impl<O: 'static, S> LlmNode<O, S> {
    /// A node that asks `model` this. A text stands for itself; for places of a database give a [`Template`].
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

    /// Instructions, before everything else.
    pub fn system(mut self, system: impl Into<Template>) -> Self {
        self.system = Some(system.into());
        self
    }

    /// Where the places of prompt and instructions get their values, and [`CheckedAnswer::db`] reads: a
    /// [`Database`] that nodes share, or a JSON value of this node's own.
    pub fn db(mut self, db: impl Into<Database>) -> Self {
        self.db = Some(DatabaseSource::Handle(db.into()));
        self
    }

    /// Takes the run's own [`Database`], which the graph declares by `.session::<Database>("db")`: it begins
    /// as `null` and is stored with the run.
    pub fn session_db(mut self) -> Self {
        self.db = Some(DatabaseSource::Session);
        self
    }

    /// Takes the values from what the pass was given.
    pub fn input_db(mut self, db: impl Fn(&S) -> Value + Send + Sync + 'static) -> Self {
        self.db = Some(DatabaseSource::Input(Arc::new(db)));
        self
    }

    /// Composes the question otherwise, or sets more of it, such as its temperature. The database is in the
    /// composition; its handle is locked meanwhile.
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

    /// Lets the model use a tool on its way to an answer; see [`ToolLoop`](crate::ToolLoop).
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// The most rounds of tools for one answer (10 if not set, at least 1).
    pub fn max_rounds(mut self, rounds: usize) -> Self {
        self.max_rounds = rounds.max(1);
        self
    }

    /// Runs at most this many calls of tools in one message of the model at the same time (16 if not set, at
    /// least 1). How many nodes run side by side is the graph's matter.
    ///
    /// ```
    /// use agentgraph_llm::prelude::*;
    /// use agentgraph_llm::{Answer, LlmNode};
    ///
    /// # fn search() -> impl Tool + 'static {
    /// #     FnTool::new("search", "Searches.", async |_: serde_json::Value| Ok::<_, ToolError>("nothing"))
    /// # }
    /// // The service behind the tool bears two calls at once.
    /// let node = LlmNode::<Answer>::new(ScriptedModel::new(["Hm."]), "What is known of tides?").tool(search()).max_concurrency(2);
    /// ```
    pub fn max_concurrency(mut self, calls: usize) -> Self {
        self.max_concurrency = calls.max(1);
        self
    }

    /// Accepts only answers whose last JSON value passes. Without a check every text is accepted.
    pub fn json(mut self, check: JsonCheck) -> Self {
        self.check = Some(check);
        self
    }

    /// Accepts only answers whose last JSON value is a `T`, and shows its schema with the instructions.
    pub fn typed<T: DeserializeOwned + JsonSchema>(mut self) -> Self {
        self.shows_schema = true;
        self.json(JsonCheck::typed::<T>())
    }

    /// Runs code on each answer that passed the check: it may edit the graph, change the database, replace
    /// the text, or refuse. Given several times, one after the other.
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

    /// [`after`](Self::after) for code that awaits. It gives the answer back when it accepts it.
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

    /// How many answers the model may give until one is accepted (3 if not set, at least 1).
    pub fn tries(mut self, tries: usize) -> Self {
        self.tries = tries.max(1);
        self
    }

    /// What the model sees of its refused answers.
    pub fn feedback(mut self, feedback: Feedback) -> Self {
        self.feedback = feedback;
        self
    }

    /// Accepts an answer that a token limit has cut. Without this it is refused, and the model asked to be
    /// shorter.
    pub fn accept_cut(mut self) -> Self {
        self.accepts_cut = true;
        self
    }

    /// Goes on with this text, such as `N/A`, when all answers were refused. Without it the node fails.
    pub fn otherwise(mut self, text: impl Into<String>) -> Self {
        self.otherwise = Some(text.into());
        self
    }

    /// Counts what the node uses.
    pub fn meter(mut self, meter: &Meter) -> Self {
        self.meter = Some(meter.clone());
        self
    }
}

/// Marks the implementation for LLM nodes.
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
                        // The answer may have changed it behind the back of its cell, which stores what was
                        // used.
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
        parts.field("model", &self.model.name()).field("prompt", &self.prompt);
        parts.field("tries", &self.tries).finish_non_exhaustive()
    }
}
