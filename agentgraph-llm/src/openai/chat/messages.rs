//! A conversation as the messages of Chat Completions.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

use crate::json::{Object, RawJson};
use crate::message::{Block, Message, Role, TextBlock, Thinking, ToolInput, ToolResult, ToolUse};
use crate::model::{ChatRequest, ModelInfo};

use super::parts::{self, content, joined_content};
use crate::openai::wire::{filled, object, text_of};
use crate::openai::{Profile, media};

pub(super) fn encode(request: &ChatRequest, info: &ModelInfo, profile: &Profile) -> Vec<RawJson> {
    let system = request.system.iter().map(Message::system);
    let messages: Vec<Cow<'_, Message>> = system
        .map(Cow::Owned)
        .chain(request.messages.iter().map(|message| message.for_model(info)))
        .collect();
    let mut sent = Vec::new();
    for turn in messages.chunk_by(|a, b| a.role == Role::User && b.role == Role::User) {
        match turn[0].role {
            Role::User => sent.extend(user_turn(turn, profile)),
            Role::System => sent.extend(system_message(&turn[0], profile)),
            Role::Assistant => sent.extend(assistant(&turn[0], profile)),
        }
    }
    sent
}

fn message(role: &str) -> Object {
    Object::default().with("role", RawJson::string(role))
}

fn system_message(system: &Message, profile: &Profile) -> Option<RawJson> {
    let content = content(&parts::of(&system.content))?;
    Some(message(&profile.system_role).with("content", content).to_json())
}

/// All results of the turn come first, because the API wants them right after their calls.
fn user_turn(turn: &[Cow<'_, Message>], profile: &Profile) -> Vec<RawJson> {
    let results: Vec<&ToolResult> = turn.iter().flat_map(|message| message.results()).collect();
    let mut sent: Vec<_> = results.iter().map(|result| tool_message(result, profile)).collect();
    let media: Vec<_> = results.iter().flat_map(|result| media_of(result)).collect();
    let own = turn.iter().map(|message| parts::of(&message.content));
    for parts in std::iter::once(media).chain(own) {
        sent.extend(content(&parts).map(|content| message("user").with("content", content).to_json()));
    }
    sent
}

fn tool_message(result: &ToolResult, profile: &Profile) -> RawJson {
    message("tool")
        .with("tool_call_id", call_id(&result.tool_use_id, profile))
        .with("content", RawJson::string(&media::result_text(result)))
        .with_all(&result.extra)
        .to_json()
}

/// What the message of a result has no place for, after a line that says whose it is.
fn media_of(result: &ToolResult) -> Vec<RawJson> {
    let rest: Vec<_> = result.content.iter().filter(|block| block.as_text().is_none()).cloned().collect();
    if rest.is_empty() {
        return Vec::new();
    }
    let line = TextBlock::new(format!("From the result of tool call {}:", result.tool_use_id));
    let mut parts = parts::of(&[line.into()]);
    parts.extend(parts::of(&rest));
    parts
}

/// `None` for a message without anything to send.
fn assistant(assistant: &Message, profile: &Profile) -> Option<RawJson> {
    let mut sent = message("assistant");
    let mut calls = Vec::new();
    let mut fields = Object::default();
    let mut thinking = String::new();
    let mut blocks = Vec::new();
    for block in &assistant.content {
        match block {
            Block::ToolUse(call) => calls.push(tool_call(call, profile)),
            Block::Thinking(Thinking { thinking: text, .. }) => thinking += text,
            Block::Unknown(raw) => match place_of(raw) {
                Place::Fields(news) => fields = with_fields(fields, &news),
                Place::Call => calls.push(raw.clone()),
                Place::Part => blocks.push(block.clone()),
            },
            Block::ToolResult(_) | Block::RedactedThinking(_) => {}
            block => blocks.push(block.clone()),
        }
    }
    let content = joined_content(&parts::of(&blocks));
    if content.is_none() && calls.is_empty() && fields.iter().next().is_none() {
        return None;
    }
    if let Some(content) = content {
        sent.set("content", content);
    }
    let has_thinking = !thinking.is_empty() || (profile.requires_thinking_with_calls && !calls.is_empty());
    if let Some(field) = profile.thinking_field.as_deref().filter(|_| has_thinking) {
        sent.set(field, RawJson::string(&thinking));
    }
    sent = with_fields(sent, &fields);
    if !calls.is_empty() {
        sent.set("tool_calls", RawJson::array(&calls));
    }
    Some(sent.to_json())
}

/// Where an unknown block came from: a field of the message has no `type`, and a call has an `id` beside it.
enum Place {
    Fields(Object),
    Call,
    Part,
}

fn place_of(raw: &RawJson) -> Place {
    match Object::parse(raw.get()) {
        Ok(fields) if fields.get("type").is_none() => Place::Fields(fields),
        Ok(fields) if filled(&fields, "id").is_some() => Place::Call,
        _ => Place::Part,
    }
}

fn with_fields(mut sent: Object, fields: &Object) -> Object {
    for (name, value) in fields.iter() {
        let audio = (name == "audio").then(|| audio_id(value)).flatten();
        sent.set(name, audio.unwrap_or_else(|| value.clone()));
    }
    sent
}

/// Spoken answers are referred to by their id; the API refuses their data.
fn audio_id(audio: &RawJson) -> Option<RawJson> {
    let fields = Object::parse(audio.get()).ok()?;
    Some(Object::default().with("id", fields.get("id")?.clone()).to_json())
}

/// An id as the server takes it. The same id becomes the same hash in the call and in its result.
fn call_id(id: &str, profile: &Profile) -> RawJson {
    let fits = |length| id.len() == length && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    match profile.call_id_length.filter(|length| !fits(*length)) {
        Some(length) => {
            let hash =
                Sha256::digest(id).iter().fold(String::new(), |hash, byte| hash + &format!("{byte:02x}"));
            RawJson::string(&hash[..length.min(hash.len())])
        }
        None => RawJson::string(id),
    }
}

fn tool_call(call: &ToolUse, profile: &Profile) -> RawJson {
    let arguments = match &call.input {
        ToolInput::Json(json) if json.is_object() => json.get().to_owned(),
        input if profile.requires_object_arguments => {
            Object::default().with("INVALID_JSON", RawJson::string(input.text())).to_json().get().to_owned()
        }
        input => input.text().to_owned(),
    };
    let function = Object::default()
        .with("name", RawJson::string(&call.name))
        .with("arguments", RawJson::string(&arguments))
        .to_json();
    Object::default()
        .with("id", call_id(&call.id, profile))
        .with("type", RawJson::string("function"))
        .with("function", function)
        .with_all(&call.extra)
        .to_json()
}

/// Whether a text is a refusal, which has a part of its own.
pub(super) fn is_refusal(text: &TextBlock) -> bool {
    text_of(&text.extra, "type").as_deref() == Some("refusal")
}

pub(super) fn refusal(text: &TextBlock) -> Object {
    object("refusal").with("refusal", RawJson::string(&text.text))
}
