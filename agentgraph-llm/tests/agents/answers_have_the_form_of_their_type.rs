//! Structured output: natively, and by a tool that the model calls to answer.

use agentgraph_llm::prelude::*;
use agentgraph_llm::{Capabilities, Code, LoopEnd, ToolMode};
use async_trait::async_trait;
use serde_json::json;

use crate::support::{Log, calls, echo, results};

#[derive(serde::Deserialize, schemars::JsonSchema, Debug, PartialEq)]
struct Advice {
    coat: bool,
}

/// A model with structured output.
struct Native(ScriptedModel);

#[async_trait]
impl ChatModel for Native {
    fn info(&self) -> ModelInfo {
        self.0.info().with(Capabilities::new().structured_output())
    }

    async fn stream(&self, request: ChatRequest) -> agentgraph_llm::Result<ChatStream> {
        self.0.stream(request).await
    }
}

#[tokio::test]
async fn a_model_with_structured_output_gets_the_form_and_no_tool() {
    let log = Log::default();
    let model = ScriptedModel::new([calls("echo", [1]), Reply::text(r#"{"coat": true}"#)]);
    let agent =
        Agent::new(Native(model.clone())).tool(echo("echo", &log)).output::<Advice>().compile().unwrap();
    let answer = agent.invoke("a coat?").await.unwrap().into_finished().unwrap();
    assert_eq!(answer.value().unwrap(), Advice { coat: true });
    let request = &model.requests()[0];
    assert_eq!(request.output.as_ref().unwrap().name, "Advice");
    assert_eq!(request.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["echo"]);
}

#[tokio::test]
async fn any_other_model_answers_by_a_call() {
    let log = Log::default();
    let model = ScriptedModel::new([calls("echo", [1]), Reply::tool_call("Advice", json!({"coat": true}))]);
    let agent = Agent::new(model.clone()).tool(echo("echo", &log)).output::<Advice>().compile().unwrap();
    let answer = agent.invoke("a coat?").await.unwrap().into_finished().unwrap();
    assert_eq!((answer.value().unwrap(), answer.end()), (Advice { coat: true }, LoopEnd::Finished));
    assert_eq!(model.requests()[0].tool_choice.mode, ToolMode::Any);
    assert_eq!(
        results(&answer.state.messages),
        ["call-1: 1", "call-2: accepted"],
        "the conversation can go on"
    );
}

#[tokio::test]
async fn an_answer_of_another_form_goes_back_to_the_model_a_bounded_number_of_times() {
    let mild = || Reply::tool_call("Advice", json!({"coat": "mild"}));
    let right = || Reply::tool_call("Advice", json!({"coat": false}));
    let model = ScriptedModel::new([mild(), Reply::text("no coat"), right()]);
    let agent = Agent::new(model.clone()).output::<Advice>().compile().unwrap();
    let answer = agent.invoke("a coat?").await.unwrap().into_finished().unwrap();
    assert_eq!(answer.value().unwrap(), Advice { coat: false });
    let sent = model.requests();
    assert!(sent[1].messages[2].results().next().unwrap().as_text().contains("required form"));
    assert_eq!(sent[2].messages.last().unwrap().text(), "Give the answer by calling `Advice`.");

    let agent = Agent::new(ScriptedModel::from_fn(move |_| mild())).output::<Advice>().compile().unwrap();
    let error = agent.invoke("a coat?").await.unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().downcast_ref::<agentgraph_llm::Error>().unwrap();
    assert_eq!(cause.code(), Code::AnswerRejected);
}

#[tokio::test]
async fn an_answer_beside_other_calls_waits_for_their_results() {
    let log = Log::default();
    let both = calls("echo", [1]).and_tool_call("Advice", json!({"coat": true}));
    let model = ScriptedModel::new([both, Reply::tool_call("Advice", json!({"coat": false}))]);
    let agent = Agent::new(model).tool(echo("echo", &log)).output::<Advice>().compile().unwrap();
    let answer = agent.invoke("a coat?").await.unwrap().into_finished().unwrap();
    assert_eq!((answer.value().unwrap(), log.len()), (Advice { coat: false }, 1));
}

#[tokio::test]
async fn a_run_without_an_answer_of_the_form_says_so() {
    let log = Log::default();
    let model = ScriptedModel::from_fn(|_| calls("echo", [1]));
    let agent =
        Agent::new(model).tool(echo("echo", &log)).output::<Advice>().max_rounds(2).compile().unwrap();
    let answer = agent.invoke("a coat?").await.unwrap().into_finished().unwrap();
    let error = answer.value().unwrap_err();
    assert_eq!((error.code(), answer.end()), (Code::AnswerRejected, LoopEnd::LimitReached));
}

#[tokio::test]
async fn a_value_that_is_no_object_is_an_answer_too() {
    let model = ScriptedModel::from_fn(|request| {
        let tool = &request.tools[0];
        Reply::tool_call(&tool.name, json!({"value": ["a", "b"]}))
    });
    let agent = Agent::new(model).output::<Vec<String>>().compile().unwrap();
    let answer = agent.invoke("two letters").await.unwrap().into_finished().unwrap();
    assert_eq!(answer.value().unwrap(), ["a", "b"]);
}
