//! Prompt caching and hidden arguments change what is sent, within the provider's rules.

use std::sync::Arc;

use agentgraph_llm::middleware::{ContextEditing, IdempotencyKeys, PromptCaching};
use agentgraph_llm::*;
use serde_json::{Value, json};

use crate::support::events;

/// Keeps requests, under any provider's name.
struct As(&'static str, ScriptedModel);

#[async_trait::async_trait]
impl ChatModel for As {
    fn info(&self) -> ModelInfo {
        ModelInfo::new(self.0, "m")
    }

    async fn stream(&self, request: ChatRequest) -> Result<ChatStream> {
        self.1.stream(request).await
    }
}

fn request() -> ChatRequest {
    let tools = ["a", "b"].map(|name| ToolSpec::new(name, "", json!({"type": "object"})));
    ChatRequest::new([
        Message::user("one"),
        Message::assistant("two"),
        Message::user("three"),
        Message::new(Role::Assistant, [ToolUse::new("c1", "a", json!({}))]),
        Message::tool_results([ToolResult::text("c1", "four")]),
    ])
    .with_system("Be brief.")
    .with_tools(tools)
}

async fn sent(provider: &'static str, request: ChatRequest) -> ChatRequest {
    let scripted = ScriptedModel::new(["ok"]);
    events(&PromptCaching::new(), Arc::new(As(provider, scripted.clone())), request).await;
    scripted.requests().remove(0)
}

#[tokio::test]
async fn anthropic_gets_four_marks_in_their_places() {
    let request = sent("anthropic", request()).await;
    let body: Value = anthropic::encode("m", &request, false).parse().unwrap();
    let mark = json!({"type": "ephemeral"});
    assert_eq!(body["system"][0]["cache_control"], mark);
    let on_tools: Vec<_> =
        request.tools.iter().map(|tool| tool.extra.get("cache_control").is_some()).collect();
    assert_eq!(on_tools, [false, true]);
    assert_eq!(body["messages"][2]["content"][0]["cache_control"], mark);
    assert_eq!(body["messages"][4]["content"][0]["cache_control"], mark);
    assert_eq!(body["messages"].to_string().matches("cache_control").count(), 2);
}

#[tokio::test]
async fn own_marks_and_other_providers_are_left_alone() {
    assert_eq!(sent("openai", request()).await.canonical(), request().canonical());
    let mut own = request();
    own.tools[0].extra.insert("cache_control", json!({"type": "ephemeral"}));
    assert_eq!(sent("anthropic", own.clone()).await, own);
}

#[tokio::test]
async fn the_model_does_not_see_the_argument_of_a_key() {
    let schema = json!({
        "type": "object",
        "properties": {"cents": {"type": "integer"}, "idempotency_key": {"type": "string"}},
        "required": ["cents", "idempotency_key"],
    });
    let tools = ["pay", "other"].map(|name| ToolSpec::new(name, "", schema.clone()));
    let scripted = ScriptedModel::new(["ok"]);
    let request = ChatRequest::user("pay").with_tools(tools);
    events(&IdempotencyKeys::new(["pay"]), Arc::new(scripted.clone()), request).await;
    let seen = &scripted.requests()[0].tools;
    assert_eq!(seen[0].input_schema["required"], json!(["cents"]));
    assert_eq!(seen[0].input_schema["properties"], json!({"cents": {"type": "integer"}}));
    assert_eq!(seen[1].input_schema, schema);
}

#[tokio::test]
async fn old_results_are_cleared_only_above_the_trigger() {
    let result = |id: &str| Message::tool_results([ToolResult::text(id, "x".repeat(4000))]);
    let call = |id: &str| Message::new(Role::Assistant, [ToolUse::new(id, "read", json!({}))]);
    let messages: Vec<_> = ["a", "b", "c", "d", "e"].iter().flat_map(|id| [call(id), result(id)]).collect();
    for (trigger, cleared) in [(100_000, 0), (4000, 2)] {
        let scripted = ScriptedModel::new(["ok"]);
        let editing = ContextEditing::new().trigger(trigger);
        events(&editing, Arc::new(scripted.clone()), ChatRequest::new(messages.clone())).await;
        let texts: Vec<_> = scripted.requests()[0]
            .messages
            .iter()
            .flat_map(|message| message.results().map(ToolResult::as_text).collect::<Vec<_>>())
            .collect();
        assert_eq!(texts.len(), 5);
        assert!(
            texts.iter().enumerate().all(|(at, text)| (text == "[cleared]") == (at < cleared)),
            "{trigger}"
        );
    }
}
