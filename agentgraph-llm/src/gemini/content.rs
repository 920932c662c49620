//! The blocks of a response, assembled from parts.
//!
//! Parts with a `thoughtSignature` or other fields beside their text are blocks of their own, also if their
//! text is empty: the server wants each signature back on the part that it came on.

use super::arguments::Arguments;
use super::decode::broken;
use super::{MADE_ID, answer};
use crate::error::Result;
use crate::json::{Extra, Object, RawJson, TextPieces, WireValue, is_same_json};
use crate::message::{Block, Media, MediaSource, MessageIds, TextBlock, Thinking, ToolInput, ToolUse};
use crate::model::ChatEvent;

const SIGNATURE: &str = "thoughtSignature";

#[derive(Debug, Default)]
pub(super) struct Content {
    blocks: Vec<Piece>,
    ids: MessageIds,
}

#[derive(Debug)]
enum Piece {
    Text(TextPiece),
    /// A call whose arguments are still coming.
    Call(ToolUse, Arguments),
    Whole(Block),
}

#[derive(Debug, Default)]
struct TextPiece {
    text: String,
    pieces: TextPieces,
    is_thought: bool,
    extra: Extra,
}

impl Content {
    pub(super) fn new(ids: MessageIds) -> Self {
        Content { blocks: Vec::new(), ids }
    }

    pub(super) fn push(&mut self, raw: RawJson, events: &mut Vec<ChatEvent>) -> Result<()> {
        let mut fields = Object::parse(raw.get()).map_err(|_| broken("a part that is not an object"))?;
        fields.retain(|value| value.get() != "null");
        let text = fields.take("text");
        if let Some(call) = fields.take("functionCall") {
            let call =
                Object::parse(call.get()).map_err(|_| broken("a function call that is not an object"))?;
            if let Some(text) = text.filter(|text| !text.is_blank()) {
                self.push_text(&text, Object::default(), events)?;
            }
            return self.push_call(call, fields, events);
        }
        if let Some(text) = text {
            return self.push_text(&text, fields, events);
        }
        let block = media(&raw).unwrap_or(Block::Unknown(raw));
        self.push_whole(block, events);
        Ok(())
    }

    fn push_text(&mut self, text: &RawJson, mut fields: Object, events: &mut Vec<ChatEvent>) -> Result<()> {
        let is_thought = fields.take_as("thought").unwrap_or_default();
        let extra = fields.into_extra();
        let is_continued = match self.blocks.last() {
            Some(Piece::Text(last)) => {
                last.is_thought == is_thought && last.extra.is_empty() && extra.is_empty()
            }
            _ => false,
        };
        if !is_continued {
            if extra.is_empty() && text.get() == "\"\"" {
                return Ok(());
            }
            self.blocks.push(Piece::Text(TextPiece { is_thought, extra, ..TextPiece::default() }));
        }
        let index = self.blocks.len() - 1;
        let Some(Piece::Text(last)) = self.blocks.last_mut() else { return Ok(()) };
        let piece = last.pieces.push(text).map_err(|bad| broken(&bad.to_string()))?;
        last.text += &piece;
        if !piece.is_empty() {
            events.push(match is_thought {
                true => ChatEvent::ThinkingDelta { index, thinking: piece },
                false => ChatEvent::TextDelta { index, text: piece },
            });
        }
        Ok(())
    }

    fn push_call(&mut self, mut call: Object, part: Object, events: &mut Vec<ChatEvent>) -> Result<()> {
        let name = call.take_as::<String>("name").filter(|name| !name.is_empty());
        let id = call.take_as::<String>("id").filter(|id| !id.is_empty());
        let args = call.take("args").filter(|args| args.get() != "null");
        let will_continue = call.take_as("willContinue").unwrap_or(false);
        let partial = call.take("partialArgs").filter(|partial| partial.get() != "null");
        if let Some(name) = name.filter(|name| !self.is_open(id.as_deref(), name)) {
            if let Some(known) = id.as_deref().and_then(|id| self.call(id)) {
                let whole = args.filter(|args| !args.is_blank());
                let is_same = |whole: RawJson| is_same_json(known.input.text(), whole.get());
                let is_same = known.name == name && partial.is_none() && whole.is_none_or(is_same);
                return if is_same { Ok(()) } else { Err(broken("two function calls with one id")) };
            }
            let id = id.unwrap_or_else(|| format!("{MADE_ID}{}", self.ids.next_id()));
            events.push(ChatEvent::ToolUseStarted {
                index: self.blocks.len(),
                id: id.clone(),
                name: name.clone(),
            });
            self.blocks
                .push(Piece::Call(ToolUse::new(id, name, RawJson::empty_object()), Arguments::default()));
        }
        let index = self.blocks.len().saturating_sub(1);
        let Some(Piece::Call(known, arguments)) = self.blocks.last_mut() else {
            return Err(broken("a function call without a name"));
        };
        for (name, value) in part.iter() {
            known.extra.insert(name, value.clone());
        }
        if !call.is_empty() {
            known.extra.insert("functionCall", call.to_json());
        }
        if let Some(args) = args {
            arguments.set_whole(args);
        }
        if let Some(partial) = partial {
            let partial: Vec<WireValue> =
                partial.parse().map_err(|_| broken("`partialArgs` that are not a list"))?;
            for piece in partial {
                arguments.push(&piece.0)?;
            }
        }
        if !will_continue {
            known.input = ToolInput::Json(arguments.json()?);
            events.push(ChatEvent::ToolInputDelta { index, json: known.input.text().to_owned() });
            let call = Block::from(known.clone());
            self.blocks[index] = Piece::Whole(call);
        }
        Ok(())
    }

    /// Whether the last call still waits for arguments, and a piece names it again.
    fn is_open(&self, id: Option<&str>, name: &str) -> bool {
        let Some(Piece::Call(call, _)) = self.blocks.last() else { return false };
        call.name == name && id.is_none_or(|id| call.id == id)
    }

    /// The call with this id.
    fn call(&self, id: &str) -> Option<&ToolUse> {
        self.blocks.iter().find_map(|piece| match piece {
            Piece::Whole(block) => block.as_tool_use().filter(|call| call.id == id),
            Piece::Call(call, _) => Some(call).filter(|call| call.id == id),
            Piece::Text(_) => None,
        })
    }

    fn push_whole(&mut self, block: Block, events: &mut Vec<ChatEvent>) {
        events.push(ChatEvent::Block { index: self.blocks.len(), block: block.clone() });
        self.blocks.push(Piece::Whole(block));
    }

    pub(super) fn finish(self) -> Result<Vec<Block>> {
        self.blocks.into_iter().map(Piece::finish).collect()
    }
}

impl Piece {
    fn finish(self) -> Result<Block> {
        match self {
            Piece::Whole(block) => Ok(block),
            Piece::Text(piece) => piece.finish(),
            // The stream ended before the call did, so it must not run.
            Piece::Call(mut call, arguments) => {
                call.input = ToolInput::Malformed(arguments.json_so_far());
                Ok(call.into())
            }
        }
    }
}

impl TextPiece {
    fn finish(self) -> Result<Block> {
        self.pieces.end().map_err(|bad| broken(&bad.to_string()))?;
        if !self.is_thought {
            let mut block = TextBlock::new(self.text);
            block.extra = self.extra;
            return Ok(block.into());
        }
        let mut rest = Extra::new();
        let mut signature = None;
        for (name, value) in self.extra.iter() {
            match value.parse::<String>() {
                Ok(text) if name == SIGNATURE => signature = Some(text),
                _ => rest.insert(name, value.clone()),
            }
        }
        let mut block = Thinking::new(self.text, signature);
        block.extra = rest;
        Ok(block.into())
    }
}

/// The block of a part with data, if it has all that the block needs.
fn media(raw: &RawJson) -> Option<Block> {
    let mut part = Object::parse(raw.get()).ok()?;
    let (name, field) = match part.take("inlineData") {
        Some(data) => ("inlineData", data),
        None => ("fileData", part.take("fileData")?),
    };
    let mut data = Object::parse(field.get()).ok()?;
    let media_type = data.get_as::<String>("mimeType").unwrap_or_default();
    let source = match name {
        "inlineData" => {
            data.take("mimeType")?;
            MediaSource::Base64 { media_type: media_type.clone(), data: data.take_as("data")? }
        }
        _ => MediaSource::Url { url: data.take_as("fileUri")? },
    };
    let mut media = Media::from(source);
    media.extra = part.into_extra();
    if !data.is_empty() {
        media.extra.insert(name, data.to_json());
    }
    Some(match media_type.split('/').next().unwrap_or_default() {
        "image" => Block::Image(media),
        "audio" => Block::Audio(media),
        "video" => Block::Video(media),
        _ => Block::Document(media),
    })
}

/// The token by which a paused turn is continued, if the block keeps one.
pub(super) fn continuation(block: &Block) -> Option<RawJson> {
    let Block::Unknown(raw) = block else { return None };
    let fields = Object::parse(raw.get()).ok()?;
    fields.get(answer::CONTINUATION).cloned()
}
