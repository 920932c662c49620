//! [`Journal`]: the log of an agent's calls. It also keeps keys out of what tools give to a model, and so out
//! of checkpoints.

use agentgraph_llm::middleware::{ModelRequest, NextModel, NextTool};
use agentgraph_llm::{
    Block, ChatEvent, ChatResponse, ChatStream, Hooks, Middleware, Result, ToolCall, ToolError, ToolOutput,
};
use async_trait::async_trait;
use futures_util::StreamExt;

use super::Asked;
use crate::log::{Log, chain};

/// The most characters of a text in the log.
const LONGEST: usize = 20_000;

/// Logs each request to a model, each attempt of it, and each call of a tool.
pub(super) struct Journal(pub(super) Log);

/// The id of the question that a call is about; empty outside of one.
pub(super) fn task_of(ctx: Option<&agentgraph::Ctx>) -> String {
    let asked = ctx.and_then(|ctx| ctx.call_context::<Asked>().ok());
    asked.map(|asked| asked.task.clone()).unwrap_or_default()
}

#[async_trait]
impl Middleware for Journal {
    fn name(&self) -> &str {
        "journal"
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE
    }

    async fn wrap_model(&self, request: ModelRequest, next: NextModel<'_>) -> Result<ChatStream> {
        let (log, task, model) = (self.0.clone(), task_of(request.ctx()), request.model.info().to_string());
        let count = request.request.messages.len();
        log.line(&task, "model", &format!("{model} is asked, with {count} messages"));
        let begun = next.run(request).await;
        let stream = begun
            .inspect_err(|error| log.line(&task, "model failed", &format!("{model}: {}", chain(error))))?;
        Ok(ChatStream::new(stream.inspect(move |event| match event {
            Ok(ChatEvent::Finished(response)) => answered(&log, &task, response),
            Ok(_) => {}
            Err(error) => log.line(&task, "model failed", &format!("{model}: {}", chain(error))),
        })))
    }

    async fn wrap_tool(&self, call: &ToolCall, next: NextTool<'_>) -> Result<ToolOutput, ToolError> {
        let task = task_of(call.ctx().ok());
        self.0.line(&task, "tool", &format!("{} {}", call.name(), short(call.input().get())));
        match next.run(call).await {
            Ok(output) => {
                let output = self.without_keys(output);
                let text: String = output.content.iter().filter_map(Block::as_text).collect();
                self.0.line(&task, "result", &format!("{}: {}", call.name(), short(&text)));
                Ok(output)
            }
            Err(error) => {
                self.0.line(&task, "tool failed", &format!("{}: {}", call.name(), text_of(&error)));
                Err(self.error_without_keys(error))
            }
        }
    }
}

impl Journal {
    fn without_keys(&self, mut output: ToolOutput) -> ToolOutput {
        for block in &mut output.content {
            if let Block::Text(text) = block
                && self.0.secrets().are_in(&text.text)
            {
                text.text = self.0.secrets().mask(&text.text);
            }
        }
        output
    }

    fn error_without_keys(&self, error: ToolError) -> ToolError {
        match error {
            ToolError::Failed(why) => ToolError::Failed(self.0.secrets().mask(&why)),
            ToolError::InvalidArguments(why) => ToolError::InvalidArguments(self.0.secrets().mask(&why)),
            other => other,
        }
    }
}

fn answered(log: &Log, task: &str, response: &ChatResponse) {
    for block in &response.message.content {
        match block {
            Block::Thinking(thinking) => log.line(task, "reasoning", &short(&thinking.thinking)),
            Block::Text(text) => log.line(task, "text", &short(&text.text)),
            Block::ToolUse(call) => {
                log.line(task, "call", &format!("{} {}", call.name, short(call.input.text())));
            }
            _ => {}
        }
    }
    let usage = response.usage;
    let (input, output) = (usage.input_total, usage.output_total);
    log.line(
        task,
        "model done",
        &format!("{} ({}), {input} + {output} tokens", response.model, response.stop),
    );
}

fn text_of(error: &ToolError) -> String {
    match error {
        ToolError::Fatal(error) => chain(&**error),
        other => other.to_string(),
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((at, _)) => format!("{} [{} bytes more]", &text[..at], text.len() - at),
    }
}
