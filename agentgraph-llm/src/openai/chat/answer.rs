//! A message of Chat Completions, assembled from its pieces. A whole message is one piece.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::http::{Answer, is_done_mark};
use crate::json::{Object, RawJson};
use crate::message::{Block, Message, Role, TextBlock, Thinking};
use crate::model::{ChatEvent, ChatResponse, StopReason};

use super::calls::{Call, Piece};
use crate::openai::pieces::Pieces;
use crate::openai::wire::{self, broken, extend, filled, is_array, items, take_some};
use crate::openai::{failure, media, usage};

/// A response in progress.
#[derive(Debug, Default)]
pub(crate) struct PartialResponse {
    ends_without_done: bool,
    id: String,
    model: String,
    /// The blocks, in the order of their first pieces.
    parts: Vec<Part>,
    text: Option<usize>,
    refusal: Option<usize>,
    thinking: Option<usize>,
    /// Fields of the message without a name here.
    fields: Object,
    annotations: Option<RawJson>,
    finish: Option<String>,
    usage: Option<RawJson>,
    rest: Object,
    /// The choices after the first, of a request with `n`.
    others: BTreeMap<u64, RawJson>,
}

#[derive(Debug)]
enum Part {
    Text(Pieces),
    Refusal(Pieces),
    Thinking(Pieces),
    Call(Call),
    Whole(Block),
}

/// The fields of a response without information.
const DROPPED: [&str; 2] = ["object", "obfuscation"];

impl Answer for PartialResponse {
    fn take(&mut self, data: &[u8], out: &mut Vec<ChatEvent>) -> Result<Option<ChatResponse>> {
        if is_done_mark(data) {
            return std::mem::take(self).finish(out).map(Some);
        }
        self.add(wire::parse_object(data)?, false, out)?;
        Ok(None)
    }

    fn end(&mut self, out: &mut Vec<ChatEvent>) -> Result<Option<ChatResponse>> {
        if !(self.ends_without_done && self.finish.is_some()) {
            return Ok(None);
        }
        std::mem::take(self).finish(out).map(Some)
    }
}

impl PartialResponse {
    pub(super) fn of_stream(ends_without_done: bool) -> Self {
        PartialResponse { ends_without_done, ..PartialResponse::default() }
    }

    /// Adds a chunk of a stream, or a whole response.
    pub(super) fn add(&mut self, mut fields: Object, is_whole: bool, out: &mut Vec<ChatEvent>) -> Result<()> {
        let choices = match take_some(&mut fields, "choices") {
            Some(choices) => items(&choices).ok_or_else(|| broken("`choices` that are not a list"))?,
            None => Vec::new(),
        };
        if choices.is_empty() && failure::says_error(&fields) {
            return Err(failure::from_event(&fields));
        }
        let mut keep = |name: &str, to: &mut String| {
            let value = fields.take(name).and_then(|value| value.parse::<String>().ok());
            if to.is_empty() {
                *to = value.unwrap_or_default();
            }
        };
        keep("id", &mut self.id);
        keep("model", &mut self.model);
        if let Some(usage) = take_some(&mut fields, "usage") {
            self.set_usage(usage);
        }
        for (name, value) in fields.iter() {
            if !DROPPED.contains(&name) && value.get() != "null" {
                self.rest.set(name, value.clone());
            }
        }
        choices.into_iter().try_for_each(|choice| self.add_choice(choice, is_whole, out))
    }

    /// Counts of a stream are totals, so later ones replace earlier ones.
    fn set_usage(&mut self, raw: RawJson) {
        if self.usage.is_none() || usage::is_filled(&raw) {
            self.usage = Some(raw);
        }
    }

    fn add_choice(&mut self, raw: RawJson, is_whole: bool, out: &mut Vec<ChatEvent>) -> Result<()> {
        let mut choice = Object::parse(raw.get()).map_err(|_| broken("a choice that is not an object"))?;
        let index = choice.take("index").and_then(|index| index.parse::<u64>().ok()).unwrap_or(0);
        if index > 0 {
            let other = match self.others.remove(&index) {
                Some(old) => wire::merged("", old, raw),
                None => raw,
            };
            self.others.insert(index, other);
            return Ok(());
        }
        if let Some(usage) = take_some(&mut choice, "usage") {
            self.set_usage(usage);
        }
        if let Some(reason) = filled(&choice, "finish_reason") {
            self.finish = Some(reason);
        }
        choice.take("finish_reason");
        let delta = take_some(&mut choice, "delta");
        let message = take_some(&mut choice, "message");
        // A message in a stream is whole: each of its calls is a call of its own.
        let is_whole = is_whole || delta.is_none();
        if let Some(raw) = delta.or(message) {
            let message = Object::parse(raw.get()).map_err(|_| broken("a message that is not an object"))?;
            self.add_message(message, is_whole, out)?;
        }
        for (name, value) in choice.iter().filter(|(_, value)| value.get() != "null") {
            extend(&mut self.rest, name, value.clone());
        }
        Ok(())
    }

    fn add_message(&mut self, mut message: Object, is_whole: bool, out: &mut Vec<ChatEvent>) -> Result<()> {
        message.take("role");
        self.add_thinking(&mut message, out)?;
        if let Some(content) = take_some(&mut message, "content") {
            self.add_content(content, out)?;
        }
        if let Some(refusal) = take_some(&mut message, "refusal") {
            self.add_refusal(&refusal, out)?;
        }
        if let Some(calls) = take_some(&mut message, "tool_calls") {
            let calls = items(&calls).ok_or_else(|| broken("`tool_calls` that are not a list"))?;
            calls.into_iter().try_for_each(|call| self.add_call(call, is_whole, out))?;
        }
        if let Some(annotations) = take_some(&mut message, "annotations").filter(|all| all.get() != "[]") {
            self.annotations = Some(match self.annotations.take() {
                Some(old) => wire::merged("annotations", old, annotations),
                None => annotations,
            });
        }
        for (name, value) in message.iter().filter(|(_, value)| value.get() != "null") {
            if name != "obfuscation" {
                extend(&mut self.fields, name, value.clone());
            }
        }
        Ok(())
    }

    /// Servers name the field differently, and some send both with the same text.
    fn add_thinking(&mut self, message: &mut Object, out: &mut Vec<ChatEvent>) -> Result<()> {
        let mut found = None;
        for name in ["reasoning_content", "reasoning"] {
            if message.get(name).is_some_and(RawJson::is_string) {
                let text = message.take(name).filter(|text| text.get() != "\"\"");
                found = found.or(text);
            }
        }
        let Some(piece) = found else { return Ok(()) };
        let index = position(&mut self.parts, &mut self.thinking, Part::Thinking);
        let thinking = push(&mut self.parts[index], &piece)?;
        if !thinking.is_empty() {
            out.push(ChatEvent::ThinkingDelta { index, thinking });
        }
        Ok(())
    }

    fn add_content(&mut self, content: RawJson, out: &mut Vec<ChatEvent>) -> Result<()> {
        if content.is_string() {
            return self.add_text(&content, out);
        }
        if is_array(&content) {
            let parts = items(&content).unwrap_or_default();
            return parts.into_iter().try_for_each(|part| self.add_part(part, out));
        }
        if content.is_object() {
            return self.add_part(content, out);
        }
        Err(broken("`content` that is neither a text nor a list of parts"))
    }

    fn add_text(&mut self, piece: &RawJson, out: &mut Vec<ChatEvent>) -> Result<()> {
        if piece.get() == "\"\"" {
            return Ok(());
        }
        let index = position(&mut self.parts, &mut self.text, Part::Text);
        let text = push(&mut self.parts[index], piece)?;
        if !text.is_empty() {
            out.push(ChatEvent::TextDelta { index, text });
        }
        Ok(())
    }

    fn add_refusal(&mut self, piece: &RawJson, out: &mut Vec<ChatEvent>) -> Result<()> {
        if piece.get() == "\"\"" {
            return Ok(());
        }
        let index = position(&mut self.parts, &mut self.refusal, Part::Refusal);
        let text = push(&mut self.parts[index], piece)?;
        if !text.is_empty() {
            out.push(ChatEvent::TextDelta { index, text });
        }
        Ok(())
    }

    fn add_part(&mut self, raw: RawJson, out: &mut Vec<ChatEvent>) -> Result<()> {
        if raw.is_string() {
            return self.add_text(&raw, out);
        }
        let fields = Object::parse(raw.get()).map_err(|_| broken("a part that is not an object"))?;
        let kind = filled(&fields, "type").unwrap_or_default();
        let is_plain = fields.iter().count() <= 2;
        match (kind.as_str(), fields.get("text"), fields.get("refusal")) {
            ("text" | "output_text" | "", Some(text), _) if is_plain && text.is_string() => {
                return self.add_text(text, out);
            }
            ("refusal", _, Some(refusal)) if is_plain && refusal.is_string() => {
                return self.add_refusal(refusal, out);
            }
            ("", ..) => return Err(broken("`content` that is neither a text nor a part with a type")),
            _ => {}
        }
        self.text = None;
        let index = self.parts.len();
        let block = whole_part(raw, &kind, fields);
        match &block {
            Block::Text(text) => out.push(ChatEvent::TextDelta { index, text: text.text.clone() }),
            block => out.push(ChatEvent::Block { index, block: block.clone() }),
        }
        self.parts.push(Part::Whole(block));
        Ok(())
    }

    fn add_call(&mut self, raw: RawJson, is_whole: bool, out: &mut Vec<ChatEvent>) -> Result<()> {
        let piece = Piece::parse(raw)?;
        let known = if is_whole { None } else { self.call_of(&piece) };
        let index = known.unwrap_or_else(|| {
            self.parts.push(Part::Call(Call::default()));
            self.parts.len() - 1
        });
        match &mut self.parts[index] {
            Part::Call(call) => call.push(piece, index, out),
            _ => Ok(()),
        }
    }

    /// The call that a piece continues.
    fn call_of(&self, piece: &Piece) -> Option<usize> {
        let calls = || {
            self.parts.iter().enumerate().rev().filter_map(|(at, part)| match part {
                Part::Call(call) => Some((at, call)),
                _ => None,
            })
        };
        let candidate = match piece.has_index() {
            true => calls().find(|(_, call)| call.has_index_of(piece)),
            false => calls().find(|(_, call)| call.has_id_of(piece)),
        };
        // Without a usable index or id, a piece belongs to the last call.
        let last = || calls().next().filter(|_| !piece.has_index() || piece.only_continues());
        let (at, call) = candidate.or_else(last)?;
        call.takes(piece).then_some(at)
    }

    pub(super) fn finish(mut self, out: &mut Vec<ChatEvent>) -> Result<ChatResponse> {
        let annotations = self.annotations.take();
        let (mut content, mut has_calls) = (Vec::new(), false);
        for (index, part) in self.parts.into_iter().enumerate() {
            has_calls |= matches!(part, Part::Call(_));
            content.push(part.finish(index, out)?);
        }
        if let Some(fields) = Some(self.fields).filter(|fields| fields.iter().next().is_some()) {
            let block = Block::Unknown(fields.to_json());
            out.push(ChatEvent::Block { index: content.len(), block: block.clone() });
            content.push(block);
        }
        let mut rest = self.rest;
        if let Some(annotations) = annotations {
            match content.iter_mut().find_map(as_text_mut) {
                Some(text) => text.extra.insert("annotations", annotations),
                None => rest.set("annotations", annotations),
            }
        }
        if !self.others.is_empty() {
            rest.set("choices", wire::array(self.others.into_values()));
        }
        let stop = stop_reason(self.finish, has_calls, self.refusal.is_some());
        let mut response = ChatResponse::new(Message::new(Role::Assistant, content), stop)
            .with_model(self.model)
            .with_response_id(self.id);
        response.usage = self.usage.as_ref().map(usage::normalised).unwrap_or_default();
        response.raw_usage = self.usage;
        response.extra = rest.into_extra();
        Ok(response)
    }
}

impl Part {
    fn finish(self, index: usize, out: &mut Vec<ChatEvent>) -> Result<Block> {
        Ok(match self {
            Part::Text(pieces) => Block::text(pieces.finish()?),
            Part::Refusal(pieces) => refusal_block(pieces.finish()?),
            Part::Thinking(pieces) => Thinking::new(pieces.finish()?, None).into(),
            Part::Call(call) => call.finish(index, out)?,
            Part::Whole(block) => block,
        })
    }
}

/// The position of the part that takes further pieces, made if there is none.
fn position(parts: &mut Vec<Part>, open: &mut Option<usize>, make: fn(Pieces) -> Part) -> usize {
    *open.get_or_insert_with(|| {
        parts.push(make(Pieces::default()));
        parts.len() - 1
    })
}

fn push(part: &mut Part, piece: &RawJson) -> Result<String> {
    match part {
        Part::Text(pieces) | Part::Refusal(pieces) | Part::Thinking(pieces) => pieces.push(piece),
        Part::Call(_) | Part::Whole(_) => Ok(String::new()),
    }
}

fn refusal_block(text: String) -> Block {
    let mut block = TextBlock::new(text);
    block.extra.insert("type", RawJson::string("refusal"));
    block.into()
}

/// A part that is not assembled: a text with further fields, an image, or an unknown one.
fn whole_part(raw: RawJson, kind: &str, mut fields: Object) -> Block {
    if let ("text", Some(text)) = (kind, fields.take_as::<String>("text")) {
        fields.take("type");
        let mut block = TextBlock::new(text);
        block.extra = fields.into_extra();
        return block.into();
    }
    let url = fields.get_as::<Object>("image_url").and_then(|image| filled(&image, "url"));
    match url {
        Some(url) if kind == "image_url" => Block::Image(media::from_url(url)),
        _ => Block::Unknown(raw),
    }
}

fn as_text_mut(block: &mut Block) -> Option<&mut TextBlock> {
    match block {
        Block::Text(text) => Some(text),
        _ => None,
    }
}

/// Some servers say `stop` or nothing after a call, and OpenAI says `stop` for a forced one.
fn stop_reason(reason: Option<String>, has_calls: bool, is_refused: bool) -> StopReason {
    match reason.as_deref() {
        Some("tool_calls") => StopReason::ToolUse,
        Some("length") => StopReason::MaxTokens,
        Some("content_filter") => StopReason::Refusal,
        Some("stop") | None if has_calls => StopReason::ToolUse,
        Some("stop") | None if is_refused => StopReason::Refusal,
        Some("stop") => StopReason::EndTurn,
        _ => StopReason::Other(reason.unwrap_or_default()),
    }
}
