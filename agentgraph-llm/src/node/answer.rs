//! The output of an LLM node, and the form in which other LLM nodes see it.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::json::RawJson;
use crate::json_in_text::last_json;
use crate::model::Usage;

/// The output of an [`LlmNode`](crate::LlmNode): its prompt and the accepted answer.
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
    /// The prompt with the values of the database; empty if there was none.
    pub prompt: String,
    /// The result: the model's text, or the text that the node's own code put in its place.
    pub text: String,
    /// The JSON in the text, if the node checks for JSON.
    pub json: Option<RawJson>,
    /// All attempts in order, the accepted one last. A fallback has refused attempts only.
    pub tries: Vec<Attempt>,
    /// Whether the text is the fallback after all attempts were refused.
    pub fell_back: bool,
}

/// One attempt to get an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Attempt {
    /// The usage, including rounds of tool calls.
    pub usage: Usage,
    /// The reason of the refusal, as the model read it.
    pub refused: Option<String>,
}

impl Answer {
    /// An answer without a model, for nodes of other kinds.
    pub fn new(prompt: impl Into<String>, text: impl Into<String>) -> Self {
        Answer { prompt: prompt.into(), text: text.into(), ..Answer::default() }
    }

    /// The usage of all attempts.
    pub fn usage(&self) -> Usage {
        self.tries.iter().map(|attempt| attempt.usage).sum()
    }

    /// Reads the JSON as a `T`: the checked one, otherwise the last in the text.
    ///
    /// # Errors
    /// If there is no JSON, or if it is not a `T`.
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

/// An output of a dependency graph that can be part of the conversation of an LLM node: a prompt and its
/// result.
///
/// Implement it for the output type of a graph in which not every node gives an [`Answer`]:
///
/// ```
/// use std::borrow::Cow;
/// use agentgraph_llm::{Answer, Exchange};
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
    /// The prompt; if there is none, the node's name is used.
    fn prompt(&self) -> Option<&str>;

    /// The result.
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

/// Only the text is kept, so dependent nodes see the node's name instead of its prompt.
impl Exchange for String {
    fn prompt(&self) -> Option<&str> {
        None
    }

    fn result(&self) -> Cow<'_, str> {
        Cow::Borrowed(self)
    }
}
