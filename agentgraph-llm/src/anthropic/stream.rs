//! The decoder of a streamed response of Anthropic's Messages API, from bytes to events.
//!
//! Blocks are assembled as raw objects and then decoded by the same code as blocks of a whole response, so
//! both give the same message. Unknown kinds of events, blocks and deltas are kept or ignored, never an
//! error.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::http::{PartialAnswer, says_error, stream_decoder};
use crate::json::{Object, RawJson, WireValue};
use crate::message::Block;
use crate::model::end::{Built, End};
use crate::model::{ChatEvent, ChatResponse};

use super::assembly::{Assembly, broken};
use super::decode::{self, ResponseHead, WireUsage};
use super::failure;

stream_decoder! {
    /// Turns the bytes of a streamed response into events, without I/O. [`push`](Self::push) adds bytes,
    /// [`next_event`](Self::next_event) returns events, and [`end`](Self::end) ends the input.
    ///
    /// ```
    /// use agentgraph_llm::{ChatEvent, anthropic::StreamDecoder};
    ///
    /// let mut decoder = StreamDecoder::new();
    /// decoder.push(b"data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n");
    /// decoder.push(b"data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"te");
    /// assert!(decoder.next_event().is_none());
    /// decoder.push(b"xt\":\"Hi\"}}\n\n");
    /// assert!(matches!(decoder.next_event(), Some(Ok(ChatEvent::TextDelta { text, .. })) if text == "Hi"));
    /// decoder.end();                                                // without `message_stop`: cut
    /// assert_eq!(decoder.next_event().unwrap().unwrap_err().code().as_str(), "E_LLM_TRUNCATED");
    /// assert!(decoder.next_event().is_none());
    /// ```
    pub struct StreamDecoder(PartialResponse);
}

impl Default for StreamDecoder {
    fn default() -> Self {
        StreamDecoder::new()
    }
}

impl StreamDecoder {
    /// A decoder of one response.
    pub fn new() -> Self {
        StreamDecoder(crate::http::SseDecoder::new(PartialResponse::default()))
    }
}

#[derive(Debug, Default)]
pub(crate) struct PartialResponse {
    head: ResponseHead,
    rest: Object,
    blocks: BTreeMap<usize, Slot>,
    usage: WireUsage,
    end: End,
}

impl PartialAnswer for PartialResponse {
    fn take(&mut self, data: &[u8], out: &mut Vec<ChatEvent>) -> Result<bool> {
        let event = decode::parse_object(data)?;
        refuse_error(&event)?;
        self.take_event(event, out)
    }

    fn build(mut self, out: &mut Vec<ChatEvent>) -> Result<Built> {
        for index in self.blocks.keys().copied().collect::<Vec<_>>() {
            out.extend(self.close_block(index)?);
        }
        let blocks = self.blocks.into_values().filter_map(|slot| match slot {
            Slot::Closed(block) => Some(block),
            Slot::Open(_) => None,
        });
        let mut response = self.head.into_response(blocks);
        self.usage.add_to(&mut response);
        decode::keep_rest(&mut response, self.rest);
        Ok(Built { response, end: self.end })
    }

    fn whole(&self, body: &[u8]) -> Result<ChatResponse> {
        decode::decode(body)
    }

    fn refusal(fields: &RawJson) -> Error {
        failure::from_event(&Object::parse(fields.get()).unwrap_or_default())
    }
}

/// A block of the response.
#[derive(Debug)]
enum Slot {
    Open(Assembly),
    Closed(Block),
}

impl PartialResponse {
    fn take_event(&mut self, mut event: Object, events: &mut Vec<ChatEvent>) -> Result<bool> {
        match event.get_as::<String>("type").unwrap_or_default().as_str() {
            "message_start" => self.start(event.take_as("message").unwrap_or_default(), events)?,
            "content_block_start" => events.extend(self.start_block(&event)?),
            "content_block_delta" => events.extend(self.extend_block(&event)?),
            "content_block_stop" => events.extend(self.stop_block(&event)?),
            "message_delta" => self.update(event)?,
            "message_stop" => {
                self.stop(event.take_as("message").unwrap_or_default(), events)?;
                return Ok(true);
            }
            "error" => return Err(failure::from_event(&event)),
            kind if kind.ends_with("_error") => return Err(failure::from_event(&event)),
            _ => {}
        }
        Ok(false)
    }

    fn start(&mut self, mut message: Object, events: &mut Vec<ChatEvent>) -> Result<()> {
        refuse_error(&message)?;
        if !self.blocks.is_empty() {
            return Err(broken("a second message"));
        }
        self.head = ResponseHead::take(&mut message);
        if let Some(usage) = message.take_as::<Object>("usage") {
            self.usage.update(usage);
        }
        let content = message.take_as::<Vec<WireValue>>("content").unwrap_or_default();
        for (index, raw) in content.into_iter().enumerate() {
            let block = Assembly::new(&raw.0)?;
            events.extend(block.started(index));
            self.blocks.insert(index, Slot::Open(block));
        }
        self.take_end(&mut message);
        self.rest = message;
        Ok(())
    }

    fn take_end(&mut self, fields: &mut Object) {
        self.end = std::mem::take(&mut self.end).or_worse(decode::end(fields.take("stop_reason")));
    }

    /// Takes the whole message, which some gateways add to the end of a stream.
    fn stop(&mut self, mut message: Object, events: &mut Vec<ChatEvent>) -> Result<()> {
        refuse_error(&message)?;
        for (index, raw) in
            message.take_as::<Vec<WireValue>>("content").unwrap_or_default().iter().enumerate()
        {
            match self.blocks.get_mut(&index) {
                Some(Slot::Open(block)) => events.extend(block.join(index, &raw.0)?),
                Some(Slot::Closed(block)) if decode::is_same(block, &raw.0)? => {}
                Some(Slot::Closed(_)) => {
                    return Err(broken(&format!("two views of block {index} that differ")));
                }
                None => {
                    let block = Assembly::new(&raw.0)?;
                    events.extend(block.started(index));
                    self.blocks.insert(index, Slot::Open(block));
                }
            }
        }
        if let Some(usage) = message.take_as::<Object>("usage") {
            self.usage.update(usage);
        }
        self.take_end(&mut message);
        Ok(())
    }

    /// Ends a block, which some gateways repeat as a whole.
    fn stop_block(&mut self, event: &Object) -> Result<Vec<ChatEvent>> {
        let index = index(event)?;
        let mut events = Vec::new();
        if let (Some(Slot::Open(block)), Some(raw)) =
            (self.blocks.get_mut(&index), event.get("content_block").filter(|raw| raw.is_object()))
        {
            events.extend(block.join(index, raw)?);
        }
        events.extend(self.close_block(index)?);
        Ok(events)
    }

    fn start_block(&mut self, event: &Object) -> Result<Option<ChatEvent>> {
        let index = index(event)?;
        let Some(raw) = event.get("content_block") else {
            return Err(broken("`content_block_start` without a block"));
        };
        let block = Assembly::new(raw)?;
        let started = block.started(index);
        match self.blocks.insert(index, Slot::Open(block)) {
            Some(_) => Err(broken(&format!("block {index} started twice"))),
            None => Ok(started),
        }
    }

    fn extend_block(&mut self, event: &Object) -> Result<Option<ChatEvent>> {
        let index = index(event)?;
        let Some(delta) = event.get_as::<Object>("delta") else {
            return Err(broken("`content_block_delta` without a delta"));
        };
        refuse_error(&delta)?;
        match self.blocks.get_mut(&index) {
            Some(Slot::Open(block)) => block.extend(index, delta),
            Some(Slot::Closed(_)) => Err(broken(&format!("a delta for block {index}, which ended before"))),
            None => Err(broken(&format!("a delta for block {index}, which did not start"))),
        }
    }

    /// Ends a block. One that no event has shown yet becomes an event.
    fn close_block(&mut self, index: usize) -> Result<Option<ChatEvent>> {
        let block = match self.blocks.remove(&index) {
            Some(Slot::Open(block)) => block.finish()?,
            Some(closed) => {
                self.blocks.insert(index, closed);
                return Ok(None);
            }
            None => return Ok(None),
        };
        let is_shown = matches!(block, Block::Text(_) | Block::Thinking(_) | Block::ToolUse(_));
        let event = (!is_shown).then(|| ChatEvent::Block { index, block: block.clone() });
        self.blocks.insert(index, Slot::Closed(block));
        Ok(event)
    }

    fn update(&mut self, mut event: Object) -> Result<()> {
        if let Some(usage) = event.get_as::<Object>("usage") {
            self.usage.update(usage);
        }
        let mut delta = event.take_as::<Object>("delta").unwrap_or_default();
        refuse_error(&delta)?;
        self.take_end(&mut delta);
        self.take_end(&mut event);
        let news = event.iter().filter(|(name, _)| !matches!(*name, "type" | "usage"));
        for (name, value) in delta.iter().chain(news).filter(|(_, value)| !value.is_blank()) {
            self.rest.set(name, value.clone());
        }
        Ok(())
    }
}

fn refuse_error(fields: &Object) -> Result<()> {
    if says_error(fields) { Err(failure::from_event(fields)) } else { Ok(()) }
}

fn index(event: &Object) -> Result<usize> {
    event.get_as("index").ok_or_else(|| broken("a block event without an index"))
}
