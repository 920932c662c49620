//! [`Question`]: a question of the benchmark, as the evaluation server and the benchmark's files write it:
//! JSON, a JSON object a line, or Parquet.

mod parquet;

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer, Serialize};

/// A question of the benchmark.
///
/// ```
/// use gaia_agent::question::Question;
///
/// let json = r#"{"task_id": "t-1", "question": "How many?", "Level": "1", "file_name": ""}"#;
/// let question: Question = serde_json::from_str(json)?;
/// assert_eq!((question.level, question.file()), (1, None));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The id.
    pub task_id: String,
    /// The text.
    #[serde(alias = "Question")]
    pub question: String,
    /// How hard it is, from 1 to 3; 0 if that is not said. A number, or one as a text.
    #[serde(rename = "Level", alias = "level", default, deserialize_with = "level")]
    pub level: u8,
    /// The name of its file; empty if it has none.
    #[serde(default, deserialize_with = "or_empty")]
    pub file_name: String,
    /// The right answer, where a file of questions has it. The evaluation server never sends it, and the
    /// test split hides it as `?`, which counts as none.
    #[serde(
        rename = "Final answer",
        alias = "answer",
        default,
        deserialize_with = "truth",
        skip_serializing_if = "Option::is_none"
    )]
    pub truth: Option<String>,
}

impl Question {
    /// The name of its file.
    pub fn file(&self) -> Option<&str> {
        Some(self.file_name.trim()).filter(|name| !name.is_empty())
    }
}

fn level<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Level {
        Number(u8),
        Text(String),
        Nothing(()),
    }
    Ok(match Level::deserialize(deserializer)? {
        Level::Number(level) => level,
        Level::Text(text) => text.trim().parse().unwrap_or(0),
        Level::Nothing(()) => 0,
    })
}

fn truth<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text: Option<String> = Option::deserialize(deserializer)?;
    Ok(text.filter(|text| text.trim() != "?"))
}

fn or_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads the questions of a file: Parquet, a JSON array, or a JSON object a line.
///
/// # Errors
/// The mistake, and its line.
pub fn read_questions(content: Vec<u8>) -> Result<Vec<Question>, String> {
    let questions = match String::from_utf8(content) {
        Ok(text) if !text.contains('\0') => read_json(&text)?,
        Ok(text) => parquet::read(text.into_bytes())?,
        Err(data) => parquet::read(data.into_bytes())?,
    };
    check(&questions)?;
    Ok(questions)
}

fn read_json(text: &str) -> Result<Vec<Question>, String> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(text).map_err(|error| error.to_string());
    }
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let read = |(at, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| format!("line {}: {error}", at + 1))
    };
    lines.map(read).collect()
}

/// Every question has an id of its own, and a text.
pub(crate) fn check(questions: &[Question]) -> Result<(), String> {
    let mut ids = BTreeSet::new();
    for question in questions {
        if question.task_id.trim().is_empty() || question.question.trim().is_empty() {
            return Err("a question has no id or no text".to_owned());
        }
        if !ids.insert(&question.task_id) {
            return Err(format!("the task {} is there twice", question.task_id));
        }
    }
    Ok(())
}
