//! A message of Chat Completions, assembled from its pieces. A whole message is one piece.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::http::{PartialAnswer, is_done_mark};
use crate::json::{Growing, Object, RawJson, extension};
use crate::message::{Block, Message, Role, TextBlock, Thinking};
use crate::model::end::{Built, End};
use crate::model::{ChatEvent, ChatResponse, StopReason};

use super::calls::{Call, Piece};
use super::{decode, finish};
use crate::openai::wire::{self, bad, broken, extend, filled, is_array, items, take_some};
use crate::openai::{Profile, failure, media, usage};

/// A response in progress.
#[derive(Debug, Default)]
pub(crate) struct PartialResponse {
    profile: Profile,
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
    end: End,
    usage: Object,
    rest: Object,
    /// The choices after the first, of a request with `n`.
    others: BTreeMap<u64, RawJson>,
}

#[derive(Debug)]
enum Part {
    Text(Growing),
    Refusal(Growing),
    Thinking(Growing),
    Call(Call),
    Whole(Block),
}

/// The fields of a response without information.
const DROPPED: [&str; 2] = ["object", "obfuscation"];

impl PartialAnswer for PartialResponse {
    fn take(&mut self, data: &[u8], out: &mut Vec<ChatEvent>) -> Result<bool> {
        if is_done_mark(data) {
            if self.profile.done_is_an_end && self.end == End::Missing {
                self.end = End::Stop(StopReason::EndTurn);
            }
            return Ok(true);
        }
        self.add(wire::parse_object(data)?, out)?;
        Ok(false)
    }

    fn may_end(&self) -> bool {
        self.profile.ends_without_done && self.end != End::Missing
    }

    fn build(self, out: &mut Vec<ChatEvent>) -> Result<Built> {
        self.finish(out)
    }

    fn whole(&self, body: &[u8]) -> Result<ChatResponse> {
        decode::decode_of(&self.profile, body)
    }

    fn refusal(fields: &RawJson) -> Error {
        failure::from_event(&Object::parse(fields.get()).unwrap_or_default())
    }
}

impl PartialResponse {
    pub(super) fn new(profile: &Profile) -> Self {
        PartialResponse { profile: profile.clone(), ..PartialResponse::default() }
    }

    /// Adds a chunk of a stream, or a whole response. An error anywhere in it counts after its content.
    pub(super) fn add(&mut self, mut fields: Object, out: &mut Vec<ChatEvent>) -> Result<()> {
        let choices = match take_some(&mut fields, "choices") {
            Some(choices) => items(&choices).ok_or_else(|| broken("`choices` that are not a list"))?,
            None => Vec::new(),
        };
        let mut keep = |name: &str, to: &mut String| {
            let value = fields.take(name).and_then(|value| value.parse::<String>().ok());
            if to.is_empty() {
                *to = value.unwrap_or_default();
            }
        };
        keep("id", &mut self.id);
        keep("model", &mut self.model);
        let groq = fields.get_as::<Object>("x_groq").unwrap_or_default();
        for usage in [groq.get_as("usage"), fields.get_as("usage")].into_iter().flatten() {
            self.usage.update_counts(usage);
        }
        fields.take("usage");
        let error = [&fields, &groq].into_iter().find(|place| failure::says_error(place));
        let error = error.map(failure::from_event);
        for (name, value) in fields.iter() {
            if !DROPPED.contains(&name) && value.get() != "null" {
                self.rest.set(name, value.clone());
            }
        }
        for (position, choice) in choices.into_iter().enumerate() {
            self.add_choice(position as u64, choice, out)?;
        }
        error.map_or(Ok(()), Err)
    }

    fn ended(&mut self, end: End) {
        self.end = std::mem::take(&mut self.end).or_worse(end);
    }

    fn add_choice(&mut self, position: u64, raw: RawJson, out: &mut Vec<ChatEvent>) -> Result<()> {
        let mut choice = Object::parse(raw.get()).map_err(|_| broken("a choice that is not an object"))?;
        let index = choice.take("index").and_then(|index| index.parse::<u64>().ok()).unwrap_or(position);
        if index > 0 {
            let other = match self.others.remove(&index) {
                Some(old) => wire::merged("", old, raw),
                None => raw,
            };
            self.others.insert(index, other);
            return Ok(());
        }
        if let Some(usage) = choice.take_as::<Object>("usage") {
            self.usage.update_counts(usage);
        }
        if let Some(word) = choice.take("finish_reason").and_then(word) {
            self.ended(finish::end(&word, &self.profile.further_ends));
        }
        if let Some(word) = choice.get("native_finish_reason").cloned().and_then(word) {
            self.ended(finish::native_end(&word));
        }
        let mut error = failure::says_error(&choice).then(|| failure::from_event(&choice));
        let is_begun = !self.parts.is_empty();
        let mut is_whole = false;
        for name in ["delta", "message"] {
            let Some(raw) = take_some(&mut choice, name) else { continue };
            let message = Object::parse(raw.get()).map_err(|_| broken("a message that is not an object"))?;
            if failure::says_error(&message) {
                error.get_or_insert_with(|| failure::from_event(&message));
            }
            // A message in a stream is a view of the whole.
            is_whole = name == "message";
            match is_whole && !self.parts.is_empty() {
                true => self.join_message(message, out)?,
                false => self.add_message(message, is_whole, out)?,
            }
        }
        for (name, value) in choice.iter().filter(|(_, value)| value.get() != "null") {
            match is_begun && is_whole {
                true if value.is_blank() => {}
                true => self.rest.set(name, value.clone()),
                false => extend(&mut self.rest, name, value.clone()),
            }
        }
        error.map_or(Ok(()), Err)
    }

    /// Joins a view of the whole message, of which pieces have come.
    fn join_message(&mut self, mut message: Object, out: &mut Vec<ChatEvent>) -> Result<()> {
        message.take("role");
        if let Some(thinking) = take_thinking(&mut message) {
            self.join_text(Part::Thinking, &thinking, out)?;
        }
        if let Some(content) = take_some(&mut message, "content") {
            self.join_content(&content, out)?;
        }
        if let Some(refusal) = take_some(&mut message, "refusal") {
            self.join_text(Part::Refusal, &refusal, out)?;
        }
        if let Some(calls) = take_calls(&mut message)? {
            self.join_calls(calls.into_iter().map(Piece::parse).collect::<Result<_>>()?, out)?;
        }
        message.take("obfuscation");
        let mut lists = Object::default();
        for annotations in [message.take("annotations"), self.annotations.take()].into_iter().flatten() {
            let earlier = Object::default().with("annotations", annotations);
            lists.complete_from(earlier);
        }
        self.annotations = lists.take("annotations").filter(|all| !all.is_blank());
        message.complete_from(std::mem::take(&mut self.fields));
        for (name, value) in message.iter().filter(|(_, value)| value.get() != "null") {
            self.fields.set(name, value.clone());
        }
        Ok(())
    }

    /// Joins the content: its texts with those that came, and the parts that did not come.
    fn join_content(&mut self, content: &RawJson, out: &mut Vec<ChatEvent>) -> Result<()> {
        let mut text = Growing::default();
        let mut others = Vec::new();
        for part in items(content).unwrap_or_else(|| vec![content.clone()]) {
            match plain_text(&part) {
                Some(piece) => drop(text.push(&piece).map_err(bad)?),
                None => others.push(part),
            }
        }
        let text = RawJson::string(text.finish().map_err(bad)?);
        self.join_text(Part::Text, &text, out)?;
        for part in others {
            let is_known = self.parts.iter().any(|known| match known {
                Part::Whole(Block::Unknown(raw)) => raw.get() == part.get(),
                Part::Whole(Block::Text(known)) => filled_text(&part).as_ref() == Some(&known.text),
                Part::Whole(known) => whole_block(&part).as_ref() == Some(known),
                _ => false,
            });
            if !is_known {
                self.add_part(part, out)?;
            }
        }
        Ok(())
    }

    fn join_text(
        &mut self,
        make: fn(Growing) -> Part,
        whole: &RawJson,
        out: &mut Vec<ChatEvent>,
    ) -> Result<()> {
        if whole.get() == "\"\"" {
            return Ok(());
        }
        let kind = std::mem::discriminant(&make(Growing::default()));
        let places: Vec<_> =
            (0..self.parts.len()).filter(|at| std::mem::discriminant(&self.parts[*at]) == kind).collect();
        let at = places.last().copied().unwrap_or_else(|| {
            self.parts.push(make(Growing::default()));
            self.parts.len() - 1
        });
        let known: String =
            places.iter().filter_map(|at| self.parts[*at].growing()).map(Growing::text).collect();
        let Some(growing) = self.parts[at].growing_mut() else { return Ok(()) };
        let new = match places.len() {
            0 | 1 => growing.whole_text(whole),
            _ => {
                let whole: String = whole.parse().map_err(|_| broken("a text that is not one"))?;
                extension(&known, &whole).and_then(|new| growing.push(&RawJson::string(new)))
            }
        };
        self.show(at, new.map_err(bad)?, out);
        Ok(())
    }

    /// Joins calls: by their ids, and else by their positions.
    fn join_calls(&mut self, pieces: Vec<Piece>, out: &mut Vec<ChatEvent>) -> Result<()> {
        let known: Vec<usize> =
            (0..self.parts.len()).filter(|at| matches!(self.parts[*at], Part::Call(_))).collect();
        let mut places: Vec<Option<usize>> = vec![None; pieces.len()];
        for (place, piece) in pieces.iter().enumerate() {
            let has_id = |at: &&usize| matches!(&self.parts[**at], Part::Call(call) if call.has_id_of(piece));
            places[place] = known.iter().filter(has_id).copied().find(|at| !places.contains(&Some(*at)));
        }
        for place in 0..places.len() {
            if places[place].is_none() {
                places[place] = known.get(place).copied().filter(|at| !places.contains(&Some(*at)));
            }
        }
        for (place, piece) in places.into_iter().zip(pieces) {
            if place.is_none() && piece.says_nothing() {
                continue;
            }
            let at = place.unwrap_or_else(|| {
                self.parts.push(Part::Call(Call::default()));
                self.parts.len() - 1
            });
            match (&mut self.parts[at], place) {
                (Part::Call(call), Some(_)) => call.join(piece, at, out)?,
                (Part::Call(call), None) => call.push(piece, at, out)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Shows a new piece of a text.
    fn show(&self, index: usize, text: String, out: &mut Vec<ChatEvent>) {
        match &self.parts[index] {
            _ if text.is_empty() => {}
            Part::Thinking(_) => out.push(ChatEvent::ThinkingDelta { index, thinking: text }),
            Part::Text(_) | Part::Refusal(_) => out.push(ChatEvent::TextDelta { index, text }),
            Part::Call(_) | Part::Whole(_) => {}
        }
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
        if let Some(calls) = take_calls(&mut message)? {
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

    fn add_thinking(&mut self, message: &mut Object, out: &mut Vec<ChatEvent>) -> Result<()> {
        let Some(piece) = take_thinking(message) else { return Ok(()) };
        let index = position(&mut self.parts, &mut self.thinking, Part::Thinking);
        self.push_text(index, &piece, out)
    }

    fn push_text(&mut self, index: usize, piece: &RawJson, out: &mut Vec<ChatEvent>) -> Result<()> {
        let Some(text) = self.parts[index].growing_mut() else { return Ok(()) };
        let new = text.push(piece).map_err(bad)?;
        self.show(index, new, out);
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
        self.push_text(index, piece, out)
    }

    fn add_refusal(&mut self, piece: &RawJson, out: &mut Vec<ChatEvent>) -> Result<()> {
        if piece.get() == "\"\"" {
            return Ok(());
        }
        let index = position(&mut self.parts, &mut self.refusal, Part::Refusal);
        self.push_text(index, piece, out)
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
        if piece.says_nothing() {
            return Ok(());
        }
        let mut calls = self.parts.iter().filter_map(|part| match part {
            Part::Call(call) => Some(call),
            _ => None,
        });
        if !is_whole && calls.any(|call| call.is_repeated_by(&piece)) {
            return Ok(());
        }
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
        let is_at = |call: &Call| !piece.has_index() || call.has_index_of(piece);
        let by_id = calls().find(|(_, call)| call.has_id_of(piece) && is_at(call));
        let candidate =
            by_id.or_else(|| calls().find(|(_, call)| piece.has_index() && call.has_index_of(piece)));
        // Without a usable index or id, a piece belongs to the last call.
        let last = || calls().next().filter(|_| !piece.has_index() || piece.only_continues());
        let (at, call) = candidate.or_else(last)?;
        call.takes(piece).then_some(at)
    }

    fn finish(mut self, out: &mut Vec<ChatEvent>) -> Result<Built> {
        let annotations = self.annotations.take();
        let (mut content, mut has_calls, mut is_refused) = (Vec::new(), false, false);
        for (index, part) in self.parts.into_iter().enumerate() {
            has_calls |= matches!(part, Part::Call(_));
            is_refused |= matches!(part, Part::Refusal(_));
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
        let mut response = ChatResponse::new(Message::new(Role::Assistant, content), StopReason::EndTurn)
            .with_model(self.model)
            .with_response_id(self.id);
        if !self.usage.is_empty() {
            let raw = self.usage.to_json();
            response.usage = usage::normalised(&raw);
            response.raw_usage = Some(raw);
        }
        response.extra = rest.into_extra();
        // Some servers say `stop` after a call, and OpenAI does for a forced one.
        let end = match self.end {
            End::Stop(StopReason::EndTurn) if has_calls => End::Stop(StopReason::ToolUse),
            End::Stop(StopReason::EndTurn) if is_refused => End::Stop(StopReason::Refusal),
            end => end,
        };
        Ok(Built { response, end })
    }
}

impl Part {
    fn growing(&self) -> Option<&Growing> {
        match self {
            Part::Text(text) | Part::Refusal(text) | Part::Thinking(text) => Some(text),
            Part::Call(_) | Part::Whole(_) => None,
        }
    }

    fn growing_mut(&mut self) -> Option<&mut Growing> {
        match self {
            Part::Text(text) | Part::Refusal(text) | Part::Thinking(text) => Some(text),
            Part::Call(_) | Part::Whole(_) => None,
        }
    }

    fn finish(self, index: usize, out: &mut Vec<ChatEvent>) -> Result<Block> {
        Ok(match self {
            Part::Text(text) => Block::text(text.finish().map_err(bad)?),
            Part::Refusal(text) => refusal_block(text.finish().map_err(bad)?.to_owned()),
            Part::Thinking(text) => Thinking::new(text.finish().map_err(bad)?, None).into(),
            Part::Call(call) => call.finish(index, out)?,
            Part::Whole(block) => block,
        })
    }
}

/// The position of the part that takes further pieces, made if there is none.
fn position(parts: &mut Vec<Part>, open: &mut Option<usize>, make: fn(Growing) -> Part) -> usize {
    *open.get_or_insert_with(|| {
        parts.push(make(Growing::default()));
        parts.len() - 1
    })
}

/// The text of a `finish_reason`, if it says anything.
fn word(raw: RawJson) -> Option<String> {
    (!raw.is_blank()).then(|| raw.parse().unwrap_or_else(|_| raw.get().to_owned()))
}

/// The calls of a message, of which older servers have one by another name. Some have it by both.
fn take_calls(message: &mut Object) -> Result<Option<Vec<RawJson>>> {
    let old = take_some(message, "function_call").filter(RawJson::is_object);
    if let Some(calls) = take_some(message, "tool_calls").filter(|calls| !calls.is_blank()) {
        return items(&calls).map(Some).ok_or_else(|| broken("`tool_calls` that are not a list"));
    }
    Ok(old.map(|call| vec![Object::default().with("function", call).to_json()]))
}

/// Servers name the field of thinking differently, and some send both with the same text.
fn take_thinking(message: &mut Object) -> Option<RawJson> {
    let mut found = None;
    for name in ["reasoning_content", "reasoning"] {
        if message.get(name).is_some_and(RawJson::is_string) {
            let text = message.take(name).filter(|text| text.get() != "\"\"");
            found = found.or(text);
        }
    }
    found
}

/// The text of a part that is nothing else.
fn plain_text(part: &RawJson) -> Option<RawJson> {
    if part.is_string() {
        return Some(part.clone());
    }
    let mut fields = Object::parse(part.get()).ok()?;
    let is_text = matches!(filled(&fields, "type").as_deref(), None | Some("text" | "output_text"));
    let text = fields.take("text").filter(|text| is_text && text.is_string())?;
    (fields.iter().count() <= 1).then_some(text)
}

fn filled_text(part: &RawJson) -> Option<String> {
    filled(&Object::parse(part.get()).ok()?, "text")
}

fn whole_block(part: &RawJson) -> Option<Block> {
    let fields = Object::parse(part.get()).ok()?;
    let kind = filled(&fields, "type")?;
    Some(whole_part(part.clone(), &kind, fields))
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
