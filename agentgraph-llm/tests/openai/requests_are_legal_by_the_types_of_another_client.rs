//! Requests judged by the types of `async-openai`: read and written again, they are the same. Reading alone
//! would accept a field with a wrong name.
//!
//! Its types are closed, so they refuse what is newer than they are. What they refuse although it is legal is
//! listed in [`only_known_differences_remain`].

use agentgraph_llm::openai::{Profile, chat, responses};
use agentgraph_llm::*;
use async_openai::types::chat::CreateChatCompletionRequest;
use async_openai::types::responses::CreateResponse;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::requests::{long_talk, weather};

fn check<T: DeserializeOwned + Serialize>(body: &RawJson) {
    let sent: Value = body.parse().unwrap();
    let read: T = serde_json::from_value(sent.clone()).unwrap_or_else(|error| panic!("{error} in {sent:#}"));
    // Through a text, in which an `f32` keeps its spelling.
    let mut written: Value = serde_json::from_str(&serde_json::to_string(&read).unwrap()).unwrap();
    remove_nulls(&mut written);
    assert_eq!(written, sent);
}

/// The types write some absent fields as null.
fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}

fn choices() -> Vec<ChatRequest> {
    let choices = [
        ToolChoice::auto(),
        ToolChoice::any(),
        ToolChoice::none(),
        ToolChoice::tool("weather"),
        ToolChoice::any().one_at_a_time(),
    ];
    let request = |choice: ToolChoice| {
        ChatRequest::user("hi").with_tools([weather(), weather().strict()]).with_tool_choice(choice)
    };
    choices.into_iter().map(request).collect()
}

fn talks() -> Vec<ChatRequest> {
    let sound = Block::Audio(Media::base64("audio/wav", "aGk="));
    let failed = Message::tool_results([ToolResult::error("call_1", "no such file")]);
    let call = Message::new(Role::Assistant, [ToolUse::new("call_1", "weather", json!({}))]);
    let mut malformed = ToolUse::new("call_1", "weather", json!({}));
    malformed.input = ToolInput::Malformed("{\"x".to_owned());
    let malformed = Message::new(Role::Assistant, [malformed]);
    let mut requests = choices();
    requests.push(long_talk());
    requests.push(ChatRequest::new([Message::user("a"), call, failed.clone()]));
    requests.push(ChatRequest::new([malformed, failed]));
    requests.push(ChatRequest::new([Message::new(Role::User, [Block::text("a"), sound])]));
    requests
}

#[test]
fn chat_completions() {
    for request in talks() {
        for stream in [false, true] {
            check::<CreateChatCompletionRequest>(&chat::encode("m", &request, &Profile::openai(), stream));
        }
    }
    check::<CreateChatCompletionRequest>(&chat::encode("m", &long_talk(), &Profile::ollama(), true));
    let stop = ChatRequest::user("hi").with_stop("END").with_stop("FIN");
    check::<CreateChatCompletionRequest>(&chat::encode("m", &stop, &Profile::openai(), false));
}

#[test]
fn a_refusal_in_chat_completions() {
    let body = json!({"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "refusal": "no"}}]});
    let message = chat::decode(body.to_string().as_bytes()).unwrap().message;
    let request = ChatRequest::new([Message::user("a"), message]);
    check::<CreateChatCompletionRequest>(&chat::encode("m", &request, &Profile::openai(), false));
}

#[test]
fn responses_api() {
    for request in talks().into_iter().filter(|request| !has_sound(request)) {
        for stream in [false, true] {
            check::<CreateResponse>(&responses::encode("m", &request, stream));
        }
    }
}

#[test]
fn an_answer_that_goes_back_to_the_responses_api() {
    let output = json!([
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "gAAA"},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content":
            [{"type": "output_text", "text": "Hello", "annotations": []}, {"type": "refusal", "refusal": "no"}]},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "find", "arguments": "{}", "status": "completed"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
    ]);
    let body = json!({"id": "resp_1", "model": "m", "status": "completed", "output": output});
    let message = responses::decode(body.to_string().as_bytes()).unwrap().message;
    let results = Message::tool_results([ToolResult::text("call_1", "ok")]);
    let request = ChatRequest::new([Message::user("a"), message, results]);
    check::<CreateResponse>(&responses::encode("m", &request, false));
}

fn has_sound(request: &ChatRequest) -> bool {
    request
        .messages
        .iter()
        .any(|message| message.content.iter().any(|block| matches!(block, Block::Audio(_))))
}

/// The Responses API has sound (`input_audio`), and the types do not.
#[test]
fn only_known_differences_remain() {
    let sound = talks().into_iter().find(has_sound).unwrap();
    let body: Value = responses::encode("m", &sound, false).parse().unwrap();
    assert!(serde_json::from_value::<CreateResponse>(body).is_err());
}
