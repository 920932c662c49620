//! The smallest state that shows who ran, in which order.

use std::future::{Ready, ready};

use agentgraph::{Command, CompiledGraph, Outcome, State};
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Words {
    #[reduce(append)]
    pub seen: Vec<String>,
}

/// A node that says its word.
pub fn says(word: &'static str) -> impl Fn() -> Ready<WordsUpdate> + Clone + Send + Sync + 'static {
    move || ready(Words::update().seen([word]))
}

/// A command that says a word.
pub fn said(word: &str) -> Command<Words> {
    Command::update(Words::update().seen([word]))
}

/// The words of a run from its beginning to its end, with a space between them.
pub async fn words_of(graph: &CompiledGraph<Words>) -> String {
    let outcome = graph.invoke(Words::update()).thread("t").await.unwrap();
    assert!(matches!(outcome, Outcome::Finished { .. }), "{outcome:?}");
    text(outcome.output())
}

pub fn text(words: &Words) -> String {
    words.seen.join(" ")
}
