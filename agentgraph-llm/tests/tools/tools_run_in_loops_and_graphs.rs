use agentgraph_llm::prelude::*;
use serde_json::json;

/// Adds two numbers.
#[tool]
async fn add(a: i64, b: i64) -> Result<String, ToolError> {
    let sum = a.checked_add(b).ok_or_else(|| ToolError::failed("the sum is too large"))?;
    Ok(sum.to_string())
}

#[tokio::test]
async fn a_loop_calls_the_tool_and_shows_its_errors_to_the_model() {
    let model = ScriptedModel::new([
        Reply::tool_call("add", json!({"a": 2})),
        Reply::tool_call("add", json!({"a": 2, "b": 3})),
        Reply::text("It is 5."),
    ]);
    let outcome = ToolLoop::new(&model).tool(add).run(ChatRequest::user("2 + 3?")).await.unwrap();
    assert_eq!(outcome.text(), "It is 5.");
    let results: Vec<_> = outcome.messages.iter().flat_map(Message::results).collect();
    // The schema is checked first if the crate does that.
    let missing = if cfg!(feature = "validate") { r#""b" is a required property"# } else { "`b` is missing" };
    assert!(results[0].is_error && results[0].as_text().contains(missing), "{results:?}");
    assert!(!results[1].is_error && results[1].as_text() == "5");
}

#[tokio::test]
async fn a_tool_takes_limits_like_any_other() {
    let short = add().max_result_bytes(1);
    let output = short.call(&json!({"a": 10, "b": 1}).into(), &ToolCall::detached("1", "add")).await.unwrap();
    assert!(output.content[0].as_text() == Some("1"), "{output:?}");
}

#[tokio::test]
async fn tools_can_be_kept_in_a_list() {
    let tools: Vec<std::sync::Arc<dyn Tool>> = vec![std::sync::Arc::new(add())];
    assert_eq!(tools[0].spec().name, "add");
    assert_eq!(add().run(1, 2).await.unwrap(), "3");
}
