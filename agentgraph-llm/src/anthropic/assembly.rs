//! One block of a streamed response, assembled from its deltas.

use std::collections::BTreeMap;

use super::decode;
use crate::error::{Code, Error, Result};
use crate::json::{Object, RawJson, WireValue};
use crate::message::{Block, ToolInput};
use crate::model::ChatEvent;

/// A block in progress: its first state, and the additions to its fields.
#[derive(Debug)]
pub(super) struct Assembly {
    kind: String,
    /// The block's JSON as received, as long as nothing was added to it.
    whole: Option<RawJson>,
    start: Object,
    texts: BTreeMap<String, String>,
    input: String,
    citations: Vec<RawJson>,
}

impl Assembly {
    pub(super) fn new(raw: &RawJson) -> Result<Self> {
        let start = Object::parse(raw.get()).map_err(|_| broken("a block that is not an object"))?;
        let kind = start.get_as("type").unwrap_or_default();
        let whole = Some(raw.clone());
        Ok(Assembly {
            kind,
            whole,
            start,
            texts: BTreeMap::new(),
            input: String::new(),
            citations: Vec::new(),
        })
    }

    /// A call becomes an event at once; an initial text becomes a piece of text.
    pub(super) fn started(&self, index: usize) -> Option<ChatEvent> {
        let text = |name| self.start.get_as::<String>(name).filter(|text| !text.is_empty());
        match self.kind.as_str() {
            "tool_use" => Some(ChatEvent::ToolUseStarted {
                index,
                id: text("id").unwrap_or_default(),
                name: text("name")?,
            }),
            "text" => Some(ChatEvent::TextDelta { index, text: text("text")? }),
            "thinking" => Some(ChatEvent::ThinkingDelta { index, thinking: text("thinking")? }),
            _ => None,
        }
    }

    pub(super) fn extend(&mut self, index: usize, mut delta: Object) -> Option<ChatEvent> {
        self.whole = None;
        let kind = delta.take_as::<String>("type").unwrap_or_default();
        match kind.as_str() {
            "input_json_delta" => {
                let json: String = delta.take_as("partial_json").filter(|json: &String| !json.is_empty())?;
                self.input += &json;
                (self.kind == "tool_use").then_some(ChatEvent::ToolInputDelta { index, json })
            }
            "citations_delta" => {
                self.citations.extend(delta.take("citation"));
                None
            }
            "signature_delta" => {
                self.start.set("signature", delta.take("signature")?);
                None
            }
            _ => self.extend_fields(index, &delta),
        }
    }

    /// Deltas of text, of thinking, and of unknown kinds: a string is appended to the field of its name, any
    /// other value replaces the field.
    fn extend_fields(&mut self, index: usize, delta: &Object) -> Option<ChatEvent> {
        let mut event = None;
        for (name, value) in delta.iter() {
            let Ok(piece) = value.parse::<String>() else {
                self.start.set(name, value.clone());
                continue;
            };
            let text = self
                .texts
                .entry(name.to_owned())
                .or_insert_with(|| self.start.get_as(name).unwrap_or_default());
            text.push_str(&piece);
            event = event.or(match (self.kind.as_str(), name) {
                _ if piece.is_empty() => None,
                ("text", "text") => Some(ChatEvent::TextDelta { index, text: piece }),
                ("thinking", "thinking") => Some(ChatEvent::ThinkingDelta { index, thinking: piece }),
                _ => None,
            });
        }
        event
    }

    pub(super) fn finish(mut self) -> Block {
        if let Some(raw) = self.whole {
            return decode::block(raw);
        }
        for (name, text) in &self.texts {
            self.start.set(name, RawJson::string(text));
        }
        if !self.citations.is_empty() {
            let known = self.start.get_as::<Vec<WireValue>>("citations").unwrap_or_default();
            let all: Vec<_> = known.into_iter().map(|raw| raw.0).chain(self.citations).collect();
            self.start.set("citations", RawJson::array(&all));
        }
        let input = (!self.input.trim().is_empty()).then(|| ToolInput::from_text(self.input));
        match &input {
            Some(ToolInput::Json(json)) => self.start.set("input", json.clone()),
            Some(ToolInput::Malformed(text)) => self.start.set("input", RawJson::string(text)),
            None => {}
        }
        let mut block = decode::block(self.start.to_json());
        if let (Block::ToolUse(call), Some(input)) = (&mut block, input) {
            call.input = input;
        }
        block
    }
}

pub(super) fn broken(what: &str) -> Error {
    Error::new(Code::Decode, format!("the stream has {what}: the server does not follow the Messages API"))
}
