//! A chat model without a network: it reads plain requests about UpGrade with a grammar.
//!
//! It gets the same request as other models (messages, system prompt, tool schemas), keeps no state between
//! calls, and gives the same answer to the same request. It accepts a message only if the grammar consumes
//! all of it; otherwise it quotes the rest, and starts nothing. It knows the agent from its requests alone.
//!
//! `token` cuts a message into tokens, `grammar` has the productions, `matcher` matches them and `reading`
//! joins clauses to a message. `understanding` places a message in its conversation. `analyzer`, `gatherer`
//! and `responder` answer for the three nodes that call a model.

mod analyzer;
mod facts;
mod gatherer;
mod grammar;
mod matcher;
mod nearest;
mod notation;
mod reading;
mod responder;
mod sentences;
mod slots;
mod speech;
mod terms;
mod token;
mod understanding;
mod values;
mod wire;

#[cfg(test)]
mod tests;

use agentgraph_llm::{
    Block, ChatEvent, ChatModel, ChatRequest, ChatResponse, ChatStream, Message, MessageIds, ModelInfo,
    Result, Role, StopReason, ToolUse,
};
use futures_util::stream;
use serde_json::Value;

use facts::{Facts, Node};
use gatherer::NextStep;

/// The name of the model, and of its provider.
const NAME: &str = "offline";

/// The introduction of the offline model.
pub const INTRODUCTION: &str = "The offline model answers: it works by a grammar, without a language model, and understands \
plain requests about UpGrade only. Set ANTHROPIC_API_KEY for a language model.";

/// The offline model.
///
/// ```
/// use agentgraph_llm::{AskExt, ChatRequest};
/// use upgrade_offline_model::OfflineModel;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let model = OfflineModel::new();
/// let answer = model.chat(ChatRequest::user("What is A/B testing?")).await?;
/// assert!(answer.message.text().starts_with("A/B testing compares two or more versions"));
/// # Ok::<(), agentgraph_llm::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, Default)]
pub struct OfflineModel {
    ids: MessageIds,
}

impl OfflineModel {
    /// The model.
    pub fn new() -> Self {
        OfflineModel::default()
    }

    /// Sets the source of message ids, such as [`MessageIds::sequence`].
    pub fn message_ids(mut self, ids: MessageIds) -> Self {
        self.ids = ids;
        self
    }

    fn answer(&self, request: &ChatRequest) -> ChatResponse {
        let facts = Facts::of(request);
        let step = match facts.node {
            Node::Analyzer if facts.offers(analyzer::TOOL) => {
                NextStep::Call(vec![(analyzer::TOOL, analyzer::analysis(&facts))])
            }
            Node::Gatherer => gatherer::next(&facts),
            _ => responder::next(&facts),
        };
        let (blocks, stop) = match step {
            NextStep::Done(text) => (vec![Block::text(text)], StopReason::EndTurn),
            NextStep::Call(calls) => (called(calls, facts.answers.len()), StopReason::ToolUse),
        };
        let message = Message::new(Role::Assistant, blocks).with_id(self.ids.next_id());
        ChatResponse::new(message, stop).with_model(NAME)
    }
}

/// The tool calls, with ids that continue those of earlier rounds.
fn called(calls: Vec<(&'static str, Value)>, before: usize) -> Vec<Block> {
    let numbered = calls.into_iter().enumerate();
    numbered
        .map(|(at, (tool, input))| ToolUse::new(format!("call-{}", before + at + 1), tool, input).into())
        .collect()
}

/// The work of reading a message, as the number of the parser's steps and the bytes of the message.
///
/// ```
/// let short = upgrade_offline_model::work_of_reading("start Hints");
/// assert!(short > 0 && short < upgrade_offline_model::work_of_reading("start Hints, then stop it"));
/// ```
pub fn work_of_reading(message: &str) -> u64 {
    reading::read(message, &slots::Known::default(), "").work
}

/// The table of forms that the model understands, in Markdown.
///
/// ```
/// assert!(upgrade_offline_model::forms_table().contains("| start Hints | set status |"));
/// ```
pub fn forms_table() -> String {
    speech::table()
}

/// The names of the actions that the model proposes, which are those of the agent.
///
/// ```
/// assert!(upgrade_offline_model::actions().any(|action| action == "delete_experiment"));
/// ```
pub fn actions() -> impl Iterator<Item = &'static str> {
    gatherer::ACTIONS.iter().map(|(_, action)| *action)
}

#[async_trait::async_trait]
impl ChatModel for OfflineModel {
    fn info(&self) -> ModelInfo {
        ModelInfo::new(NAME, NAME)
    }

    async fn stream(&self, request: ChatRequest) -> Result<ChatStream> {
        let response = self.answer(&request);
        let mut events: Vec<ChatEvent> = Vec::new();
        for (index, block) in response.message.content.iter().enumerate() {
            events.extend(pieces(index, block));
        }
        events.push(ChatEvent::Finished(response));
        Ok(ChatStream::new(stream::iter(events.into_iter().map(Ok))))
    }
}

/// The events of a response: text word by word, calls whole.
fn pieces(index: usize, block: &Block) -> Vec<ChatEvent> {
    match block {
        Block::Text(block) => {
            let words = block.text.split_inclusive([' ', '\n']);
            words.map(|text| ChatEvent::TextDelta { index, text: text.to_owned() }).collect()
        }
        Block::ToolUse(call) => vec![
            ChatEvent::ToolUseStarted { index, id: call.id.clone(), name: call.name.clone() },
            ChatEvent::ToolInputDelta { index, json: call.input.text().to_owned() },
        ],
        _ => Vec::new(),
    }
}
