//! A response of the Responses API, assembled from its events.

use crate::error::Result;
use crate::http::{Answer, is_done_mark};
use crate::json::{Object, RawJson};
use crate::message::Block;
use crate::model::{ChatEvent, ChatResponse};

use super::slot::{Kind, Slot};
use super::{decode, items};
use crate::openai::failure;
use crate::openai::wire::{self, broken, filled};

/// A response in progress.
#[derive(Debug, Default)]
pub(crate) struct PartialResponse {
    slots: Vec<Slot>,
    /// The blocks of the message, in the order of their first events: the slot, and the part of its item.
    order: Vec<(usize, usize)>,
    head: Object,
}

type Events<'a> = &'a mut Vec<ChatEvent>;

impl Answer for PartialResponse {
    fn take(&mut self, data: &[u8], out: Events<'_>) -> Result<Option<ChatResponse>> {
        if is_done_mark(data) {
            return Ok(None);
        }
        let mut event = wire::parse_object(data)?;
        let kind = filled(&event, "type").unwrap_or_default();
        let response = event.take_as::<Object>("response");
        match kind.as_str() {
            "error" => return Err(failure::from_event(&event)),
            "response.output_item.added" => self.added(event, out)?,
            "response.output_item.done" => self.done(event, out)?,
            "response.output_text.delta" => self.text(&event, "output_text", out)?,
            "response.refusal.delta" => self.text(&event, "refusal", out)?,
            "response.reasoning_summary_text.delta" => self.thinking(&event, "summary_text", out)?,
            "response.reasoning_text.delta" => self.thinking(&event, "reasoning_text", out)?,
            "response.function_call_arguments.delta" => self.arguments(&event, out)?,
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                let status = kind.trim_start_matches("response.");
                return self.end_with(response.unwrap_or_default(), status, out).map(Some);
            }
            _ if kind.is_empty() && failure::says_error(&event) => return Err(failure::from_event(&event)),
            // Progress, and the ends of pieces, which the ends of their items repeat.
            _ => {}
        }
        if let Some(head) = response {
            self.head = head;
        }
        Ok(None)
    }

    fn end(&mut self, _: Events<'_>) -> Result<Option<ChatResponse>> {
        Ok(None)
    }
}

impl PartialResponse {
    fn added(&mut self, mut event: Object, out: Events<'_>) -> Result<()> {
        let item = take_item(&mut event)?;
        let slot = self.slot_for(&event, item);
        match self.slots[slot].kind {
            Kind::Message => Ok(()),
            Kind::Call => {
                self.position(slot, 0);
                self.start_call(slot, out);
                Ok(())
            }
            Kind::Reasoning | Kind::Other => {
                self.position(slot, 0);
                Ok(())
            }
        }
    }

    fn done(&mut self, mut event: Object, out: Events<'_>) -> Result<()> {
        let raw = event.get("item").cloned();
        let item = take_item(&mut event)?;
        let slot = self.slot_for(&event, item);
        match raw {
            Some(raw) => self.finish_item(slot, raw, out),
            None => Ok(()),
        }
    }

    /// The slot of an event with an item, made if there is none.
    fn slot_for(&mut self, event: &Object, item: Object) -> usize {
        let id = filled(&item, "id").unwrap_or_default();
        let kind = Kind::of(&item);
        let known = self.find(event.get_as("output_index"), &id, kind);
        known.unwrap_or_else(|| {
            self.slots.push(Slot::new(event.get_as("output_index"), item));
            self.slots.len() - 1
        })
    }

    /// By the index, because some servers change the id with each event; by the id; or else the last item of
    /// the kind, if it is not at its end.
    fn find(&self, index: Option<u64>, id: &str, kind: Kind) -> Option<usize> {
        let by = |is_it: &dyn Fn(&Slot) -> bool| {
            self.slots.iter().rposition(|slot| slot.kind == kind && is_it(slot))
        };
        if let Some(found) = index.and_then(|index| by(&|slot| slot.output_index == Some(index))) {
            return Some(found);
        }
        let same_id =
            by(&|slot| !id.is_empty() && slot.id == id && (index.is_none() || slot.output_index.is_none()));
        let open = || by(&|slot| slot.done.is_none() && slot.output_index.is_none());
        let last = || by(&|slot| slot.done.is_none());
        same_id.or_else(|| match (index, id.is_empty()) {
            (Some(_), _) => open().filter(|_| id.is_empty()),
            (None, true) => last(),
            (None, false) => None,
        })
    }

    /// The slot of a piece, made if no event announced the item.
    fn slot_of_piece(&mut self, event: &Object, kind: Kind) -> usize {
        let index = event.get_as("output_index");
        let id = filled(event, "item_id").unwrap_or_default();
        self.find(index, &id, kind).unwrap_or_else(|| {
            self.slots.push(Slot::unannounced(index, id, kind));
            self.slots.len() - 1
        })
    }

    /// The position of a block in the message.
    fn position(&mut self, slot: usize, part: usize) -> usize {
        let known = self.order.iter().position(|place| *place == (slot, part));
        known.unwrap_or_else(|| {
            self.order.push((slot, part));
            self.order.len() - 1
        })
    }

    fn text(&mut self, event: &Object, field: &'static str, out: Events<'_>) -> Result<()> {
        let slot = self.slot_of_piece(event, Kind::Message);
        let at = self.slots[slot].text(field, event.get_as("content_index"));
        let text = self.slots[slot].texts[at].pieces.push(delta(event)?)?;
        let part = self.slots[slot].texts[at].number as usize;
        let index = self.position(slot, part);
        if !text.is_empty() {
            out.push(ChatEvent::TextDelta { index, text });
        }
        Ok(())
    }

    fn thinking(&mut self, event: &Object, field: &'static str, out: Events<'_>) -> Result<()> {
        let number = event.get_as("summary_index").or_else(|| event.get_as("content_index"));
        let slot = self.slot_of_piece(event, Kind::Reasoning);
        let index = self.position(slot, 0);
        let is_first = self.slots[slot].texts.is_empty();
        let known = self.slots[slot].texts.len();
        let at = self.slots[slot].text(field, number);
        let mut thinking = self.slots[slot].texts[at].pieces.push(delta(event)?)?;
        if at == known && !is_first {
            thinking.insert_str(0, "\n\n");
        }
        if !thinking.is_empty() {
            out.push(ChatEvent::ThinkingDelta { index, thinking });
        }
        Ok(())
    }

    fn arguments(&mut self, event: &Object, out: Events<'_>) -> Result<()> {
        let slot = self.slot_of_piece(event, Kind::Call);
        let index = self.position(slot, 0);
        let at = self.slots[slot].text("arguments", Some(0));
        let json = self.slots[slot].texts[at].pieces.push_arguments(delta(event)?)?;
        if self.slots[slot].is_started && !json.is_empty() {
            out.push(ChatEvent::ToolInputDelta { index, json });
        }
        Ok(())
    }

    fn start_call(&mut self, slot: usize, out: Events<'_>) {
        let index = self.position(slot, 0);
        let slot = &mut self.slots[slot];
        if let Some((id, name)) = slot.call().filter(|_| !slot.is_started) {
            slot.is_started = true;
            out.push(ChatEvent::ToolUseStarted { index, id, name });
        }
    }

    /// Takes an item at its end, and shows what no event has shown.
    fn finish_item(&mut self, slot: usize, raw: RawJson, out: Events<'_>) -> Result<()> {
        let was_started = self.slots[slot].is_started;
        self.slots[slot].done = Some(raw.clone());
        for (part, block) in items::blocks(raw).into_iter().enumerate() {
            let shown = self.slots[slot].texts.iter().any(|text| {
                !text.pieces.text.is_empty()
                    && (self.slots[slot].kind != Kind::Message || text.number == part as u64)
            });
            let index = self.position(slot, part);
            match block {
                Block::Text(text) if !shown && !text.text.is_empty() => {
                    out.push(ChatEvent::TextDelta { index, text: text.text });
                }
                Block::Thinking(block) if !shown && !block.thinking.is_empty() => {
                    out.push(ChatEvent::ThinkingDelta { index, thinking: block.thinking });
                }
                Block::ToolUse(call) => {
                    self.start_call(slot, out);
                    if !(shown && was_started) {
                        out.push(ChatEvent::ToolInputDelta { index, json: call.input.text().to_owned() });
                    }
                }
                Block::Text(_) | Block::Thinking(_) => {}
                block => out.push(ChatEvent::Block { index, block }),
            }
        }
        Ok(())
    }

    fn end_with(&mut self, mut fields: Object, status: &str, out: Events<'_>) -> Result<ChatResponse> {
        for (index, raw) in decode::output(&mut fields).into_iter().enumerate() {
            let item = Object::parse(raw.get()).map_err(|_| broken("an item that is not an object"))?;
            let event = Object::default().with("output_index", wire::number(index));
            let slot = self.slot_for(&event, item);
            if self.slots[slot].done.is_none() {
                self.finish_item(slot, raw, out)?;
            }
        }
        let head = std::mem::take(&mut self.head);
        for name in ["id", "model"] {
            if let (None, Some(value)) = (fields.get(name), head.get(name)) {
                fields.set(name, value.clone());
            }
        }
        decode::response(fields, status, self.content()?)
    }

    fn content(&mut self) -> Result<Vec<Block>> {
        let mut blocks: Vec<Vec<Option<Block>>> = Vec::new();
        for slot in &mut self.slots {
            blocks.push(slot.blocks()?.into_iter().map(Some).collect());
        }
        let mut take = |(slot, part): &(usize, usize)| blocks[*slot].get_mut(*part).and_then(Option::take);
        let mut content: Vec<_> = self.order.iter().filter_map(&mut take).collect();
        content.extend(blocks.into_iter().flatten().flatten());
        Ok(content)
    }
}

fn take_item(event: &mut Object) -> Result<Object> {
    event.take_as("item").ok_or_else(|| broken("an event of an item without the item"))
}

fn delta(event: &Object) -> Result<&RawJson> {
    event.get("delta").ok_or_else(|| broken("a delta event without `delta`"))
}
