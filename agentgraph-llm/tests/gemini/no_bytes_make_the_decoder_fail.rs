//! Any bytes give events and then exactly one end, the same for every cut.

use agentgraph_llm::gemini::StreamDecoder;
use agentgraph_llm::{ChatEvent, MessageIds, gemini};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{finish, parts};

fn part() -> impl Strategy<Value = Value> {
    let text = "[a🦀\"\\\\]{0,3}";
    prop_oneof![
        text.prop_map(|text| json!({ "text": text })),
        text.prop_map(|text| json!({"text": text, "thought": true})),
        text.prop_map(|text| json!({"text": text, "thoughtSignature": "QQ=="})),
        text.prop_map(|text| json!({"functionCall": {"name": "f", "args": {"q": text}}})),
        Just(json!({"functionCall": {"name": "f", "willContinue": true}})),
        Just(json!({"functionCall": {}})),
        text.prop_map(
            |text| json!({"functionCall": {"partialArgs": [{"jsonPath": "$.a", "stringValue": text}]}})
        ),
        Just(json!({"inlineData": {"mimeType": "image/png", "data": "aGk="}})),
        Just(json!({"newer": 1})),
        Just(json!(7)),
    ]
}

fn read(bytes: &[u8], sizes: &[usize]) -> Vec<String> {
    let mut decoder = StreamDecoder::new().call_ids(MessageIds::sequence("c"));
    let mut rest = bytes;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at((*size).min(rest.len()));
        decoder.push(piece);
        rest = after;
    }
    decoder.end();
    let shown = |event| match event {
        Ok(ChatEvent::Finished(response)) => format!("{:?} {:?}", response.message.content, response.stop),
        Ok(event) => format!("{event:?}"),
        Err(error) => format!("{error}"),
    };
    std::iter::from_fn(|| decoder.next_event()).map(shown).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn chunks_are_read_alike_however_they_are_cut(
        all in prop::collection::vec(prop::collection::vec(part(), 0..3), 0..5),
        sizes in prop::collection::vec(1_usize..30, 1..6),
        ends in any::<bool>(),
    ) {
        let mut bytes: String = all.into_iter().map(|all| format!("data: {}\n\n", parts(json!(all)))).collect();
        if ends {
            bytes += &format!("data: {}\n\n", finish("STOP"));
        }
        let whole = read(bytes.as_bytes(), &[bytes.len().max(1)]);
        prop_assert!(!whole.is_empty());
        prop_assert_eq!(read(bytes.as_bytes(), &sizes), whole);
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), json in "\\PC{0,40}") {
        let _ = read(&bytes, &[3]);
        let _ = gemini::decode(&bytes);
        let _ = read(format!("data: {json}\n\n").as_bytes(), &[7]);
        let _ = gemini::decode(json.as_bytes());
        let _ = gemini::decode_count(json.as_bytes());
    }
}
