//! What an LLM node gives, and what other LLM nodes see of it.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::json::RawJson;
use crate::json_in_text::last_json;
use crate::model::Usage;

/// What an [`LlmNode`](crate::LlmNode) gives: the question as it was asked, and the answer that was accepted.
///
/// ```
/// use agentgraph_llm::Answer;
///
/// let answer = Answer::new("How many?", r#"I count {"n": 3}."#);
/// #[derive(serde::Deserialize)]
/// struct Count { n: u32 }
/// assert_eq!(answer.parse::<Count>()?.n, 3);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Answer {
    /// The node's prompt with the values of the database; empty if there was none.
    pub prompt: String,
    /// The result: the model's text, unless the node's own code put another one there.
    pub text: String,
    /// The JSON in it, if the node checks for JSON.
    pub json: Option<RawJson>,
    /// All tries in order, the accepted one last. A result that stands in for refused answers has refused
    /// tries only.
    pub tries: Vec<Attempt>,
    /// Whether the text stands in for answers that were all refused.
    pub fell_back: bool,
}

/// One question to the model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Attempt {
    /// What it cost, with the rounds of its tools.
    pub usage: Usage,
    /// Why the answer was refused, as the model was told.
    pub refused: Option<String>,
}

impl Answer {
    /// An answer that no model gave: what other kinds of nodes give to the nodes behind them.
    pub fn new(prompt: impl Into<String>, text: impl Into<String>) -> Self {
        Answer { prompt: prompt.into(), text: text.into(), ..Answer::default() }
    }

    /// What all tries cost together.
    pub fn usage(&self) -> Usage {
        self.tries.iter().map(|attempt| attempt.usage).sum()
    }

    /// Reads the JSON as a `T`: that of the check, else the last in the text.
    ///
    /// # Errors
    /// When there is no JSON, or when it is not a `T`.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        let json = self.json.as_ref().map(RawJson::get).or_else(|| last_json(&self.text));
        serde_json::from_str(json.unwrap_or(&self.text))
    }
}

impl From<&str> for Answer {
    fn from(text: &str) -> Self {
        Answer::new("", text)
    }
}

impl From<String> for Answer {
    fn from(text: String) -> Self {
        Answer::new("", text)
    }
}

impl From<Answer> for String {
    fn from(answer: Answer) -> Self {
        answer.text
    }
}

/// An output of a dependency graph that can be a turn of the conversation which an LLM node behind it
/// composes.
///
/// For a type of one's own, when not every node of a graph gives an [`Answer`]:
///
/// ```
/// use std::borrow::Cow;
/// use agentgraph_llm::{Answer, Turn};
///
/// #[derive(Clone)]
/// enum Output {
///     Said(Answer),
///     Counted(u64),
/// }
///
/// impl From<Answer> for Output {
///     fn from(answer: Answer) -> Self {
///         Output::Said(answer)
///     }
/// }
///
/// impl Exchange for Output {
///     fn prompt(&self) -> Option<&str> {
///         match self {
///             Output::Said(answer) => answer.prompt(),
///             Output::Counted(_) => None,
///         }
///     }
///
///     fn result(&self) -> Cow<'_, str> {
///         match self {
///             Output::Said(answer) => answer.result(),
///             Output::Counted(n) => n.to_string().into(),
///         }
///     }
/// }
/// ```
pub trait Exchange: From<Answer> {
    /// What was asked; the node's name stands there if nothing was.
    fn prompt(&self) -> Option<&str>;

    /// What came of it.
    fn result(&self) -> Cow<'_, str>;
}

impl Exchange for Answer {
    fn prompt(&self) -> Option<&str> {
        Some(self.prompt.as_str()).filter(|prompt| !prompt.is_empty())
    }

    fn result(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.text)
    }
}

/// Only the text is kept, so nodes behind see the name of the node in place of its prompt.
impl Exchange for String {
    fn prompt(&self) -> Option<&str> {
        None
    }

    fn result(&self) -> Cow<'_, str> {
        Cow::Borrowed(self)
    }
}
