//! What holds for the decoders of all wires, whatever bytes they get. The fuzz targets check it, and the
//! tests for what the fuzzers found.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, unreachable_pub)]

use agentgraph_llm::openai::{Profile, chat, responses};
use agentgraph_llm::{
    Block, ChatEvent, ChatRequest, Message, MessageIds, RawJson, Result, ToolInput, anthropic, gemini,
};

/// Checks the decoders of a wire with bytes.
pub type Check = fn(&[u8]);

/// The fuzz targets.
pub const CHECKS: [(&str, Check); 4] = [
    ("anthropic_stream", anthropic),
    ("openai_chat", openai_chat),
    ("openai_responses", openai_responses),
    ("gemini", gemini),
];

pub fn anthropic(data: &[u8]) {
    let encode = |request: &ChatRequest| anthropic::encode("m", request, false);
    let wire = Wire {
        encode: &encode,
        after: "]}",
        answer: |message| message.replacen('{', r#"{"type":"message","stop_reason":"end_turn","#, 1),
        decode: |body| anthropic::decode(body).map(|response| response.message),
        is_kept: |_| true,
    };
    wire.check_stream(data, anthropic::StreamDecoder::new);
    wire.check_body(data);
    let _ = anthropic::decode_count(data);
}

pub fn openai_chat(data: &[u8]) {
    for profile in [Profile::openai(), Profile::llama_cpp()] {
        let encode = |request: &ChatRequest| chat::encode("m", request, &profile, false);
        let wire = Wire {
            encode: &encode,
            after: "]}",
            answer: |message| format!(r#"{{"choices":[{{"finish_reason":"stop","message":{message}}}]}}"#),
            decode: |body| chat::decode(body).map(|response| response.message),
            // Thinking is for some servers only, citations are for none, and sound goes back as its id.
            is_kept: |block| match block {
                Block::Text(text) => text.extra.get("annotations").is_none(),
                block => matches!(block, Block::ToolUse(_)),
            },
        };
        wire.check_stream(data, || chat::StreamDecoder::new(&profile));
        wire.check_body(data);
    }
}

pub fn openai_responses(data: &[u8]) {
    let encode = |request: &ChatRequest| responses::encode("m", request, false);
    let wire = Wire {
        encode: &encode,
        after: r#"],"store":false,"include":["reasoning.encrypted_content"]}"#,
        answer: |items| format!(r#"{{"status":"completed","output":[{items}]}}"#),
        decode: |body| responses::decode(body).map(|response| response.message),
        // Texts without an id may become one, and thinking is sent only before its answer.
        is_kept: |block| match block {
            Block::Text(text) => text.extra.get("item").is_some(),
            block => !matches!(block, Block::Thinking(_)),
        },
    };
    wire.check_stream(data, responses::StreamDecoder::new);
    wire.check_body(data);
    let _ = responses::decode_count(data);
}

pub fn gemini(data: &[u8]) {
    let encode = |request: &ChatRequest| gemini::encode("m", request);
    let wire = Wire {
        encode: &encode,
        after: "]}",
        answer: |content| format!(r#"{{"candidates":[{{"content":{content},"finishReason":"STOP"}}]}}"#),
        decode: |body| gemini::decode(body).map(|response| response.message),
        // An id that the decoder gave to a call is not the server's.
        is_kept: |block| !matches!(block, Block::ToolUse(call) if call.id.starts_with("gemini-call-")),
    };
    wire.check_stream(data, || gemini::StreamDecoder::new().call_ids(MessageIds::sequence("c")));
    wire.check_body(data);
    let _ = gemini::decode_count(data);
}

/// A wire both ways.
struct Wire<'a> {
    encode: &'a dyn Fn(&ChatRequest) -> RawJson,
    /// The end of a body after its last message.
    after: &'static str,
    /// An answer that consists of messages as they are sent back.
    answer: fn(&str) -> String,
    decode: fn(&[u8]) -> Result<Message>,
    /// Whether the wire sends a block back whole.
    is_kept: fn(&Block) -> bool,
}

impl Wire<'_> {
    /// A stream ends once, and in the same way however it is cut.
    fn check_stream<D: Decoder>(&self, data: &[u8], decoder: impl Fn() -> D) {
        let whole = events(decoder(), [data].into_iter());
        let ends = |event: &Result<ChatEvent>| matches!(event, Ok(ChatEvent::Finished(_)) | Err(_));
        assert_eq!(whole.iter().filter(|event| ends(event)).count(), 1);
        assert!(whole.last().is_some_and(ends));
        // The size of the pieces follows from the bytes, so that a finding stays one.
        let size = 1 + data.len() % 7;
        assert_eq!(show(&events(decoder(), data.chunks(size))), show(&whole));
        if let Some(Ok(ChatEvent::Finished(response))) = whole.into_iter().last() {
            self.check_way_back(response.message);
        }
    }

    fn check_body(&self, data: &[u8]) {
        if let Ok(message) = (self.decode)(data) {
            self.check_way_back(message);
        }
    }

    /// A message that is sent back and read again is the same, and so is what is sent after that.
    fn check_way_back(&self, message: Message) {
        let content = message.content.clone();
        if content.iter().any(changed_its_type) {
            return;
        }
        let sent = self.sent(message);
        if sent.is_empty() {
            return;
        }
        let again = (self.decode)((self.answer)(&sent).as_bytes()).expect("what was sent is read");
        if content.iter().all(|block| has_form(block) && (self.is_kept)(block)) {
            assert_eq!(again.content, content);
        }
        assert_eq!(self.sent(again), sent);
    }

    /// A message as it is sent.
    fn sent(&self, message: Message) -> String {
        let before = (self.encode)(&ChatRequest::user("a"));
        let before = before.get().strip_suffix(self.after).unwrap();
        let body = (self.encode)(&ChatRequest::new([Message::user("a"), message]));
        let sent = body.get().strip_prefix(before).and_then(|rest| rest.strip_suffix(self.after));
        sent.unwrap().trim_start_matches(',').to_owned()
    }
}

/// Whether a block has a form of its own on the wires: blank texts are not sent, and arguments that are no
/// object are sent in one.
fn has_form(block: &Block) -> bool {
    match block {
        Block::Text(text) => !text.text.trim().is_empty(),
        Block::ToolUse(call) => matches!(&call.input, ToolInput::Json(json) if json.get().starts_with('{')),
        _ => true,
    }
}

/// A call of Chat Completions that is unknown by its first piece and a function by a later one. It goes back
/// as it is, and is read as the function that it is now.
fn changed_its_type(block: &Block) -> bool {
    matches!(block, Block::Unknown(raw) if raw.get().contains("\"function\""))
}

pub trait Decoder {
    fn push(&mut self, bytes: &[u8]);
    fn end(&mut self);
    fn next_event(&mut self) -> Option<Result<ChatEvent>>;
}

macro_rules! decoders {
    ($($decoder:ty),*) => {
        $(impl Decoder for $decoder {
            fn push(&mut self, bytes: &[u8]) {
                self.push(bytes);
            }

            fn end(&mut self) {
                self.end();
            }

            fn next_event(&mut self) -> Option<Result<ChatEvent>> {
                self.next_event()
            }
        })*
    };
}

decoders!(anthropic::StreamDecoder, chat::StreamDecoder, responses::StreamDecoder, gemini::StreamDecoder);

fn events<'a>(mut decoder: impl Decoder, pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Result<ChatEvent>> {
    let mut events = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        events.extend(std::iter::from_fn(|| decoder.next_event()));
    }
    decoder.end();
    events.extend(std::iter::from_fn(|| decoder.next_event()));
    events
}

/// The events without the ids that are new each time: those of messages and of calls that have none.
fn show(events: &[Result<ChatEvent>]) -> Vec<String> {
    let show = |event: &Result<ChatEvent>| match event {
        Ok(ChatEvent::Finished(response)) => {
            format!("{:?} {:?} {:?}", response.message.content, response.usage, response.extra)
        }
        event => format!("{event:?}"),
    };
    events.iter().map(|event| without_new_ids(&show(event))).collect()
}

fn without_new_ids(text: &str) -> String {
    let mut parts = text.split("call_msg-");
    let first = parts.next().unwrap_or_default().to_owned();
    let is_of_id = |letter: char| letter.is_ascii_hexdigit() || letter == '-';
    parts.fold(first, |all, part| all + "call_msg-" + part.trim_start_matches(is_of_id))
}
