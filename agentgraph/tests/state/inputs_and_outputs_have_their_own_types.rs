//! A caller can use input and output types of its own, and a node can take a part of the state.

use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Talk {
    question: String,
    draft: String,
    answer: String,
}

struct Question(&'static str);

impl From<Question> for TalkUpdate {
    fn from(Question(text): Question) -> Self {
        Talk::update().question(text)
    }
}

#[derive(Debug, PartialEq)]
struct Answer(String);

impl From<Talk> for Answer {
    fn from(talk: Talk) -> Self {
        Answer(talk.answer)
    }
}

async fn draft(talk: Snapshot<Talk>) -> TalkUpdate {
    Talk::update().draft(format!("{}?", talk.question))
}

/// The part of the state that `write` may read.
struct Draft(String);

impl FromTask<Talk> for Draft {
    type Error = std::convert::Infallible;

    fn from_task(task: &Task<'_, Talk>) -> std::result::Result<Self, Self::Error> {
        Ok(Draft(task.state().draft.clone()))
    }
}

async fn write(Draft(draft): Draft) -> TalkUpdate {
    Talk::update().answer(draft + "!")
}

fn graph() -> CompiledGraph<Talk> {
    let graph = StateGraph::new().node("draft", draft).node("write", write);
    graph.edge(START, "draft").edge("draft", "write").compile().unwrap()
}

#[tokio::test]
async fn input_and_output_can_be_narrower_than_the_state() {
    let talk = graph().invoke(Question("tea")).await.unwrap().into_finished().unwrap();
    assert_eq!(Answer::from(talk), Answer("tea?!".into()));
}

#[tokio::test]
async fn a_node_can_take_a_part_of_the_state() {
    let outcome = graph().invoke(Talk::update().question("tea").draft("old")).await.unwrap();
    assert_eq!(outcome.output().answer, "tea?!");
}
