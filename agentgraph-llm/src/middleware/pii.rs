//! Personal data in messages: found, and blocked, redacted, masked or hashed.

mod kind;
mod pattern;
mod scrubber;
mod strategy;
mod stream;

use std::collections::BTreeSet;

use async_trait::async_trait;

use super::{Hooks, Jump, Middleware, ModelRequest, NextModel, NextTool, Turn};
use crate::error::Result;
use crate::message::{Block, Message, Role};
use crate::model::ChatStream;
use crate::tool::{ToolCall, ToolError, ToolOutput};
use scrubber::Scrubber;

pub use kind::PiiKind;
pub use strategy::PiiStrategy;

/// Keeps one kind of personal data out of a conversation: in what the user writes, in what the model answers,
/// and in the results of tools. Use one for each kind.
///
/// An answer is cleaned while it streams. Text that may become a match is held back until it is known whether
/// it does, so a match that is cut into pieces does not leak, and all other text passes at once. What a
/// listener heard, and what is stored, are the same.
///
/// Cleaned are texts, and thinking without a signature. A provider accepts signed thinking only unchanged, so
/// it is cleaned for listeners and stored as it is.
///
/// Not cleaned are: the input in the checkpoint before the first hook; the arguments of calls, since a tool
/// that sends mail needs the address; messages that you hand over as the assistant's or the system's;
/// summaries, until the next run; content that is no text, and fields beside a text; errors that fail the run;
/// and the artifacts of tools. The guide on middleware says what to do about each.
///
/// ```
/// use agentgraph_llm::middleware::{Middleware, ModelRequest, NextModel, Pii, PiiKind, PiiStrategy};
/// use agentgraph_llm::prelude::*;
/// use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agentgraph_llm::Result<()> {
/// let model = ScriptedModel::new(["Ask ada@lovelace.org about it."]);
/// let request = ModelRequest::new(Arc::new(model), ChatRequest::user("Whom do I ask?"));
///
/// let pii = Pii::new(PiiKind::email()).strategy(PiiStrategy::Redact);
/// let answer = pii.wrap_model(request, NextModel::direct()).await?.into_response().await?;
/// assert_eq!(answer.message.text(), "Ask [REDACTED_EMAIL] about it.");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Pii {
    name: String,
    rule: Rule,
    places: BTreeSet<PiiPlace>,
}

/// Where personal data is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum PiiPlace {
    /// In the messages of the user, when a run begins. The conversation is cleaned; the checkpoint before
    /// this hook has the message as it was written.
    Input,
    /// In the answers of the model.
    Output,
    /// In the results of tools, and in their errors.
    ToolResults,
}

/// What is looked for, and what is done with it.
#[derive(Clone, Debug)]
struct Rule {
    kind: PiiKind,
    strategy: PiiStrategy,
}

impl Pii {
    /// Redacts this kind, in all places.
    pub fn new(kind: PiiKind) -> Self {
        let places = BTreeSet::from([PiiPlace::Input, PiiPlace::Output, PiiPlace::ToolResults]);
        Pii {
            name: format!("pii_{}", kind.name()),
            rule: Rule { kind, strategy: PiiStrategy::default() },
            places,
        }
    }

    /// Sets what is done with a match.
    pub fn strategy(mut self, strategy: PiiStrategy) -> Self {
        self.rule.strategy = strategy;
        self
    }

    /// Looks in these places only.
    pub fn only_in(mut self, places: impl IntoIterator<Item = PiiPlace>) -> Self {
        self.places = places.into_iter().collect();
        self
    }
}

#[async_trait]
impl Middleware for Pii {
    fn name(&self) -> &str {
        &self.name
    }

    fn hooks(&self) -> Hooks {
        if self.places.contains(&PiiPlace::Input) { Hooks::NONE.before_agent() } else { Hooks::NONE }
    }

    async fn before_agent(&self, turn: &mut Turn) -> Result<Jump> {
        let of_user = turn.messages().iter().filter(|message| message.role == Role::User);
        let clean: Result<Vec<_>> = of_user.map(|message| self.rule.clean_message(message)).collect();
        clean?.into_iter().flatten().for_each(|message| turn.put(message));
        Ok(Jump::Next)
    }

    async fn wrap_model(&self, request: ModelRequest, next: NextModel<'_>) -> Result<ChatStream> {
        let stream = next.run(request).await?;
        Ok(if self.places.contains(&PiiPlace::Output) {
            stream::clean(self.rule.clone(), stream)
        } else {
            stream
        })
    }

    async fn wrap_tool(&self, call: &ToolCall, next: NextTool<'_>) -> Result<ToolOutput, ToolError> {
        let output = next.run(call).await;
        if !self.places.contains(&PiiPlace::ToolResults) {
            return output;
        }
        match output {
            Ok(mut output) => {
                self.rule.clean_blocks(&mut output.content)?;
                Ok(output)
            }
            Err(ToolError::Failed(why)) => Err(ToolError::Failed(self.rule.clean_text(&why)?)),
            Err(ToolError::InvalidArguments(why)) => {
                Err(ToolError::InvalidArguments(self.rule.clean_text(&why)?))
            }
            Err(error) => Err(error),
        }
    }
}

impl Rule {
    fn replacement(&self, found: &str) -> Result<String> {
        self.strategy.replacement(&self.kind, found)
    }

    /// A whole text without its matches.
    fn clean_text(&self, text: &str) -> Result<String> {
        let mut scrubber = Scrubber::new();
        let mut clean = scrubber.push(self, text)?;
        clean += &scrubber.finish(self)?;
        Ok(clean)
    }

    fn clean_blocks(&self, blocks: &mut [Block]) -> Result<()> {
        for block in blocks {
            match block {
                Block::Text(block) => block.text = self.clean_text(&block.text)?,
                Block::Thinking(block) if block.signature.is_none() => {
                    block.thinking = self.clean_text(&block.thinking)?;
                }
                Block::ToolResult(result) => self.clean_blocks(&mut result.content)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// The message without matches; `None` if it has none.
    fn clean_message(&self, message: &Message) -> Result<Option<Message>> {
        let mut clean = message.clone();
        self.clean_blocks(&mut clean.content)?;
        Ok(Some(clean).filter(|clean| clean != message))
    }
}

#[cfg(test)]
mod tests;
