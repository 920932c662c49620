//! What `supervisor` and `hand_off` refuse to build.

use agentgraph_llm::agent::Worker;
use agentgraph_llm::prelude::*;
use agentgraph_llm::{Code, Error};

use crate::teams::support::{agent, texts};

fn worker(name: &str) -> CompiledAgent {
    agent(name, &texts([])).compile().unwrap()
}

fn lead(workers: Vec<CompiledAgent>) -> Error {
    supervisor(agent("lead", &texts([])), workers).unwrap_err()
}

fn assert_says(error: &Error, code: Code, text: &str) {
    assert_eq!(error.code(), code, "{error}");
    assert!(error.message().contains(text), "{error}");
}

#[test]
fn teams_without_members() {
    assert_says(&lead(vec![]), Code::Config, "`lead` has no workers");
    let none: [Agent; 0] = [];
    assert_says(&hand_off(none).unwrap_err(), Code::Config, "there are no agents");
}

#[test]
fn two_members_of_one_name() {
    assert_says(&lead(vec![worker("maths"), worker("maths")]), Code::BadTool, "`maths`");
    let unnamed = || Agent::new(texts([])).compile().unwrap();
    assert_says(&lead(vec![unnamed(), unnamed()]), Code::BadTool, "`agent`");
    let tool = FnTool::new("maths", "", async |_: crate::teams::support::Nothing| Ok::<_, ToolError>(""));
    let error = supervisor(agent("lead", &texts([])).tool(tool), [worker("maths")]).unwrap_err();
    assert_says(&error, Code::BadTool, "`maths`");
    let error = hand_off([agent("alice", &texts([])), agent("alice", &texts([]))]).unwrap_err();
    assert_says(&error, Code::Config, "two agents are named `alice`");
}

#[test]
fn names_that_cannot_be_sent_or_are_taken() {
    assert_says(&lead(vec![worker("the poet")]), Code::BadTool, "`the poet` cannot be sent");
    for taken in ["model", "tools"] {
        assert_says(&lead(vec![worker(taken)]), Code::Config, &format!("a worker cannot be named `{taken}`"));
    }
    let error = hand_off([agent("alice", &texts([])), agent("the poet", &texts([]))]).unwrap_err();
    assert_says(&error, Code::BadTool, "`transfer_to_the poet` cannot be sent");
}

#[test]
fn hand_offs_to_nobody() {
    for name in ["dave", "alice"] {
        let error =
            hand_off([agent("alice", &texts([])).hand_off_to([name]), agent("bob", &texts([]))]).unwrap_err();
        assert_says(
            &error,
            Code::Config,
            &format!("`alice` hands over to `{name}`, which is not another agent"),
        );
    }
}

#[test]
fn debug_shows_names() {
    let worker: Worker<AgentState> = worker("maths").into();
    assert!(format!("{worker:?}").contains("Knows maths."));
}
