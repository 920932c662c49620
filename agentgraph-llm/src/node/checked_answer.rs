//! The node's own code after an answer: it reads the answer, edits the graph, changes the database, or
//! refuses.

use std::fmt;

use agentgraph::dependency::{Deps, PassEdits};
use agentgraph::{BoxError, Ctx};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::answer::Answer;
use super::check::JsonCheck;
use super::database::Database;

/// A change of the database that is applied when the answer is accepted.
type Change = Box<dyn FnOnce(&mut Value) + Send>;

/// An answer that passed the node's check and is not accepted yet, for
/// [`LlmNode::after`](crate::LlmNode::after).
///
/// If the answer is refused, all changes made here to the text, the graph and the database are undone.
pub struct CheckedAnswer<O: 'static, S = ()> {
    pub(super) answer: Answer,
    pub(super) deps: Deps<'static, O>,
    pub(super) ctx: Ctx,
    pub(super) edits: PassEdits<O, S>,
    pub(super) db: Option<Database>,
    pub(super) changes: Vec<Change>,
}

impl<O: 'static, S> CheckedAnswer<O, S> {
    /// The node's name.
    pub fn node(&self) -> &str {
        self.ctx.node()
    }

    /// The prompt, with the values of the database.
    pub fn prompt(&self) -> &str {
        &self.answer.prompt
    }

    /// The text of the answer.
    pub fn text(&self) -> &str {
        &self.answer.text
    }

    /// Replaces the text of the answer for the dependent nodes.
    pub fn set_text(&mut self, text: impl Into<String>) {
        self.answer.text = text.into();
    }

    /// The JSON of the answer: the checked one, otherwise the last in the text.
    ///
    /// # Errors
    /// A refusal for the model if there is none.
    pub fn json(&self) -> Result<Value, Refusal> {
        self.parse()
    }

    /// The JSON of the answer as a `T`.
    ///
    /// # Errors
    /// A refusal for the model if there is none or it is not a `T`.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        let parsed = match &self.answer.json {
            Some(json) => json.parse(),
            None => JsonCheck::any().read(&self.answer.text).map_err(Refusal::Again)?.parse(),
        };
        parsed.map_err(|error| Refusal::Again(format!("The JSON does not fit: {error}.")))
    }

    /// The number of the attempt, from 1.
    pub fn attempt(&self) -> usize {
        self.answer.tries.len()
    }

    /// The outputs of the node's dependencies.
    pub fn deps(&self) -> &Deps<'static, O> {
        &self.deps
    }

    /// The context of the task. After an interrupt here the node starts again and calls the model for another
    /// answer, so a question to a person about an answer belongs in a node of its own.
    pub fn ctx(&self) -> &Ctx {
        &self.ctx
    }

    /// Edits the graph for this pass: adds a node that the answer requires, removes an edge, skips a node.
    pub fn edits(&self) -> &PassEdits<O, S> {
        &self.edits
    }

    /// Reads the database without pending changes; `null` if the node has none.
    pub fn db<T>(&self, read: impl FnOnce(&Value) -> T) -> T {
        match &self.db {
            Some(db) => db.read(read),
            None => read(&Value::Null),
        }
    }

    /// Changes the database when the answer is accepted. Has no effect without a database.
    pub fn change_db(&mut self, change: impl FnOnce(&mut Value) + Send + 'static) {
        self.changes.push(Box::new(change));
    }

    /// Accepts the answer.
    pub(super) fn accept(self) -> Answer {
        if let Some(db) = self.db.filter(|_| !self.changes.is_empty()) {
            db.change(|db| self.changes.into_iter().for_each(|change| change(db)));
        }
        self.answer
    }
}

impl<O: 'static, S> fmt::Debug for CheckedAnswer<O, S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("After").field("answer", &self.answer).finish_non_exhaustive()
    }
}

/// The reason for which an answer is not accepted. `?` turns any error into [`Fail`](Refusal::Fail).
///
/// ```
/// use agentgraph_llm::Refusal;
///
/// fn at_most_ten(text: &str) -> Result<(), Refusal> {
///     let n: u32 = text.trim().parse()?; // an error ends the node ...
///     if n > 10 { Err(Refusal::again("At most ten, please.")) } else { Ok(()) } // ... a refusal asks again
/// }
/// assert!(matches!(at_most_ten("11"), Err(Refusal::Again(_))));
/// assert!(matches!(at_most_ten("ten"), Err(Refusal::Fail(_))));
/// ```
#[derive(Debug)]
pub enum Refusal {
    /// The model reads this and answers again, until the limit of attempts.
    Again(String),
    /// The node fails at once.
    Fail(BoxError),
}

impl Refusal {
    /// Refuses with a reason that the model reads before it answers again.
    pub fn again(reason: impl Into<String>) -> Self {
        Refusal::Again(reason.into())
    }

    /// Fails the node.
    pub fn fail(error: impl Into<BoxError>) -> Self {
        Refusal::Fail(error.into())
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Refusal {
    fn from(error: E) -> Self {
        Refusal::Fail(Box::new(error))
    }
}
