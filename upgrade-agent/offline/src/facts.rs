//! The contents of a request: the node, the person's message, the situation, and the results of tools.
//!
//! All of it comes from the request, since the model keeps no state. Nothing fails here: missing parts are
//! empty.

use agentgraph_llm::{ChatRequest, Message, Role};
use serde_json::{Value, json};

/// The node that calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Analyzer,
    Gatherer,
    Responder,
    Nobody,
}

/// The result of a tool.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) tool: String,
    pub(crate) input: Value,
    pub(crate) output: Value,
    pub(crate) failed: bool,
}

/// The contents of a request.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) node: Node,
    /// The person's last message.
    pub(crate) message: String,
    /// The person's messages before it, oldest first.
    pub(crate) earlier: Vec<String>,
    /// The reply before that message.
    pub(crate) before: String,
    pub(crate) situation: Value,
    pub(crate) answers: Vec<Answer>,
    tools: Vec<String>,
}

impl Facts {
    pub(crate) fn of(request: &ChatRequest) -> Self {
        let system = request.system.as_deref().unwrap_or_default();
        let said = |message: &Message| message.role == Role::User && message.results().next().is_none();
        let last = request.messages.iter().rposition(said);
        let mut earlier: Vec<String> =
            request.messages.iter().filter(|message| said(message)).map(Message::text).collect();
        let message = earlier.pop().unwrap_or_default();
        let before =
            request.messages[..last.unwrap_or_default()].iter().rfind(|one| one.role == Role::Assistant);
        let since = last.map_or(&[][..], |at| &request.messages[at + 1..]);
        Facts {
            node: node(system),
            message,
            earlier,
            before: before.map(Message::text).unwrap_or_default(),
            situation: situation(system),
            answers: answers(since),
            tools: request.tools.iter().map(|tool| tool.name.clone()).collect(),
        }
    }

    pub(crate) fn offers(&self, tool: &str) -> bool {
        self.tools.iter().any(|offered| offered == tool)
    }

    /// The result of a tool for this input.
    pub(crate) fn answer(&self, tool: &str, input: &Value) -> Option<&Answer> {
        self.answers.iter().rfind(|answer| answer.tool == tool && (answer.input == *input || input.is_null()))
    }

    pub(crate) fn was_called(&self, tool: &str) -> bool {
        self.answers.iter().any(|answer| answer.tool == tool)
    }

    /// Whether a list of the situation has entries.
    pub(crate) fn has_any(&self, name: &str) -> bool {
        self.situation_field(name).as_array().is_some_and(|all| !all.is_empty())
    }

    /// A field of the situation; null if it is missing.
    pub(crate) fn situation_field(&self, name: &str) -> &Value {
        self.situation.get(name).unwrap_or(&Value::Null)
    }
}

fn node(system: &str) -> Node {
    let name = system.lines().find_map(|line| line.trim().strip_prefix("Node:")).map(str::trim);
    match name {
        Some("conversation_analyzer") => Node::Analyzer,
        Some("information_gatherer") => Node::Gatherer,
        Some("response_generator") => Node::Responder,
        _ => Node::Nobody,
    }
}

/// The JSON in the fenced block under the heading `Situation`.
fn situation(system: &str) -> Value {
    let block =
        system.rfind("Situation\n").and_then(|at| system.get(at..)).and_then(|rest| rest.split("```").nth(1));
    let json = block.map(|block| block.trim_start_matches("json").trim()).unwrap_or_default();
    serde_json::from_str(json).unwrap_or_else(|_| json!({}))
}

fn answers(messages: &[Message]) -> Vec<Answer> {
    let calls = messages.iter().flat_map(Message::tool_uses);
    let find = |id: &str| messages.iter().flat_map(Message::results).find(|result| result.tool_use_id == id);
    calls
        .filter_map(|call| {
            let result = find(&call.id)?;
            let text = result.as_text();
            Some(Answer {
                tool: call.name.clone(),
                input: call.input.json().and_then(|json| json.parse().ok()).unwrap_or_default(),
                output: serde_json::from_str(&text).unwrap_or(Value::String(text)),
                failed: result.is_error,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use agentgraph_llm::{Block, ToolResult, ToolUse};

    use super::*;

    #[test]
    fn node_situation_and_answers_are_read_from_the_request() {
        let call = ToolUse::new("c1", "get_experiment_names", json!({}));
        let request = ChatRequest::new([
            Message::user("hello"),
            Message::assistant("Hello!"),
            Message::user("start Foo"),
            Message::new(Role::Assistant, [Block::from(call)]),
            Message::tool_results([ToolResult::text("c1", r#"[{"id":"1","name":"Foo"}]"#)]),
        ])
        .with_system("Node: information_gatherer\nBe good.\n\nSituation\n```json\n{\"pending\": null, \"turn\": 2}\n```\n");
        let facts = Facts::of(&request);
        assert_eq!((facts.node, facts.message.as_str()), (Node::Gatherer, "start Foo"));
        assert_eq!(facts.earlier, ["hello"]);
        assert_eq!(facts.situation_field("turn"), 2);
        assert_eq!(facts.answer("get_experiment_names", &json!({})).unwrap().output[0]["name"], "Foo");
    }

    #[test]
    fn a_request_with_a_broken_situation_has_no_node_and_no_facts() {
        let facts = Facts::of(&ChatRequest::default().with_system("Situation\n```\n{broken\n```"));
        assert_eq!((facts.node, facts.situation), (Node::Nobody, json!({})));
    }
}
