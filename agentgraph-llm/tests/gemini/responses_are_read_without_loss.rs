//! Responses, streamed and whole: what has a name here is read, and all else is kept.

use agentgraph_llm::prelude::*;
use agentgraph_llm::{Code, Media, StopReason, Thinking, gemini};
use serde_json::{Value, json};

use super::{answer, events, finish, parts, stream};

fn with_finish(reason: &str, all: Value) -> ChatResponse {
    stream(&[parts(all), finish(reason)]).unwrap()
}

#[test]
fn pieces_of_text_and_of_thinking_are_blocks_and_events() {
    let chunks = [
        parts(json!([{"text": "Hm", "thought": true}])),
        parts(json!([{"text": "m.", "thought": true}, {"text": "Go"}])),
        parts(json!([{"text": "od."}])),
        finish("STOP"),
    ];
    let response = stream(&chunks).unwrap();
    assert_eq!(response.message.content, [Block::from(Thinking::new("Hmm.", None)), Block::text("Good.")]);
    let events: Vec<_> = events(&chunks).into_iter().map(Result::unwrap).collect();
    let expected = [
        ChatEvent::ThinkingDelta { index: 0, thinking: "Hm".to_owned() },
        ChatEvent::ThinkingDelta { index: 0, thinking: "m.".to_owned() },
        ChatEvent::TextDelta { index: 1, text: "Go".to_owned() },
        ChatEvent::TextDelta { index: 1, text: "od.".to_owned() },
    ];
    assert_eq!(events[..4], expected);
    assert_eq!(events.len(), 5);
}

#[test]
fn calls_keep_their_arguments_as_text_and_get_an_id_if_they_have_none() {
    let body = r#"{"candidates":[{"content":{"parts":[
        {"functionCall":{"name":"find","id":"fc-7","args":{"b":1.0,"a":1e400}}},
        {"functionCall":{"name":"now"}}]},"finishReason":"STOP"}]}"#;
    let response = gemini::decode(body.as_bytes()).unwrap();
    let calls: Vec<_> = response.message.tool_uses().collect();
    assert_eq!((calls[0].id.as_str(), calls[0].input.text()), ("fc-7", r#"{"b":1.0,"a":1e400}"#));
    assert_eq!((calls[1].name.as_str(), calls[1].input.text()), ("now", "{}"));
    assert!(calls[1].id.starts_with("gemini-call-"));
    assert_eq!(response.stop, StopReason::ToolUse);
}

#[test]
fn a_call_that_comes_twice_is_one() {
    let call =
        |id: &str, q: &str| parts(json!([{"functionCall": {"id": id, "name": "find", "args": {"q": q}}}]));
    let twice = stream(&[call("a", "x"), call("a", "x"), call("b", "x"), finish("STOP")]).unwrap();
    assert_eq!(twice.message.tool_uses().count(), 2);
    let error = stream(&[call("a", "x"), call("a", "y"), finish("STOP")]).unwrap_err();
    assert_eq!(error.code(), Code::Decode);
}

#[test]
fn made_ids_differ_and_calls_are_events() {
    let call = json!({"functionCall": {"name": "find", "args": {"q": "a"}}});
    let events = events(&[parts(json!([call, call])), finish("STOP")]);
    let ids: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Ok(ChatEvent::ToolUseStarted { index, id, name }) => Some((*index, id.as_str(), name.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(ids, [(0, "gemini-call-c-1", "find"), (1, "gemini-call-c-2", "find")]);
    let inputs = events.iter().filter(
        |event| matches!(event, Ok(ChatEvent::ToolInputDelta { json, .. }) if json == r#"{"q":"a"}"#),
    );
    assert_eq!(inputs.count(), 2);
}

#[test]
fn only_a_reason_to_finish_that_is_an_end_is_one() {
    let text = || json!([{"text": "So"}]);
    for (reason, stop) in [
        ("STOP", StopReason::EndTurn),
        ("MAX_TOKENS", StopReason::MaxTokens),
        ("SAFETY", StopReason::Refusal),
        ("RECITATION", StopReason::Refusal),
        ("BLOCKLIST", StopReason::Refusal),
        ("PROHIBITED_CONTENT", StopReason::Refusal),
        ("SPII", StopReason::Refusal),
        ("IMAGE_SAFETY", StopReason::Refusal),
    ] {
        let response = with_finish(reason, text());
        assert_eq!(response.stop, stop, "{reason}");
        assert_eq!(response.message.text(), "So");
        let kept = response.extra.get("finishReason").map(|kept| kept.parse::<String>().unwrap());
        let is_plain = matches!(reason, "STOP" | "MAX_TOKENS");
        assert_eq!(kept.as_deref(), (!is_plain).then_some(reason));
    }
    for (reason, is_retryable) in [
        ("LANGUAGE", false),
        ("OTHER", true),
        ("MALFORMED_FUNCTION_CALL", true),
        ("UNEXPECTED_TOOL_CALL", true),
        ("NEWER", false),
    ] {
        let usage = json!({"usageMetadata": {"promptTokenCount": 7}});
        // A later end does not hide it.
        let chunks = [parts(text()), finish(reason), finish("STOP"), usage];
        let error = stream(&chunks).unwrap_err();
        assert_eq!((error.code(), error.stop_reason()), (Code::StopReason, Some(reason)));
        assert_eq!((error.is_retryable(), error.usage().input_total), (is_retryable, 7), "{reason}");
        assert_eq!(error.partial().unwrap().text(), "So");
    }
    let call = json!([{"functionCall": {"name": "find", "args": {}}}]);
    assert_eq!(with_finish("STOP", call.clone()).stop, StopReason::ToolUse);
    assert_eq!(with_finish("MAX_TOKENS", call).stop, StopReason::MaxTokens);
}

#[test]
fn a_blocked_prompt_is_a_refusal_without_content() {
    let blocked = json!({"promptFeedback": {"blockReason": "SAFETY", "safetyRatings": []},
        "usageMetadata": {"promptTokenCount": 7}});
    for response in [
        stream(std::slice::from_ref(&blocked)).unwrap(),
        gemini::decode(blocked.to_string().as_bytes()).unwrap(),
    ] {
        assert_eq!((response.stop, response.message.content.len()), (StopReason::Refusal, 0));
        assert_eq!(response.usage.input_total, 7);
        assert!(response.extra.get("promptFeedback").unwrap().get().contains("SAFETY"));
    }
}

#[test]
fn a_stream_that_ends_without_a_reason_is_truncated() {
    for chunks in [&[parts(json!([{"text": "So"}]))] as &[Value], &[], &[json!({"usageMetadata": {}})]] {
        assert_eq!(stream(chunks).unwrap_err().code(), Code::Truncated);
    }
    let array = json!([parts(json!([{"text": "So"}]))]).to_string();
    assert_eq!(gemini::decode(array.as_bytes()).unwrap_err().code(), Code::Truncated);
    let mut cut = gemini::StreamDecoder::new();
    cut.push(format!("data: {}\n\ndata: {{\"candi", finish("STOP")).as_bytes());
    cut.end();
    assert_eq!(cut.next_event().unwrap().unwrap_err().code(), Code::Truncated);
}

#[test]
fn chunks_in_an_array_are_the_same_response() {
    let chunks = [parts(json!([{"text": "So"}])), parts(json!([{"text": " be it"}])), finish("STOP")];
    let whole = gemini::decode(json!(chunks).to_string().as_bytes()).unwrap();
    assert_eq!(whole.message.content, stream(&chunks).unwrap().message.content);
}

#[test]
fn usage_is_normalised_the_last_counts_win_and_all_are_kept() {
    let chunk = |usage: Value| json!({"candidates": [], "usageMetadata": usage});
    let response = stream(&[
        chunk(json!({"promptTokenCount": 100, "thoughtsTokenCount": 5, "cachedContentTokenCount": 60})),
        chunk(json!({"promptTokenCount": 100, "candidatesTokenCount": 4, "thoughtsTokenCount": 9,
            "toolUsePromptTokenCount": 11, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 100}]})),
        finish("STOP"),
    ])
    .unwrap();
    let usage = response.usage;
    assert_eq!((usage.input_total, usage.input_cached_read, usage.input_cache_write), (111, 60, 0));
    assert_eq!((usage.output_total, usage.output_reasoning), (13, 9));
    let raw: Value = response.raw_usage.unwrap().parse().unwrap();
    assert_eq!(raw["promptTokensDetails"][0]["modality"], "TEXT");
    assert_eq!(raw["cachedContentTokenCount"], 60);
}

#[test]
fn media_are_blocks_of_their_kind_and_unknown_parts_are_kept() {
    let code = json!({"executableCode": {"language": "PYTHON", "code": "1+1"}});
    let result = json!({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}});
    let response = answer(json!([
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
        {"fileData": {"mimeType": "video/mp4", "fileUri": "gs://a"}, "videoMetadata": {"fps": 2}},
        code, result, {"toolCall": {"id": "s1"}}, {"inlineData": {"mimeType": "image/png"}},
    ]));
    let content = response.message.content.clone();
    assert_eq!(content[0], Block::Image(Media::base64("image/png", "aGk=")));
    let Block::Video(video) = &content[1] else { panic!("{:?}", content[1]) };
    assert_eq!(video.extra.get("videoMetadata").unwrap().get(), r#"{"fps":2}"#);
    let unknown = |at: usize| match &content[at] {
        Block::Unknown(raw) => raw.parse::<Value>().unwrap(),
        block => panic!("{block:?}"),
    };
    assert_eq!((unknown(2), unknown(3)), (code, result));
    assert_eq!(unknown(4), json!({"toolCall": {"id": "s1"}}));
    assert_eq!(unknown(5), json!({"inlineData": {"mimeType": "image/png"}}));
}

#[test]
fn blocks_that_come_as_a_whole_are_events() {
    let events =
        events(&[parts(json!([{"inlineData": {"mimeType": "image/png", "data": "aGk="}}])), finish("STOP")]);
    assert!(matches!(&events[0], Ok(ChatEvent::Block { index: 0, block: Block::Image(_) })));
}

#[test]
fn fields_without_a_name_here_are_kept() {
    let response = stream(&[
        json!({"candidates": [{"content": {"parts": [{"text": "So"}]}, "index": 0,
            "citationMetadata": {"citationSources": [{"uri": "a"}]}}], "modelVersion": "gemini-1", "responseId": "r1"}),
        json!({"candidates": [{"finishReason": "STOP", "index": 0, "safetyRatings": [],
            "citationMetadata": {"citationSources": [{"uri": "b"}]}}], "modelStatus": {"x": 1}}),
    ])
    .unwrap();
    assert_eq!((response.model.as_str(), response.id.as_str()), ("gemini-1", "r1"));
    let extra = |name: &str| response.extra.get(name).unwrap().parse::<Value>().unwrap();
    assert_eq!(extra("citationMetadata"), json!({"citationSources": [{"uri": "a"}, {"uri": "b"}]}));
    assert_eq!((extra("safetyRatings"), extra("modelStatus")), (json!([]), json!({"x": 1})));
}

#[test]
fn what_grounds_an_answer_is_kept_of_all_chunks() {
    let chunk = |text: &str, uris: &[&str], finish: Value| {
        let chunks: Vec<_> = uris.iter().map(|uri| json!({"web": {"uri": uri}})).collect();
        json!({"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": finish,
            "groundingMetadata": {"groundingChunks": chunks}}]})
    };
    for (first, last, all) in [
        (&["1"] as &[&str], &["2"] as &[&str], json!(["1", "2"])),
        (&["1"], &["1", "2"], json!(["1", "2"])),
        (&["1"], &[], json!(["1"])),
    ] {
        let response = stream(&[chunk("a", first, json!(null)), chunk("b", last, json!("STOP"))]).unwrap();
        let metadata: Value = response.extra.get("groundingMetadata").unwrap().parse().unwrap();
        let uris: Vec<_> = metadata["groundingChunks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|chunk| chunk["web"]["uri"].clone())
            .collect();
        assert_eq!(json!(uris), all);
    }
}

#[test]
fn the_first_candidate_is_read_and_the_others_are_kept() {
    let other = json!({"content": {"parts": [{"text": "B"}]}, "index": 1, "finishReason": "STOP"});
    let first = json!({"content": {"parts": [{"text": "A"}]}, "index": 0, "finishReason": "STOP"});
    let response = stream(&[json!({"candidates": [first, other]})]).unwrap();
    assert_eq!(response.message.text(), "A");
    assert_eq!(response.extra.get("candidates").unwrap().parse::<Value>().unwrap(), json!([other]));
}

#[test]
fn malformed_chunks_are_errors() {
    for chunk in [
        json!([]),
        json!({"candidates": 7}),
        json!({"candidates": [7]}),
        json!({"candidates": [{"content": 7}]}),
        json!({"candidates": [{"content": {"parts": 7}}]}),
        parts(json!([7])),
        parts(json!([{"text": 7}])),
        parts(json!([{"functionCall": 7}])),
        parts(json!([{"functionCall": {"args": {}}}])),
        json!({"candidates": [{"finishReason": 7}]}),
    ] {
        assert_eq!(stream(&[chunk.clone(), finish("STOP")]).unwrap_err().code(), Code::Decode, "{chunk}");
    }
    for body in ["", "7", "[]", "{}", "\u{0}", r#"{"unrelated": 1}"#] {
        assert_eq!(gemini::decode(body.as_bytes()).unwrap_err().code(), Code::Decode, "{body}");
    }
}
