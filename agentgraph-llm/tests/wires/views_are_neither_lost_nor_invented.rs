//! Small streams as servers of each wire send them: what is said in one view of a message is neither lost in
//! another one nor said twice, and an error at any place is one.

use agentgraph_llm::openai::{Profile, chat, responses};
use agentgraph_llm::prelude::*;
use agentgraph_llm::{Error, anthropic, gemini};
use serde_json::{Value, json};

const OSLO: &str = r#"{"city":"Oslo"}"#;
const ROMA: &str = r#"{"city":"Roma"}"#;

/// The reason to stop, and the message: calls as id, name and arguments.
fn said(end: Result<ChatResponse, Error>) -> String {
    let response = match end {
        Ok(response) => response,
        Err(error) => return error.code().as_str().to_owned(),
    };
    let block = |block: &Block| match block {
        Block::Text(text) => text.text.clone(),
        Block::Thinking(thinking) => {
            format!("{}/{}", thinking.thinking, thinking.signature.as_deref().unwrap_or_default())
        }
        Block::ToolUse(call) if call.input.json().is_some() => {
            let input: Value = call.input.text().parse().unwrap();
            let id = if call.id.len() > 9 { "made" } else { &call.id };
            format!("{id}:{}{input}", call.name)
        }
        Block::ToolUse(call) => format!("{}:not run", call.id),
        other => format!("{other:?}"),
    };
    let blocks: Vec<_> = response.message.content.iter().map(block).collect();
    format!("{}: {}", response.stop.as_str(), blocks.join("|"))
}

macro_rules! read {
    ($decoder:expr, $events:expr) => {{
        let mut decoder = $decoder;
        for event in $events {
            let data = event.as_str().map_or_else(|| event.to_string(), str::to_owned);
            decoder.push(format!("data: {data}\n\n").as_bytes());
        }
        decoder.end();
        loop {
            match decoder.next_event().unwrap() {
                Ok(ChatEvent::Finished(response)) => break said(Ok(response)),
                Ok(_) => {}
                Err(error) => break said(Err(error)),
            }
        }
    }};
}

fn chat(deltas: &[Value]) -> String {
    let chunk = |delta: &Value| match delta.get("type") {
        Some(_) => delta.clone(),
        None => json!({"choices": [{"index": 0, "delta": delta}]}),
    };
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let events = deltas.iter().map(chunk).chain([end, json!("[DONE]")]);
    read!(chat::StreamDecoder::new(&Profile::openai()), events)
}

fn piece(index: &Value, id: &str, name: &str, arguments: &str) -> Value {
    json!({"tool_calls": [{"index": index, "id": id, "function": {"name": name, "arguments": arguments}}]})
}

#[test]
fn pieces_of_chat_calls_belong_to_their_id_and_then_to_their_index() {
    let both = r#"tool_use: a:weather{"city":"Oslo"}|b:weather{"city":"Roma"}"#;
    for (first, second) in [(json!(0), json!(0)), (json!("0"), json!("1")), (json!(null), json!(null))] {
        let with_ids = [("a", "b"), ("", "")];
        for (a, b) in with_ids.into_iter().take(if first == second { 1 } else { 2 }) {
            let deltas = [
                piece(&first, "a", "weather", ""),
                piece(&second, "b", "weather", ""),
                piece(&first, a, "", OSLO),
                piece(&second, b, "", ROMA),
            ];
            assert_eq!(chat(&deltas), both, "{first} {a}");
        }
    }
    let one = r#"tool_use: a:weather{"city":"Oslo"}"#;
    let zero = json!(0);
    assert_eq!(chat(&[piece(&zero, "a", "weather", OSLO), piece(&zero, "a", "", OSLO)]), one);
    assert_eq!(chat(&[piece(&zero, "a", "", OSLO), piece(&zero, "", "weather", "")]), one);
}

#[test]
fn an_empty_form_of_a_chat_call_is_none() {
    let empty = json!({"name": "", "arguments": ""});
    let old = json!({"name": "weather", "arguments": OSLO});
    let call = |id: &str, arguments: &str| json!({"id": id, "function": {"name": "weather", "arguments": arguments}});
    let both = json!([call("a", OSLO), call("b", ROMA)]);
    for (delta, wanted) in [
        (json!({"content": "Hi", "function_call": empty}), "end_turn: Hi"),
        (
            json!({"content": "Hi", "tool_calls": [{"index": 0, "id": "", "type": "function", "function": empty}]}),
            "end_turn: Hi",
        ),
        (
            json!({"function_call": empty, "tool_calls": [call("a", OSLO)]}),
            r#"tool_use: a:weather{"city":"Oslo"}"#,
        ),
        (
            json!({"function_call": old, "tool_calls": both}),
            r#"tool_use: a:weather{"city":"Oslo"}|b:weather{"city":"Roma"}"#,
        ),
    ] {
        assert_eq!(chat(std::slice::from_ref(&delta)), wanted, "{delta}");
        let body = json!({"choices": [{"message": delta, "finish_reason": "stop"}]});
        assert_eq!(said(chat::decode(body.to_string().as_bytes())), wanted, "{body}");
    }
    let choice = |text: &str| json!({"message": {"content": text}, "finish_reason": "stop"});
    let body = json!({"choices": [choice("Hi"), choice("Ho")]});
    assert_eq!(said(chat::decode(body.to_string().as_bytes())), "end_turn: Hi");
}

#[test]
fn an_error_in_a_chat_chunk_without_choices_or_in_a_call_is_one() {
    let error = json!({"message": "x"});
    for deltas in [
        [json!({"content": "Hi"}), json!({"type": "error", "message": "x"})],
        [json!({}), json!({"tool_calls": [{"id": "a", "function": {"name": "weather"}, "error": error}]})],
    ] {
        assert_eq!(chat(&deltas), "E_LLM_SERVER");
    }
}

#[test]
fn a_response_that_was_cut_is_not_complete_and_an_item_comes_once() {
    let text = |status: &str| {
        json!({"type": "message", "id": "msg_1", "role": "assistant", "status": status,
            "content": [{"type": "output_text", "text": "Hi", "annotations": []}]})
    };
    let call = |status: &str| {
        json!({"type": "function_call", "id": "fc_1", "call_id": "a", "name": "weather", "arguments": OSLO,
            "status": status})
    };
    let done = "completed";
    let mut failed = call(done);
    failed["error"] = json!({"message": "x"});
    for (output, reason, wanted) in [
        (vec![text(done)], "max_output_tokens", "max_tokens: Hi"),
        (vec![text(done)], "content_filter", "refusal: Hi"),
        (vec![text(done)], "other", "E_LLM_STOP_REASON"),
        (vec![text("incomplete")], "", "max_tokens: Hi"),
        (vec![call("failed")], "", "tool_use: a:not run"),
        (vec![text(done), text(done), call(done)], "", r#"tool_use: Hi|a:weather{"city":"Oslo"}"#),
        (vec![failed], "", "E_LLM_SERVER"),
    ] {
        let mut response = json!({"status": done, "output": output});
        if !reason.is_empty() {
            response["incomplete_details"] = json!({ "reason": reason });
        }
        assert_eq!(said(responses::decode(response.to_string().as_bytes())), wanted);
        let events = [json!({"type": "response.completed", "response": response})];
        assert_eq!(read!(responses::StreamDecoder::new(), &events), wanted);
    }
}

fn gemini_parts(chunks: &[Value]) -> String {
    let mut events: Vec<_> =
        chunks.iter().map(|part| json!({"candidates": [{"content": {"parts": [part]}}]})).collect();
    events.push(json!({"candidates": [{"finishReason": "STOP"}]}));
    read!(gemini::StreamDecoder::new(), &events)
}

#[test]
fn a_gemini_part_may_have_a_text_and_a_call_and_fields_without_a_value() {
    let call = json!({"id": "a", "name": "weather", "args": {"city": "Oslo"}});
    let oslo = r#"tool_use: a:weather{"city":"Oslo"}"#;
    let empty = json!({"id": "a", "name": "weather", "args": {}});
    for (chunks, wanted) in [
        (vec![json!({"text": "", "functionCall": call})], oslo),
        (vec![json!({"text": "Hi", "functionCall": call})], r#"tool_use: Hi|a:weather{"city":"Oslo"}"#),
        (vec![json!({"functionCall": call}), json!({"functionCall": empty})], oslo),
        (vec![json!({"text": "H", "functionCall": null}), json!({"text": "i"})], "end_turn: Hi"),
    ] {
        assert_eq!(gemini_parts(&chunks), wanted, "{chunks:?}");
    }
    let event = json!({"candidates": [{"content": {"parts": [{"text": "Hi"}], "error": {"message": "x"}},
        "finishReason": "STOP"}]});
    assert_eq!(read!(gemini::StreamDecoder::new(), [event]), "E_LLM_SERVER");
}

#[test]
fn parts_of_gemini_arguments_and_the_whole_are_views_of_one_call() {
    let part = json!([{"jsonPath": "$.city", "stringValue": "Oslo"}]);
    let begun = json!({"id": "a", "name": "weather", "partialArgs": part, "willContinue": true});
    let oslo = r#"tool_use: a:weather{"city":"Oslo"}"#;
    for (first, last, wanted) in [
        (
            json!({"id": "a", "name": "weather", "willContinue": true}),
            json!({"id": "a", "name": "weather", "partialArgs": part}),
            oslo,
        ),
        (
            json!({"id": "a", "name": "weather", "willContinue": true}),
            json!({"name": "weather", "partialArgs": part}),
            oslo,
        ),
        (begun.clone(), json!({"id": "a", "name": "weather", "args": {"city": "Oslo"}}), oslo),
        (begun.clone(), json!({"args": {}}), oslo),
        (begun, json!({"args": {"city": "Roma"}}), "E_LLM_DECODE"),
    ] {
        let chunks = [json!({"functionCall": first}), json!({"functionCall": last})];
        assert_eq!(gemini_parts(&chunks), wanted, "{chunks:?}");
    }
}

#[test]
fn gemini_sources_that_a_later_chunk_repeats_in_part_are_kept_once() {
    let chunk = |sources: Value| {
        json!({"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP",
            "groundingMetadata": {"groundingChunks": sources}}]})
    };
    let body = json!([chunk(json!([1, 2])), chunk(json!([1]))]);
    let response = gemini::decode(body.to_string().as_bytes()).unwrap();
    assert_eq!(response.extra.get("groundingMetadata").unwrap().get(), r#"{"groundingChunks":[1,2]}"#);
}

fn block(block: &Value, deltas: &[Value]) -> Vec<Value> {
    let mut events = vec![json!({"type": "message_start", "message": {"id": "m", "content": []}})];
    events.push(json!({"type": "content_block_start", "index": 0, "content_block": block}));
    events.extend(
        deltas.iter().map(|delta| json!({"type": "content_block_delta", "index": 0, "delta": delta})),
    );
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}));
    events.push(json!({"type": "message_stop"}));
    events
}

fn anthropic(events: &[Value]) -> String {
    read!(anthropic::StreamDecoder::new(), events)
}

#[test]
fn an_anthropic_call_is_never_kept_as_an_unknown_block() {
    let call = |id: Value, name: &str, input: Value| json!({"type": "tool_use", "id": id, "name": name, "input": input});
    for (call, wanted) in [
        (call(json!(null), "weather", json!({})), "tool_use: made:weather{}"),
        (call(json!(""), "weather", json!({})), "tool_use: made:weather{}"),
        (call(json!("a"), "", json!({})), "E_LLM_DECODE"),
        (call(json!("a"), "weather", json!(null)), "tool_use: a:weather{}"),
        (call(json!("a"), "weather", json!("")), "tool_use: a:weather{}"),
        (call(json!("a"), "weather", json!(OSLO)), r#"tool_use: a:weather{"city":"Oslo"}"#),
        (call(json!("a"), "weather", json!("{\"ci")), "tool_use: a:not run"),
    ] {
        assert_eq!(anthropic(&block(&call, &[])), wanted, "{call}");
        let body = json!({"content": [call], "stop_reason": "tool_use"});
        assert_eq!(said(anthropic::decode(body.to_string().as_bytes())), wanted, "{call}");
    }
}

#[test]
fn anthropic_deltas_fit_their_block_and_an_empty_one_takes_nothing_away() {
    let call = json!({"type": "tool_use", "id": "a", "name": "weather", "input": {}});
    let arguments = json!({"type": "input_json_delta", "partial_json": OSLO});
    let text = json!({"type": "text_delta", "text": "Hi"});
    assert_eq!(anthropic(&block(&call, &[text.clone(), arguments.clone()])), "E_LLM_DECODE");
    assert_eq!(anthropic(&block(&json!({"type": "text", "text": ""}), &[text, arguments])), "E_LLM_DECODE");
    let signature = |text: &str| json!({"type": "signature_delta", "signature": text});
    let thought = json!({"type": "thinking_delta", "thinking": "Hm"});
    let mut events =
        block(&json!({"type": "thinking", "thinking": ""}), &[thought, signature("S"), signature("")]);
    events.insert(5, json!({"type": "content_block_start", "index": 1, "content_block": call}));
    assert_eq!(anthropic(&events), "tool_use: Hm/S|a:weather{}");
}

#[test]
fn an_error_at_any_place_of_an_anthropic_stream_and_a_second_message_are_errors() {
    let call = json!({"type": "tool_use", "id": "a", "name": "weather", "input": {}});
    let events = block(&call, &[json!({"type": "input_json_delta", "partial_json": OSLO})]);
    assert_eq!(anthropic(&events), r#"tool_use: a:weather{"city":"Oslo"}"#);
    for (at, field) in [(0, "message"), (2, "delta"), (3, "delta"), (4, "message")] {
        let mut events = events.clone();
        events[at][field]["error"] = json!({"message": "x"});
        assert_eq!(anthropic(&events), "E_LLM_SERVER", "{}", events[at]);
    }
    let mut failed = events.clone();
    failed.insert(3, json!({"type": "api_error", "message": "x"}));
    assert_eq!(anthropic(&failed), "E_LLM_SERVER");
    let mut twice = events.clone();
    twice.insert(3, events[0].clone());
    assert_eq!(anthropic(&twice), "E_LLM_DECODE");
    // A message that begins with its content shows it.
    let mut decoder = anthropic::StreamDecoder::new();
    let start = json!({"type": "message_start", "message": {"content": [{"type": "text", "text": "Hi"}]}});
    decoder.push(format!("data: {start}\n\n").as_bytes());
    assert!(matches!(decoder.next_event(), Some(Ok(ChatEvent::TextDelta { text, .. })) if text == "Hi"));
}
