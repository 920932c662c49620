//! A response of the Responses API, assembled from its events.
//!
//! A server says everything up to three times: in deltas, at the end of a part or an item, and in the final
//! response. Each is a view of one message. Views of an item are found by its id, and else by its position.

use crate::error::{Error, Result};
use crate::http::{PartialAnswer, is_done_mark};
use crate::json::{Object, RawJson};
use crate::message::Block;
use crate::model::end::Built;
use crate::model::{ChatEvent, ChatResponse};

use super::decode;
use super::slot::{Kind, Place, Slot};
use crate::openai::failure;
use crate::openai::wire::{self, bad, broken, filled};

/// A response in progress.
#[derive(Debug, Default)]
pub(crate) struct PartialResponse {
    slots: Vec<Slot>,
    /// The blocks of the message, in the order of their first events: the slot, and the part of its item.
    order: Vec<(usize, u64)>,
    head: Object,
    /// The status that the last event says, if the response has none.
    status: &'static str,
}

type Events<'a> = &'a mut Vec<ChatEvent>;

const TEXT: Place = Place { list: "content", kind: "output_text", number: None };
const REFUSAL: Place = Place { kind: "refusal", ..TEXT };
const THOUGHT: Place = Place { kind: "reasoning_text", ..TEXT };
const SUMMARY: Place = Place { list: "summary", kind: "summary_text", number: None };
const ARGUMENTS: Place = Place { list: "", kind: "arguments", number: Some(0) };
const INPUT: Place = Place { kind: "input", ..ARGUMENTS };
const CODE: Place = Place { kind: "code", ..ARGUMENTS };

impl PartialAnswer for PartialResponse {
    fn take(&mut self, data: &[u8], out: Events<'_>) -> Result<bool> {
        if is_done_mark(data) {
            return Ok(false);
        }
        let mut event = wire::parse_object(data)?;
        let kind = filled(&event, "type").unwrap_or_default();
        let response = event.take_as::<Object>("response");
        match kind.as_str() {
            "error" | "response.error" => return Err(failure::from_event(&event)),
            _ if failure::says_error(&event) => return Err(failure::from_event(&event)),
            "response.output_item.added" => self.item(event, false, out)?,
            "response.output_item.done" => self.item(event, true, out)?,
            "response.content_part.added" | "response.content_part.done" => {
                self.part(event, "content", out)?
            }
            "response.reasoning_summary_part.added" | "response.reasoning_summary_part.done" => {
                self.part(event, "summary", out)?;
            }
            "response.output_text.delta" => self.delta(&event, Kind::Message, TEXT, out)?,
            "response.output_text.done" => self.whole(&event, "text", Kind::Message, TEXT, out)?,
            "response.output_text.annotation.added" => self.annotation(event),
            "response.refusal.delta" => self.delta(&event, Kind::Message, REFUSAL, out)?,
            "response.refusal.done" => self.whole(&event, "refusal", Kind::Message, REFUSAL, out)?,
            "response.reasoning_summary_text.delta" => self.delta(&event, Kind::Reasoning, SUMMARY, out)?,
            "response.reasoning_summary_text.done" => {
                self.whole(&event, "text", Kind::Reasoning, SUMMARY, out)?;
            }
            "response.reasoning_text.delta" => self.delta(&event, Kind::Reasoning, THOUGHT, out)?,
            "response.reasoning_text.done" => self.whole(&event, "text", Kind::Reasoning, THOUGHT, out)?,
            "response.function_call_arguments.delta" => self.delta(&event, Kind::Call, ARGUMENTS, out)?,
            "response.function_call_arguments.done" => {
                self.whole(&event, "arguments", Kind::Call, ARGUMENTS, out)?;
            }
            "response.custom_tool_call_input.delta" => self.delta(&event, Kind::Other, INPUT, out)?,
            "response.custom_tool_call_input.done" => {
                self.whole(&event, "input", Kind::Other, INPUT, out)?;
            }
            "response.mcp_call_arguments.delta" => self.delta(&event, Kind::Other, ARGUMENTS, out)?,
            "response.mcp_call_arguments.done" => {
                self.whole(&event, "arguments", Kind::Other, ARGUMENTS, out)?;
            }
            "response.code_interpreter_call_code.delta" => self.delta(&event, Kind::Other, CODE, out)?,
            "response.code_interpreter_call_code.done" => {
                self.whole(&event, "code", Kind::Other, CODE, out)?;
            }
            "response.completed" => return self.end_with(response, "completed", out),
            "response.incomplete" => return self.end_with(response, "incomplete", out),
            "response.failed" => return self.end_with(response, "failed", out),
            "response.cancelled" => return self.end_with(response, "cancelled", out),
            // Progress, and the pieces of items that are taken at their end.
            _ => {}
        }
        if let Some(head) = response {
            self.take_head(head);
        }
        Ok(false)
    }

    fn build(self, _: Events<'_>) -> Result<Built> {
        let content = self.content()?;
        decode::response(self.head, self.status, content)
    }

    fn whole(&self, body: &[u8]) -> Result<ChatResponse> {
        decode::decode(body)
    }

    fn refusal(fields: &RawJson) -> Error {
        failure::from_event(&Object::parse(fields.get()).unwrap_or_default())
    }
}

impl PartialResponse {
    fn take_head(&mut self, mut head: Object) {
        head.complete_from(std::mem::take(&mut self.head));
        self.head = head;
    }

    fn item(&mut self, mut event: Object, is_done: bool, out: Events<'_>) -> Result<()> {
        let raw = event.take("item").filter(RawJson::is_object);
        let raw = raw.ok_or_else(|| broken("an event of an item without the item"))?;
        let item = Object::parse(raw.get()).map_err(|_| broken("an item that is not an object"))?;
        let kind = Kind::of(&item);
        let index = event.get_as("output_index");
        let id = filled(&item, "id").unwrap_or_default();
        let slot = self.slot_of_item(index, &id, &item, is_done);
        let slot = slot.unwrap_or_else(|| self.add_slot(index, id, kind));
        if kind != Kind::Message {
            self.position(slot, 0);
        }
        self.join_item(slot, raw, is_done, out)
    }

    /// Joins a view of an item, and shows what no event has shown.
    fn join_item(&mut self, slot: usize, raw: RawJson, is_done: bool, out: Events<'_>) -> Result<()> {
        self.slots[slot].is_done |= is_done;
        let grown = self.slots[slot].join(raw)?;
        for (part, new) in grown {
            self.show(slot, part, new, out);
        }
        if self.slots[slot].kind == Kind::Call {
            self.show_call(slot, out);
        }
        if is_done {
            self.show_blocks(slot, out)?;
        }
        Ok(())
    }

    /// Shows the blocks that come as a whole.
    fn show_blocks(&mut self, slot: usize, out: Events<'_>) -> Result<()> {
        for (part, block) in self.slots[slot].blocks()? {
            let index = self.position(slot, part);
            let is_text = matches!(block, Block::Text(_) | Block::Thinking(_) | Block::ToolUse(_));
            if !is_text && !self.slots[slot].shown_blocks.contains(&block) {
                self.slots[slot].shown_blocks.push(block.clone());
                out.push(ChatEvent::Block { index, block });
            }
        }
        Ok(())
    }

    fn part(&mut self, mut event: Object, list: &'static str, out: Events<'_>) -> Result<()> {
        let kind = match filled(&event, "item_id").and_then(|id| self.slots.iter().find(|slot| slot.id == id))
        {
            Some(slot) => slot.kind,
            None if list == "summary" => Kind::Reasoning,
            None => Kind::Message,
        };
        let Some(raw) = event.take("part").filter(RawJson::is_object) else { return Ok(()) };
        let number = number(&event, list);
        let slot = match self.find_piece(&event, kind, true) {
            Some(slot) => slot,
            // An empty part announces nothing that its deltas do not say.
            None if Object::parse(raw.get()).is_ok_and(|part| says_nothing(&part)) => return Ok(()),
            None => self.slot_of_piece(&event, kind, true),
        };
        if let Some((part, new)) = self.slots[slot].join_part(list, number, raw)? {
            self.show(slot, part, new, out);
        }
        Ok(())
    }

    fn delta(&mut self, event: &Object, kind: Kind, place: Place, out: Events<'_>) -> Result<()> {
        let delta = event.get("delta").ok_or_else(|| broken("a delta event without `delta`"))?;
        let slot = self.slot_of_piece(event, kind, false);
        let part = self.slots[slot].part(at(event, place));
        let text = &mut self.slots[slot].parts[part].text;
        let new = match kind {
            Kind::Call => text.push_arguments(delta),
            Kind::Message | Kind::Reasoning | Kind::Other => text.push(delta),
        };
        let new = new.map_err(bad)?;
        if self.slots[slot].is_done && !new.is_empty() {
            return Err(broken("a delta of an item that ended before"));
        }
        self.show(slot, part, new, out);
        Ok(())
    }

    /// Takes the whole of a text at the end of its deltas.
    fn whole(
        &mut self,
        event: &Object,
        field: &str,
        kind: Kind,
        place: Place,
        out: Events<'_>,
    ) -> Result<()> {
        let Some(whole) = event.get(field).filter(|whole| !whole.is_blank()) else { return Ok(()) };
        let slot = self.slot_of_piece(event, kind, true);
        let part = self.slots[slot].part(at(event, place));
        let text = &mut self.slots[slot].parts[part].text;
        let new = match kind {
            Kind::Call => text.whole_arguments(whole),
            Kind::Message | Kind::Reasoning | Kind::Other => text.whole_text(whole),
        };
        let new = new.map_err(bad)?;
        self.show(slot, part, new, out);
        Ok(())
    }

    fn annotation(&mut self, mut event: Object) {
        if let Some(annotation) = event.take("annotation").filter(RawJson::is_object) {
            let slot = self.slot_of_piece(&event, Kind::Message, true);
            self.slots[slot].annotate(at(&event, TEXT), event.get_as("annotation_index"), annotation);
        }
    }

    /// Shows what is new in a part.
    fn show(&mut self, slot: usize, part: usize, new: String, out: Events<'_>) {
        match self.slots[slot].kind {
            Kind::Call => {
                self.position(slot, 0);
                self.show_call(slot, out);
            }
            Kind::Message => {
                let index = self.position(slot, self.slots[slot].parts[part].number);
                if !new.is_empty() {
                    out.push(ChatEvent::TextDelta { index, text: new });
                }
            }
            Kind::Reasoning => {
                let index = self.position(slot, 0);
                let parts = &self.slots[slot].parts;
                let is_first_piece = parts[part].text.text().len() == new.len();
                let is_first_part =
                    parts.iter().enumerate().all(|(at, other)| at == part || other.text.text().is_empty());
                let gap = if is_first_piece && !is_first_part { "\n\n" } else { "" };
                if !new.is_empty() {
                    out.push(ChatEvent::ThinkingDelta { index, thinking: format!("{gap}{new}") });
                }
            }
            Kind::Other => {}
        }
    }

    /// Shows the start of a call as soon as its id and its name are known, and its arguments after that.
    fn show_call(&mut self, slot: usize, out: Events<'_>) {
        let index = self.position(slot, 0);
        let slot = &mut self.slots[slot];
        if let Some((id, name)) = slot.call().filter(|_| !slot.is_started) {
            slot.is_started = true;
            out.push(ChatEvent::ToolUseStarted { index, id, name });
        }
        let arguments = slot.parts.first().map_or("", |part| part.text.text());
        let json = arguments[slot.shown..].to_owned();
        if slot.is_started && !json.is_empty() {
            slot.shown = arguments.len();
            out.push(ChatEvent::ToolInputDelta { index, json });
        }
    }

    fn add_slot(&mut self, index: Option<u64>, id: String, kind: Kind) -> usize {
        self.slots.push(Slot::new(index, id, kind));
        self.slots.len() - 1
    }

    /// The position of a block in the message.
    fn position(&mut self, slot: usize, part: u64) -> usize {
        let known = self.order.iter().position(|place| *place == (slot, part));
        known.unwrap_or_else(|| {
            self.order.push((slot, part));
            self.order.len() - 1
        })
    }

    fn by_id(&mut self, id: &str, kind: Kind) -> Option<usize> {
        let found =
            self.slots.iter().rposition(|slot| slot.kind == kind && !id.is_empty() && slot.id == id)?;
        self.slots[found].is_confirmed = true;
        Some(found)
    }

    /// The slot that has a further view of an item: by the id of the item or of the call; or by the position,
    /// unless the server has another item there, as those do whose positions are always 0.
    fn slot_of_item(&mut self, index: Option<u64>, id: &str, item: &Object, is_done: bool) -> Option<usize> {
        let kind = Kind::of(item);
        if let Some(found) = self.by_id(id, kind) {
            return Some(found);
        }
        let call_id = filled(item, "call_id");
        let is_open = |slot: &Slot| {
            let is_other_call =
                slot.call_id().zip(call_id.clone()).is_some_and(|(known, call_id)| known != call_id);
            let has_other_id = slot.is_confirmed && !id.is_empty() && !slot.id.is_empty();
            slot.kind == kind && !slot.is_done && !is_other_call && !has_other_id
        };
        let mut open = self.slots.iter().enumerate().rev().filter(|(_, slot)| is_open(slot));
        let found = match index {
            Some(index) => {
                let mut open: Vec<_> = open.collect();
                open.sort_by_key(|(_, slot)| slot.output_index != Some(index));
                let is_there = |slot: &Slot| slot.output_index.is_none() || slot.output_index == Some(index);
                open.into_iter().find(|(_, slot)| is_there(slot))
            }
            None => open.next(),
        };
        // What is announced begins, unless its pieces came first.
        found.filter(|(_, slot)| is_done || slot.is_unannounced()).map(|(at, _)| at)
    }

    /// The slot that has a piece. A view of a whole may come after the end of its item.
    fn find_piece(&mut self, event: &Object, kind: Kind, is_whole: bool) -> Option<usize> {
        let index: Option<u64> = event.get_as("output_index");
        let id = filled(event, "item_id").unwrap_or_default();
        if let Some(found) = self.by_id(&id, kind) {
            return Some(found);
        }
        let is_it = |slot: &Slot| {
            let has_other_id = slot.is_confirmed && !id.is_empty();
            let is_there = index.is_none() || slot.output_index.is_none() || slot.output_index == index;
            slot.kind == kind && is_there && !has_other_id
        };
        let open = self.slots.iter().rposition(|slot| is_it(slot) && !slot.is_done);
        open.or_else(|| self.slots.iter().rposition(|slot| is_it(slot) && is_whole && id.is_empty()))
    }

    fn slot_of_piece(&mut self, event: &Object, kind: Kind, is_whole: bool) -> usize {
        self.find_piece(event, kind, is_whole).unwrap_or_else(|| {
            let id = filled(event, "item_id").unwrap_or_default();
            self.add_slot(event.get_as("output_index"), id, kind)
        })
    }

    fn end_with(&mut self, response: Option<Object>, status: &'static str, out: Events<'_>) -> Result<bool> {
        let mut fields = response.unwrap_or_default();
        self.status = status;
        let output = decode::output(&mut fields);
        // The status of the start says nothing about the end.
        self.head.take("status");
        self.take_head(fields);
        let mut items = Vec::new();
        for raw in output {
            let item = Object::parse(raw.get()).map_err(|_| broken("an item that is not an object"))?;
            items.push((raw, item));
        }
        let slots = self.slots_of_output(&items);
        for ((raw, item), slot) in items.into_iter().zip(slots) {
            let slot = slot.unwrap_or_else(|| {
                self.add_slot(None, filled(&item, "id").unwrap_or_default(), Kind::of(&item))
            });
            self.join_item(slot, raw, true, out)?;
        }
        Ok(true)
    }

    /// The slots of the items in the final response: by their ids, and those that are left by position and
    /// order.
    fn slots_of_output(&mut self, items: &[(RawJson, Object)]) -> Vec<Option<usize>> {
        let mut found: Vec<Option<usize>> = Vec::new();
        for (_, item) in items {
            let (kind, id, call_id) = (Kind::of(item), filled(item, "id"), filled(item, "call_id"));
            let is_it = |slot: &Slot| {
                let has_id = id.as_ref().is_some_and(|id| slot.id == *id);
                let has_call = call_id.is_some() && slot.call_id() == call_id;
                slot.kind == kind && (has_id || has_call)
            };
            let by_id =
                (0..self.slots.len()).find(|at| is_it(&self.slots[*at]) && !found.contains(&Some(*at)));
            found.push(by_id);
        }
        for (place, (_, item)) in items.iter().enumerate() {
            if found[place].is_some() {
                continue;
            }
            let call_id = filled(item, "call_id");
            let is_left = |at: &usize| {
                let slot = &self.slots[*at];
                let is_other_call =
                    slot.call_id().zip(call_id.clone()).is_some_and(|(known, call_id)| known != call_id);
                slot.kind == Kind::of(item) && !is_other_call && !found.contains(&Some(*at))
            };
            let left: Vec<usize> = (0..self.slots.len()).filter(is_left).collect();
            let has_place = |at: &&usize| self.slots[**at].output_index == Some(place as u64);
            found[place] = left.iter().find(has_place).or(left.first()).copied();
        }
        found
    }

    fn content(&self) -> Result<Vec<Block>> {
        let mut blocks = Vec::new();
        for (at, slot) in self.slots.iter().enumerate() {
            let all = slot.blocks()?;
            blocks.extend(all.into_iter().map(|(part, block)| ((at, part), block)));
        }
        let place = |place: &(usize, u64)| self.order.iter().position(|known| known == place);
        blocks.sort_by_key(|(at, _)| place(at).unwrap_or(usize::MAX));
        Ok(blocks.into_iter().map(|(_, block)| block).collect())
    }
}

fn number(event: &Object, list: &str) -> Option<u64> {
    event.get_as(if list == "summary" { "summary_index" } else { "content_index" })
}

fn at(event: &Object, place: Place) -> Place {
    Place { number: place.number.or_else(|| number(event, place.list)), ..place }
}

fn says_nothing(part: &Object) -> bool {
    part.iter().all(|(name, value)| name == "type" || value.is_blank())
}
