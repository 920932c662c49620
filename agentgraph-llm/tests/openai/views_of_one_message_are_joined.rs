//! Servers say a message up to three times: in deltas, at the end of its parts and items, and as a whole. Any
//! mixture of these gives that message or an error, and any cut of it an error.

use agentgraph_llm::openai::{Profile, chat, responses};
use agentgraph_llm::prelude::*;
use agentgraph_llm::{Code, Error};
use proptest::prelude::*;
use serde_json::{Value, json};

type Read = (Vec<ChatEvent>, Result<ChatResponse, Error>);

macro_rules! read {
    ($decoder:expr, $bytes:expr) => {{
        let mut decoder = $decoder;
        decoder.push($bytes.as_ref());
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

fn read_responses(bytes: impl AsRef<[u8]>) -> Read {
    read!(responses::StreamDecoder::new(), bytes)
}

fn read_chat(bytes: impl AsRef<[u8]>) -> Read {
    read!(chat::StreamDecoder::new(&Profile::openai()), bytes)
}

fn sse(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

/// An item of a message as this test writes it.
#[derive(Clone, Debug, PartialEq)]
enum Item {
    Text(String),
    Call(String),
}

impl Item {
    fn arguments(&self) -> String {
        match self {
            Item::Text(_) => String::new(),
            Item::Call(city) => json!({"city": city, "days": [1, 2]}).to_string(),
        }
    }
}

/// How much of an item a view has.
#[derive(Clone, Copy, Debug, PartialEq)]
enum View {
    Missing,
    Empty,
    Full,
}

/// The views of an item.
#[derive(Clone, Debug)]
struct Views {
    is_announced: bool,
    cuts: Vec<usize>,
    has_deltas: bool,
    text_end: bool,
    part_end: bool,
    end: View,
    last: View,
}

fn view() -> impl Strategy<Value = View> {
    prop_oneof![Just(View::Missing), Just(View::Empty), Just(View::Full)]
}

fn views() -> impl Strategy<Value = Views> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (flags, prop::collection::vec(1_usize..5, 1..4), view(), view()).prop_map(
        |((is_announced, has_deltas, text_end, part_end), cuts, end, last)| Views {
            is_announced,
            cuts,
            has_deltas,
            text_end,
            part_end,
            end,
            last,
        },
    )
}

fn item() -> impl Strategy<Value = Item> {
    let letters = "[a-z é🦀\"\\\\\n]{1,8}[a-z]";
    prop_oneof![letters.prop_map(Item::Text), letters.prop_map(Item::Call)]
}

fn pieces<'a>(text: &'a str, sizes: &'a [usize]) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let (mut rest, mut sizes) = (&letters[..], sizes.iter().cycle());
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at((*sizes.next().unwrap()).min(rest.len()));
        pieces.push(piece.iter().collect());
        rest = after;
    }
    pieces
}

/// The positions that a server writes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Index {
    Right,
    AlwaysZero,
    Missing,
}

fn with_index(index: Index, at: usize, mut event: Value) -> Value {
    match index {
        Index::Right => event["output_index"] = json!(at),
        Index::AlwaysZero => event["output_index"] = json!(0),
        Index::Missing => {}
    }
    event
}

fn whole_item(at: usize, item: &Item, view: View) -> Option<Value> {
    let is_full = view == View::Full;
    Some(match item {
        _ if view == View::Missing => return None,
        Item::Text(text) => {
            let part = json!({"type": "output_text", "text": text, "annotations": [{"type": "url_citation", "url": "u"}]});
            json!({"type": "message", "id": format!("msg_{at}"), "role": "assistant", "status": "completed",
                "content": if is_full { json!([part]) } else { json!([]) }})
        }
        item @ Item::Call(_) => {
            json!({"type": "function_call", "id": format!("fc_{at}"), "call_id": format!("call_{at}"),
            "name": "weather", "status": "completed", "arguments": if is_full { item.arguments() } else { String::new() }})
        }
    })
}

fn responses_events(items: &[(Item, Views)], index: Index) -> Vec<Value> {
    let mut events =
        vec![json!({"type": "response.created", "response": {"id": "r", "status": "in_progress"}})];
    for (at, (item, views)) in items.iter().enumerate() {
        let mut push = |event: Value| events.push(with_index(index, at, event));
        if views.is_announced {
            push(json!({"type": "response.output_item.added", "item": whole_item(at, item, View::Empty)}));
        }
        let (kind, id, text) = match item {
            Item::Text(text) => ("output_text", format!("msg_{at}"), text.clone()),
            call @ Item::Call(_) => ("function_call_arguments", format!("fc_{at}"), call.arguments()),
        };
        if views.has_deltas {
            for piece in pieces(&text, &views.cuts) {
                push(
                    json!({"type": format!("response.{kind}.delta"), "item_id": id, "content_index": 0, "delta": piece}),
                );
            }
        }
        if views.text_end {
            let field = if kind == "output_text" { "text" } else { "arguments" };
            push(
                json!({"type": format!("response.{kind}.done"), "item_id": id, "content_index": 0, field: text}),
            );
        }
        if views.part_end && kind == "output_text" {
            let part = json!({"type": "output_text", "text": text, "annotations": []});
            push(
                json!({"type": "response.content_part.done", "item_id": id, "content_index": 0, "part": part}),
            );
        }
        if let Some(item) = whole_item(at, item, views.end) {
            push(json!({"type": "response.output_item.done", "item": item}));
        }
    }
    let output: Vec<_> =
        items.iter().enumerate().filter_map(|(at, (item, views))| whole_item(at, item, views.last)).collect();
    events.push(json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": output}}));
    events
}

/// What a message says: its texts, and its calls.
fn said(message: &Message) -> Vec<Item> {
    let item = |block: &Block| match block {
        Block::Text(text) => Item::Text(text.text.clone()),
        Block::ToolUse(call) => {
            let input: Value = call.input.json().unwrap().parse().unwrap();
            Item::Call(input["city"].as_str().unwrap().to_owned())
        }
        other => panic!("{other:?}"),
    };
    message.content.iter().map(item).collect()
}

/// The pieces that were shown are those of the message.
fn check_events((events, end): &Read) {
    let Ok(response) = end else { return };
    for (at, block) in response.message.content.iter().enumerate() {
        let pieces = events.iter().filter_map(|event| match event {
            ChatEvent::TextDelta { index, text } if *index == at => Some(text.as_str()),
            ChatEvent::ToolInputDelta { index, json } if *index == at => Some(json.as_str()),
            _ => None,
        });
        let shown: String = pieces.collect();
        match block {
            Block::Text(text) => assert_eq!(shown, text.text),
            Block::ToolUse(call) if shown.is_empty() => assert!(matches!(call.input.text(), "" | "{}")),
            Block::ToolUse(call) => assert_eq!(shown, call.input.text()),
            other => panic!("{other:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn any_views_of_a_response_give_its_message(
        items in prop::collection::vec((item(), views()), 1..4),
        index in prop_oneof![Just(Index::Right), Just(Index::AlwaysZero), Just(Index::Missing)],
        cut in any::<prop::sample::Index>(),
    ) {
        let events = responses_events(&items, index);
        let stream = sse(&events);
        let read = read_responses(&stream);
        check_events(&read);
        let is_shown = |(item, views): &(Item, Views)| {
            let is_text = matches!(item, Item::Text(_));
            let in_pieces = views.has_deltas || views.text_end || (views.part_end && is_text);
            // A call without a name is not a call.
            let is_named = is_text || views.is_announced || views.end != View::Missing || views.last != View::Missing;
            (in_pieces && is_named) || views.end == View::Full || views.last == View::Full
        };
        let wanted: Vec<Item> = items.iter().map(|(item, _)| item.clone()).collect();
        match &read.1 {
            Ok(response) if items.iter().all(is_shown) => {
                // Items that come only with the final response come last.
                let mut got = said(&response.message);
                let mut wanted = wanted;
                let by_text = |item: &Item| format!("{item:?}");
                got.sort_by_key(by_text);
                wanted.sort_by_key(by_text);
                prop_assert_eq!(got, wanted, "{}", stream);
            }
            Ok(_) => {}
            Err(error) => prop_assert!(
                !items.iter().all(is_shown) || items.iter().any(|(_, views)| !views.is_announced),
                "{error} {stream}"
            ),
        }
        let cut = cut.index(stream.len() - 3);
        prop_assert!(read_responses(&stream.as_bytes()[..cut]).1.is_err());
    }

    #[test]
    fn any_views_of_a_chat_answer_give_its_message(
        text in "[a-z é🦀\"]{0,6}[a-z]?",
        cities in prop::collection::vec("[a-z\"é]{1,6}", 0..3),
        sizes in prop::collection::vec(1_usize..5, 1..4),
        has_deltas in any::<bool>(),
        last in view(),
        has_index in any::<bool>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let last = if has_deltas { last } else { View::Full };
        let mut events = Vec::new();
        let chunk = |delta: Value| json!({"choices": [{"index": 0, "delta": delta}]});
        let call = |at: usize, arguments: &str| {
            let mut call = json!({"id": format!("c{at}"), "function": {"name": "weather", "arguments": arguments}});
            if has_index {
                call["index"] = json!(at);
            }
            call
        };
        if has_deltas {
            events.extend(pieces(&text, &sizes).into_iter().map(|piece| chunk(json!({"content": piece}))));
            for (at, city) in cities.iter().enumerate() {
                let item = Item::Call(city.clone());
                for (number, piece) in pieces(&item.arguments(), &sizes).into_iter().enumerate() {
                    let mut call = call(at, &piece);
                    if number > 0 {
                        call.as_object_mut().unwrap().remove("id");
                        call["function"].as_object_mut().unwrap().remove("name");
                    }
                    events.push(chunk(json!({"tool_calls": [call]})));
                }
            }
        }
        let is_full = last == View::Full;
        let calls: Vec<_> = cities.iter().enumerate().filter(|_| is_full).map(|(at, city)| {
            let mut call = call(at, &Item::Call(city.clone()).arguments().replace(",\"days\"", ", \"days\""));
            call.as_object_mut().unwrap().remove("index");
            call
        }).collect();
        let mut end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
        if last != View::Missing {
            end["choices"][0]["message"] = json!({"content": if is_full { text.as_str() } else { "" }, "tool_calls": calls});
        }
        events.push(end);
        let stream = sse(&events) + "data: [DONE]\n\n";
        let read = read_chat(&stream);
        check_events(&read);
        let wanted: Vec<Item> = Some(Item::Text(text.clone())).filter(|_| !text.is_empty()).into_iter()
            .chain(cities.iter().cloned().map(Item::Call)).collect();
        let response = read.1.unwrap();
        prop_assert_eq!(said(&response.message), wanted, "{}", stream);
        let cut = cut.index(stream.len() - "[DONE]\n\n".len());
        prop_assert!(read_chat(&stream.as_bytes()[..cut]).1.is_err());
    }
}

fn call(at: u64, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{at}"), "call_id": format!("call_{at}"), "name": "weather",
        "arguments": arguments, "status": "completed"})
}

fn added(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

fn done(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

fn completed(output: Value) -> Value {
    json!({"type": "response.completed", "response": {"status": "completed", "output": output}})
}

const OSLO: &str = r#"{"city":"Oslo"}"#;

#[test]
fn an_item_without_arguments_at_its_end_does_not_empty_them() {
    let delta = |piece: &str| json!({"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 0, "delta": piece});
    let deltas = [delta(r#"{"ci"#), delta(r#"ty":"Oslo"}"#)];
    for empty in ["", "{}", r#"{"ci"#] {
        for last in [json!([]), json!([call(1, empty)]), json!([call(1, r#"{"city": "Oslo"}"#)])] {
            let events =
                [&[added(0, call(1, ""))], &deltas[..], &[done(0, call(1, empty)), completed(last)]].concat();
            let response = read_responses(sse(&events)).1.unwrap();
            let calls: Vec<_> = response.message.tool_uses().map(|call| call.input.text()).collect();
            assert_eq!(calls, [OSLO]);
        }
    }
    // Arguments that never came are not `{}`, and those that are empty at the end are.
    let input = |events: &[Value]| {
        read_responses(sse(events)).1.unwrap().message.tool_uses().next().unwrap().input.clone()
    };
    assert!(input(&[added(0, call(1, "")), completed(json!([]))]).json().is_none());
    assert_eq!(input(&[added(0, call(1, "")), done(0, call(1, "")), completed(json!([]))]).text(), "{}");
    // The views of a call contradict each other.
    for (end, name) in [(r#"{"city":"Roma"}"#, "weather"), (OSLO, "other")] {
        let mut end = call(1, end);
        end["name"] = json!(name);
        let events = [&[added(0, call(1, ""))], &deltas[..], &[done(0, end), completed(json!([]))]].concat();
        assert_eq!(read_responses(sse(&events)).1.unwrap_err().code(), Code::Decode);
    }
}

#[test]
fn what_only_one_view_has_is_kept() {
    let part =
        |annotations: Value| json!({"type": "output_text", "text": "Hello", "annotations": annotations});
    let message = |content: Value| json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content});
    let cited = json!([{"type": "url_citation", "url": "u"}]);
    let delta = json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 1, "content_index": 0, "delta": "Hello"});
    let annotation = json!({"type": "response.output_text.annotation.added", "item_id": "msg_1", "output_index": 1,
        "content_index": 0, "annotation_index": 0, "annotation": cited[0]});
    let thought =
        json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]});
    let mut encrypted = thought.clone();
    encrypted["encrypted_content"] = json!("gAAA");
    let mut with_phase = message(json!([part(cited.clone())]));
    with_phase["phase"] = json!("commentary");
    for events in [
        vec![
            done(0, thought.clone()),
            delta.clone(),
            done(1, message(json!([part(json!([]))]))),
            completed(json!([encrypted.clone(), with_phase.clone()])),
        ],
        vec![
            done(0, encrypted.clone()),
            delta.clone(),
            annotation,
            done(1, {
                let mut bare = message(json!([]));
                bare["phase"] = json!("commentary");
                bare
            }),
            completed(json!([thought, message(json!([part(json!([]))]))])),
        ],
        vec![completed(json!([encrypted, with_phase]))],
    ] {
        let response = read_responses(sse(&events)).1.unwrap();
        let [Block::Thinking(thinking), Block::Text(text)] = &response.message.content[..] else {
            panic!("{response:?}")
        };
        assert!(thinking.extra.get("item").unwrap().get().contains("gAAA"), "{thinking:?}");
        assert_eq!(thinking.thinking, "Hm.");
        assert_eq!(text.extra.get("annotations").unwrap().parse::<Value>().unwrap(), cited);
        assert!(text.extra.get("item").unwrap().get().contains("commentary"), "{text:?}");
    }
}

#[test]
fn half_a_character_in_a_whole_view_is_an_error() {
    let half = r#"a\ud83d"#;
    let part = format!(r#"{{"type":"output_text","text":"{half}"}}"#);
    let message = format!(r#"{{"type":"message","id":"m","content":[{part}]}}"#);
    for event in [
        format!(r#"{{"type":"response.output_item.done","item":{message}}}"#),
        format!(r#"{{"type":"response.output_item.added","item":{message}}}"#),
        format!(r#"{{"type":"response.output_text.done","text":"{half}"}}"#),
        format!(r#"{{"type":"response.content_part.done","part":{part}}}"#),
        format!(r#"{{"type":"response.completed","response":{{"status":"completed","output":[{message}]}}}}"#),
        r#"{"type":"response.output_item.done","item":{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":\"\ud83d\"}"}}"#.to_owned(),
    ] {
        let stream = format!("data: {event}\n\n{}", sse(&[completed(json!([]))]));
        assert_eq!(read_responses(stream).1.unwrap_err().code(), Code::Decode, "{event}");
    }
    let body = format!(r#"{{"status":"completed","output":[{message}]}}"#);
    assert_eq!(responses::decode(body.as_bytes()).unwrap_err().code(), Code::Decode);
}

#[test]
fn what_was_paid_for_is_not_lost_with_the_end_of_an_unknown_item() {
    let custom = |input: &str| json!({"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": "sql", "input": input});
    let delta = |piece: &str| json!({"type": "response.custom_tool_call_input.delta", "item_id": "ctc_1", "output_index": 0, "delta": piece});
    for (end, last) in [("", ""), ("select 1", ""), ("", "select 1"), ("select 1", "select 1")] {
        let events = [
            added(0, custom("")),
            delta("select "),
            delta("1"),
            done(0, custom(end)),
            completed(json!([custom(last)])),
        ];
        let response = read_responses(sse(&events)).1.unwrap();
        let Block::Unknown(raw) = &response.message.content[0] else { panic!("{response:?}") };
        assert_eq!(raw.parse::<Value>().unwrap(), custom("select 1"));
        assert_eq!(response.message.content.len(), 1);
    }
}

#[test]
fn an_end_that_contradicts_itself_is_an_error() {
    let message =
        json!({"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Hello"}]});
    let end = |kind: &str, status: &str| json!({"type": format!("response.{kind}"), "response": {"status": status, "output": [message]}});
    for (kind, status) in [
        ("incomplete", "completed"),
        ("failed", "completed"),
        ("completed", "failed"),
        ("completed", "queued"),
    ] {
        let read = read_responses(sse(&[end(kind, status)]));
        assert_eq!(read.1.unwrap_err().partial().unwrap().text(), "Hello", "{kind} {status}");
    }
    let delta = |text: &str| json!({"type": "response.output_text.delta", "item_id": "m", "content_index": 0, "delta": text});
    let late = [done(0, message.clone()), delta("Hello"), completed(json!([]))];
    assert_eq!(read_responses(sse(&late)).1.unwrap().message.text(), "Hello");
    let more = [delta("Hello"), done(0, message.clone()), delta(" again"), completed(json!([message]))];
    assert_eq!(read_responses(sse(&more)).1.unwrap_err().code(), Code::Decode);
}
