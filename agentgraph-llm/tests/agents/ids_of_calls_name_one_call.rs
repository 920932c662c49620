//! Providers choose the ids of calls. Some write one twice in an answer, and some begin anew with each
//! answer.

use agentgraph::prelude::*;
use agentgraph_llm::middleware::idempotency_key;
use agentgraph_llm::prelude::*;
use agentgraph_llm::{ChatResponse, StopReason, ToolUse};
use serde_json::json;

use crate::support::{Log, Number, results};

/// An answer with a `pay` for each id, of the amounts 1, 2, 3 ...
fn pays(message: &str, ids: &[&str]) -> Reply {
    let calls = ids.iter().zip(1..).map(|(id, n)| ToolUse::new(*id, "pay", json!({ "n": n })));
    let message = Message::new(Role::Assistant, calls).with_id(message);
    ChatResponse::new(message, StopReason::ToolUse).into()
}

/// Logs the amount and the key of each call.
fn pay(log: &Log) -> FnTool {
    let log = log.clone();
    FnTool::with_call("pay", "Pays.", move |number: Number, call: ToolCall| {
        let log = log.clone();
        async move {
            log.add(format!("{} {}", number.n, idempotency_key(&call)));
            Ok::<_, ToolError>(format!("paid {}", number.n))
        }
    })
}

fn amounts(log: &Log) -> Vec<String> {
    log.lines().iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn calls_with_one_id_in_an_answer_run_once_each() {
    for ids in [["c", "c", "c"], ["", "", ""], ["c", "", "c"]] {
        let log = Log::default();
        let model = ScriptedModel::new([pays("a", &ids), Reply::text("done")]);
        let agent = Agent::new(model.clone()).tool(pay(&log)).compile().unwrap();
        let answer = agent.invoke("pay").await.unwrap().into_finished().unwrap();
        assert_eq!(amounts(&log), ["1", "2", "3"], "{ids:?}");
        assert_eq!(answer.text(), "done");
        let sent = &model.requests()[1].messages;
        let paid: Vec<_> = results(sent);
        let texts: Vec<_> = paid.iter().map(|line| line.split(": ").nth(1).unwrap()).collect();
        assert_eq!(texts, ["paid 1", "paid 2", "paid 3"], "{ids:?}");
        let named: std::collections::BTreeSet<_> =
            sent.iter().flat_map(Message::tool_uses).map(|call| call.id.clone()).collect();
        assert_eq!(named.len(), 3, "{named:?}");
    }
}

#[tokio::test]
async fn an_id_of_an_earlier_answer_has_another_idempotency_key() {
    let log = Log::default();
    let model = ScriptedModel::new([pays("a", &["0"]), pays("b", &["0"]), Reply::text("done")]);
    let agent = Agent::new(model).tool(pay(&log)).compile().unwrap();
    agent.invoke("pay twice").await.unwrap().into_finished().unwrap();
    let lines = log.lines();
    assert_eq!(amounts(&log), ["1", "1"]);
    assert_ne!(lines[0], lines[1]);
}

#[tokio::test]
async fn an_answer_never_replaces_an_earlier_one() {
    let again = |text: &str| {
        let message = Message::assistant(text).with_id("the same");
        Reply::response(ChatResponse::new(message, StopReason::EndTurn))
    };
    let model = ScriptedModel::new([again("one"), again("two")]);
    let agent = Agent::new(model).compile().unwrap().checkpointer(MemorySaver::new());
    agent.invoke("first").thread("t").await.unwrap();
    let answer = agent.invoke("second").thread("t").await.unwrap().into_finished().unwrap();
    let said: Vec<_> = answer.state.messages.iter().map(Message::text).collect();
    assert_eq!(said, ["first", "one", "second", "two"]);
}

#[tokio::test]
async fn a_closure_may_take_the_arguments_as_they_are() {
    let spec = agentgraph_llm::ToolSpec::new("keep", "Keeps.", json!({ "type": "object" }));
    let keep = FnTool::with_spec(spec, async |input: RawJson| Ok::<_, ToolError>(input.get().to_owned()));
    let text = r#"{"big": 1e400, "half": "\ud800", "b":1, "a":1180591620717411303424}"#;
    let input = RawJson::parse_text(text).unwrap();
    let output = keep.call(&input, &ToolCall::detached("c", "keep")).await.unwrap();
    assert_eq!(output, ToolOutput::text(text));
}
