//! A minimal state that shows which nodes ran, and in which order.

use std::future::{Ready, ready};

use agentgraph::{Code, Command, CompiledGraph, Outcome, RunBuilder, State};
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Words {
    #[reduce(append)]
    pub seen: Vec<String>,
}

/// Returns a node that says its word.
pub fn says(word: &'static str) -> impl Fn() -> Ready<WordsUpdate> + Clone + Send + Sync + 'static {
    move || ready(Words::update().seen([word]))
}

/// Returns a command that says a word.
pub fn said(word: &str) -> Command<Words> {
    Command::update(Words::update().seen([word]))
}

/// The call on a thread, or on none if its graph keeps none.
pub fn on<S: State>(thread: Option<&str>, call: RunBuilder<S>) -> RunBuilder<S> {
    match thread {
        Some(thread) => call.thread(thread),
        None => call,
    }
}

/// Runs the graph to its end, on a thread if it keeps threads, and returns the words, separated by spaces.
pub async fn words_of(graph: &CompiledGraph<Words>) -> String {
    let outcome = match graph.invoke(Words::update()).await {
        Err(error) if error.code() == Code::NoThread => graph.invoke(Words::update()).thread("t").await,
        outcome => outcome,
    };
    let outcome = outcome.unwrap();
    assert!(matches!(outcome, Outcome::Finished { .. }), "{outcome:?}");
    text(outcome.output())
}

pub fn text(words: &Words) -> String {
    words.seen.join(" ")
}
