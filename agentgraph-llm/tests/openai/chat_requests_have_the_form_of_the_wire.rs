//! Requests of Chat Completions, compared to the documented form.

use agentgraph_llm::openai::{Profile, chat};
use agentgraph_llm::*;
use serde_json::{Value, json};

use crate::requests::{long_talk, verdict, weather};

fn encode(request: &ChatRequest, profile: &Profile) -> Value {
    chat::encode("m", request, profile, false).parse().unwrap()
}

fn messages(request: &ChatRequest, profile: &Profile) -> Value {
    encode(request, profile)["messages"].take()
}

#[test]
fn a_conversation_with_tools_and_media() {
    let data = "data:image/png;base64,aGk=";
    let expected = json!([
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Let me look.", "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Oslo\"}"}},
            {"id": "call_2", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Rome\"}"}},
        ]},
        {"role": "tool", "tool_call_id": "call_1", "content": "4 degrees"},
        {"role": "tool", "tool_call_id": "call_2", "content": "See the picture."},
        {"role": "user", "content": [
            {"type": "text", "text": "From the result of tool call call_2:"},
            {"type": "image_url", "image_url": {"url": data}},
        ]},
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": [
            {"type": "text", "text": "Compare these."},
            {"type": "image_url", "image_url": {"url": data}},
            {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "low"}},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}},
            {"type": "file", "file": {"file_id": "file-1"}},
        ]},
    ]);
    assert_eq!(messages(&long_talk(), &Profile::openai()), expected);
}

#[test]
fn the_settings_have_the_names_of_the_profile() {
    let openai = encode(&long_talk(), &Profile::openai());
    assert_eq!(openai["max_completion_tokens"], 100);
    assert_eq!(openai["reasoning_effort"], "low");
    assert_eq!(openai["temperature"].to_string(), "0.2");
    assert_eq!(openai["top_p"].to_string(), "0.9");
    assert_eq!(openai.get("max_tokens"), None);
    for profile in [Profile::ollama(), Profile::llama_cpp(), Profile::vllm()] {
        let body = encode(&long_talk(), &profile);
        assert_eq!((&body["max_tokens"], &body["messages"][0]["role"]), (&json!(100), &json!("system")));
        assert_eq!(body.get("max_completion_tokens"), None);
    }
}

#[test]
fn only_a_stream_asks_for_its_usage() {
    let body = |stream| -> Value {
        chat::encode("m", &ChatRequest::user("hi"), &Profile::openai(), stream).parse().unwrap()
    };
    assert_eq!(body(true)["stream_options"], json!({"include_usage": true}));
    assert_eq!(body(true)["stream"], true);
    assert_eq!((body(false).get("stream"), body(false).get("stream_options")), (None, None));
}

#[test]
fn a_choice_of_tools_in_every_form() {
    let body = |choice: ToolChoice, profile: &Profile| {
        let other = ToolSpec::new("other", "", json!({"type": "object"}));
        encode(&ChatRequest::user("hi").with_tools([weather(), other]).with_tool_choice(choice), profile)
    };
    let openai = Profile::openai();
    assert_eq!(body(ToolChoice::auto(), &openai).get("tool_choice"), None);
    assert_eq!(body(ToolChoice::any(), &openai)["tool_choice"], "required");
    assert_eq!(body(ToolChoice::none(), &openai)["tool_choice"], "none");
    let named = body(ToolChoice::tool("weather"), &openai);
    assert_eq!(named["tool_choice"], json!({"type": "function", "function": {"name": "weather"}}));
    assert_eq!(body(ToolChoice::auto().one_at_a_time(), &openai)["parallel_tool_calls"], false);
    // This server knows no names, so it gets the one tool and must call one.
    let alone = body(ToolChoice::tool("weather"), &Profile::llama_cpp());
    assert_eq!(alone["tool_choice"], "required");
    assert_eq!(alone["tools"].as_array().unwrap().len(), 1);
    assert_eq!(alone["tools"][0]["function"]["name"], "weather");
    // Without tools there is nothing to choose.
    assert_eq!(
        encode(&ChatRequest::user("hi").with_tool_choice(ToolChoice::any()), &openai).get("tool_choice"),
        None
    );
}

#[test]
fn structured_output_is_a_strict_schema() {
    let request = ChatRequest::user("hi").with_output(verdict());
    let format = json!({"type": "json_schema", "json_schema":
        {"name": "verdict", "schema": verdict().schema, "strict": true}});
    assert_eq!(encode(&request, &Profile::openai())["response_format"], format);
    assert_eq!(encode(&request, &Profile::vllm())["response_format"], format);
    // Strict arguments are those of OpenAI's subset: closed, and all of them required.
    let strict = encode(&ChatRequest::user("hi").with_tools([weather().strict()]), &Profile::openai());
    assert_eq!(strict["tools"][0]["function"]["strict"], true);
    assert_eq!(strict["tools"][0]["function"]["parameters"]["additionalProperties"], false);
    let open = encode(&ChatRequest::user("hi").with_tools([weather()]), &Profile::openai());
    assert_eq!(open["tools"][0]["function"].get("strict"), None);
    assert_eq!(open["tools"][0]["function"]["parameters"], weather().input_schema);
}

#[test]
fn sound_is_sent_as_data_with_its_format() {
    let sound = |media| {
        let request = ChatRequest::new([Message::new(Role::User, [Block::Audio(media)])]);
        messages(&request, &Profile::openai())[0]["content"][0].take()
    };
    for (media_type, format) in
        [("audio/wav", "wav"), ("audio/x-wav", "wav"), ("audio/mpeg", "mp3"), ("audio/flac", "flac")]
    {
        let part = json!({"type": "input_audio", "input_audio": {"data": "aGk=", "format": format}});
        assert_eq!(sound(Media::base64(media_type, "aGk=")), part);
    }
}

#[test]
fn malformed_arguments_go_back_as_they_came_unless_the_server_cannot_read_them() {
    let mut call = ToolUse::new("c", "f", json!({}));
    call.input = ToolInput::Malformed("{\"city\": \"Os".to_owned());
    let request = ChatRequest::new([Message::new(Role::Assistant, [call])]);
    let arguments =
        |profile: Profile| messages(&request, &profile)[0]["tool_calls"][0]["function"]["arguments"].take();
    assert_eq!(arguments(Profile::openai()), "{\"city\": \"Os");
    assert_eq!(arguments(Profile::ollama()), r#"{"INVALID_JSON":"{\"city\": \"Os"}"#);
}

#[test]
fn a_failed_call_says_so_and_results_come_before_the_words_of_the_user() {
    let results = Message::tool_results([ToolResult::error("c1", "no such file")]);
    let more = Message::tool_results([ToolResult::error("c2", "Error 5")]);
    let call = Message::new(
        Role::Assistant,
        [ToolUse::new("c1", "f", json!({})), ToolUse::new("c2", "f", json!({}))],
    );
    let request = ChatRequest::new([call, Message::user("Wait."), results, more]);
    let sent = messages(&request, &Profile::openai());
    assert_eq!(sent[1], json!({"role": "tool", "tool_call_id": "c1", "content": "Error: no such file"}));
    assert_eq!(sent[2], json!({"role": "tool", "tool_call_id": "c2", "content": "Error 5"}));
    assert_eq!(sent[3], json!({"role": "user", "content": "Wait."}));
}

#[test]
fn thinking_goes_back_in_the_field_of_the_profile() {
    let thought =
        Message::new(Role::Assistant, [Block::from(Thinking::new("Hm.", None)), Block::text("Yes.")]);
    let sent = |profile: Profile| messages(&ChatRequest::new([thought.clone()]), &profile)[0].take();
    assert_eq!(sent(Profile::openai()), json!({"role": "assistant", "content": "Yes."}));
    assert_eq!(sent(Profile::vllm())["reasoning_content"], "Hm.");
    assert_eq!(sent(Profile::ollama())["reasoning"], "Hm.");
}

#[test]
fn own_fields_and_tools_of_the_provider_are_sent_as_they_are() {
    let raw = json!({"type": "custom", "custom": {"name": "shell"}});
    let request = ChatRequest::user("hi")
        .with_tools([ToolSpec::server("shell", raw.clone())])
        .with_extra("seed", json!(7));
    let body = encode(&request, &Profile::openai());
    assert_eq!((&body["tools"][0], &body["seed"]), (&raw, &json!(7)));
}

#[test]
fn nothing_of_another_model_but_its_words_is_sent() {
    let blocks = [
        Block::from(Thinking::new("Hm.", Some("signed".to_owned()))),
        Block::Unknown(json!({"type": "server_tool_use"}).into()),
        Block::text("Yes."),
    ];
    let message = Message::new(Role::Assistant, blocks).with_origin(Origin::new("anthropic", "m"));
    let sent = messages(&ChatRequest::new([message]), &Profile::vllm());
    assert_eq!(sent, json!([{"role": "assistant", "content": "Yes."}]));
}
