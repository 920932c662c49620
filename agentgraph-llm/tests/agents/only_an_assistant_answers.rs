//! A model of one's own that answers with a message of another role fails, and none of its calls runs.

use agentgraph_llm::prelude::*;
use agentgraph_llm::{ChatResponse, Code, StopReason, ToolUse};
use futures_util::stream;
use serde_json::json;

use crate::support::{Log, echo};

/// Answers with a call in a message of the user.
struct Confused;

#[async_trait::async_trait]
impl ChatModel for Confused {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("test", "confused")
    }

    async fn stream(&self, _: ChatRequest) -> agentgraph_llm::Result<ChatStream> {
        let call = ToolUse::new("call-1", "echo", json!({"n": 1}));
        let response = ChatResponse::new(Message::new(Role::User, [call]), StopReason::ToolUse);
        Ok(ChatStream::new(stream::iter([Ok(ChatEvent::Finished(response))])))
    }
}

#[tokio::test]
async fn a_message_of_another_role_is_an_error_and_its_calls_do_not_run() {
    let log = Log::default();
    let agent = Agent::new(Confused).tool(echo("echo", &log)).compile().unwrap();
    let error = agent.invoke("go").finish().await.unwrap_err();
    let cause = error.to_string();
    assert!(cause.contains("E_LLM_DECODE") && cause.contains("`User`"), "{cause}");

    let error =
        ToolLoop::new(&Confused).tool(echo("echo", &log)).run(ChatRequest::user("go")).await.unwrap_err();
    assert_eq!(error.code(), Code::Decode);
    assert!(error.partial().is_some(), "what came is not lost");
    assert_eq!(log.len(), 0, "no call has run");
}
