//! A request as the body of the Responses API.

use crate::json::{Extra, Object, RawJson};
use crate::model::{ChatRequest, ModelInfo, OutputSpec, ToolMode};
use crate::openai::responses::input;
use crate::openai::wire::{array, boolean, number, object};
use crate::openai::{PROVIDER, schema};
use crate::tool::ToolSpec;

/// Encodes a request as a JSON body.
///
/// - The server stores nothing (`store: false`): the whole conversation is sent each time, with the encrypted
///   thinking of the model, which is asked for by `include`.
/// - Items of the model's output are sent back as they came: reasoning byte for byte, calls with both their
///   ids, items of the server's own tools. Reasoning at the end of a message, which was cut before its
///   answer, is left out, because the API refuses it.
/// - System messages become messages of the `developer` where they are; [`ChatRequest::system`] becomes
///   `instructions`.
/// - A failure of a tool is said in the text of its result.
/// - The request's `extra` fields come last and replace fields of the same name; fields of `reasoning` and
///   `text` are added to those objects. The API has no stop sequences and refuses a body with them, so
///   [`OpenAiModel`](crate::OpenAiModel) does not send such a request.
///
/// ```
/// use agentgraph_llm::{ChatRequest, openai};
///
/// let body = openai::responses::encode("m", &ChatRequest::user("Hi"), false);
/// assert_eq!(
///     body.get(),
///     r#"{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]}],"store":false,"include":["reasoning.encrypted_content"]}"#
/// );
/// ```
pub fn encode(model: &str, request: &ChatRequest, stream: bool) -> RawJson {
    let mut body = counted(model, request)
        .with("store", boolean(false))
        .with("include", array([RawJson::string("reasoning.encrypted_content")]));
    if let Some(tokens) = request.max_tokens {
        body.set("max_output_tokens", number(tokens));
    }
    if let Some(temperature) = request.temperature {
        body.set("temperature", number(temperature));
    }
    if let Some(share) = request.top_p {
        body.set("top_p", number(share));
    }
    if !request.stop.is_empty() {
        body.set("stop", array(request.stop.iter().map(|stop| RawJson::string(stop))));
    }
    if stream {
        body.set("stream", boolean(true));
    }
    with_extra(body, &request.extra, |_| true).to_json()
}

/// Encodes a request as the body of a token count, which has the fields that are counted.
///
/// ```
/// use agentgraph_llm::{ChatRequest, openai};
///
/// let body = openai::responses::encode_count("m", &ChatRequest::user("Hi").with_max_tokens(5));
/// assert!(!body.get().contains("max_output_tokens"));
/// ```
pub fn encode_count(model: &str, request: &ChatRequest) -> RawJson {
    const COUNTED: [&str; 6] =
        ["conversation", "personality", "previous_response_id", "reasoning", "text", "truncation"];
    with_extra(counted(model, request), &request.extra, |name| COUNTED.contains(&name)).to_json()
}

fn counted(model: &str, request: &ChatRequest) -> Object {
    let info = ModelInfo::new(PROVIDER, model);
    let mut body = Object::default().with("model", RawJson::string(model));
    if let Some(system) = &request.system {
        body.set("instructions", RawJson::string(system));
    }
    body.set("input", array(input::encode(&request.messages, &info)));
    set_tools(&mut body, request);
    if let Some(output) = &request.output {
        body.set("text", Object::default().with("format", format(output)).to_json());
    }
    if let Some(effort) = &request.effort {
        body.set("reasoning", Object::default().with("effort", RawJson::string(effort.as_str())).to_json());
    }
    body
}

fn with_extra(mut body: Object, extra: &Extra, takes: impl Fn(&str) -> bool) -> Object {
    for (name, value) in extra.iter().filter(|(name, _)| takes(name)) {
        let grows = matches!(name, "reasoning" | "text");
        let old = body.get_as::<Object>(name).filter(|_| grows);
        match (old, Object::parse(value.get())) {
            (Some(old), Ok(news)) => body.set(name, old.with_all(&news.into_extra()).to_json()),
            _ => body.set(name, value.clone()),
        }
    }
    body
}

fn set_tools(body: &mut Object, request: &ChatRequest) {
    if request.tools.is_empty() {
        return;
    }
    body.set("tools", array(request.tools.iter().map(tool)));
    match &request.tool_choice.mode {
        ToolMode::Auto => {}
        ToolMode::Any => body.set("tool_choice", RawJson::string("required")),
        ToolMode::None => body.set("tool_choice", RawJson::string("none")),
        ToolMode::Tool(name) => {
            body.set("tool_choice", object("function").with("name", RawJson::string(name)).to_json());
        }
    }
    if let Some(parallel) = request.tool_choice.parallel {
        body.set("parallel_tool_calls", boolean(parallel));
    }
}

/// The API makes tools strict unless they say no, and refuses schemas outside of its subset then.
fn tool(spec: &ToolSpec) -> RawJson {
    if let Some(raw) = &spec.raw {
        return raw.clone();
    }
    let sent = schema::arguments(&spec.input_schema, spec.strict, true);
    object("function")
        .with("name", RawJson::string(&spec.name))
        .with("description", RawJson::string(&spec.description))
        .with("parameters", sent.schema)
        .with("strict", boolean(sent.strict.unwrap_or(false)))
        .with_all(&spec.extra)
        .to_json()
}

fn format(output: &OutputSpec) -> RawJson {
    let sent = schema::answer(output, true);
    object("json_schema")
        .with("name", RawJson::string(&output.name))
        .with("schema", sent.schema)
        .with("strict", boolean(sent.strict.unwrap_or(false)))
        .to_json()
}
