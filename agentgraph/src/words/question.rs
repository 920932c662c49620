//! What a task asks, as data.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where a task asks a question.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Spot {
    /// Its n-th question without a key, counted from 0.
    Nth(u32),
    Key(String),
}

impl Spot {
    /// Whether a question at this spot voids the answer at the other one if it asks something else.
    pub(crate) fn voids(&self, other: &Spot) -> bool {
        match (self, other) {
            (Spot::Nth(changed), Spot::Nth(other)) => other >= changed,
            (changed, other) => changed == other,
        }
    }
}

/// The key of a question: see [`Ctx::interrupt_as`](crate::Ctx::interrupt_as). Made of text, by `into()`.
///
/// ```
/// use agentgraph::run::InterruptKey;
/// let key = InterruptKey::new("order-7").for_any_value();
/// assert_eq!(key.as_str(), "order-7");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InterruptKey {
    pub(crate) name: String,
    pub(crate) any_value: bool,
}

impl InterruptKey {
    /// A key. An answer to it is delivered to a question with an equal value.
    pub fn new(name: impl Into<String>) -> Self {
        InterruptKey { name: name.into(), any_value: false }
    }

    /// Delivers the answer to the question of this key whatever the question asks. For values that differ
    /// each time and do not change what is decided, such as the time of the question.
    pub fn for_any_value(mut self) -> Self {
        self.any_value = true;
        self
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.name
    }
}

impl<T: Into<String>> From<T> for InterruptKey {
    fn from(name: T) -> Self {
        InterruptKey::new(name)
    }
}

/// A question that was asked in an earlier call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AskedQuestion {
    /// Its number among all questions of the task, which makes its id.
    pub(crate) n: u32,
    pub(crate) spot: Spot,
    pub(crate) value: Value,
    pub(crate) schema: Option<Value>,
    /// How many answers were voided at its spot before it was asked.
    pub(crate) voided_before: u32,
    pub(crate) answer: AnswerState,
}

/// What became of a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum AnswerState {
    NotYet,
    With(Value),
    /// Its answer counts for no question any more.
    Voided,
}

/// A question that waits for its answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Request {
    pub(crate) n: u32,
    pub(crate) spot: Spot,
    pub(crate) value: Value,
    pub(crate) schema: Option<Value>,
    pub(crate) replaces: Option<VoidedQuestion>,
}

/// The question at the same spot whose answer was voided last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct VoidedQuestion {
    pub(crate) n: u32,
    pub(crate) value: Value,
    /// How many answers were voided at the spot, this one included.
    pub(crate) times: u32,
}
