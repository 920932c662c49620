//! [`OfflineModel`]: a chat model without a network, with rules in place of a language model: for tests,
//! demonstrations and offline work.
//!
//! It gets the same request as other models (messages and tool schemas), keeps no state between calls, and
//! gives the same answer to the same request. It knows some kinds of questions and how to find their answers
//! with tools; it knows no answer. A question of another kind, and one whose tool is missing or fails, has
//! the answer `unknown`.

mod facts;
mod read;
mod skills;

use agentgraph_llm::{
    Block, ChatModel, ChatRequest, ChatResponse, ChatStream, Message, MessageIds, ModelInfo, Origin, Result,
    Role, StopReason, ToolUse, Usage,
};
use serde_json::Value;

use crate::answer::UNKNOWN;
use facts::Facts;

/// The name of the model, and of its provider.
const NAME: &str = "offline";

/// The introduction of the offline model.
pub const INTRODUCTION: &str = "The offline model answers: it works by rules, without a language model, and knows the kinds of \
questions of the embedded evaluation server alone. Set OPENAI_API_KEY for a language model.";

/// The offline model.
///
/// ```
/// use agentgraph_llm::{AskExt, ChatRequest};
/// use gaia_agent::offline::OfflineModel;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let question = "Put these harbours in alphabetical order, as a comma separated list: Oslo, Bergen.";
/// let answer = OfflineModel::new().chat(ChatRequest::user(question)).await?;
/// assert!(answer.message.text().ends_with("FINAL ANSWER: Bergen, Oslo"));
/// # Ok::<(), agentgraph_llm::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, Default)]
pub struct OfflineModel;

/// The next step of the model.
#[derive(Debug)]
enum Step {
    /// It calls a tool.
    Call(&'static str, Value),
    /// It has found the answer.
    Answer(String),
    /// It cannot find it, for this reason.
    Unable(String),
}

impl OfflineModel {
    /// The model.
    pub fn new() -> Self {
        OfflineModel
    }

    fn answer(&self, request: &ChatRequest) -> ChatResponse {
        let facts = Facts::of(request);
        let (blocks, stop): (Vec<Block>, _) = match skills::next(&facts) {
            Step::Call(tool, input) => {
                let id = format!("call-{}", facts.results.len() + 1);
                (vec![ToolUse::new(id, tool, input).into()], StopReason::ToolUse)
            }
            Step::Answer(answer) => {
                let found = if facts.results.is_empty() {
                    "It follows from the question."
                } else {
                    "The tools say so."
                };
                (vec![Block::text(format!("{found}\nFINAL ANSWER: {answer}"))], StopReason::EndTurn)
            }
            Step::Unable(why) => (
                vec![Block::text(format!("No answer was found: {why}.\nFINAL ANSWER: {UNKNOWN}"))],
                StopReason::EndTurn,
            ),
        };
        let message = Message::new(Role::Assistant, blocks)
            .with_id(MessageIds::default().next_id())
            .with_origin(Origin::new(NAME, NAME));
        let usage =
            Usage::new(letters(&request.messages) / 4, letters(std::slice::from_ref(&message)) / 4 + 1);
        ChatResponse::new(message, stop).with_model(NAME).with_usage(usage)
    }
}

/// The length of messages, for an estimate of tokens.
fn letters(messages: &[Message]) -> u64 {
    let of_block = |block: &Block| match block {
        Block::Text(text) => text.text.len(),
        Block::ToolUse(call) => call.name.len() + call.input.text().len(),
        Block::ToolResult(result) => result.as_text().len(),
        _ => 0,
    };
    messages.iter().flat_map(|message| &message.content).map(of_block).sum::<usize>() as u64
}

#[async_trait::async_trait]
impl ChatModel for OfflineModel {
    fn info(&self) -> ModelInfo {
        ModelInfo::new(NAME, NAME)
    }

    async fn stream(&self, request: ChatRequest) -> Result<ChatStream> {
        Ok(ChatStream::from_response(self.answer(&request)))
    }
}
