//! Fuzzes the decoders of Anthropic's Messages API. Any bytes give events that end once, the same events
//! however the bytes are cut, and no panic. `run.sh` builds and runs it; a finding becomes a case in
//! `tests/anthropic/wire`, whose answers are where it begins.
#![no_main]

use agentgraph_llm::anthropic::{self, StreamDecoder};
use agentgraph_llm::{ChatEvent, Result};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let whole = events([data].into_iter());
    let ends = |event: &Result<ChatEvent>| matches!(event, Ok(ChatEvent::Finished(_)) | Err(_));
    assert_eq!(whole.iter().filter(|event| ends(event)).count(), 1);
    assert!(whole.last().is_some_and(ends));
    // The size of the pieces follows from the bytes, so that a finding stays one.
    let size = 1 + data.len() % 7;
    assert_eq!(show(&events(data.chunks(size))), show(&whole));
    let _ = anthropic::decode(data);
    let _ = anthropic::decode_count(data);
});

fn events<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Result<ChatEvent>> {
    let mut decoder = StreamDecoder::new();
    let mut events = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        events.extend(std::iter::from_fn(|| decoder.next_event()));
    }
    decoder.end();
    events.extend(std::iter::from_fn(|| decoder.next_event()));
    events
}

/// The ids of messages are new each time.
fn show(events: &[Result<ChatEvent>]) -> Vec<String> {
    let show = |event: &Result<ChatEvent>| match event {
        Ok(ChatEvent::Finished(response)) => {
            format!("{:?} {:?} {:?}", response.message.content, response.usage, response.extra)
        }
        event => format!("{event:?}"),
    };
    events.iter().map(show).collect()
}
