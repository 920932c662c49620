//! Servers give two calls of one answer the same id, or number the calls of each answer from 0.

use agentgraph::prelude::*;
use agentgraph_llm::middleware::{HumanInTheLoop, Question, ToolPolicy, Verdict};
use agentgraph_llm::prelude::*;
use agentgraph_llm::{ChatResponse, MessageChannels, StopReason, ToolNode};
use futures_util::StreamExt;
use serde_json::json;

use crate::support::{Log, echo, results};

/// An answer with an `add` call for each number, all with the id `call_0`.
fn same_ids(numbers: impl IntoIterator<Item = u64>) -> Reply {
    let calls = numbers.into_iter().map(|n| ToolUse::new("call_0", "add", json!({ "n": n })));
    ChatResponse::new(Message::new(Role::Assistant, calls), StopReason::ToolUse).into()
}

#[tokio::test]
async fn each_call_runs_once_and_has_its_result() {
    let log = Log::default();
    let model = ScriptedModel::new([same_ids([1, 2]), same_ids([3]), Reply::text("done")]);
    let agent = Agent::new(model.clone()).tool(echo("add", &log)).compile().unwrap();
    let answer = agent.invoke("go").await.unwrap().into_finished().unwrap();
    let mut ran = log.lines();
    ran.sort();
    assert_eq!(ran, ["add 1", "add 2", "add 3"]);
    assert_eq!(results(&answer.state.messages), ["call_0: 1", "call_0-2: 2", "call_0-3: 3"]);
    let sent = &model.requests()[2].messages;
    let asked: Vec<_> = sent.iter().flat_map(Message::tool_uses).map(|call| call.id.as_str()).collect();
    assert_eq!(asked, ["call_0", "call_0-2", "call_0-3"], "the provider gets calls and results alike");
}

#[tokio::test]
async fn a_listener_hears_the_ids_that_are_stored() {
    let model = ScriptedModel::new([same_ids([1, 2]), Reply::text("done")]);
    let agent = Agent::new(model).tool(echo("add", &Log::default())).compile().unwrap();
    let mut events = agent.invoke("go").views([View::Messages]).stream();
    let mut heard = String::new();
    while let Some(event) = events.next().await {
        heard += &serde_json::to_string(&event).unwrap();
    }
    let count = |text: &str| heard.matches(text).count();
    assert!(
        count(r#""id":"call_0""#) > 0 && count(r#""id":"call_0""#) == count(r#""id":"call_0-2""#),
        "{heard}"
    );
}

#[tokio::test]
async fn a_loop_tells_them_apart() {
    let log = Log::default();
    let model = ScriptedModel::new([same_ids([1, 2]), same_ids([3]), Reply::text("done")]);
    let outcome = ToolLoop::new(&model).tool(echo("add", &log)).run(ChatRequest::user("go")).await.unwrap();
    assert_eq!(results(&outcome.messages), ["call_0: 1", "call_0-2: 2", "call_0-3: 3"]);
    assert_eq!(log.len(), 3);
}

/// The note about a changed call belongs to the result of that call.
#[tokio::test]
async fn the_note_of_a_person_is_at_the_call_that_was_changed() {
    let model = ScriptedModel::new([same_ids([1]), same_ids([2]), Reply::text("done")]);
    let agent = Agent::new(model)
        .tool(echo("add", &Log::default()))
        .middleware(HumanInTheLoop::new().tool("add", ToolPolicy::new()))
        .compile()
        .unwrap()
        .checkpointer(MemorySaver::new());
    let question = |asked: &Outcome<AgentAnswer>| -> Question {
        serde_json::from_value(asked.interrupts()[0].value.clone()).unwrap()
    };
    let first = agent.invoke("go").thread("t").await.unwrap();
    let second = agent.resume(question(&first).answer([Verdict::Approve])).thread("t").await.unwrap();
    let edit = question(&second).answer([Verdict::edit(json!({"n": 9}))]);
    let answer = agent.resume(edit).thread("t").await.unwrap().into_finished().unwrap();
    let all = results(&answer.state.messages);
    assert_eq!(all[0], "call_0: 1");
    assert!(all[1].starts_with("call_0-2: A person changed") && all[1].ends_with('9'), "{all:?}");
}

#[derive(State, serde::Serialize, serde::Deserialize, Clone, Debug, Default)]
struct Chat {
    #[reduce(by_id)]
    messages: Vec<Message>,
}

impl MessageChannels for Chat {
    fn messages(&self) -> &[Message] {
        &self.messages
    }

    fn add_messages(messages: Vec<Message>) -> ChatUpdate {
        Chat::update().messages(messages)
    }
}

/// In one's own graph nothing renames them, and one result would have to stand for two calls.
#[tokio::test]
async fn a_tool_node_runs_none_of_two_calls_with_one_id_and_says_so() {
    let answer = || {
        let calls = [1, 2].map(|n| ToolUse::new("same", "add", json!({ "n": n })));
        let other = ToolUse::new("other", "add", json!({"n": 3}));
        Message::new(Role::Assistant, calls.into_iter().chain([other]))
    };
    for is_dispatched in [true, false] {
        let log = Log::default();
        let tools = ToolNode::new([echo("add", &log)]).unwrap();
        let graph = StateGraph::new().node("ask", move || async move { Chat::update().messages([answer()]) });
        let graph = graph.node("tools", tools).edge(START, "ask");
        let graph = match is_dispatched {
            true => graph.branch("ask", |chat: &Chat| ToolNode::dispatch("tools", &chat.messages), ["tools"]),
            false => graph.edge("ask", "tools"),
        };
        let chat = graph.compile().unwrap().invoke(Chat::update()).await.unwrap().into_finished().unwrap();
        assert_eq!(log.lines(), ["add 3"], "dispatched: {is_dispatched}");
        let all = results(&chat.messages);
        assert!(all[0].starts_with("same: not run: several calls"), "{all:?}");
        assert_eq!(all[1], "other: 3");
    }
}
