//! Tools and conversations for the tests.

use std::sync::{Arc, Mutex};

use agentgraph_llm::prelude::*;
use agentgraph_llm::{ChatResponse, StopReason};
use serde_json::json;

/// What happened, in order.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
pub struct Number {
    pub n: u64,
}

/// A tool that logs its call and gives its number back.
pub fn echo(name: &str, log: &Log) -> FnTool {
    let log = log.clone();
    let label = name.to_owned();
    FnTool::new(name, "Gives the number back.", move |number: Number| {
        let (log, label) = (log.clone(), label.clone());
        async move {
            log.add(format!("{label} {}", number.n));
            Ok::<_, ToolError>(number.n.to_string())
        }
    })
}

/// An answer with a call of `tool` for each number.
pub fn calls(tool: &str, numbers: impl IntoIterator<Item = u64>) -> Reply {
    numbers.into_iter().fold(Reply::empty(), |reply, n| reply.and_tool_call(tool, json!({ "n": n })))
}

/// An answer whose ids follow from the conversation, so that asking again gives the same.
pub fn answer_to(request: &ChatRequest, blocks: Vec<Block>) -> Reply {
    let at = request.messages.len();
    let has_calls = blocks.iter().any(|block| block.as_tool_use().is_some());
    let stop = if has_calls { StopReason::ToolUse } else { StopReason::EndTurn };
    let message = Message::new(Role::Assistant, blocks).with_id(format!("answer-{at}"));
    ChatResponse::new(message, stop).into()
}

/// The number of the model's answers in a request.
pub fn rounds(request: &ChatRequest) -> u64 {
    request.messages.iter().filter(|message| message.role == Role::Assistant).count() as u64
}

/// The results of all calls in a conversation, as `id: text`.
pub fn results(messages: &[Message]) -> Vec<String> {
    let all = messages.iter().flat_map(Message::results);
    all.map(|result| format!("{}: {}", result.tool_use_id, result.as_text())).collect()
}
