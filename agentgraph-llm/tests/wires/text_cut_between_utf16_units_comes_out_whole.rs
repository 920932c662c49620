//! Deltas that are no Rust strings: halves of characters are joined, and everything else is an error.

use agentgraph_llm::prelude::*;
use agentgraph_llm::{Code, Error};
use proptest::prelude::*;
use serde_json::Value;

use super::wire::{Settings, WIRES, Wire};
use crate::server::{Reply, Server};

async fn ask(wire: &dyn Wire, reply: Reply) -> Result<ChatResponse, Error> {
    let server = Server::start([reply]).await;
    let settings = Settings { max_retries: 0, ..Settings::of(&server) };
    wire.model(&settings).unwrap().chat(ChatRequest::user("hi")).await
}

fn strings(pieces: &[&str]) -> Vec<String> {
    pieces.iter().map(|piece| (*piece).to_owned()).collect()
}

#[tokio::test]
async fn halves_of_a_character_are_joined_across_deltas() {
    for wire in WIRES {
        let pieces = strings(&[r#""a\ud83e""#, r#""""#, r#""\udd80b""#]);
        let response = ask(*wire, Reply::stream(wire.text(&pieces).concat())).await.unwrap();
        assert_eq!(response.message.text(), "a🦀b", "{}", wire.name());

        let pieces = strings(&[r#""{\"path\":\"/tmp/\ud83e""#, r#""\udd80\"}""#]);
        let response = ask(*wire, Reply::stream(wire.call(&pieces).concat())).await.unwrap();
        let call = response.message.tool_uses().next().unwrap();
        assert_eq!(call.input.text(), r#"{"path":"/tmp/🦀"}"#, "{}", wire.name());
    }
}

#[tokio::test]
async fn a_delta_that_is_no_text_is_an_error() {
    for wire in WIRES {
        for pieces in [
            &[r#""a\ud83e""#, r#""b""#] as &[&str],
            &[r#""a\ud83e""#],
            &[r#""a""#, r#""\udd80b""#],
            &[r#""a""#, r#"{"path":"b"}"#],
            &[r#""a""#, "7"],
        ] {
            let call = wire.streams_arguments().then(|| wire.call(&strings(pieces)));
            for events in [wire.text(&strings(pieces))].into_iter().chain(call) {
                let error = ask(*wire, Reply::stream(events.concat())).await.unwrap_err();
                assert_eq!(error.code(), Code::Decode, "{}: {pieces:?}", wire.name());
            }
        }
    }
}

/// The JSON string of UTF-16 units, with an escape for half of a pair.
fn written(units: &[u16]) -> String {
    let mut text = String::from('"');
    for letter in char::decode_utf16(units.iter().copied()) {
        match letter {
            Ok(letter) => {
                let quoted = serde_json::to_string(&letter).unwrap();
                text += &quoted[1..quoted.len() - 1];
            }
            Err(half) => text += &format!("\\u{:04x}", half.unpaired_surrogate()),
        }
    }
    text + "\""
}

fn json() -> impl Strategy<Value = Value> {
    let letters = "[a\"\\\\\u{0}\u{7f}é\u{2028}🦀\u{10ffff}]{0,6}|\\PC{0,6}";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        letters.prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(3, 12, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(letters, inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    prop::collection::btree_map(letters, value, 1..4).prop_map(|map| Value::Object(map.into_iter().collect()))
}

/// Cuts at the given sizes, again and again.
fn cut<'a, T>(mut rest: &'a [T], sizes: &[usize]) -> Vec<&'a [T]> {
    let mut pieces = Vec::new();
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at((*size).min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_json_text_cut_at_any_unit_and_any_byte_comes_out_whole(
        value in json(),
        units in prop::collection::vec(1_usize..5, 1..8),
        bytes in prop::collection::vec(1_usize..40, 1..8),
    ) {
        let text = value.to_string();
        let utf16: Vec<u16> = text.encode_utf16().collect();
        let pieces: Vec<String> = cut(&utf16, &units).into_iter().map(written).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for wire in WIRES {
            let stream = wire.text(&pieces).concat();
            let reply = Reply::chunks(cut(stream.as_bytes(), &bytes));
            let response = runtime.block_on(ask(*wire, reply)).unwrap();
            prop_assert_eq!(response.message.text(), text.as_str(), "{}", wire.name());

            let stream = wire.call(&pieces).concat();
            let reply = Reply::chunks(cut(stream.as_bytes(), &bytes));
            let response = runtime.block_on(ask(*wire, reply)).unwrap();
            let call = response.message.tool_uses().next().unwrap();
            prop_assert_eq!(call.input.text(), text.as_str(), "{}", wire.name());
        }
    }
}
