//! A request as the body of Chat Completions.

use crate::json::{Object, RawJson};
use crate::model::{ChatRequest, ModelInfo, OutputSpec, ToolMode};
use crate::tool::ToolSpec;

use super::messages;
use crate::openai::wire::{array, boolean, number, object};
use crate::openai::{Profile, schema};

/// Encodes a request as a JSON body for a server with this profile.
///
/// - System messages stay where they are in the conversation, in the profile's role.
/// - Each tool result is a message of its own, before all else of its turn. Such a message has text only, so
///   images and other media of a result follow in a message of the user. A failure is said in the text.
/// - Thinking is sent back in the profile's field, unknown parts and fields of an assistant message as they
///   came. Citations (`annotations`) are not sent back, because the API refuses them.
/// - Arguments that are not JSON are sent back as the model wrote them, or as `{"INVALID_JSON": "..."}` if
///   the server cannot read them.
/// - The request's `extra` fields come last and replace fields of the same name.
///
/// ```
/// use agentgraph_llm::{ChatRequest, openai};
///
/// let body = openai::chat::encode("m", &ChatRequest::user("Hi"), &openai::Profile::openai(), false);
/// assert_eq!(body.get(), r#"{"model":"m","messages":[{"role":"user","content":"Hi"}]}"#);
/// ```
pub fn encode(model: &str, request: &ChatRequest, profile: &Profile, stream: bool) -> RawJson {
    let info = ModelInfo::new(profile.provider.clone(), model);
    let mut body = Object::default()
        .with("model", RawJson::string(model))
        .with("messages", array(messages::encode(request, &info, profile)));
    set_tools(&mut body, request, profile);
    if let Some(tokens) = request.max_tokens {
        body.set(&profile.max_tokens_field, number(tokens));
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
    if let Some(output) = &request.output {
        body.set("response_format", response_format(output, profile));
    }
    if let Some(effort) = &request.effort {
        body.set("reasoning_effort", RawJson::string(effort.as_str()));
    }
    if stream {
        body.set("stream", boolean(true));
        if profile.takes_stream_options {
            body.set("stream_options", Object::default().with("include_usage", boolean(true)).to_json());
        }
    }
    body.with_all(&request.extra).to_json()
}

fn set_tools(body: &mut Object, request: &ChatRequest, profile: &Profile) {
    let choice = &request.tool_choice;
    let only = match &choice.mode {
        ToolMode::Tool(name) if !profile.names_forced_tool => Some(name),
        _ => None,
    };
    let tools = request.tools.iter().filter(|tool| only.is_none_or(|name| tool.name == *name));
    let tools: Vec<_> = tools.map(|spec| tool(spec, profile)).collect();
    if tools.is_empty() {
        return;
    }
    body.set("tools", RawJson::array(&tools));
    match &choice.mode {
        ToolMode::Auto => {}
        ToolMode::None => body.set("tool_choice", RawJson::string("none")),
        ToolMode::Tool(name) if only.is_none() => {
            let function = Object::default().with("name", RawJson::string(name)).to_json();
            body.set("tool_choice", object("function").with("function", function).to_json());
        }
        ToolMode::Any | ToolMode::Tool(_) => body.set("tool_choice", RawJson::string("required")),
    }
    if let Some(parallel) = choice.parallel {
        body.set("parallel_tool_calls", boolean(parallel));
    }
}

fn tool(spec: &ToolSpec, profile: &Profile) -> RawJson {
    if let Some(raw) = &spec.raw {
        return raw.clone();
    }
    let sent = schema::arguments(&spec.input_schema, spec.strict, profile.strict_subset);
    let mut function = Object::default()
        .with("name", RawJson::string(&spec.name))
        .with("description", RawJson::string(&spec.description))
        .with("parameters", sent.schema);
    if let Some(strict) = sent.strict {
        function.set("strict", boolean(strict));
    }
    object("function").with("function", function.to_json()).with_all(&spec.extra).to_json()
}

fn response_format(output: &OutputSpec, profile: &Profile) -> RawJson {
    let sent = schema::answer(output, profile.strict_subset);
    let mut schema =
        Object::default().with("name", RawJson::string(&output.name)).with("schema", sent.schema);
    if let Some(strict) = sent.strict {
        schema.set("strict", boolean(strict));
    }
    object("json_schema").with("json_schema", schema.to_json()).to_json()
}
