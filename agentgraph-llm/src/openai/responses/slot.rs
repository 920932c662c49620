//! One item of a streamed response, assembled from its events.

use crate::error::Result;
use crate::json::{Object, RawJson};
use crate::message::Block;

use super::items;
use crate::openai::pieces::Pieces;
use crate::openai::wire::{array, filled, object};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    Reasoning,
    Call,
    Other,
}

impl Kind {
    pub(super) fn of(item: &Object) -> Self {
        match filled(item, "type").unwrap_or_default().as_str() {
            "message" => Kind::Message,
            "reasoning" => Kind::Reasoning,
            "function_call" => Kind::Call,
            _ => Kind::Other,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Message => "message",
            Kind::Reasoning => "reasoning",
            Kind::Call => "function_call",
            Kind::Other => "",
        }
    }
}

/// A text in progress: a part of a message or of thinking, or the arguments of a call.
#[derive(Debug)]
pub(super) struct Growing {
    /// The field that it becomes a part of, such as `output_text`.
    pub(super) field: &'static str,
    pub(super) number: u64,
    pub(super) pieces: Pieces,
}

/// An item in progress.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) output_index: Option<u64>,
    pub(super) id: String,
    pub(super) kind: Kind,
    /// The item as it was announced.
    start: Object,
    /// The item as it was at its end.
    pub(super) done: Option<RawJson>,
    pub(super) texts: Vec<Growing>,
    pub(super) is_started: bool,
}

impl Slot {
    pub(super) fn new(output_index: Option<u64>, item: Object) -> Self {
        let id = filled(&item, "id").unwrap_or_default();
        let kind = Kind::of(&item);
        Slot { output_index, id, kind, start: item, done: None, texts: Vec::new(), is_started: false }
    }

    /// An item that no event announced.
    pub(super) fn unannounced(output_index: Option<u64>, id: String, kind: Kind) -> Self {
        let mut start = object(kind.name());
        if !id.is_empty() {
            start.set("id", RawJson::string(&id));
        }
        Slot { id, kind, ..Slot::new(output_index, start) }
    }

    /// The name and the id of a call.
    pub(super) fn call(&self) -> Option<(String, String)> {
        let done = self.done.as_ref().and_then(|done| Object::parse(done.get()).ok());
        let item = done.as_ref().unwrap_or(&self.start);
        let id = filled(item, "call_id").or_else(|| filled(item, "id"))?;
        Some((id, filled(item, "name")?))
    }

    /// The text that takes a piece, and its position among the texts.
    pub(super) fn text(&mut self, field: &'static str, number: Option<u64>) -> usize {
        let is_same =
            |text: &Growing| text.field == field && number.is_none_or(|number| text.number == number);
        if let Some(at) = self.texts.iter().rposition(is_same) {
            return at;
        }
        let number = number.unwrap_or(self.texts.len() as u64);
        self.texts.push(Growing { field, number, pieces: Pieces::default() });
        self.texts.len() - 1
    }

    /// The blocks: of the item at its end, or else of its pieces.
    pub(super) fn blocks(&mut self) -> Result<Vec<Block>> {
        let raw = match self.done.take() {
            Some(raw) => raw,
            None => self.assembled()?,
        };
        Ok(items::blocks(raw))
    }

    fn assembled(&mut self) -> Result<RawJson> {
        let mut item = std::mem::take(&mut self.start);
        if item.get("status").is_some() {
            item.set("status", RawJson::string("completed"));
        }
        let texts = std::mem::take(&mut self.texts);
        let (mut content, mut summary) = (Vec::new(), Vec::new());
        for text in texts {
            let value = RawJson::string(&text.pieces.finish()?);
            match text.field {
                "arguments" => item.set("arguments", value),
                "refusal" => content.push(object("refusal").with("refusal", value).to_json()),
                "summary_text" => summary.push(object("summary_text").with("text", value).to_json()),
                field => content.push(object(field).with("text", value).to_json()),
            }
        }
        if !content.is_empty() || self.kind == Kind::Message {
            item.set("content", array(content));
        }
        if !summary.is_empty() {
            item.set("summary", array(summary));
        }
        Ok(item.to_json())
    }
}
