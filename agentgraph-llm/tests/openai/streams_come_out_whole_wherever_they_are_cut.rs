//! Any text and any arguments, cut into deltas at any UTF-16 unit and into bytes at any place.

use agentgraph_llm::openai::{Profile, chat, responses};
use agentgraph_llm::{ChatEvent, ChatResponse, Error, ToolInput};
use proptest::prelude::*;
use serde_json::json;

/// A JSON string of UTF-16 units, which may be half a letter.
fn quoted(units: &[u16]) -> String {
    let inside: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
    format!("\"{inside}\"")
}

fn pieces(text: &str, sizes: &[usize]) -> Vec<String> {
    let units: Vec<u16> = text.encode_utf16().collect();
    let (mut rest, mut sizes) = (&units[..], sizes.iter().cycle());
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at((*sizes.next().unwrap()).min(rest.len()));
        pieces.push(quoted(piece));
        rest = after;
    }
    pieces
}

type Read = (Vec<ChatEvent>, Result<ChatResponse, Error>);

macro_rules! read {
    ($decoder:expr, $stream:expr, $size:expr) => {{
        let mut decoder = $decoder;
        $stream.as_bytes().chunks($size).for_each(|bytes| decoder.push(bytes));
        decoder.end();
        let mut events = Vec::new();
        loop {
            match decoder.next_event().unwrap() {
                Ok(ChatEvent::Finished(response)) => break (events, Ok(response)),
                Ok(event) => events.push(event),
                Err(error) => break (events, Err(error)),
            }
        }
    }};
}

fn read_chat(stream: &str, size: usize) -> Read {
    read!(chat::StreamDecoder::new(&Profile::openai()), stream, size)
}

fn read_responses(stream: &str, size: usize) -> Read {
    read!(responses::StreamDecoder::new(), stream, size)
}

fn chat_stream(field: &str, pieces: &[String]) -> String {
    let chunk = |piece: &String| {
        let delta = match field {
            "arguments" => format!(r#"{{"tool_calls":[{{"index":0,"function":{{"arguments":{piece}}}}}]}}"#),
            field => format!(r#"{{"{field}":{piece}}}"#),
        };
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n")
    };
    let start = json!({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f"}}]}}]});
    let start = if field == "arguments" { format!("data: {start}\n\n") } else { String::new() };
    let end =
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    start + &pieces.iter().map(chunk).collect::<String>() + end
}

fn responses_stream(kind: &str, item: &str, pieces: &[String]) -> String {
    let item = json!({"type": item, "id": "i", "call_id": "a", "name": "f"});
    let start = format!(
        "data: {}\n\n",
        json!({"type": "response.output_item.added", "output_index": 0, "item": item})
    );
    let delta = |piece: &String| {
        format!("data: {{\"type\":\"response.{kind}.delta\",\"output_index\":0,\"delta\":{piece}}}\n\n")
    };
    let end = "data: {\"type\":\"response.completed\",\"response\":{\"output\":[]}}\n\n";
    start + &pieces.iter().map(delta).collect::<String>() + end
}

fn said(read: &Read) -> String {
    let texts = read.0.iter().map(|event| match event {
        ChatEvent::TextDelta { text, .. } => text.as_str(),
        ChatEvent::ToolInputDelta { json, .. } => json.as_str(),
        _ => "",
    });
    texts.collect()
}

fn letters() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c\"\\\\\n\u{0}é\u{d7ff}\u{e000}🦀\u{10ffff}]{1,12}", "\\PC{1,12}"]
}

proptest! {
    #[test]
    fn texts(text in letters(), sizes in prop::collection::vec(1_usize..4, 1..9), size in 1_usize..40) {
        let pieces = pieces(&text, &sizes);
        for field in ["content", "refusal"] {
            let read = read_chat(&chat_stream(field, &pieces), size);
            prop_assert_eq!(said(&read), text.clone());
            prop_assert_eq!(read.1.unwrap().message.text(), text.clone());
        }
        for kind in ["output_text", "refusal"] {
            let read = read_responses(&responses_stream(kind, "message", &pieces), size);
            prop_assert_eq!(said(&read), text.clone());
            prop_assert_eq!(read.1.unwrap().message.text(), text.clone());
        }
    }

    #[test]
    fn arguments(value in letters(), spaces in " {0,2}", sizes in prop::collection::vec(1_usize..4, 1..9), size in 1_usize..40) {
        let text = format!("{{{spaces}\"path\": {} }}", serde_json::to_string(&value).unwrap());
        let pieces = pieces(&text, &sizes);
        let streams = [
            read_chat(&chat_stream("arguments", &pieces), size),
            read_responses(&responses_stream("function_call_arguments", "function_call", &pieces), size),
        ];
        for read in streams {
            prop_assert_eq!(said(&read), text.clone());
            let message = read.1.unwrap().message;
            let call = message.tool_uses().next().unwrap();
            prop_assert_eq!(&call.input, &ToolInput::from_text(text.clone()));
            prop_assert!(matches!(call.input, ToolInput::Json(_)));
        }
    }

    #[test]
    fn no_bytes_make_a_decoder_panic(bytes in "(data: )?[\\PC\n]{0,200}", size in 1_usize..40) {
        prop_assert!(read_chat(&bytes, size).1.is_err() || bytes.contains("[DONE]"));
        prop_assert!(read_responses(&bytes, size).1.is_err());
    }
}

#[test]
fn half_a_letter_without_its_other_half_is_an_error() {
    for pieces in [vec![quoted(&[0xD83E])], vec![quoted(&[0xD83E]), quoted(&[0x61])], vec![quoted(&[0xDD80])]]
    {
        for field in ["content", "arguments", "reasoning", "refusal"] {
            let error = read_chat(&chat_stream(field, &pieces), 1000).1.unwrap_err();
            assert_eq!(error.code().as_str(), "E_LLM_DECODE", "{field} {pieces:?}");
        }
        for (kind, item) in [
            ("output_text", "message"),
            ("function_call_arguments", "function_call"),
            ("reasoning_text", "reasoning"),
        ] {
            let error = read_responses(&responses_stream(kind, item, &pieces), 1000).1.unwrap_err();
            assert_eq!(error.code().as_str(), "E_LLM_DECODE", "{kind} {pieces:?}");
        }
    }
}
