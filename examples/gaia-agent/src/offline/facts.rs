//! The contents of a request: the question, its file, the tools, and the results so far.

use agentgraph_llm::{ChatRequest, Message, Role};
use serde_json::Value;

use super::Step;

/// The result of a call.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) tool: String,
    pub(super) input: Value,
    pub(super) text: String,
    pub(super) failed: bool,
}

/// The contents of a request.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) question: String,
    /// The path of the file that the instructions name.
    pub(super) file: Option<String>,
    pub(super) results: Vec<Found>,
    tools: Vec<String>,
}

impl Facts {
    pub(super) fn of(request: &ChatRequest) -> Self {
        let is_said = |message: &&Message| message.role == Role::User && message.results().next().is_none();
        let question = request.messages.iter().rev().find(is_said).map(Message::text).unwrap_or_default();
        let system =
            request.messages.iter().filter(|message| message.role == Role::System).map(Message::text);
        let instructions: String = request.system.clone().into_iter().chain(system).collect();
        let file = instructions
            .split_once("The question has a file: `")
            .and_then(|(_, rest)| rest.split('`').next());
        Facts {
            question,
            file: file.map(str::to_owned),
            results: results(&request.messages),
            tools: request.tools.iter().map(|tool| tool.name.clone()).collect(),
        }
    }

    pub(super) fn offers(&self, tool: &str) -> bool {
        self.tools.iter().any(|offered| offered == tool)
    }

    /// The text of a tool's result for this input. Before there is one, the tool is to be called.
    pub(super) fn ask(&self, tool: &'static str, input: Value) -> Result<&str, Step> {
        if !self.offers(tool) {
            return Err(Step::Unable(format!("the tool `{tool}` is not offered")));
        }
        match self.results.iter().rfind(|found| found.tool == tool && found.input == input) {
            None => Err(Step::Call(tool, input)),
            Some(found) if found.failed => Err(Step::Unable(format!("`{tool}` failed: {}", found.text))),
            Some(found) => Ok(&found.text),
        }
    }

    /// The path of the file, for a question that has one.
    pub(super) fn file(&self) -> Result<&str, Step> {
        self.file.as_deref().ok_or_else(|| Step::Unable("the file of the question is missing".to_owned()))
    }
}

fn results(messages: &[Message]) -> Vec<Found> {
    let results: Vec<_> = messages.iter().flat_map(Message::results).collect();
    let found = messages.iter().flat_map(Message::tool_uses).filter_map(|call| {
        let result = results.iter().find(|result| result.tool_use_id == call.id)?;
        Some(Found {
            tool: call.name.clone(),
            input: call.input.json().and_then(|json| json.parse().ok()).unwrap_or_default(),
            text: result.as_text(),
            failed: result.is_error,
        })
    });
    found.collect()
}
