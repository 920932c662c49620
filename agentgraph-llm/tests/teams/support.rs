//! Agents for the tests.

use agentgraph_llm::prelude::*;
use serde_json::json;

/// An agent with a name and a script.
pub fn agent(name: &str, model: &ScriptedModel) -> Agent {
    Agent::new(model.clone()).name(name).description(format!("Knows {name}."))
}

pub fn texts<const N: usize>(replies: [&str; N]) -> ScriptedModel {
    ScriptedModel::new(replies.map(Reply::text))
}

/// An answer that gives a task to a worker.
pub fn task(worker: &str, task: &str) -> Reply {
    Reply::tool_call(worker, json!({ "task": task }))
}

/// A tool that asks a person.
pub fn ask() -> FnTool {
    FnTool::with_call("ask", "Asks.", async |_: Nothing, call: ToolCall| {
        let answer: String = call.ctx()?.interrupt_as(call.id(), "which one?")?;
        Ok::<_, ToolError>(answer)
    })
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
pub struct Nothing {}

/// A message in short: its author, then its text, calls and results.
pub fn short(message: &Message) -> String {
    let role = format!("{:?}", message.role).to_lowercase();
    let calls = message.tool_uses().map(|call| format!("[{} {}]", call.id, call.name));
    let results = message.results().map(|result| {
        let sign = if result.is_error { "!" } else { "=" };
        format!("{}{sign}{}", result.tool_use_id, result.as_text())
    });
    let text = Some(message.text()).filter(|text| !text.is_empty());
    let parts: Vec<String> = text.into_iter().chain(calls).chain(results).collect();
    format!("{role}: {}", parts.join(" "))
}

/// The last request of a model, in short.
pub fn seen(model: &ScriptedModel) -> Vec<String> {
    model.requests().last().unwrap().messages.iter().map(short).collect()
}

/// What every provider demands: each call is answered once, in the message right after it.
pub fn assert_sendable(model: &ScriptedModel) {
    for request in model.requests() {
        let messages = &request.messages;
        for (at, message) in messages.iter().enumerate() {
            let calls: Vec<_> = message.tool_uses().map(|call| call.id.clone()).collect();
            if !calls.is_empty() {
                let answered: Vec<_> =
                    messages[at + 1].results().map(|result| result.tool_use_id.clone()).collect();
                assert_eq!(calls, answered);
            }
        }
        let results = messages.iter().flat_map(Message::results).count();
        assert_eq!(results, messages.iter().flat_map(Message::tool_uses).count());
    }
}
