//! What only the provider understands goes back byte for byte, also after a checkpoint.

use agentgraph_llm::openai::{Profile, chat, responses};
use agentgraph_llm::prelude::*;
use agentgraph_llm::{Origin, RawJson};
use serde_json::{Value, json};

/// A message as a checkpoint gives it back, in both formats.
fn stored(message: Message) -> Message {
    let packed: Message = rmp_serde::from_slice(&rmp_serde::to_vec(&message).unwrap()).unwrap();
    assert_eq!(packed, message);
    serde_json::from_str(&serde_json::to_string(&packed).unwrap()).unwrap()
}

/// The order of keys, spaces and spelling are not those of a serialiser.
const REASONING: &str = r#"{"summary":[ {"text":"H\u006dm.","type":"summary_text"} ],"type":"reasoning","id":"rs_1","encrypted_content":"gAAA\/+==","n":1.0}"#;
const SEARCH: &str =
    r#"{"type":"web_search_call","status":"completed","id":"ws_1","action":{"query":"q","type":"search"}}"#;

fn decoded(items: &[&str], status: &str) -> Message {
    let body = format!(
        r#"{{"id":"resp_1","model":"m","status":"{status}","incomplete_details":{{"reason":"max_output_tokens"}},"output":[{}]}}"#,
        items.join(",")
    );
    responses::decode(body.as_bytes()).unwrap().message.with_origin(Origin::new("openai", "m"))
}

fn sent_back(message: Message) -> String {
    let request = ChatRequest::new([message, Message::tool_results([ToolResult::text("call_1", "ok")])]);
    let body = responses::encode("m", &request, false);
    body.get()
        .split_once("\"input\":[")
        .unwrap()
        .1
        .split_once(",{\"type\":\"function_call_output\"")
        .unwrap()
        .0
        .to_owned()
}

#[test]
fn reasoning_and_server_tools_go_back_byte_for_byte_before_their_call() {
    let call = r#"{"type":"function_call","call_id":"call_1","name":"find","arguments":"{\"x\": 1.0}","id":"fc_1","status":"completed","namespace":"n"}"#;
    let message = stored(decoded(&[REASONING, SEARCH, call], "completed"));
    assert_eq!(sent_back(message), [REASONING, SEARCH, call].join(","));
}

#[test]
fn a_message_keeps_its_id_its_phase_and_its_citations() {
    let said = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "commentary",
        "content": [
            {"type": "output_text", "text": "a", "annotations": [{"type": "url_citation", "url": "u"}]},
            {"type": "output_text", "text": "b", "annotations": []},
            {"type": "something_new", "value": 1},
            {"type": "refusal", "refusal": "c"}]});
    let second = json!({"type": "message", "id": "msg_2", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "d", "annotations": []}]});
    let message = stored(decoded(&[&said.to_string(), &second.to_string()], "completed"));
    assert_eq!(message.text(), "abcd");
    let sent: Value = serde_json::from_str(&format!("[{}]", sent_back(message))).unwrap();
    assert_eq!(sent, json!([said, second]));
}

#[test]
fn a_message_of_unknown_parts_goes_back_byte_for_byte() {
    let unknown =
        r#"{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"something_new","n":1.0}]}"#;
    let said = json!({"type": "message", "role": "assistant", "id": "msg_2",
        "content": [{"type": "output_text", "text": "a", "annotations": []}]});
    let message = stored(decoded(&[unknown, &said.to_string()], "completed"));
    let sent = sent_back(message);
    assert!(sent.starts_with(unknown), "{sent}");
    assert_eq!(serde_json::from_str::<Value>(&sent[unknown.len() + 1..]).unwrap(), said);
}

/// Compatible servers may give no id. OpenAI takes a plain text without one.
#[test]
fn a_message_without_an_id_is_a_text_unless_it_has_more() {
    let message = |content: Value| json!({"type": "message", "role": "assistant", "content": content});
    let goes_back = |content: Value, sent: Value| {
        let back = sent_back(stored(decoded(&[&message(content).to_string()], "completed")));
        assert_eq!(serde_json::from_str::<Value>(&back).unwrap(), message(sent));
    };
    goes_back(json!([{"type": "output_text", "text": "a", "annotations": []}]), json!("a"));
    for more in [
        json!([{"type": "output_text", "text": "a", "annotations": [{"type": "url_citation", "url": "u"}]}]),
        json!([{"type": "output_text", "text": "a", "annotations": []}, {"type": "something_new", "n": 1}]),
        json!([{"type": "refusal", "refusal": "no"}]),
    ] {
        goes_back(more.clone(), more);
    }
}

#[test]
fn reasoning_without_what_followed_it_is_not_sent() {
    let said = r#"{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"a","annotations":[]}]}"#;
    let sent = sent_back(decoded(&[said, REASONING], "incomplete"));
    assert!(sent.contains("msg_1") && !sent.contains("rs_1"), "{sent}");
}

#[test]
fn another_model_gets_the_words_and_the_calls_only() {
    let call = r#"{"type":"function_call","call_id":"call_1","name":"find","arguments":"{}","id":"fc_1"}"#;
    let said = r#"{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"a","annotations":[]}]}"#;
    let mut message = decoded(&[REASONING, SEARCH, said, call], "completed");
    message.origin = Some(Origin::new("openai", "older"));
    let sent: Value = serde_json::from_str(&format!("[{}]", sent_back(message))).unwrap();
    assert_eq!(
        sent,
        json!([{"type": "message", "role": "assistant", "content": "a"},
            {"type": "function_call", "call_id": "call_1", "name": "find", "arguments": "{}"}])
    );
}

#[test]
fn unknown_items_of_the_user_stand_beside_the_message() {
    let approval = json!({"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": true});
    let part = json!({"type": "input_something", "value": 1});
    let blocks =
        [Block::text("Yes."), Block::Unknown(part.clone().into()), Block::Unknown(approval.clone().into())];
    let body = responses::encode("m", &ChatRequest::new([Message::new(Role::User, blocks)]), false);
    let body: Value = body.parse().unwrap();
    let text = json!({"type": "input_text", "text": "Yes."});
    assert_eq!(
        body["input"],
        json!([{"type": "message", "role": "user", "content": [text, part]}, approval])
    );
}

#[test]
fn chat_completions_keep_unknown_parts_calls_and_fields() {
    let message = r#"{"role":"assistant","content":[{"type":"new","v":1.0}],"reasoning_details":[{"type":"reasoning.encrypted","data":"\u0061"}],
        "audio":{"id":"audio_1","data":"AAAA","expires_at":1},"annotations":[{"type":"url_citation"}],
        "tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"x\": 1.0}"},"extra_content":{"google":{"thought_signature":"s=="}}},
        {"id":"call_2","type":"custom","custom":{"name":"shell","input":"ls"}}]}"#;
    let body =
        format!(r#"{{"id":"c","choices":[{{"index":0,"message":{message},"finish_reason":"tool_calls"}}]}}"#);
    let response = chat::decode(body.as_bytes()).unwrap();
    // Citations are for the reader.
    assert_eq!(response.extra.get("annotations").unwrap().get(), r#"[{"type":"url_citation"}]"#);
    let message = stored(response.message.with_origin(Origin::new("openai", "m")));
    let sent = chat::encode("m", &ChatRequest::new([message]), &Profile::openai(), false);
    for unchanged in [
        r#"{"type":"new","v":1.0}"#,
        r#"[{"type":"reasoning.encrypted","data":"\u0061"}]"#,
        r#""extra_content":{"google":{"thought_signature":"s=="}}"#,
        r#"{"id":"call_2","type":"custom","custom":{"name":"shell","input":"ls"}}"#,
        r#""arguments":"{\"x\": 1.0}""#,
        r#""audio":{"id":"audio_1"}"#,
    ] {
        assert!(sent.get().contains(unchanged), "{unchanged} in {sent}");
    }
    assert!(!sent.get().contains("AAAA") && !sent.get().contains("annotations"), "{sent}");
}

#[test]
fn a_spoken_answer_is_assembled_from_its_pieces() {
    let mut decoder = chat::StreamDecoder::new(&Profile::openai());
    for audio in [
        json!({"id": "audio_1", "transcript": "Hel"}),
        json!({"transcript": "lo", "data": "AA"}),
        json!({"data": "BB"}),
        json!({"expires_at": 5}),
    ] {
        let chunk = json!({"choices": [{"index": 0, "delta": {"audio": audio}}]});
        decoder.push(format!("data: {chunk}\n\n").as_bytes());
    }
    decoder.push(b"data: [DONE]\n\n");
    let block = decoder.next_event().unwrap().unwrap();
    let raw = r#"{"audio":{"id":"audio_1","transcript":"Hello","data":"AABB","expires_at":5}}"#;
    assert_eq!(
        block,
        ChatEvent::Block { index: 0, block: Block::Unknown(RawJson::parse_text(raw).unwrap()) }
    );
}
