//! Requests of the Responses API, compared to the documented form.

use agentgraph_llm::openai::responses;
use agentgraph_llm::*;
use serde_json::{Value, json};

use crate::requests::{long_talk, verdict, weather};

fn encode(request: &ChatRequest) -> Value {
    responses::encode("m", request, false).parse().unwrap()
}

#[test]
fn a_conversation_with_tools_and_media() {
    let image = json!({"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "auto"});
    let expected = json!([
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
        {"type": "message", "role": "assistant", "content": "Let me look."},
        {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{\"city\":\"Oslo\"}"},
        {"type": "function_call", "call_id": "call_2", "name": "weather", "arguments": "{\"city\":\"Rome\"}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "4 degrees"},
        {"type": "function_call_output", "call_id": "call_2", "output":
            [{"type": "input_text", "text": "See the picture."}, image]},
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be kind."}]},
        {"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "Compare these."},
            image,
            {"type": "input_image", "image_url": "https://example.com/a.png", "detail": "low"},
            {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="},
            {"type": "input_file", "file_id": "file-1"},
        ]},
    ]);
    let body = encode(&long_talk());
    assert_eq!(body["input"], expected);
    assert_eq!(body["instructions"], "Be brief.");
}

#[test]
fn the_server_stores_nothing_and_gives_its_thinking_along() {
    let body = encode(&ChatRequest::user("hi"));
    assert_eq!(body["store"], false);
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(body.get("stream"), None);
    let streamed: Value = responses::encode("m", &ChatRequest::user("hi"), true).parse().unwrap();
    assert_eq!(streamed["stream"], true);
}

#[test]
fn settings_tools_and_output_have_their_flat_form() {
    let body = encode(&long_talk());
    assert_eq!(body["max_output_tokens"], 100);
    assert_eq!(
        (body["temperature"].to_string(), body["top_p"].to_string()),
        ("0.2".to_owned(), "0.9".to_owned())
    );
    assert_eq!(body["reasoning"], json!({"effort": "low"}));
    let tool = json!({"type": "function", "name": "weather", "description": "The weather of today.",
        "parameters": weather().input_schema, "strict": false});
    assert_eq!(body["tools"], json!([tool]));
    let format =
        json!({"type": "json_schema", "name": "verdict", "schema": verdict().schema, "strict": true});
    assert_eq!(body["text"], json!({"format": format}));
    let strict = encode(&ChatRequest::user("hi").with_tools([weather().strict()]));
    assert_eq!(strict["tools"][0]["strict"], true);
    assert_eq!(strict["tools"][0]["parameters"]["additionalProperties"], false);
}

#[test]
fn a_choice_of_tools_in_every_form() {
    let body = |choice: ToolChoice| {
        encode(&ChatRequest::user("hi").with_tools([weather()]).with_tool_choice(choice))
    };
    assert_eq!(body(ToolChoice::auto()).get("tool_choice"), None);
    assert_eq!(body(ToolChoice::any())["tool_choice"], "required");
    assert_eq!(body(ToolChoice::none())["tool_choice"], "none");
    assert_eq!(
        body(ToolChoice::tool("weather"))["tool_choice"],
        json!({"type": "function", "name": "weather"})
    );
    assert_eq!(body(ToolChoice::any().one_at_a_time())["parallel_tool_calls"], false);
}

#[test]
fn own_fields_are_added_to_reasoning_and_text_and_replace_others() {
    let request = long_talk()
        .with_extra("reasoning", json!({"summary": "auto"}))
        .with_extra("text", json!({"verbosity": "low"}))
        .with_extra("store", json!(true));
    let body = encode(&request);
    assert_eq!(body["reasoning"], json!({"effort": "low", "summary": "auto"}));
    assert_eq!(body["text"]["verbosity"], "low");
    assert_eq!(body["text"]["format"]["name"], "verdict");
    assert_eq!(body["store"], true);
}

#[test]
fn a_count_has_the_fields_that_are_counted() {
    let body: Value =
        responses::encode_count("m", &long_talk().with_extra("seed", json!(1))).parse().unwrap();
    let mut names: Vec<_> = body.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["input", "instructions", "model", "reasoning", "text", "tools"]);
}

#[test]
fn a_failed_call_says_so() {
    let picture = Block::Image(Media::url("https://example.com/a.png"));
    let mut result = ToolResult::new("c2", [picture]);
    result.is_error = true;
    let request =
        ChatRequest::new([Message::tool_results([ToolResult::error("c1", "no such file"), result])]);
    let body = encode(&request);
    assert_eq!(body["input"][0]["output"], "Error: no such file");
    assert_eq!(body["input"][1]["output"][0], json!({"type": "input_text", "text": "Error:"}));
}
