//! The decoder of a streamed response of Anthropic's Messages API, from bytes to events.
//!
//! Blocks are assembled as raw objects and then decoded by the same code as blocks of a whole response, so
//! both give the same message. Unknown kinds of events, blocks and deltas are kept or ignored, never an
//! error.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::http::{Answer, Decoder, Feed};
use crate::json::{Object, WireValue};
use crate::message::Block;
use crate::model::{ChatEvent, ChatResponse, StopReason};

use super::assembly::{Assembly, broken};
use super::decode::{self, ResponseHead, WireUsage};
use super::failure;

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
#[derive(Debug)]
pub struct StreamDecoder(Feed<PartialResponse>);

#[derive(Debug, Default)]
pub(crate) struct PartialResponse {
    head: ResponseHead,
    rest: Object,
    blocks: BTreeMap<usize, Slot>,
    usage: WireUsage,
    stop: Option<String>,
}

impl Default for StreamDecoder {
    fn default() -> Self {
        StreamDecoder::new()
    }
}

impl StreamDecoder {
    /// A decoder of one response.
    pub fn new() -> Self {
        StreamDecoder(Feed::new(PartialResponse::default()))
    }

    /// Adds bytes, split at any place. Bytes after the last event are ignored. An event of more than 32 MiB
    /// and a response of more than 64 MiB are `E_LLM_DECODE`.
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.push(bytes);
    }

    /// Ends the input. Without the stream's last event this is `E_LLM_TRUNCATED`.
    pub fn end(&mut self) {
        self.0.end();
    }

    /// The next complete event. The last one is [`ChatEvent::Finished`] or an error.
    pub fn next_event(&mut self) -> Option<Result<ChatEvent>> {
        self.0.next_event()
    }
}

impl Decoder for StreamDecoder {
    type Answer = PartialResponse;

    fn feed(&mut self) -> &mut Feed<PartialResponse> {
        &mut self.0
    }

    fn whole(&self, body: &[u8]) -> Result<ChatResponse> {
        decode::decode(body)
    }
}

impl Answer for PartialResponse {
    fn take(&mut self, data: &[u8], out: &mut Vec<ChatEvent>) -> Result<Option<ChatResponse>> {
        match self.take_event(decode::parse_object(data)?, out)? {
            Progress::More => Ok(None),
            Progress::Finish => std::mem::take(self).finish(out).map(Some),
        }
    }

    fn end(&mut self, _: &mut Vec<ChatEvent>) -> Result<Option<ChatResponse>> {
        Ok(None)
    }
}

enum Progress {
    More,
    Finish,
}

/// A block of the response.
#[derive(Debug)]
enum Slot {
    Open(Assembly),
    Closed(Block),
}

impl PartialResponse {
    fn take_event(&mut self, mut event: Object, events: &mut Vec<ChatEvent>) -> Result<Progress> {
        match event.get_as::<String>("type").unwrap_or_default().as_str() {
            "message_start" => self.start(event.take_as("message").unwrap_or_default())?,
            "content_block_start" => events.extend(self.start_block(&event)?),
            "content_block_delta" => events.extend(self.extend_block(&event)?),
            "content_block_stop" => events.extend(self.close_block(index(&event)?)?),
            "message_delta" => self.update(event),
            "message_stop" => return Ok(Progress::Finish),
            "error" => return Err(failure::from_event(&event)),
            _ => {}
        }
        Ok(Progress::More)
    }

    fn start(&mut self, mut message: Object) -> Result<()> {
        self.head = ResponseHead::take(&mut message);
        if let Some(usage) = message.take_as::<Object>("usage") {
            self.usage.update(usage);
        }
        let content = message.take_as::<Vec<WireValue>>("content").unwrap_or_default();
        for (index, raw) in content.into_iter().enumerate() {
            self.blocks.insert(index, Slot::Open(Assembly::new(&raw.0)?));
        }
        self.stop = message.take_as("stop_reason");
        self.rest = message;
        Ok(())
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

    fn update(&mut self, mut event: Object) {
        if let Some(usage) = event.get_as::<Object>("usage") {
            self.usage.update(usage);
        }
        let mut delta = event.take_as::<Object>("delta").unwrap_or_default();
        self.stop = delta.take_as("stop_reason").or(self.stop.take());
        let news = event.iter().filter(|(name, _)| !matches!(*name, "type" | "usage"));
        for (name, value) in delta.iter().chain(news) {
            self.rest.set(name, value.clone());
        }
    }

    fn finish(mut self, events: &mut Vec<ChatEvent>) -> Result<ChatResponse> {
        for index in self.blocks.keys().copied().collect::<Vec<_>>() {
            events.extend(self.close_block(index)?);
        }
        let blocks = self.blocks.into_values().filter_map(|slot| match slot {
            Slot::Closed(block) => Some(block),
            Slot::Open(_) => None,
        });
        let mut response = self.head.into_response(blocks);
        self.usage.add_to(&mut response);
        response.stop = match self.stop {
            Some(reason) => decode::stop_reason(Some(reason)),
            None => StopReason::Other(String::new()),
        };
        decode::keep_rest(&mut response, self.rest);
        Ok(response)
    }
}

fn index(event: &Object) -> Result<usize> {
    event.get_as("index").ok_or_else(|| broken("a block event without an index"))
}
