//! One text for all requests that ask for the same.

use serde_json::{Value, json};

use crate::json::Extra;
use crate::message::Message;
use crate::model::{ChatRequest, ToolChoice, ToolMode};
use crate::tool::ToolSpec;

impl ChatRequest {
    /// The request as JSON in one fixed form: equal for requests that ask for the same. Keys are sorted, and
    /// what no model sees is left out: ids and origins of messages, and artifacts of tools. Arguments and
    /// unknown content count by their text.
    ///
    /// ```
    /// use agentgraph_llm::{ChatRequest, Message};
    ///
    /// let [one, two] = ["m-1", "m-2"].map(|id| ChatRequest::new([Message::user("Hi").with_id(id)]));
    /// assert_eq!(one.canonical(), two.canonical());
    /// assert_ne!(one.canonical(), two.with_max_tokens(5).canonical());
    /// ```
    pub fn canonical(&self) -> String {
        let ChatRequest { system, messages, tools, tool_choice, max_tokens, temperature, .. } = self;
        let ChatRequest { top_p, stop, output, effort, extra, .. } = self;
        let output = output.as_ref().map(|output| json!([output.name, output.schema, output.strict]));
        let request = json!({
            "system": system,
            "messages": messages.iter().map(message).collect::<Vec<_>>(),
            "tools": tools.iter().map(tool).collect::<Vec<_>>(),
            "tool_choice": choice(tool_choice),
            "max_tokens": max_tokens,
            "temperature": temperature,
            "top_p": top_p,
            "stop": stop,
            "output": output,
            "effort": effort.as_ref().map(|effort| effort.as_str()),
            "extra": fields(extra),
        });
        sorted(request).to_string()
    }
}

fn message(message: &Message) -> Value {
    let mut content = serde_json::to_value(&message.content).unwrap_or_default();
    remove_artifacts(&mut content);
    json!({ "role": message.role, "content": content })
}

/// Artifacts are fields of tool results, which are blocks of a message and never inside one another.
fn remove_artifacts(content: &mut Value) {
    let blocks = content.as_array_mut().into_iter().flatten();
    for result in blocks.filter_map(|block| block.get_mut("tool_result")?.as_object_mut()) {
        result.remove("artifact");
    }
}

fn tool(spec: &ToolSpec) -> Value {
    match &spec.raw {
        Some(raw) => json!({ "raw": raw.get() }),
        None => json!([spec.name, spec.description, spec.input_schema, spec.strict, fields(&spec.extra)]),
    }
}

fn choice(choice: &ToolChoice) -> Value {
    let mode = match &choice.mode {
        ToolMode::Auto => json!("auto"),
        ToolMode::Any => json!("any"),
        ToolMode::Tool(name) => json!({ "tool": name }),
        ToolMode::None => json!("none"),
    };
    json!([mode, choice.parallel])
}

fn fields(extra: &Extra) -> Value {
    extra.iter().map(|(name, value)| (name.to_owned(), json!(value.get()))).collect()
}

/// The value with sorted keys, also where another crate makes `serde_json` keep their order.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<_> = map.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            fields.sort_by(|(one, _), (two, _)| one.cmp(two));
            fields.into_iter().collect()
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}
