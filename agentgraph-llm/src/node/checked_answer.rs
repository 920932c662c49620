//! A node's own code behind an answer: it reads the answer, edits the graph, changes the database, or
//! refuses.

use std::fmt;

use agentgraph::{BoxError, Ctx, Deps, PassEdits};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::answer::Answer;
use super::check::JsonCheck;
use super::database::Database;

/// A change of the database that waits for the answer to be accepted.
type Change = Box<dyn FnOnce(&mut Value) + Send>;

/// An answer that passed the node's check, before it is accepted: for
/// [`LlmNode::after`](crate::LlmNode::after).
///
/// What is done with it holds if the answer is accepted. If it is refused, the text, the edits and the
/// changes of the database are gone with it.
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

    /// The answer.
    pub fn text(&self) -> &str {
        &self.answer.text
    }

    /// Puts another text in place of the answer, for the nodes behind.
    pub fn set_text(&mut self, text: impl Into<String>) {
        self.answer.text = text.into();
    }

    /// The JSON of the answer: the one that was checked, else the last in the text.
    ///
    /// # Errors
    /// A refusal that tells the model so, when there is none.
    pub fn json(&self) -> Result<Value, Refusal> {
        self.parse()
    }

    /// The JSON of the answer as a `T`.
    ///
    /// # Errors
    /// A refusal that tells the model so, when there is none or it does not fit.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        let parsed = match &self.answer.json {
            Some(json) => json.parse(),
            None => JsonCheck::any().read(&self.answer.text).map_err(Refusal::Again)?.parse(),
        };
        parsed.map_err(|error| Refusal::Again(format!("The JSON does not fit: {error}.")))
    }

    /// Which try this is, from 1.
    pub fn attempt(&self) -> usize {
        self.answer.tries.len()
    }

    /// The outputs that the node depends on.
    pub fn deps(&self) -> &Deps<'static, O> {
        &self.deps
    }

    /// The task's context. A person that is asked here is asked about this answer, and when the run goes on
    /// with the reply, the node begins anew and asks the model for another one: such a question belongs in a
    /// node of its own.
    pub fn ctx(&self) -> &Ctx {
        &self.ctx
    }

    /// Edits the graph for this pass. A node that the model's answer asks for is added here, an edge removed,
    /// a node skipped.
    pub fn edits(&self) -> &PassEdits<O, S> {
        &self.edits
    }

    /// Reads the database, as it is without the changes that wait; `null` if the node has none.
    pub fn db<T>(&self, read: impl FnOnce(&Value) -> T) -> T {
        match &self.db {
            Some(db) => db.read(read),
            None => read(&Value::Null),
        }
    }

    /// Changes the database once the answer is accepted. Without a database it does nothing.
    pub fn change_db(&mut self, change: impl FnOnce(&mut Value) + Send + 'static) {
        self.changes.push(Box::new(change));
    }

    /// The answer is accepted.
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

/// Why an answer is not accepted. Any error is [`Fail`](Refusal::Fail) by `?`.
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
    /// The model is told this and asked again, as long as it has tries.
    Again(String),
    /// The node fails at once.
    Fail(BoxError),
}

impl Refusal {
    /// Tells the model what is wrong and asks it again.
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
