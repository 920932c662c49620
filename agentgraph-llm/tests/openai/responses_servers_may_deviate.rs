//! Streams of the Responses API: as documented, and as servers send them that leave things out.

use agentgraph_llm::openai::responses;
use agentgraph_llm::prelude::*;
use agentgraph_llm::{Code, RawJson, StopReason, TokenCount, ToolInput};
use serde_json::{Value, json};

use crate::server::Reply;
use crate::talk::{hear, hear_responses, model};

fn message(text: &str) -> Value {
    json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]})
}

fn function_call(arguments: &str) -> Value {
    json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "find", "arguments": arguments,
        "status": "completed"})
}

fn completed(output: &[Value]) -> Value {
    json!({"type": "response.completed", "response": {"id": "resp_1", "model": "one-of-tests", "status": "completed",
        "output": output, "usage": {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 3}, "total_tokens": 14}}})
}

fn added(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

fn done(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

/// A stream as documented: thinking, a text, and a call.
fn documented() -> Vec<Value> {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary":
        [{"type": "summary_text", "text": "Hm."}, {"type": "summary_text", "text": "So."}], "encrypted_content": "gAAA"});
    let thought = |part: u64, text: &str| {
        json!({"type": "response.reasoning_summary_text.delta", "item_id": "rs_1", "output_index": 0, "summary_index": part,
            "delta": text, "sequence_number": 3})
    };
    let said = |text: &str| {
        json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 1, "content_index": 0,
            "delta": text, "logprobs": [], "sequence_number": 4})
    };
    let argued = |text: &str| json!({"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 2, "delta": text});
    vec![
        json!({"type": "response.created", "response": {"id": "resp_1", "model": "one-of-tests", "status": "in_progress"}}),
        json!({"type": "response.in_progress", "response": {"id": "resp_1", "status": "in_progress"}}),
        added(0, json!({"type": "reasoning", "id": "rs_1", "summary": []})),
        json!({"type": "response.reasoning_summary_part.added", "item_id": "rs_1", "summary_index": 0}),
        thought(0, "H"),
        thought(0, "m."),
        thought(1, "So."),
        done(0, reasoning.clone()),
        added(
            1,
            json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []}),
        ),
        json!({"type": "response.content_part.added", "item_id": "msg_1", "part": {"type": "output_text", "text": ""}}),
        said("Hel"),
        said("lo"),
        json!({"type": "response.output_text.done", "item_id": "msg_1", "text": "Hello"}),
        done(1, message("Hello")),
        added(
            2,
            json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "find", "arguments": ""}),
        ),
        argued("{\"x\""),
        argued(":1}"),
        json!({"type": "response.function_call_arguments.done", "item_id": "fc_1", "arguments": "{\"x\":1}"}),
        done(2, function_call("{\"x\":1}")),
        json!({"type": "response.something.new", "value": 1}),
        completed(&[reasoning, message("Hello"), function_call("{\"x\":1}")]),
    ]
}

#[tokio::test]
async fn a_server_that_follows_the_wire() {
    let heard = hear_responses(&documented()).await;
    assert_eq!(heard.text(), "Hello");
    let response = heard.response();
    let [Block::Thinking(thinking), Block::Text(text), Block::ToolUse(call)] = &response.message.content[..]
    else {
        panic!("{response:?}")
    };
    assert_eq!((thinking.thinking.as_str(), text.text.as_str()), ("Hm.\n\nSo.", "Hello"));
    assert_eq!((call.id.as_str(), call.name.as_str(), call.input.text()), ("call_1", "find", "{\"x\":1}"));
    assert_eq!(call.extra.get("id").unwrap().get(), "\"fc_1\"");
    assert_eq!(response.stop, StopReason::ToolUse);
    assert_eq!((response.id.as_str(), response.model.as_str()), ("resp_1", "one-of-tests"));
    let usage = response.usage;
    assert_eq!(
        (usage.input_total, usage.input_cached_read, usage.output_total, usage.output_reasoning),
        (9, 4, 5, 3)
    );
    assert!(response.raw_usage.is_some());
}

#[tokio::test]
async fn a_stream_gives_the_message_of_the_whole_response() {
    let events = documented();
    let whole = responses::decode(events.last().unwrap()["response"].to_string().as_bytes()).unwrap();
    assert_eq!(hear_responses(&events).await.response().message.content, whole.message.content);
}

/// The `llama-server` of llama.cpp leaves out these fields, and the ends of arguments.
#[tokio::test]
async fn deltas_may_lack_positions_and_numbers() {
    for without in [
        &["content_index", "sequence_number"][..],
        &["output_index"],
        &["output_index", "item_id", "content_index"],
    ] {
        let mut events = documented();
        events.retain(|event| event["type"] != "response.function_call_arguments.done");
        for event in &mut events {
            let fields = event.as_object_mut().unwrap();
            without.iter().for_each(|name| drop(fields.remove(*name)));
        }
        let response = hear_responses(&events).await.response();
        assert_eq!(response.message.text(), "Hello", "{without:?}");
        assert_eq!(response.message.content.len(), 3, "{without:?}: {response:?}");
        assert_eq!(response.message.tool_uses().next().unwrap().input.text(), "{\"x\":1}", "{without:?}");
    }
}

#[tokio::test]
async fn the_id_of_an_item_may_change_with_each_event() {
    let mut events = documented();
    for (number, event) in events.iter_mut().enumerate() {
        for place in ["/item_id", "/item/id"] {
            if let Some(id) = event.pointer_mut(place) {
                *id = json!(format!("id_{number}"));
            }
        }
    }
    let response = hear_responses(&events).await.response();
    assert_eq!((response.message.content.len(), response.message.text().as_str()), (3, "Hello"));
}

#[tokio::test]
async fn ends_of_items_may_be_missing() {
    let mut events = documented();
    events.retain(|event| event["type"] != "response.output_item.done");
    let response = hear_responses(&events).await.response();
    assert_eq!(response.message.content.len(), 3);
    // Neither the ends nor the output.
    *events.last_mut().unwrap() = completed(&[]);
    let response = hear_responses(&events).await.response();
    let [Block::Thinking(thinking), Block::Text(text), Block::ToolUse(call)] = &response.message.content[..]
    else {
        panic!("{response:?}")
    };
    assert_eq!(
        (thinking.thinking.as_str(), text.text.as_str(), call.input.text()),
        ("Hm.\n\nSo.", "Hello", "{\"x\":1}")
    );
}

#[tokio::test]
async fn deltas_may_be_missing() {
    let output = [message("Hello"), function_call("{\"x\":1}")];
    let ends = [done(0, output[0].clone()), done(1, output[1].clone()), completed(&output)];
    let heard = hear_responses(&ends).await;
    assert_eq!(heard.text(), "Hello");
    assert_eq!(heard.response().message.content.len(), 2);
    let heard = hear_responses(&[completed(&output)]).await;
    assert_eq!(heard.text(), "Hello");
    assert_eq!(heard.response().message.tool_uses().count(), 1);
}

#[tokio::test]
async fn announcements_of_items_may_be_missing() {
    let events: Vec<_> =
        documented().into_iter().filter(|event| event["type"] != "response.output_item.added").collect();
    let response = hear_responses(&events).await.response();
    assert_eq!((response.message.content.len(), response.message.text().as_str()), (3, "Hello"));
}

#[tokio::test]
async fn arguments_may_be_an_object_or_break_off() {
    let mut object = function_call("");
    object["arguments"] = json!({"x": 1});
    let response = hear_responses(&[done(0, object.clone()), completed(&[object])]).await.response();
    assert_eq!(response.message.tool_uses().next().unwrap().input.text(), "{\"x\":1}");

    let cut = function_call("{\"x\"");
    let mut end = completed(std::slice::from_ref(&cut));
    end["type"] = json!("response.incomplete");
    end["response"]["status"] = json!("incomplete");
    end["response"]["incomplete_details"] = json!({"reason": "max_output_tokens"});
    let response = hear_responses(&[done(0, cut), end]).await.response();
    assert_eq!(response.stop, StopReason::MaxTokens);
    assert_eq!(response.message.tool_uses().next().unwrap().input, ToolInput::Malformed("{\"x\"".to_owned()));
}

#[tokio::test]
async fn each_end_has_its_stop_reason_or_error() {
    let end = |kind: &str, fields: Value| {
        let mut response = fields;
        response["output"] = json!([message("Hello")]);
        json!({"type": format!("response.{kind}"), "response": response})
    };
    let incomplete = |reason: &str| json!({"status": "incomplete", "incomplete_details": {"reason": reason}});
    for (event, stop) in [
        (end("completed", json!({})), StopReason::EndTurn),
        (end("incomplete", incomplete("max_output_tokens")), StopReason::MaxTokens),
        (end("incomplete", incomplete("content_filter")), StopReason::Refusal),
    ] {
        assert_eq!(hear_responses(&[event]).await.response().stop, stop);
    }
    let failed =
        |code: &str| end("failed", json!({"status": "failed", "error": {"code": code, "message": "m"}}));
    for (event, code) in [
        (failed("server_error"), Code::Server),
        (failed("rate_limit_exceeded"), Code::RateLimited),
        (failed("invalid_prompt"), Code::BadRequest),
        (failed("insufficient_quota"), Code::Billing),
        (end("cancelled", json!({"status": "cancelled"})), Code::Server),
        (end("incomplete", incomplete("steered")), Code::StopReason),
        (end("incomplete", json!({})), Code::StopReason),
        (end("completed", json!({"status": "in_progress"})), Code::StopReason),
        (end("completed", json!({"status": "tomorrow"})), Code::StopReason),
        (end("completed", json!({"error": {"code": "server_error", "message": "m"}})), Code::Server),
        (
            json!({"type": "response.tomorrow", "error": {"code": "server_error", "message": "m"}}),
            Code::Server,
        ),
        (
            json!({"type": "error", "code": "rate_limit_exceeded", "message": "m", "param": null}),
            Code::RateLimited,
        ),
        (json!({"type": "error", "error": {"type": "server_error", "message": "m"}}), Code::Server),
        (json!({"error": {"code": "context_length_exceeded", "message": "m"}}), Code::TooLarge),
    ] {
        assert_eq!(
            hear_responses(std::slice::from_ref(&event)).await.end.unwrap_err().code(),
            code,
            "{event}"
        );
    }
    let cut = hear_responses(&documented()[..10]).await;
    assert_eq!(cut.end.unwrap_err().code(), Code::Truncated);
}

#[tokio::test]
async fn a_refusal_is_text_with_its_own_stop_reason() {
    let refusal = |text: &str| {
        json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "refusal", "refusal": text}]})
    };
    let piece = |text: &str| json!({"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "delta": text});
    let events = [
        added(0, refusal("")),
        piece("I can"),
        piece("not."),
        done(0, refusal("I cannot.")),
        completed(&[refusal("I cannot.")]),
    ];
    let heard = hear_responses(&events).await;
    assert_eq!(heard.text(), "I cannot.");
    assert_eq!(heard.response().stop, StopReason::Refusal);
}

#[tokio::test]
async fn items_of_server_tools_are_whole_blocks() {
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}});
    let mut announced = search.clone();
    announced["status"] = json!("in_progress");
    let events = [
        added(0, announced),
        json!({"type": "response.web_search_call.searching", "item_id": "ws_1", "output_index": 0}),
        done(0, search.clone()),
        done(1, message("Hello")),
        completed(&[search.clone(), message("Hello")]),
    ];
    let response = hear_responses(&events).await.response();
    assert_eq!(response.message.content[0], Block::Unknown(RawJson::from(search)));
    assert_eq!(response.message.text(), "Hello");
}

#[tokio::test]
async fn a_malformed_event_is_an_error_and_never_skipped() {
    for event in [
        json!({"type": "response.output_text.delta", "output_index": 0, "delta": 5}),
        json!({"type": "response.output_text.delta", "output_index": 0}),
        json!({"type": "response.output_item.added", "output_index": 0}),
        json!({"type": "response.completed", "response": {"output": [5]}}),
    ] {
        let heard = hear_responses(&[event.clone(), completed(&[])]).await;
        assert_eq!(heard.end.unwrap_err().code(), Code::Decode, "{event}");
    }
}

#[tokio::test]
async fn the_server_counts_tokens() {
    let (model, server) =
        model(Reply::json(200, "", "{\"object\": \"response.input_tokens\", \"input_tokens\": 7}")).await;
    assert_eq!(model.count_tokens(&ChatRequest::user("hi")).await.unwrap(), TokenCount::exact(7));
    assert!(server.requests()[0].head.starts_with("post /v1/responses/input_tokens "));
    assert!(model.info().capabilities.token_count);
}

#[tokio::test]
async fn a_whole_response_may_come_instead_of_a_stream() {
    let body = completed(&[message("Hello")])["response"].to_string();
    let (model, server) = model(Reply::json(200, "", &body)).await;
    assert_eq!(hear(&model).await.response().message.text(), "Hello");
    assert!(server.requests()[0].head.starts_with("post /v1/responses "));
}

#[tokio::test]
async fn stop_sequences_are_refused_before_anything_is_sent() {
    let body = completed(&[message("Hello")])["response"].to_string();
    let (model, server) = model(Reply::json(200, "", &body)).await;
    let error = model.chat(ChatRequest::user("hi").with_stop("END")).await.unwrap_err();
    assert_eq!((error.code(), error.is_retryable()), (Code::BadRequest, false));
    assert!(error.message().contains("`OpenAiChatModel`") && server.requests().is_empty(), "{error}");

    // For a compatible server that has them.
    let request = ChatRequest::user("hi").with_extra("stop", json!(["END"]));
    model.chat(request).await.unwrap();
    assert!(server.requests()[0].body.contains(r#""stop":["END"]"#));
}
