//! One block of a streamed response, assembled from its deltas.

use std::collections::BTreeMap;

use super::decode;
use crate::error::{Code, Error, Result};
use crate::json::{BadPiece, Growing, Object, RawJson, WireValue};
use crate::message::{Block, ToolInput};
use crate::model::ChatEvent;

/// A block in progress: its first state, and the additions to its fields.
#[derive(Debug)]
pub(super) struct Assembly {
    kind: String,
    /// The block's JSON as received, as long as nothing was added to it.
    whole: Option<RawJson>,
    start: Object,
    texts: BTreeMap<String, Growing>,
    input: Growing,
    citations: Vec<RawJson>,
}

impl Assembly {
    pub(super) fn new(raw: &RawJson) -> Result<Self> {
        let mut start = Object::parse(raw.get()).map_err(|_| broken("a block that is not an object"))?;
        let kind: String = start.get_as("type").unwrap_or_default();
        let mut whole = Some(raw.clone());
        if kind == "tool_use" && start.get("id").is_none_or(RawJson::is_blank) {
            start.set("id", RawJson::string(&decode::made_id()));
            whole = None;
        }
        Ok(Assembly {
            kind,
            whole,
            start,
            texts: BTreeMap::new(),
            input: Growing::default(),
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
            "text_delta" | "thinking_delta" | "input_json_delta" if self.refuses(&kind) => {
                Err(broken(&format!("a `{kind}` for block {index}, which is of another kind")))
            }
            "text_delta" => self.extend_field("text", &field(&delta, "text")?, index),
            "thinking_delta" => self.extend_field("thinking", &field(&delta, "thinking")?, index),
            "input_json_delta" => {
                let json = self.input.push(&field(&delta, "partial_json")?).map_err(bad)?;
                let is_shown = self.kind == "tool_use" && !json.is_empty();
                Ok(is_shown.then_some(ChatEvent::ToolInputDelta { index, json }))
            }
            "citations_delta" => {
                self.citations.push(field(&delta, "citation")?);
                Ok(None)
            }
            "signature_delta" => {
                let signature = field(&delta, "signature")?;
                if !signature.is_blank() {
                    self.start.set("signature", signature);
                }
                Ok(None)
            }
            _ => self.extend_unknown(&delta, index),
        }
    }

    /// Whether the block has no place for what a delta brings.
    fn refuses(&self, delta: &str) -> bool {
        match self.kind.as_str() {
            "text" => delta != "text_delta",
            "thinking" => delta != "thinking_delta",
            "tool_use" => delta != "input_json_delta",
            _ => false,
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
            let mut text = Growing::default();
            if let Some(start) = self.start.get(name).filter(|start| start.is_string()) {
                text.push(start).map_err(bad)?;
            }
            self.texts.insert(name.to_owned(), text);
        }
        let Some(text) = self.texts.get_mut(name) else { return Ok(None) };
        let piece = text.push(delta).map_err(bad)?;
        Ok(self.shown(name, piece, index))
    }

    fn shown(&self, name: &str, piece: String, index: usize) -> Option<ChatEvent> {
        match (self.kind.as_str(), name) {
            _ if piece.is_empty() => None,
            ("text", "text") => Some(ChatEvent::TextDelta { index, text: piece }),
            ("thinking", "thinking") => Some(ChatEvent::ThinkingDelta { index, thinking: piece }),
            _ => None,
        }
    }

    /// Joins a whole view of the block, and returns what is new in it.
    pub(super) fn join(&mut self, index: usize, raw: &RawJson) -> Result<Vec<ChatEvent>> {
        let mut whole = Object::parse(raw.get()).map_err(|_| broken("a block that is not an object"))?;
        for name in ["type", "id", "name"] {
            let (known, new) = (self.start.get(name), whole.get(name));
            if known.zip(new).is_some_and(|(known, new)| known != new && !new.is_blank()) {
                return Err(broken(&format!("two views of block {index} that differ")));
            }
        }
        let mut events = Vec::new();
        for name in ["text", "thinking"] {
            if let Some(text) = whole.take(name).filter(RawJson::is_string) {
                self.extend_field(name, &RawJson::string(""), index)?;
                let Some(known) = self.texts.get_mut(name) else { continue };
                let piece = known.whole_text(&text).map_err(bad)?;
                events.extend(self.shown(name, piece, index));
            }
        }
        if let Some(input) = whole.take("input") {
            let json = self.input.whole_arguments(&input).map_err(bad)?;
            let is_shown = self.kind == "tool_use" && !json.is_empty();
            events.extend(is_shown.then_some(ChatEvent::ToolInputDelta { index, json }));
        }
        if self.citations.is_empty() {
            whole.complete_from(std::mem::take(&mut self.start));
            self.start = whole;
        }
        self.whole = None;
        Ok(events)
    }

    pub(super) fn finish(mut self) -> Result<Block> {
        if let Some(raw) = self.whole {
            return decode::block(raw);
        }
        for (name, text) in std::mem::take(&mut self.texts) {
            self.start.set(&name, RawJson::string(text.finish().map_err(bad)?));
        }
        if !self.citations.is_empty() {
            let known = self.start.get_as::<Vec<WireValue>>("citations").unwrap_or_default();
            let all: Vec<_> = known.into_iter().map(|raw| raw.0).chain(self.citations).collect();
            self.start.set("citations", RawJson::array(&all));
        }
        if let Some(start) = self.start.get("input").filter(|start| start.is_object() && !start.is_blank())
            && !self.input.text().trim().is_empty()
        {
            self.input.whole_arguments(&start.clone()).map_err(bad)?;
        }
        let input = self.input.finish().map_err(bad)?;
        let input = (!input.trim().is_empty()).then(|| ToolInput::from_text(input));
        match &input {
            Some(ToolInput::Json(json)) => self.start.set("input", json.clone()),
            Some(ToolInput::Malformed(text)) => self.start.set("input", RawJson::string(text)),
            None => {}
        }
        let mut block = decode::block(self.start.to_json())?;
        if let (Block::ToolUse(call), Some(input)) = (&mut block, input) {
            call.input = input;
        }
        Ok(block)
    }
}

fn bad(piece: BadPiece) -> Error {
    broken(&piece.to_string())
}

fn field(delta: &Object, name: &str) -> Result<RawJson> {
    delta.get(name).cloned().ok_or_else(|| broken(&format!("a delta without `{name}`")))
}

pub(super) fn broken(what: &str) -> Error {
    Error::new(Code::Decode, format!("the stream has {what}: the server does not follow the Messages API"))
}
