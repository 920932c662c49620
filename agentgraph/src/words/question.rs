//! The questions of a task, as data.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The place of a question in its task.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Spot {
    /// Its n-th question without a key, counted from 0.
    Nth(u32),
    Key(String),
    /// The n-th sleep of this name, counted from 0.
    Sleep {
        name: String,
        nth: u32,
    },
}

impl Spot {
    /// Whether a different question at this spot voids the answer at `other`.
    pub(crate) fn voids(&self, other: &Spot) -> bool {
        match (self, other) {
            (Spot::Nth(changed), Spot::Nth(other)) => other >= changed,
            (changed, other) => changed == other,
        }
    }
}

/// The key of a question: see [`Ctx::interrupt_as`](crate::Ctx::interrupt_as). A text converts into
/// it, and a number by its text: `7` and `"7"` are one key.
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
    /// A key. Its answer is delivered only to a question with the same value.
    pub fn new(name: impl fmt::Display) -> Self {
        InterruptKey { name: name.to_string(), any_value: false }
    }

    /// Delivers the answer to a question with this key whatever its value. For values that differ each time
    /// without changing the decision, such as the time of the question.
    pub fn for_any_value(mut self) -> Self {
        self.any_value = true;
        self
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.name
    }
}

impl<T: fmt::Display> From<T> for InterruptKey {
    fn from(name: T) -> Self {
        InterruptKey::new(name)
    }
}

/// A question that was asked in an earlier call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AskedQuestion {
    /// Its number among all questions of the task, used in its id.
    pub(crate) n: u32,
    pub(crate) spot: Spot,
    pub(crate) value: Value,
    pub(crate) schema: Option<Value>,
    /// The number of answers voided at its spot before it was asked.
    pub(crate) voided_before: u32,
    /// Why the node refused the last of these, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refused_before: Option<String>,
    pub(crate) answer: AnswerState,
}

/// The state of a question's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum AnswerState {
    NotYet,
    With(Value),
    /// Its answer is not used any more.
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
    /// The end of a sleep, in microseconds since 1970.
    pub(crate) until: Option<u64>,
}

/// The last question at the same spot whose answer was voided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct VoidedQuestion {
    pub(crate) n: u32,
    pub(crate) value: Value,
    /// The number of answers voided at the spot, including this one.
    pub(crate) times: u32,
    /// Why the node refused its answer. `None` if the node asked something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}
