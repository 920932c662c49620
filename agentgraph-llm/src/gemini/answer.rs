//! A response in progress: the chunks of a stream, or one whole body.

use super::content::Content;
use super::decode::{self, broken};
use super::failure;
use super::usage::WireUsage;
use crate::error::{Error, Result};
use crate::http::{PartialAnswer, is_done_mark, says_error};
use crate::json::{Object, RawJson, WireValue};
use crate::message::{Block, Message, MessageIds, Role};
use crate::model::end::{Built, End};
use crate::model::{ChatEvent, ChatResponse, StopReason};

/// Fields of a candidate of which each chunk of a stream has a part.
const GROWING: [&str; 4] = ["citationMetadata", "logprobsResult", "groundingMetadata", "urlContextMetadata"];

#[derive(Debug, Default)]
pub(crate) struct PartialResponse {
    ids: MessageIds,
    id: String,
    model: String,
    content: Content,
    finish: Option<String>,
    end: End,
    usage: WireUsage,
    /// The number of the candidate that is read: the first one.
    candidate: Option<u64>,
    /// The other candidates, as they came.
    others: Vec<RawJson>,
    continuation: Option<RawJson>,
    rest: Object,
}

impl PartialAnswer for PartialResponse {
    fn take(&mut self, data: &[u8], out: &mut Vec<ChatEvent>) -> Result<bool> {
        if !is_done_mark(data) {
            self.add(decode::text(data).and_then(decode::object)?, out)?;
        }
        Ok(false)
    }

    /// The stream has no last event: it may end after a reason to finish.
    fn may_end(&self) -> bool {
        self.end != End::Missing
    }

    fn build(mut self, _: &mut Vec<ChatEvent>) -> Result<Built> {
        let mut blocks = self.content.finish()?;
        if let (End::Stop(StopReason::PauseTurn), Some(token)) = (&self.end, self.continuation.take()) {
            blocks.push(Block::Unknown(Object::default().with(CONTINUATION, token).to_json()));
        }
        // The reason for calls is `STOP`, like that of a text.
        let has_calls = blocks.iter().any(|block| block.as_tool_use().is_some());
        let end = match self.end {
            End::Stop(StopReason::EndTurn) if has_calls => End::Stop(StopReason::ToolUse),
            end => end,
        };
        let mut response = ChatResponse::new(Message::new(Role::Assistant, blocks), StopReason::EndTurn)
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
        Ok(Built { response, end })
    }

    fn whole(&self, body: &[u8]) -> Result<ChatResponse> {
        decode::whole(body, &self.ids)
    }

    fn refusal(fields: &RawJson) -> Error {
        failure::from_body(&Object::parse(fields.get()).unwrap_or_default())
    }
}

impl PartialResponse {
    pub(super) fn new(ids: MessageIds) -> Self {
        PartialResponse { content: Content::new(ids.clone()), ids, ..PartialResponse::default() }
    }

    /// Adds a chunk of a stream, or a whole response.
    pub(super) fn add(&mut self, mut chunk: Object, events: &mut Vec<ChatEvent>) -> Result<()> {
        if let Some(id) = chunk.take_as("responseId") {
            self.id = id;
        }
        if let Some(model) = chunk.take_as("modelVersion") {
            self.model = model;
        }
        if let Some(usage) = chunk.take_as::<Object>("usageMetadata") {
            self.usage.update(usage);
        }
        let feedback = chunk.get_as::<Object>("promptFeedback").unwrap_or_default();
        if feedback.get("blockReason").is_some_and(|reason| !reason.is_blank()) {
            self.ended(End::Stop(StopReason::Refusal));
        }
        if let Some(candidates) = chunk.take("candidates").filter(|candidates| candidates.get() != "null") {
            let candidates: Vec<WireValue> =
                candidates.parse().map_err(|_| broken("`candidates` that are not a list"))?;
            for (position, candidate) in candidates.iter().enumerate() {
                self.take_candidate(position as u64, &candidate.0, events)?;
            }
        }
        // What came before the error was paid for.
        if says_error(&chunk) {
            return Err(failure::from_body(&chunk));
        }
        chunk.iter().for_each(|(name, value)| self.keep(name, value));
        Ok(())
    }

    fn ended(&mut self, end: End) {
        self.end = std::mem::take(&mut self.end).or_worse(end);
    }

    /// Keeps a field that is not read. A later chunk adds to it.
    fn keep(&mut self, name: &str, value: &RawJson) {
        match self.rest.get(name) {
            Some(known) if GROWING.contains(&name) => self.rest.set(name, grown(known, value)),
            Some(_) if value.is_blank() => {}
            _ => self.rest.set(name, value.clone()),
        }
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
            if !reason.is_empty() {
                self.ended(FinishReason::parse(&reason).end(&reason));
                self.finish = Some(reason);
            }
        }
        if says_error(&fields) {
            return Err(failure::from_body(&fields));
        }
        if let Some(token) = fields.take("continuationToken").filter(RawJson::is_string) {
            self.continuation = Some(token);
        }
        fields.iter().for_each(|(name, value)| self.keep(name, value));
        Ok(())
    }

    fn take_content(&mut self, mut content: Object, events: &mut Vec<ChatEvent>) -> Result<()> {
        content.take("role");
        if says_error(&content) {
            return Err(failure::from_body(&content));
        }
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
}

/// The reasons to finish of `generateContent`.
enum FinishReason {
    Stop,
    /// The reason of some compatible servers for calls.
    FunctionCall,
    MaxTokens,
    Continuation,
    Safety,
    Recitation,
    Blocklist,
    ProhibitedContent,
    Spii,
    ImageSafety,
    ImageProhibitedContent,
    ImageRecitation,
    ModelArmor,
    Language,
    Other,
    ImageOther,
    NoImage,
    Unspecified,
    MalformedFunctionCall,
    UnexpectedToolCall,
    TooManyToolCalls,
    MissingThoughtSignature,
    MalformedResponse,
    Unknown,
}

impl FinishReason {
    fn parse(word: &str) -> Self {
        match word {
            "STOP" => FinishReason::Stop,
            "FUNCTION_CALL" => FinishReason::FunctionCall,
            "MAX_TOKENS" => FinishReason::MaxTokens,
            "CONTINUATION" => FinishReason::Continuation,
            "SAFETY" => FinishReason::Safety,
            "RECITATION" => FinishReason::Recitation,
            "BLOCKLIST" => FinishReason::Blocklist,
            "PROHIBITED_CONTENT" => FinishReason::ProhibitedContent,
            "SPII" => FinishReason::Spii,
            "IMAGE_SAFETY" => FinishReason::ImageSafety,
            "IMAGE_PROHIBITED_CONTENT" => FinishReason::ImageProhibitedContent,
            "IMAGE_RECITATION" => FinishReason::ImageRecitation,
            "MODEL_ARMOR" => FinishReason::ModelArmor,
            "LANGUAGE" => FinishReason::Language,
            "OTHER" => FinishReason::Other,
            "IMAGE_OTHER" => FinishReason::ImageOther,
            "NO_IMAGE" => FinishReason::NoImage,
            "FINISH_REASON_UNSPECIFIED" => FinishReason::Unspecified,
            "MALFORMED_FUNCTION_CALL" => FinishReason::MalformedFunctionCall,
            "UNEXPECTED_TOOL_CALL" => FinishReason::UnexpectedToolCall,
            "TOO_MANY_TOOL_CALLS" => FinishReason::TooManyToolCalls,
            "MISSING_THOUGHT_SIGNATURE" => FinishReason::MissingThoughtSignature,
            "MALFORMED_RESPONSE" => FinishReason::MalformedResponse,
            _ => FinishReason::Unknown,
        }
    }

    /// The end that a reason is; `word` is how it was written.
    fn end(&self, word: &str) -> End {
        match self {
            FinishReason::Stop | FinishReason::FunctionCall => End::Stop(StopReason::EndTurn),
            FinishReason::MaxTokens => End::Stop(StopReason::MaxTokens),
            FinishReason::Continuation => End::Stop(StopReason::PauseTurn),
            FinishReason::Safety
            | FinishReason::Recitation
            | FinishReason::Blocklist
            | FinishReason::ProhibitedContent
            | FinishReason::Spii
            | FinishReason::ImageSafety
            | FinishReason::ImageProhibitedContent
            | FinishReason::ImageRecitation
            | FinishReason::ModelArmor => End::Stop(StopReason::Refusal),
            FinishReason::Language | FinishReason::MissingThoughtSignature | FinishReason::Unknown => {
                End::unknown(word)
            }
            FinishReason::Other
            | FinishReason::ImageOther
            | FinishReason::NoImage
            | FinishReason::Unspecified
            | FinishReason::MalformedFunctionCall
            | FinishReason::UnexpectedToolCall
            | FinishReason::TooManyToolCalls
            | FinishReason::MalformedResponse => End::failed(word),
        }
    }
}

/// The end that a word of Gemini is, for a host that passes it on; [`End::Missing`] if it is none.
pub(crate) fn end_of_word(word: &str) -> End {
    match FinishReason::parse(word) {
        FinishReason::Unknown => End::Missing,
        known => known.end(word),
    }
}

/// The name of the field by which a paused turn is continued, in the unknown block that keeps it.
pub(super) const CONTINUATION: &str = "continuationToken";

/// Two states of a value that is not read. Objects grow by their fields, and lists by the newer one, unless
/// that repeats what is known.
fn grown(known: &RawJson, newer: &RawJson) -> RawJson {
    if newer.is_blank() {
        return known.clone();
    }
    if let (Ok(mut all), Ok(more)) = (known.parse::<Object>(), newer.parse::<Object>()) {
        for (name, value) in more.iter() {
            let value = all.get(name).map_or_else(|| value.clone(), |known| grown(known, value));
            all.set(name, value);
        }
        return all.to_json();
    }
    let items = |value: &RawJson| value.parse::<Vec<WireValue>>().ok();
    match items(known).zip(items(newer)) {
        Some((known, more)) => {
            let values = |items: Vec<WireValue>| items.into_iter().map(|item| item.0).collect::<Vec<_>>();
            let (mut all, more) = (values(known), values(more));
            match more.starts_with(&all) {
                true => all = more,
                false if all.starts_with(&more) => {}
                false => all.extend(more),
            }
            RawJson::array(&all)
        }
        None => newer.clone(),
    }
}
