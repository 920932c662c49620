//! Hand-offs: who answers, what it sees, and who answers next time.

use agentgraph::prelude::*;
use agentgraph_llm::middleware::{AboveLimit, ToolCallLimit};
use agentgraph_llm::prelude::*;
use agentgraph_llm::{Origin, Thinking};
use serde_json::json;

use crate::teams::support::{agent, ask, assert_sendable, seen, short, texts};

fn to(agent: &str) -> Reply {
    Reply::tool_call(format!("transfer_to_{agent}"), json!({}))
}

fn add() -> FnTool {
    FnTool::new("add", "Adds.", async |_: crate::teams::support::Nothing| Ok::<_, ToolError>("5"))
}

#[tokio::test]
async fn the_next_agent_sees_all_and_keeps_the_conversation() {
    let alice = ScriptedModel::new([to("bob")]);
    let bob = texts(["hello from bob", "bob again"]);
    let both =
        hand_off([agent("alice", &alice).system("I am Alice."), agent("bob", &bob).system("I am Bob.")]);
    let both = both.unwrap().checkpointer(MemorySaver::new());
    let answer = both.invoke("bob, please").thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(answer.text(), "hello from bob");
    let expected = [
        "user: bob, please",
        "assistant: [call-1 transfer_to_bob]",
        "user: call-1=The agent `bob` has the conversation now.",
    ];
    assert_eq!(seen(&bob), expected);
    assert_eq!(bob.requests()[0].system.as_deref(), Some("I am Bob."));

    let answer = both.invoke("still there?").thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!((answer.text(), alice.requests().len()), ("bob again".to_owned(), 1));
    let other = both.invoke("hello").thread("other").await.unwrap_err();
    assert!(other.to_string().contains("E_LLM_SCRIPT_EXHAUSTED"), "a new thread begins with alice: {other}");
}

#[tokio::test]
async fn agents_hand_back_within_one_run() {
    let alice = ScriptedModel::new([to("bob"), Reply::text("done by alice")]);
    let bob = ScriptedModel::new([to("alice")]);
    let both = hand_off([agent("alice", &alice), agent("bob", &bob)]).unwrap();
    let answer = both.invoke("go").await.unwrap().into_finished().unwrap();
    assert_eq!((answer.text(), answer.rounds()), ("done by alice".to_owned(), 3));
    assert_eq!(answer.state.thread_record.active.as_deref(), Some("alice"));
    assert_sendable(&alice);
}

#[tokio::test]
async fn of_two_hand_offs_in_one_answer_the_first_counts() {
    let alice = ScriptedModel::new([to("carol").and_tool_call("transfer_to_bob", json!({}))]);
    let (bob, carol) = (texts([]), texts(["carol here"]));
    let all = hand_off([agent("alice", &alice), agent("bob", &bob), agent("carol", &carol)]).unwrap();
    let answer = all.invoke("go").await.unwrap().into_finished().unwrap();
    assert_eq!(answer.text(), "carol here");
    assert_sendable(&carol);
    let results = &seen(&carol)[2];
    assert!(results.contains("call-1=The agent `carol`"), "{results}");
    let why = "call-2!not handed over: one answer hands over once, and `transfer_to_carol` was called first";
    assert!(results.contains(why), "{results}");
}

#[tokio::test]
async fn calls_beside_a_hand_off_are_run_and_answered_first() {
    let alice = ScriptedModel::new([Reply::tool_call("add", json!({}))
        .and_tool_call("transfer_to_bob", json!({}))
        .and_tool_call("ask", json!({}))]);
    let bob = texts(["bob"]);
    let both = hand_off([agent("alice", &alice).tool(add()).tool(ask()), agent("bob", &bob)]).unwrap();
    let both = both.checkpointer(MemorySaver::new());
    let asked = both.invoke("go").thread("t").await.unwrap();
    assert_eq!((asked.interrupts()[0].value.as_str(), bob.requests().len()), (Some("which one?"), 0));
    let answer = both.resume("this one").thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!((answer.text(), alice.requests().len()), ("bob".to_owned(), 1));
    assert_sendable(&bob);
    let results = &seen(&bob)[2];
    assert!(results.starts_with("user: call-1=5 call-2=The agent `bob`"), "{results}");
    assert!(results.ends_with("call-3=this one"), "{results}");
}

#[tokio::test]
async fn a_hand_off_that_is_refused_leaves_the_conversation_where_it_is() {
    let malformed = Reply::raw_tool_call("transfer_to_bob", "[]");
    let alice = ScriptedModel::new([malformed, to("dave"), to("carol"), Reply::text("then I do it")]);
    let (bob, carol) = (texts([]), texts([]));
    let limit = ToolCallLimit::new(None, Some(1)).unwrap().tool("transfer_to_carol");
    let alone =
        agent("alice", &alice).middleware(limit.above_limit(AboveLimit::Continue)).hand_off_to(["bob"]);
    let all = hand_off([alone, agent("bob", &bob), agent("carol", &carol)]).unwrap();
    let answer = all.invoke("go").await.unwrap().into_finished().unwrap();
    assert_eq!(answer.text(), "then I do it");
    let results: Vec<_> =
        answer.state.messages.iter().flat_map(Message::results).map(|one| one.is_error).collect();
    assert_eq!(results, [true, true, true]);
    let offered: Vec<_> = alice.requests()[0].tools.iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(offered, ["transfer_to_bob"]);
}

#[tokio::test]
async fn the_thinking_of_one_model_is_not_for_another() {
    let thought = Thinking::new("Bob knows.", Some("signed".to_owned()));
    let alice = ScriptedModel::new([Reply::block(thought).and_tool_call("transfer_to_bob", json!({}))]);
    let (alice, bob) = (alice.named("one"), texts(["bob"]).named("two"));
    let both = hand_off([agent("alice", &alice), agent("bob", &bob)]).unwrap();
    let answer = both.invoke("go").await.unwrap().into_finished().unwrap();
    let said = &answer.state.messages[1];
    assert_eq!(said.origin, Some(Origin::new("scripted", "one")), "the stored message keeps its thinking");
    assert_eq!((said.content.len(), said.for_model(&bob.info()).content.len()), (2, 1));
    assert!(short(said).contains("transfer_to_bob"));
}

#[tokio::test]
async fn an_agent_that_is_gone_leaves_the_conversation_to_the_first() {
    let saver = std::sync::Arc::new(MemorySaver::new());
    let (alice, bob) = (
        ScriptedModel::new([to("bob"), Reply::tool_call("add", json!({})), Reply::text("alice")]),
        texts(["bob"]),
    );
    let first = || agent("alice", &alice).tool(add());
    let both = hand_off([first(), agent("bob", &bob)]).unwrap().checkpointer(saver.clone());
    both.invoke("go").thread("t").await.unwrap().into_finished().unwrap();
    let alone = hand_off([first(), agent("carol", &texts([]))]).unwrap().checkpointer(saver);
    let answer = alone.invoke("and now?").thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(answer.text(), "alice");
}
