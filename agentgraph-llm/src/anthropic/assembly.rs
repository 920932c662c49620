//! One block of a streamed response, assembled from its deltas.

use std::collections::BTreeMap;

use super::decode;
use crate::error::{Code, Error, Result};
use crate::json::{Object, RawJson, TextPieces, WireValue};
use crate::message::{Block, ToolInput};
use crate::model::ChatEvent;

/// A block in progress: its first state, and the additions to its fields.
#[derive(Debug)]
pub(super) struct Assembly {
    kind: String,
    /// The block's JSON as received, as long as nothing was added to it.
    whole: Option<RawJson>,
    start: Object,
    texts: BTreeMap<String, Text>,
    input: Text,
    citations: Vec<RawJson>,
}

/// A text in progress.
#[derive(Debug, Default)]
struct Text {
    text: String,
    pieces: TextPieces,
}

impl Text {
    /// Adds a delta and returns the text that it completes.
    fn push(&mut self, delta: &RawJson) -> Result<String> {
        let piece = self.pieces.push(delta).map_err(|bad| broken(&bad.to_string()))?;
        self.text += &piece;
        Ok(piece)
    }

    fn finish(self) -> Result<String> {
        self.pieces.end().map_err(|bad| broken(&bad.to_string()))?;
        Ok(self.text)
    }
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
            input: Text::default(),
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

    pub(super) fn extend(&mut self, index: usize, mut delta: Object) -> Result<Option<ChatEvent>> {
        self.whole = None;
        let kind = delta.take_as::<String>("type").unwrap_or_default();
        match kind.as_str() {
            "text_delta" => self.extend_field("text", &field(&delta, "text")?, index),
            "thinking_delta" => self.extend_field("thinking", &field(&delta, "thinking")?, index),
            "input_json_delta" => {
                let json = self.input.push(&field(&delta, "partial_json")?)?;
                let is_shown = self.kind == "tool_use" && !json.is_empty();
                Ok(is_shown.then_some(ChatEvent::ToolInputDelta { index, json }))
            }
            "citations_delta" => {
                self.citations.push(field(&delta, "citation")?);
                Ok(None)
            }
            "signature_delta" => {
                self.start.set("signature", field(&delta, "signature")?);
                Ok(None)
            }
            _ => self.extend_unknown(&delta, index),
        }
    }

    /// Deltas of unknown kinds: a string is appended to the field of its name, any other value replaces it.
    fn extend_unknown(&mut self, delta: &Object, index: usize) -> Result<Option<ChatEvent>> {
        let mut event = None;
        for (name, value) in delta.iter() {
            if value.is_string() {
                event = self.extend_field(name, value, index)?.or(event);
            } else {
                self.start.set(name, value.clone());
            }
        }
        Ok(event)
    }

    fn extend_field(&mut self, name: &str, delta: &RawJson, index: usize) -> Result<Option<ChatEvent>> {
        if !self.texts.contains_key(name) {
            let mut text = Text::default();
            if let Some(start) = self.start.get(name).filter(|start| start.is_string()) {
                text.push(start)?;
            }
            self.texts.insert(name.to_owned(), text);
        }
        let Some(text) = self.texts.get_mut(name) else { return Ok(None) };
        let piece = text.push(delta)?;
        Ok(match (self.kind.as_str(), name) {
            _ if piece.is_empty() => None,
            ("text", "text") => Some(ChatEvent::TextDelta { index, text: piece }),
            ("thinking", "thinking") => Some(ChatEvent::ThinkingDelta { index, thinking: piece }),
            _ => None,
        })
    }

    pub(super) fn finish(mut self) -> Result<Block> {
        if let Some(raw) = self.whole {
            return Ok(decode::block(raw));
        }
        for (name, text) in std::mem::take(&mut self.texts) {
            self.start.set(&name, RawJson::string(&text.finish()?));
        }
        if !self.citations.is_empty() {
            let known = self.start.get_as::<Vec<WireValue>>("citations").unwrap_or_default();
            let all: Vec<_> = known.into_iter().map(|raw| raw.0).chain(self.citations).collect();
            self.start.set("citations", RawJson::array(&all));
        }
        let input = self.input.finish()?;
        let input = (!input.trim().is_empty()).then(|| ToolInput::from_text(input));
        match &input {
            Some(ToolInput::Json(json)) => self.start.set("input", json.clone()),
            Some(ToolInput::Malformed(text)) => self.start.set("input", RawJson::string(text)),
            None => {}
        }
        let mut block = decode::block(self.start.to_json());
        if let (Block::ToolUse(call), Some(input)) = (&mut block, input) {
            call.input = input;
        }
        Ok(block)
    }
}

fn field(delta: &Object, name: &str) -> Result<RawJson> {
    delta.get(name).cloned().ok_or_else(|| broken(&format!("a delta without `{name}`")))
}

pub(super) fn broken(what: &str) -> Error {
    Error::new(Code::Decode, format!("the stream has {what}: the server does not follow the Messages API"))
}
