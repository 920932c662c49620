//! A response in progress: the chunks of a stream, or one whole body.

use super::content::Content;
use super::decode::broken;
use super::failure;
use super::usage::WireUsage;
use crate::error::Result;
use crate::json::{Object, RawJson, WireValue};
use crate::message::{Block, Message, MessageIds, Role};
use crate::model::{ChatEvent, ChatResponse, StopReason};

/// Fields of a candidate that hold lists, of which each chunk of a stream has a part.
const LISTS: [&str; 2] = ["citationMetadata", "logprobsResult"];

#[derive(Debug)]
pub(super) struct Answer {
    id: String,
    model: String,
    content: Content,
    finish: Option<String>,
    /// The prompt was refused, so that there are no candidates.
    is_blocked: bool,
    usage: WireUsage,
    /// The number of the candidate that is read: the first one.
    candidate: Option<u64>,
    /// The other candidates, as they came.
    others: Vec<RawJson>,
    continuation: Option<RawJson>,
    rest: Object,
}

impl Answer {
    pub(super) fn new(ids: MessageIds) -> Self {
        Answer {
            id: String::new(),
            model: String::new(),
            content: Content::new(ids),
            finish: None,
            is_blocked: false,
            usage: WireUsage::default(),
            candidate: None,
            others: Vec::new(),
            continuation: None,
            rest: Object::default(),
        }
    }

    pub(super) fn take(&mut self, mut chunk: Object, events: &mut Vec<ChatEvent>) -> Result<()> {
        if chunk.get("error").is_some() {
            return Err(failure::from_body(&chunk));
        }
        if let Some(id) = chunk.take_as("responseId") {
            self.id = id;
        }
        if let Some(model) = chunk.take_as("modelVersion") {
            self.model = model;
        }
        if let Some(usage) = chunk.take_as::<Object>("usageMetadata") {
            self.usage.update(&usage);
        }
        if let Some(feedback) = chunk.get_as::<Object>("promptFeedback") {
            self.is_blocked |= feedback.get("blockReason").is_some_and(|reason| reason.get() != "null");
        }
        if let Some(candidates) = chunk.take("candidates").filter(|candidates| candidates.get() != "null") {
            let candidates: Vec<WireValue> =
                candidates.parse().map_err(|_| broken("`candidates` that are not a list"))?;
            for (position, candidate) in candidates.iter().enumerate() {
                self.take_candidate(position as u64, &candidate.0, events)?;
            }
        }
        for (name, value) in chunk.iter() {
            self.rest.set(name, value.clone());
        }
        Ok(())
    }

    fn take_candidate(&mut self, position: u64, raw: &RawJson, events: &mut Vec<ChatEvent>) -> Result<()> {
        let mut fields = Object::parse(raw.get()).map_err(|_| broken("a candidate that is not an object"))?;
        let number = fields.take_as("index").unwrap_or(position);
        if *self.candidate.get_or_insert(number) != number {
            self.others.push(raw.clone());
            return Ok(());
        }
        if let Some(content) = fields.take("content").filter(|content| content.get() != "null") {
            let content =
                Object::parse(content.get()).map_err(|_| broken("a content that is not an object"))?;
            self.take_content(content, events)?;
        }
        if let Some(reason) = fields.take("finishReason").filter(|reason| reason.get() != "null") {
            let reason: String = reason.parse().map_err(|_| broken("a `finishReason` that is not a text"))?;
            self.finish = Some(reason).filter(|reason| !reason.is_empty()).or(self.finish.take());
        }
        if let Some(token) = fields.take("continuationToken").filter(RawJson::is_string) {
            self.continuation = Some(token);
        }
        for (name, value) in fields.iter() {
            match self.rest.get(name) {
                Some(known) if LISTS.contains(&name) => {
                    let joined = joined(known, value).unwrap_or_else(|| value.clone());
                    self.rest.set(name, joined);
                }
                _ => self.rest.set(name, value.clone()),
            }
        }
        Ok(())
    }

    fn take_content(&mut self, mut content: Object, events: &mut Vec<ChatEvent>) -> Result<()> {
        content.take("role");
        if let Some(parts) = content.take("parts").filter(|parts| parts.get() != "null") {
            let parts: Vec<WireValue> = parts.parse().map_err(|_| broken("`parts` that are not a list"))?;
            for part in parts {
                self.content.push(part.0, events)?;
            }
        }
        if !content.is_empty() {
            self.rest.set("content", content.to_json());
        }
        Ok(())
    }

    /// Whether the server said why it ended.
    pub(super) fn is_complete(&self) -> bool {
        self.finish.is_some() || self.is_blocked
    }

    pub(super) fn finish(mut self) -> Result<ChatResponse> {
        let stop = self.stop();
        let mut blocks = self.content.finish()?;
        if let (StopReason::PauseTurn, Some(token)) = (&stop, self.continuation.take()) {
            blocks.push(Block::Unknown(Object::default().with(CONTINUATION, token).to_json()));
        }
        let has_calls = blocks.iter().any(|block| block.as_tool_use().is_some());
        // The reason for calls is `STOP`, like that of a text.
        let stop = if has_calls && stop == StopReason::EndTurn { StopReason::ToolUse } else { stop };
        let mut response = ChatResponse::new(Message::new(Role::Assistant, blocks), stop)
            .with_model(self.model)
            .with_response_id(self.id)
            .with_usage(self.usage.normalised());
        response.raw_usage = self.usage.raw();
        if let Some(reason) = self.finish.filter(|reason| !matches!(reason.as_str(), "STOP" | "MAX_TOKENS")) {
            response.extra.insert("finishReason", RawJson::string(&reason));
        }
        for (name, value) in self.rest.iter().filter(|(_, value)| value.get() != "null") {
            response.extra.insert(name, value.clone());
        }
        if !self.others.is_empty() {
            response.extra.insert("candidates", RawJson::array(&self.others));
        }
        Ok(response)
    }

    fn stop(&self) -> StopReason {
        match self.finish.as_deref() {
            // Some compatible servers have a reason of its own for calls.
            Some("STOP" | "FUNCTION_CALL") => StopReason::EndTurn,
            Some("MAX_TOKENS") => StopReason::MaxTokens,
            Some("CONTINUATION") => StopReason::PauseTurn,
            Some(
                "SAFETY"
                | "RECITATION"
                | "BLOCKLIST"
                | "PROHIBITED_CONTENT"
                | "SPII"
                | "IMAGE_SAFETY"
                | "IMAGE_PROHIBITED_CONTENT"
                | "IMAGE_RECITATION"
                | "MODEL_ARMOR",
            ) => StopReason::Refusal,
            Some(reason) => StopReason::Other(reason.to_owned()),
            None if self.is_blocked => StopReason::Refusal,
            None => StopReason::Other(String::new()),
        }
    }
}

/// The name of the field by which a paused turn is continued, in the unknown block that keeps it.
pub(super) const CONTINUATION: &str = "continuationToken";

/// Two objects of lists as one.
fn joined(first: &RawJson, second: &RawJson) -> Option<RawJson> {
    let mut both = Object::parse(first.get()).ok()?;
    for (name, more) in Object::parse(second.get()).ok()?.iter() {
        let items = |value: &RawJson| value.parse::<Vec<WireValue>>().ok();
        match both.get(name).and_then(items).zip(items(more)) {
            Some((known, more)) => {
                let all: Vec<_> = known.into_iter().chain(more).map(|item| item.0).collect();
                both.set(name, RawJson::array(&all));
            }
            None => both.set(name, more.clone()),
        }
    }
    Some(both.to_json())
}
