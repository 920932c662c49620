//! A request as the body of Anthropic's Messages API.

use serde_json::Value;

use crate::json::{Extra, Object, RawJson};
use crate::message::{Block, Media, MediaSource, Message, Role, TextBlock, ToolInput, ToolResult, ToolUse};
use crate::model::{ChatRequest, Effort, ModelInfo, OutputSpec, ToolChoice, ToolMode};
use crate::schema::{self, SchemaProfile};
use crate::tool::ToolSpec;

use super::PROVIDER;

/// The limit of output tokens for a request that has none.
pub(crate) const DEFAULT_MAX_TOKENS: u32 = 4096;

/// Encodes a request as a JSON body.
///
/// - The blocks of assistant messages are sent as they came, with signatures, unknown blocks and unknown
///   fields. Blank texts, and messages that are empty without them, are left out, because the API rejects
///   them.
/// - Consecutive messages of one role become one message, with tool results first, because the API requires
///   all results of a turn in one message before any text.
/// - A message of another model is sent [as this one may get it](Message::for_model).
/// - System messages become part of the request's `system`, wherever they are in the conversation.
/// - Arguments that are not a JSON object cannot be sent; they become `{"INVALID_JSON": "..."}`.
/// - Schemas of answers and of strict tools are [rewritten](crate::schema) for the API. An answer's schema
///   that is only a hint, or that the API cannot enforce, becomes an instruction at the end of `system`; a
///   tool's that it cannot enforce is sent without strictness.
/// - The request's `extra` fields come last and replace fields of the same name.
///
/// ```
/// use agentgraph_llm::{ChatRequest, anthropic};
///
/// let body = anthropic::encode("claude-test", &ChatRequest::user("Hi").with_max_tokens(50), false);
/// assert_eq!(
///     body.get(),
///     r#"{"model":"claude-test","max_tokens":50,"messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}]}"#
/// );
/// ```
pub fn encode(model: &str, request: &ChatRequest, stream: bool) -> RawJson {
    let mut body = body(model, request);
    if stream {
        body.set("stream", Value::Bool(true));
    }
    body.with_all(&request.extra).to_json()
}

/// Encodes a request as the JSON body of a request that counts its tokens: without the settings that have no
/// influence on them, which that endpoint refuses.
///
/// ```
/// use agentgraph_llm::{ChatRequest, anthropic};
///
/// let body = anthropic::encode_count("claude-test", &ChatRequest::user("Hi").with_max_tokens(50));
/// assert_eq!(
///     body.get(),
///     r#"{"model":"claude-test","messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}]}"#
/// );
/// ```
pub fn encode_count(model: &str, request: &ChatRequest) -> RawJson {
    let mut body = body(model, request).with_all(&request.extra);
    for name in NOT_COUNTED {
        body.take(name);
    }
    body.to_json()
}

/// The fields of a request that the endpoint which counts tokens does not have.
const NOT_COUNTED: [&str; 10] = [
    "max_tokens",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "metadata",
    "service_tier",
    "inference_geo",
    "container",
    "diagnostics",
];

fn body(model: &str, request: &ChatRequest) -> Object {
    let mut body = Object::default()
        .with("model", RawJson::string(model))
        .with("max_tokens", number(request.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS)));
    if let Some(system) = system(request) {
        body.set("system", system);
    }
    body.set("messages", messages(&request.messages, &ModelInfo::new(PROVIDER, model)));
    if !request.tools.is_empty() {
        body.set("tools", array(request.tools.iter().map(tool)));
        if let Some(choice) = tool_choice(&request.tool_choice) {
            body.set("tool_choice", choice);
        }
    }
    if let Some(temperature) = request.temperature {
        body.set("temperature", number(temperature));
    }
    if let Some(share) = request.top_p {
        body.set("top_p", number(share));
    }
    if !request.stop.is_empty() {
        body.set("stop_sequences", array(request.stop.iter().map(|stop| RawJson::string(stop))));
    }
    if let Some(config) = output_config(request) {
        body.set("output_config", config);
    }
    body
}

fn output_config(request: &ChatRequest) -> Option<RawJson> {
    let mut config = Object::default();
    if let Some(schema) = request.output.as_ref().and_then(enforced) {
        let format = object("json_schema").with("schema", schema);
        config.set("format", format.to_json());
    }
    if let Some(effort) = &request.effort {
        config.set("effort", RawJson::string(level(effort)));
    }
    (!config.is_empty()).then(|| config.to_json())
}

/// The schema of an answer, if it is to be enforced and the API can do that.
fn enforced(output: &OutputSpec) -> Option<Value> {
    let transformed = output.strict.then(|| schema::transform(&output.schema, SchemaProfile::Anthropic));
    transformed.filter(|transformed| transformed.is_strict).map(|transformed| transformed.schema)
}

/// The instruction that takes the place of a schema which is not enforced. The API has no other form of a
/// hint.
fn hint(output: &OutputSpec) -> Option<Block> {
    let text = || {
        format!(
            "Answer with JSON only, without any other text. It follows this JSON Schema: {}",
            output.schema
        )
    };
    enforced(output).is_none().then(|| Block::text(text()))
}

/// The API has no level below `low`.
fn level(effort: &Effort) -> &str {
    match effort {
        Effort::Minimal => Effort::Low.as_str(),
        effort => effort.as_str(),
    }
}

fn array(items: impl Iterator<Item = RawJson>) -> RawJson {
    RawJson::array(&items.collect::<Vec<_>>())
}

/// Through the number's own type: `0.2_f32` becomes `0.2` and not the nearest double of it.
fn number(number: impl serde::Serialize) -> RawJson {
    RawJson::from_value(&number).unwrap_or_else(|_| Value::Null.into())
}

fn object(kind: &str) -> Object {
    Object::default().with("type", RawJson::string(kind))
}

fn system(request: &ChatRequest) -> Option<RawJson> {
    let head = request.system.iter().map(|text| TextBlock::new(text).into());
    let rest = request.messages.iter().filter(|message| message.role == Role::System);
    let hint = request.output.as_ref().and_then(hint);
    let said = head.chain(rest.flat_map(|message| message.content.iter().cloned()));
    let all: Vec<Block> = said.chain(hint).collect();
    match &all[..] {
        [Block::Text(TextBlock { text, extra })] if extra.is_empty() && !is_blank(text, extra) => {
            Some(RawJson::string(text))
        }
        all => {
            let blocks: Vec<_> = all.iter().filter_map(block).collect();
            (!blocks.is_empty()).then(|| RawJson::array(&blocks))
        }
    }
}

fn messages(messages: &[Message], model: &ModelInfo) -> RawJson {
    let messages = messages.iter().map(|message| message.for_model(model));
    // A message without anything to send parts no others.
    let messages: Vec<_> =
        messages.filter(|message| message.content.iter().any(|sent| block(sent).is_some())).collect();
    let mut turns: Vec<(&str, Vec<&Block>)> = Vec::new();
    for message in &messages {
        let role = match message.role {
            Role::System => continue,
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        match turns.last_mut() {
            Some((last, blocks)) if *last == role => blocks.extend(&message.content),
            _ => turns.push((role, message.content.iter().collect())),
        }
    }
    array(turns.into_iter().filter_map(|(role, blocks)| turn(role, blocks)))
}

fn turn(role: &str, mut blocks: Vec<&Block>) -> Option<RawJson> {
    blocks.sort_by_key(|block| role == "user" && block.as_tool_result().is_none());
    let content: Vec<_> = blocks.into_iter().filter_map(block).collect();
    if content.is_empty() {
        return None;
    }
    let turn =
        Object::default().with("role", RawJson::string(role)).with("content", RawJson::array(&content));
    Some(turn.to_json())
}

/// `None` for a block that the API rejects.
fn block(block: &Block) -> Option<RawJson> {
    let (fields, extra) = match block {
        Block::Unknown(raw) => return Some(raw.clone()),
        Block::Text(block) if is_blank(&block.text, &block.extra) => return None,
        Block::Text(block) => (object("text").with("text", RawJson::string(&block.text)), &block.extra),
        Block::ToolUse(call) => (tool_use(call), &call.extra),
        Block::ToolResult(result) => (tool_result(result), &result.extra),
        Block::Thinking(block) => {
            let fields = object("thinking").with("thinking", RawJson::string(&block.thinking));
            let signed = match &block.signature {
                Some(signature) => fields.with("signature", RawJson::string(signature)),
                None => fields,
            };
            (signed, &block.extra)
        }
        Block::RedactedThinking(block) => {
            (object("redacted_thinking").with("data", RawJson::string(&block.data)), &block.extra)
        }
        Block::Image(media) => (medium("image", media), &media.extra),
        Block::Document(media) => (medium("document", media), &media.extra),
        // The API has neither sound nor film.
        Block::Audio(_) | Block::Video(_) => return None,
    };
    Some(fields.with_all(extra).to_json())
}

fn is_blank(text: &str, extra: &Extra) -> bool {
    extra.is_empty() && text.trim().is_empty()
}

fn tool_use(call: &ToolUse) -> Object {
    let input = match &call.input {
        ToolInput::Json(json) if json.is_object() => json.clone(),
        input => Object::default().with("INVALID_JSON", RawJson::string(input.text())).to_json(),
    };
    object("tool_use")
        .with("id", RawJson::string(&call.id))
        .with("name", RawJson::string(&call.name))
        .with("input", input)
}

fn tool_result(result: &ToolResult) -> Object {
    let mut fields = object("tool_result").with("tool_use_id", RawJson::string(&result.tool_use_id));
    let content: Vec<_> = result.content.iter().filter_map(block).collect();
    if !content.is_empty() {
        fields.set("content", RawJson::array(&content));
    }
    if result.is_error {
        fields.set("is_error", Value::Bool(true));
    }
    fields
}

fn medium(kind: &str, media: &Media) -> Object {
    let source = match &media.source {
        MediaSource::Base64 { media_type, data } => object("base64")
            .with("media_type", RawJson::string(media_type))
            .with("data", RawJson::string(data))
            .to_json(),
        MediaSource::Url { url } => object("url").with("url", RawJson::string(url)).to_json(),
        MediaSource::File { id } => object("file").with("file_id", RawJson::string(id)).to_json(),
        MediaSource::Other(raw) => raw.clone(),
    };
    object(kind).with("source", source)
}

fn tool(spec: &ToolSpec) -> RawJson {
    if let Some(raw) = &spec.raw {
        return raw.clone();
    }
    let sent = match spec.strict {
        Some(true) => schema::transform_arguments(&spec.input_schema, SchemaProfile::Anthropic),
        _ => schema::transform_arguments(&spec.input_schema, SchemaProfile::Plain),
    };
    let mut fields = Object::default()
        .with("name", RawJson::string(&spec.name))
        .with("description", RawJson::string(&spec.description))
        .with("input_schema", sent.schema);
    if spec.strict.is_some() {
        fields.set("strict", Value::Bool(sent.is_strict));
    }
    fields.with_all(&spec.extra).to_json()
}

fn tool_choice(choice: &ToolChoice) -> Option<RawJson> {
    let fields = match &choice.mode {
        ToolMode::Auto if choice.parallel.is_none() => return None,
        ToolMode::Auto => object("auto"),
        ToolMode::Any => object("any"),
        ToolMode::Tool(name) => object("tool").with("name", RawJson::string(name)),
        ToolMode::None => return Some(object("none").to_json()),
    };
    Some(match choice.parallel {
        Some(parallel) => fields.with("disable_parallel_tool_use", Value::Bool(!parallel)).to_json(),
        None => fields.to_json(),
    })
}
