//! Servers of Chat Completions that do not quite follow it. Each deviation was met in a real server.

use agentgraph_llm::openai::{Profile, chat};
use agentgraph_llm::prelude::*;
use agentgraph_llm::{Code, RawJson, StopReason, ToolInput, Usage};
use serde_json::{Value, json};

use crate::server::Reply;
use crate::talk::{chat_model, hear, hear_chat, sse, sse_done};

fn chunk(delta: Value) -> Value {
    json!({"id": "c-1", "object": "chat.completion.chunk", "model": "one-of-tests", "choices": [{"index": 0, "delta": delta}]})
}

fn finish(reason: &str) -> Value {
    json!({"id": "c-1", "model": "one-of-tests", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn call(piece: Value) -> Value {
    chunk(json!({"tool_calls": [piece]}))
}

/// The calls of a stream: name, id if the server gave one, and arguments.
async fn calls<const N: usize>(pieces: [Value; N]) -> Vec<(String, String, String)> {
    let mut events: Vec<_> = pieces.into_iter().map(call).collect();
    events.push(finish("tool_calls"));
    let response = hear_chat(Profile::openai(), sse_done(&events)).await.response();
    assert_eq!(response.stop, StopReason::ToolUse);
    let calls = response.message.tool_uses().map(|call| {
        assert!(!call.id.is_empty());
        (call.name.clone(), call.id.clone(), call.input.text().to_owned())
    });
    calls.collect()
}

fn named(name: &str, id: &str, arguments: &str) -> (String, String, String) {
    (name.to_owned(), id.to_owned(), arguments.to_owned())
}

fn without_ids(calls: Vec<(String, String, String)>) -> Vec<(String, String)> {
    calls.into_iter().map(|(name, _, arguments)| (name, arguments)).collect()
}

fn pair(name: &str, arguments: &str) -> (String, String) {
    (name.to_owned(), arguments.to_owned())
}

#[tokio::test]
async fn a_server_that_follows_the_wire() {
    let events = [
        chunk(json!({"role": "assistant", "content": "", "refusal": null})),
        chunk(json!({"content": "Hel"})),
        chunk(json!({"content": "lo"})),
        finish("stop"),
        json!({"id": "c-1", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11,
            "prompt_tokens_details": {"cached_tokens": 4}}}),
    ];
    let heard = hear_chat(Profile::openai(), sse_done(&events)).await;
    assert_eq!(heard.text(), "Hello");
    let response = heard.response();
    assert_eq!((response.id.as_str(), response.model.as_str()), ("c-1", "one-of-tests"));
    assert_eq!(response.stop, StopReason::EndTurn);
    assert_eq!(
        (response.usage.input_total, response.usage.input_cached_read, response.usage.output_total),
        (9, 4, 2)
    );
    assert!(response.raw_usage.unwrap().get().contains("\"total_tokens\":11"));
    assert_eq!(response.message.origin.as_ref().unwrap().provider, "openai");
}

#[tokio::test]
async fn pieces_of_parallel_calls_are_told_apart_by_index() {
    let got = calls([
        json!({"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}),
        json!({"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": ""}}),
        json!({"index": 1, "function": {"arguments": "{\"x\""}}),
        json!({"index": 0, "function": {"arguments": "{}"}}),
        json!({"index": 1, "function": {"arguments": ":1}"}}),
    ])
    .await;
    assert_eq!(got, [named("f", "a", "{}"), named("g", "b", "{\"x\":1}")]);
}

#[tokio::test]
async fn unknown_calls_without_an_index_are_told_apart_by_id() {
    let custom = |id: &str| call(json!({"id": id, "type": "custom", "custom": {"name": "sql", "input": id}}));
    let events = [custom("a"), custom("b"), finish("tool_calls")];
    let response = hear_chat(Profile::openai(), sse_done(&events)).await.response();
    let unknown = |id: &str| {
        let text = format!(r#"{{"id":"{id}","type":"custom","custom":{{"name":"sql","input":"{id}"}}}}"#);
        let value: Value = serde_json::from_str(&text).unwrap();
        Block::Unknown(value.into())
    };
    assert_eq!(response.message.content, [unknown("a"), unknown("b")]);
}

#[tokio::test]
async fn the_index_may_be_missing_or_null() {
    let got = calls([
        json!({"id": "a", "function": {"name": "f", "arguments": "{\"x\""}}),
        json!({"function": {"arguments": ":1}"}}),
        json!({"index": null, "id": "b", "function": {"name": "f", "arguments": "{}"}}),
    ])
    .await;
    assert_eq!(got, [named("f", "a", "{\"x\":1}"), named("f", "b", "{}")]);
}

#[tokio::test]
async fn the_index_may_come_late_or_only_first() {
    let late = calls([
        json!({"id": "a", "function": {"name": "f", "arguments": "{\"x\""}}),
        json!({"index": 0, "function": {"arguments": ":1}"}}),
    ]);
    assert_eq!(late.await, [named("f", "a", "{\"x\":1}")]);
    let first = calls([
        json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\""}}),
        json!({"function": {"arguments": ":1}"}}),
    ]);
    assert_eq!(first.await, [named("f", "a", "{\"x\":1}")]);
}

#[tokio::test]
async fn several_calls_may_have_one_index() {
    let with_ids = calls([
        json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\":1}"}}),
        json!({"index": 0, "id": "b", "function": {"name": "f", "arguments": "{\"x\":2}"}}),
        json!({"index": 0, "id": "c", "function": {"name": "now", "arguments": ""}}),
        json!({"index": 0, "id": "d", "function": {"name": "now", "arguments": ""}}),
    ]);
    let expected = [
        named("f", "a", "{\"x\":1}"),
        named("f", "b", "{\"x\":2}"),
        named("now", "c", "{}"),
        named("now", "d", "{}"),
    ];
    assert_eq!(with_ids.await, expected);
    let without = calls([
        json!({"index": 0, "function": {"name": "f", "arguments": "{\"x\":1}"}}),
        json!({"index": 0, "function": {"name": "f", "arguments": "{\"x\":2}"}}),
    ]);
    assert_eq!(without_ids(without.await), [pair("f", "{\"x\":1}"), pair("f", "{\"x\":2}")]);
}

#[tokio::test]
async fn calls_may_share_an_id_if_their_indices_differ() {
    let got = calls([
        json!({"index": 0, "id": "call", "function": {"name": "f", "arguments": "{\"x\":1}"}}),
        json!({"index": 1, "id": "call", "function": {"name": "f", "arguments": "{\"x\":2}"}}),
    ])
    .await;
    assert_eq!(without_ids(got), [pair("f", "{\"x\":1}"), pair("f", "{\"x\":2}")]);
}

#[tokio::test]
async fn the_id_may_be_missing_empty_or_late() {
    let late = calls([
        json!({"index": 0, "function": {"name": "f", "arguments": "{\"x\""}}),
        json!({"index": 0, "id": "a", "function": {"arguments": ":1}"}}),
    ]);
    assert_eq!(late.await, [named("f", "a", "{\"x\":1}")]);
    for none in [json!(null), json!(""), json!("null")] {
        let got = calls([
            json!({"index": 0, "id": none, "function": {"name": "f", "arguments": "{}"}}),
            json!({"index": 1, "id": none, "function": {"name": "g", "arguments": "{}"}}),
        ]);
        let got = got.await;
        assert_ne!(got[0].1, got[1].1, "each call has an id of its own");
        assert_eq!(without_ids(got), [pair("f", "{}"), pair("g", "{}")]);
    }
}

#[tokio::test]
async fn the_id_may_change_within_a_call() {
    let got = calls([
        json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\""}}),
        json!({"index": 0, "id": "b", "function": {"arguments": ":1}"}}),
    ])
    .await;
    assert_eq!(got, [named("f", "a", "{\"x\":1}")]);
}

#[tokio::test]
async fn the_name_may_be_repeated_or_come_in_pieces() {
    let repeated = calls([
        json!({"index": 0, "id": "a", "function": {"name": "find", "arguments": ""}}),
        json!({"index": 0, "id": "a", "function": {"name": "find", "arguments": "{\"x\""}}),
        json!({"index": 0, "id": "a", "function": {"name": "find", "arguments": ":1}"}}),
    ]);
    assert_eq!(repeated.await, [named("find", "a", "{\"x\":1}")]);
    let pieces = calls([
        json!({"index": 0, "id": "a", "function": {"name": "fi"}}),
        json!({"index": 0, "function": {"name": "nd"}}),
        json!({"index": 0, "function": {"arguments": "{}"}}),
    ]);
    assert_eq!(pieces.await, [named("find", "a", "{}")]);
}

#[tokio::test]
async fn arguments_may_be_an_object_null_or_missing() {
    let got = calls([
        json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": {"x": 1}}}),
        json!({"index": 1, "id": "b", "function": {"name": "g", "arguments": null}}),
        json!({"index": 2, "id": "c", "function": {"name": "h"}}),
    ])
    .await;
    assert_eq!(got, [named("f", "a", "{\"x\":1}"), named("g", "b", "{}"), named("h", "c", "{}")]);
}

#[tokio::test]
async fn arguments_that_broke_off_are_kept_and_never_completed() {
    let events = [
        call(json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"city\": \"Os"}})),
        finish("length"),
    ];
    let response = hear_chat(Profile::openai(), sse_done(&events)).await.response();
    assert_eq!(response.stop, StopReason::MaxTokens);
    let call = response.message.tool_uses().next().unwrap();
    assert_eq!(call.input, ToolInput::Malformed("{\"city\": \"Os".to_owned()));
}

#[tokio::test]
async fn calls_that_end_with_stop_are_calls() {
    let piece = json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}});
    let events = [call(piece), finish("stop")];
    let response = hear_chat(Profile::openai(), sse_done(&events)).await.response();
    assert_eq!(response.stop, StopReason::ToolUse);
}

#[tokio::test]
async fn only_a_known_finish_reason_is_an_end() {
    let said = || chunk(json!({"content": "a"}));
    for (reason, end) in [
        ("stop", Ok(StopReason::EndTurn)),
        ("length", Ok(StopReason::MaxTokens)),
        ("model_length", Ok(StopReason::ContextWindowExceeded)),
        ("MAX_TOKENS", Ok(StopReason::MaxTokens)),
        ("content_filter", Ok(StopReason::Refusal)),
        ("", Err(Code::Truncated)),
        ("eos", Err(Code::StopReason)),
        ("error", Err(Code::StopReason)),
        ("abort", Err(Code::StopReason)),
        ("malformed_function_call", Err(Code::StopReason)),
        ("tomorrow", Err(Code::StopReason)),
    ] {
        let heard = hear_chat(Profile::openai(), sse_done(&[said(), finish(reason)])).await;
        match (heard.end, end) {
            (Ok(response), Ok(stop)) => assert_eq!(response.stop, stop, "{reason}"),
            (Err(error), Err(code)) => {
                assert_eq!(error.code(), code, "{reason}");
                assert_eq!(error.partial().unwrap().text(), "a");
                assert_eq!(error.stop_reason(), (code == Code::StopReason).then_some(reason));
            }
            (end, _) => panic!("{reason}: {end:?}"),
        }
    }
    let own = hear_chat(Profile::openai().also_ends_with("eos"), sse_done(&[said(), finish("eos")])).await;
    assert_eq!(own.response().stop, StopReason::EndTurn);
    let mut done = Profile::openai();
    done.done_is_an_end = true;
    assert_eq!(hear_chat(done.clone(), sse_done(&[said()])).await.response().stop, StopReason::EndTurn);
    let failed = hear_chat(done, sse_done(&[said(), finish("error")])).await;
    assert_eq!(failed.end.unwrap_err().code(), Code::StopReason);
    // An empty reason on each chunk is no end.
    let mut early = said();
    early["choices"][0]["finish_reason"] = json!("");
    let cut = hear_chat(Profile::vllm(), sse(&[early])).await;
    assert_eq!(cut.end.unwrap_err().code(), Code::Truncated);
    // A router's own word does not hide that of the provider behind it.
    for (native, is_end) in
        [("end_turn", true), ("STOP", true), ("length", false), ("MALFORMED_FUNCTION_CALL", false)]
    {
        let mut end = finish("stop");
        end["choices"][0]["native_finish_reason"] = json!(native);
        let heard = hear_chat(Profile::openai(), sse_done(&[said(), end])).await;
        assert_eq!(heard.end.is_ok_and(|response| response.stop == StopReason::EndTurn), is_end, "{native}");
    }
}

#[tokio::test]
async fn an_error_anywhere_in_a_chunk_is_one() {
    let error = json!({"message": "m", "code": 502});
    let said = || call(json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}));
    let with = |place: &str, error: Value| {
        let mut end = finish("tool_calls");
        end["usage"] = json!({"prompt_tokens": 5, "completion_tokens": 1});
        end["x_groq"] = json!({});
        let (object, name) = place.rsplit_once('/').unwrap();
        end.pointer_mut(object).unwrap()[name] = error;
        end
    };
    for place in ["/error", "/choices/0/error", "/choices/0/delta/error", "/x_groq/error"] {
        let heard = hear_chat(Profile::openai(), sse_done(&[said(), with(place, error.clone())])).await;
        let failed = heard.end.unwrap_err();
        assert_eq!(failed.code(), Code::Server, "{place}");
        assert_eq!(failed.usage(), Usage::new(5, 1), "{place}");
        assert_eq!(failed.partial().unwrap().tool_uses().count(), 1);
        for none in [json!(null), json!(""), json!({}), json!(false)] {
            let heard = hear_chat(Profile::openai(), sse_done(&[said(), with(place, none)])).await;
            assert!(heard.end.is_ok(), "{place}");
        }
    }
    for data in
        ["event: error\ndata: {\"message\": \"m\"}\n\n", "event: error\ndata: oh\n\n", "event: error\n\n"]
    {
        let body = sse(&[said(), finish("tool_calls")]) + data + "data: [DONE]\n\n";
        let heard = hear_chat(Profile::openai(), body).await;
        assert_eq!(heard.end.unwrap_err().code(), Code::Server, "{data}");
    }
}

#[tokio::test]
async fn an_answer_that_ended_for_calls_has_some() {
    let text = chunk(json!({"content": "I look."}));
    let heard = hear_chat(Profile::openai(), sse_done(&[text.clone(), finish("tool_calls")])).await;
    let error = heard.end.unwrap_err();
    assert_eq!((error.code(), error.stop_reason()), (Code::StopReason, Some("tool_use")));
    // The older form of a call.
    let older = |piece: Value| chunk(json!({ "function_call": piece }));
    let events = [
        older(json!({"name": "f", "arguments": ""})),
        older(json!({"arguments": "{}"})),
        finish("function_call"),
    ];
    let response = hear_chat(Profile::openai(), sse_done(&events)).await.response();
    let calls: Vec<_> =
        response.message.tool_uses().map(|call| (call.name.as_str(), call.input.text())).collect();
    assert_eq!((calls, response.stop.clone()), (vec![("f", "{}")], StopReason::ToolUse));
}

#[tokio::test]
async fn usage_before_a_cut_is_not_lost() {
    let mut usage = json!({"choices": []});
    usage["usage"] = json!({"prompt_tokens": 5, "completion_tokens": 2});
    let cut =
        hear_chat(Profile::openai(), sse(&[chunk(json!({"content": "a"})), finish("stop"), usage])).await;
    let error = cut.end.unwrap_err();
    assert_eq!((error.code(), error.usage()), (Code::Truncated, Usage::new(5, 2)));
}

#[tokio::test]
async fn a_view_of_the_whole_message_says_nothing_twice() {
    let call_of = |id: &str, city: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": format!("{{\"city\": \"{city}\"}}")}});
    let streamed = |index: u64, id: &str, city: &str| {
        call(
            json!({"index": index, "id": id, "function": {"name": "f", "arguments": format!("{{\"city\":\"{city}\"}}")}}),
        )
    };
    let whole = |text: &str, calls: &[Value]| {
        json!({"choices": [{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": text, "reasoning": "Hm.", "tool_calls": calls}}]})
    };
    let begin = [
        chunk(json!({"reasoning": "Hm."})),
        chunk(json!({"content": "So"})),
        streamed(0, "a", "Oslo"),
        streamed(1, "b", "Roma"),
    ];
    let cases = [
        (whole("So", &[call_of("a", "Oslo"), call_of("b", "Roma")]), true),
        (whole("So \n", &[call_of("b", "Roma"), call_of("a", "Oslo")]), true),
        (whole("", &[]), true),
        (whole("S", &[call_of("other", "Oslo")]), true),
        (whole("So it is", &[call_of("a", "Oslo"), call_of("b", "Roma"), call_of("c", "Bern")]), true),
        (whole("No", &[]), false),
        (whole("So", &[call_of("a", "Bern")]), false),
        (whole("So", &[call_of("other", "Bern")]), false),
    ];
    for (end, is_same) in cases {
        let events: Vec<_> = begin.iter().cloned().chain([end.clone()]).collect();
        let heard = hear_chat(Profile::openai(), sse_done(&events)).await;
        let Ok(response) = heard.end else {
            assert!(!is_same, "{end}: {:?}", heard.end);
            continue;
        };
        assert!(is_same, "{end}");
        let cities: Vec<_> =
            response.message.tool_uses().map(|call| call.input.text().replace(' ', "")).collect();
        assert_eq!(cities[..2], ["{\"city\":\"Oslo\"}", "{\"city\":\"Roma\"}"], "{end}");
        let more = end["choices"][0]["message"]["content"] == "So it is";
        let text = response.message.text();
        assert_eq!((text.trim_end(), cities.len()), if more { ("So it is", 3) } else { ("So", 2) }, "{end}");
    }
    // A call that is sent again as a piece.
    let got = calls([
        json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\":1}"}}),
        json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\": 1}"}}),
    ]);
    assert_eq!(got.await, [named("f", "a", "{\"x\":1}")]);
}

#[tokio::test]
async fn usage_may_be_empty_null_incomplete_or_on_each_chunk() {
    let with_usage = |usage: Value| {
        let mut end = finish("stop");
        end["usage"] = usage;
        sse_done(&[chunk(json!({"content": "a"})), end])
    };
    for nothing in [json!({}), json!(null), json!({"prompt_tokens": null})] {
        let response = hear_chat(Profile::openai(), with_usage(nothing)).await.response();
        assert_eq!(response.usage, Usage::default());
    }
    let mut first = chunk(json!({"content": "a"}));
    first["usage"] = json!({"prompt_tokens": 5, "completion_tokens": 1});
    let mut last = finish("stop");
    last["usage"] = json!({"prompt_tokens": 5, "completion_tokens": 2});
    let mut empty = json!({"choices": []});
    empty["usage"] = json!({});
    let response = hear_chat(Profile::openai(), sse_done(&[first, last, empty])).await.response();
    assert_eq!(response.usage, Usage::new(5, 2));
    // In the choice.
    let mut end = finish("stop");
    end["choices"][0]["usage"] = json!({"prompt_tokens": 5, "completion_tokens": 2});
    let response =
        hear_chat(Profile::openai(), sse_done(&[chunk(json!({"content": "a"})), end])).await.response();
    assert_eq!(response.usage, Usage::new(5, 2));
}

#[tokio::test]
async fn the_role_may_be_repeated_and_padding_be_anywhere() {
    let mut padded = chunk(json!({"role": "assistant", "content": "b", "obfuscation": "xyz"}));
    padded["obfuscation"] = json!("abc");
    let events = [chunk(json!({"role": "assistant", "content": "a"})), padded, finish("stop")];
    let response = hear_chat(Profile::openai(), sse_done(&events)).await.response();
    assert_eq!(response.message.content, [Block::text("ab")]);
    assert!(response.extra.is_empty(), "{:?}", response.extra);
}

#[tokio::test]
async fn the_mark_of_the_end_may_be_missing_where_the_profile_says_so() {
    let whole = sse(&[chunk(json!({"content": "a"})), finish("stop")]);
    for profile in [Profile::ollama(), Profile::llama_cpp(), Profile::vllm()] {
        assert_eq!(hear_chat(profile.clone(), &whole).await.response().stop, StopReason::EndTurn);
        let cut = hear_chat(profile, sse(&[chunk(json!({"content": "a"}))])).await;
        assert_eq!(cut.end.unwrap_err().code(), Code::Truncated);
    }
    let strict = hear_chat(Profile::openai(), &whole).await;
    assert_eq!(strict.end.unwrap_err().code(), Code::Truncated);
}

#[tokio::test]
async fn an_error_in_a_stream_ends_it() {
    for (error, code) in [
        (json!({"error": {"message": "m", "type": "server_error", "code": null}}), Code::Server),
        (json!({"error": {"message": "m", "code": "rate_limit_exceeded"}}), Code::RateLimited),
        (json!({"error": {"message": "m", "code": "insufficient_quota"}}), Code::Billing),
        (json!({"error": "broken"}), Code::Server),
        (json!({"object": "error", "message": "m", "code": 429}), Code::RateLimited),
    ] {
        let heard = hear_chat(Profile::openai(), sse_done(&[chunk(json!({"content": "a"})), error])).await;
        assert_eq!(heard.text(), "a");
        assert_eq!(heard.end.unwrap_err().code(), code);
    }
    let mut harmless = finish("stop");
    harmless["error"] = json!(null);
    let events = sse_done(&[chunk(json!({"content": "a"})), harmless]);
    assert!(hear_chat(Profile::openai(), events).await.end.is_ok());
}

#[tokio::test]
async fn a_malformed_piece_is_an_error_and_never_skipped() {
    for data in [
        "{\"choices\": [{\"delta\": {\"content\": 5}}]}",
        "{\"choices\": {}}",
        "{\"choices\": [{\"delta\": []}]}",
        "{\"choices\": [{\"delta\": {\"tool_calls\": [7]}}]}",
        "{\"choices\": [",
        "hello",
    ] {
        let heard = hear_chat(Profile::vllm(), format!("data: {data}\n\ndata: [DONE]\n\n")).await;
        assert_eq!(heard.end.unwrap_err().code(), Code::Decode, "{data}");
    }
}

#[tokio::test]
async fn a_refusal_is_text_with_its_own_stop_reason() {
    let events = [chunk(json!({"refusal": "I can"})), chunk(json!({"refusal": "not."})), finish("stop")];
    let response = hear_chat(Profile::openai(), sse_done(&events)).await.response();
    assert_eq!((response.message.text().as_str(), &response.stop), ("I cannot.", &StopReason::Refusal));
    let request = ChatRequest::new([response.message]);
    let sent: Value = chat::encode("one-of-tests", &request, &Profile::openai(), false).parse().unwrap();
    let refusal = json!([{"type": "refusal", "refusal": "I cannot."}]);
    assert_eq!(sent["messages"][0]["content"], refusal);
    let filtered = hear_chat(Profile::openai(), sse_done(&[finish("content_filter")])).await.response();
    assert_eq!(filtered.stop, StopReason::Refusal);
}

#[tokio::test]
async fn thinking_has_either_name() {
    for delta in [
        json!({"reasoning_content": "Hm.", "content": null}),
        json!({"reasoning": "Hm."}),
        json!({"reasoning": "Hm.", "reasoning_content": "Hm."}),
        json!({"reasoning": "", "reasoning_content": "Hm."}),
    ] {
        let events = [chunk(delta), chunk(json!({"content": "Yes."})), finish("stop")];
        let response = hear_chat(Profile::vllm(), sse_done(&events)).await.response();
        let Block::Thinking(thinking) = &response.message.content[0] else { panic!("{response:?}") };
        assert_eq!((thinking.thinking.as_str(), response.message.text().as_str()), ("Hm.", "Yes."));
    }
}

#[tokio::test]
async fn content_may_be_a_list_of_parts() {
    let unknown = json!({"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]});
    let events = [
        chunk(json!({"content": [unknown, {"type": "text", "text": "a"}]})),
        chunk(json!({"content": [{"type": "text", "text": "b"}]})),
        finish("stop"),
    ];
    let response = hear_chat(Profile::openai(), sse_done(&events)).await.response();
    let raw = Block::Unknown(RawJson::from(unknown));
    assert_eq!(response.message.content, [raw, Block::text("ab")]);
}

#[tokio::test]
async fn a_whole_message_may_come_as_a_chunk_or_instead_of_a_stream() {
    let whole = json!({"id": "c-1", "model": "one-of-tests", "choices": [{"index": 0, "finish_reason": "tool_calls",
        "message": {"role": "assistant", "content": null, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"id": "b", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}}]});
    let in_stream = hear_chat(Profile::openai(), sse_done(std::slice::from_ref(&whole))).await.response();
    assert_eq!(in_stream.message.tool_uses().count(), 2);
    let mut cut = whole.clone();
    cut["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = json!("{\"x\"");
    let cut = hear_chat(Profile::openai(), sse_done(&[cut])).await.response();
    assert_eq!(cut.message.tool_uses().count(), 2);
    let (model, _server) = chat_model(Profile::openai(), Reply::json(200, "", &whole.to_string())).await;
    let instead = hear(&model).await.response();
    assert_eq!(instead.message.content, in_stream.message.content);
}

#[tokio::test]
async fn fields_without_a_name_here_are_kept() {
    let mut first = chunk(json!({"content": "a"}));
    first["system_fingerprint"] = json!("fp_1");
    first["choices"][0]["logprobs"] = json!({"content": [{"token": "a"}]});
    let mut last = finish("stop");
    last["timings"] = json!({"predicted_ms": 1.0});
    last["choices"][0]["logprobs"] = json!({"content": [{"token": "b"}]});
    let response = hear_chat(Profile::llama_cpp(), sse_done(&[first, last])).await.response();
    let extra = |name| response.extra.get(name).unwrap().get();
    assert_eq!(extra("system_fingerprint"), "\"fp_1\"");
    assert_eq!(extra("timings"), "{\"predicted_ms\":1.0}");
    assert_eq!(extra("logprobs"), "{\"content\":[{\"token\":\"a\"},{\"token\":\"b\"}]}");
}

/// Levels are joined one in another, which a hostile server could use to end the process by its stack.
#[tokio::test]
async fn fields_of_any_depth_are_joined_without_an_end_of_the_stack() {
    let levels = 10_000;
    let deep = |open: &str, close: &str| {
        let value = format!("{}1{}", open.repeat(levels), close.repeat(levels));
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"a\",\"x\":{value}}}}}]}}\n\n")
    };
    for (open, close) in [("{\"a\":", "}"), ("[{\"index\":0,\"a\":", "}]")] {
        let chunk = deep(open, close);
        let body = format!("{chunk}{chunk}{}", sse_done(&[finish("stop")]));
        let response = hear_chat(Profile::openai(), body).await.response();
        assert_eq!(response.message.text(), "aa");
        assert!(matches!(response.message.content[1], Block::Unknown(_)), "the field is kept");
    }
}

#[tokio::test]
async fn arguments_may_come_in_very_many_pieces() {
    let first = call(json!({"index": 0, "id": "c", "function": {"name": "a", "arguments": "{\"text\":\""}}));
    let piece = call(json!({"index": 0, "function": {"arguments": "abcd"}}));
    let last = call(json!({"index": 0, "function": {"arguments": "\"}"}}));
    let body = format!(
        "data: {first}\n\n{}data: {last}\n\n{}",
        format!("data: {piece}\n\n").repeat(20_000),
        sse_done(&[finish("tool_calls")])
    );
    let response = hear_chat(Profile::openai(), body).await.response();
    let input = response.message.tool_uses().next().unwrap().input.json().unwrap().clone();
    assert_eq!(input.parse::<Value>().unwrap()["text"].as_str().unwrap().len(), 80_000);
}

#[tokio::test]
async fn further_choices_are_kept_beside_the_first() {
    let second = |delta: Value| json!({"choices": [{"index": 1, "delta": delta}]});
    let events = [
        chunk(json!({"content": "a"})),
        second(json!({"content": "x"})),
        second(json!({"content": "y"})),
        finish("stop"),
    ];
    let response = hear_chat(Profile::openai(), sse_done(&events)).await.response();
    assert_eq!(response.message.text(), "a");
    assert_eq!(
        response.extra.get("choices").unwrap().get(),
        "[{\"delta\":{\"content\":\"xy\"},\"index\":1}]"
    );
}
