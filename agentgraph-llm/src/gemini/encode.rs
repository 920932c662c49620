//! A request as the body of `generateContent`.

mod part;
mod tools;
mod turns;

use serde_json::Value;

use super::{PROVIDER, resource};
use crate::json::{Extra, Object, RawJson};
use crate::message::{Block, Role, TextBlock};
use crate::model::{ChatRequest, Effort, ModelInfo};
use crate::schema::{self, SchemaProfile};

/// Encodes a request as a JSON body.
///
/// - Consecutive messages of one role become one content. Results come first in it, in the order of their
///   calls, because the API wants all results of a turn in one content.
/// - Thought signatures are sent on the part that they came on. None is made up.
/// - System messages become part of `systemInstruction`, wherever they are in the conversation.
/// - Messages of other models are sent as [`for_model`](crate::Message::for_model) gives them.
/// - A strict tool makes the mode `VALIDATED` unless the choice says otherwise.
/// - Schemas are [transformed](crate::schema) and sent as `parametersJsonSchema` and `responseJsonSchema`.
/// - A turn that [paused](crate::StopReason::PauseTurn) is continued by its token.
/// - The request's `extra` fields come last and replace fields of the same name, such as `cachedContent`.
///   Those in `generationConfig` are added one by one.
///
/// ```
/// use agentgraph_llm::{ChatRequest, gemini};
///
/// let body = gemini::encode("gemini-test", &ChatRequest::user("Hi").with_max_tokens(50));
/// assert_eq!(
///     body.get(),
///     r#"{"contents":[{"role":"user","parts":[{"text":"Hi"}]}],"generationConfig":{"maxOutputTokens":50}}"#
/// );
/// ```
pub fn encode(model: &str, request: &ChatRequest) -> RawJson {
    body(model, request).to_json()
}

/// Encodes a request as the body of `countTokens`.
///
/// ```
/// use agentgraph_llm::{ChatRequest, gemini};
///
/// let body = gemini::encode_count("gemini-test", &ChatRequest::user("Hi"));
/// assert!(body.get().starts_with(r#"{"generateContentRequest":{"model":"models/gemini-test","contents":"#));
/// ```
pub fn encode_count(model: &str, request: &ChatRequest) -> RawJson {
    let mut whole = Object::default().with("model", RawJson::string(&resource(model)));
    for (name, value) in body(model, request).iter() {
        whole.set(name, value.clone());
    }
    Object::default().with("generateContentRequest", whole.to_json()).to_json()
}

/// The body of `countTokens` of Vertex, which takes only what is counted.
pub(super) fn count_body(model: &str, request: &ChatRequest) -> RawJson {
    let body = body(model, request);
    let counted = ["contents", "systemInstruction", "tools", "generationConfig"];
    let fields = counted.into_iter().filter_map(|name| Some((name, body.get(name)?.clone())));
    fields.fold(Object::default(), |fields, (name, value)| fields.with(name, value)).to_json()
}

fn body(model: &str, request: &ChatRequest) -> Object {
    let info = ModelInfo::new(PROVIDER, model);
    let messages: Vec<_> = request.messages.iter().map(|message| message.for_model(&info)).collect();
    let (contents, continuation) = turns::contents(&messages);
    let mut body = Object::default().with("contents", contents);
    if let Some(system) = system(request) {
        body.set("systemInstruction", system);
    }
    if !request.tools.is_empty() {
        body.set("tools", tools::tools(&request.tools));
        if let Some(config) = tools::config(request) {
            body.set("toolConfig", config);
        }
    }
    let config = generation_config(request);
    if !config.is_empty() {
        body.set("generationConfig", config.to_json());
    }
    if let Some(token) = continuation {
        body.set(super::answer::CONTINUATION, token);
    }
    with_extra(body, &["generationConfig"], &request.extra)
}

/// Adds extra fields. An object under one of the `nested` names adds its fields to the object of that name.
fn with_extra(mut fields: Object, nested: &[&str], extra: &Extra) -> Object {
    for (name, value) in extra.iter() {
        let known = if nested.contains(&name) { fields.get_as::<Object>(name) } else { None };
        match known.zip(Object::parse(value.get()).ok()) {
            Some((mut known, more)) => {
                for (name, value) in more.iter() {
                    known.set(name, value.clone());
                }
                fields.set(name, known.to_json());
            }
            None => fields.set(name, value.clone()),
        }
    }
    fields
}

fn system(request: &ChatRequest) -> Option<RawJson> {
    let head = request.system.iter().map(|text| Block::from(TextBlock::new(text)));
    let rest = request.messages.iter().filter(|message| message.role == Role::System);
    let all = head.chain(rest.flat_map(|message| message.content.iter().cloned()));
    let parts: Vec<_> = all.filter_map(|block| part::part(&block)).collect();
    (!parts.is_empty()).then(|| Object::default().with("parts", RawJson::array(&parts)).to_json())
}

fn generation_config(request: &ChatRequest) -> Object {
    let mut config = Object::default();
    if let Some(tokens) = request.max_tokens {
        config.set("maxOutputTokens", number(tokens));
    }
    if let Some(temperature) = request.temperature {
        config.set("temperature", number(temperature));
    }
    if let Some(share) = request.top_p {
        config.set("topP", number(share));
    }
    if !request.stop.is_empty() {
        config.set("stopSequences", number(&request.stop));
    }
    if let Some(output) = &request.output {
        config.set("responseMimeType", RawJson::string("application/json"));
        let transformed = schema::transform(&output.schema, SchemaProfile::Gemini);
        // Without a schema the model still writes JSON.
        if transformed.is_strict {
            config.set("responseJsonSchema", transformed.schema);
        }
    }
    if let Some(effort) = &request.effort {
        let level = Object::default().with("thinkingLevel", RawJson::string(&thinking_level(effort)));
        config.set("thinkingConfig", level.to_json());
    }
    config
}

fn thinking_level(effort: &Effort) -> String {
    effort.as_str().to_uppercase()
}

/// Through the value's own type: `0.2_f32` becomes `0.2` and not the nearest double of it.
fn number(value: impl serde::Serialize) -> RawJson {
    RawJson::from_value(&value).unwrap_or_else(|_| Value::Null.into())
}
