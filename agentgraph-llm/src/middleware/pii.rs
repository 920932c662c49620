//! Personal data in messages: found, and blocked, redacted, masked or hashed.

mod json;
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
/// in the arguments of its calls, and in the results of tools. Use one for each kind.
///
/// An answer is cleaned while it streams. Text that may become a match is held back until it is known whether
/// it does, so a match that is cut into pieces does not leak, and all other text passes at once. What a
/// listener heard, and what is stored, are the same.
///
/// Arguments, and results that are JSON, stay JSON: strings are cleaned behind their escapes, and a number
/// with a match becomes a string. The arguments of a call are heard when the answer ends. A tool gets clean
/// arguments; if it needs the address, leave [`PiiPlace::Arguments`] out. A provider accepts signed thinking
/// only unchanged, so a signed block with a match is dropped.
///
/// Not cleaned are: the input of a run in its first checkpoint, which is stored before any hook runs (see
/// [`clean`](Pii::clean)); the system prompt and messages of the assistant that you hand over; images,
/// documents and blocks without a name here; further fields of blocks; summaries, until the next run; errors
/// that fail the run; artifacts of tools, which no model reads. The guide on middleware says what to do about
/// each.
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
    /// In the texts and the thinking of the model.
    Output,
    /// In the arguments of the model's calls: what is stored, and what the tools get.
    Arguments,
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
        let places = [PiiPlace::Input, PiiPlace::Output, PiiPlace::Arguments, PiiPlace::ToolResults];
        Pii {
            name: format!("pii_{}", kind.name()),
            rule: Rule { kind, strategy: PiiStrategy::default() },
            places: BTreeSet::from(places),
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

    /// A message without matches, in all its texts, arguments and results. The input of a run is stored
    /// before the first hook, so clean it before you hand it over if no checkpoint may have the data.
    ///
    /// ```
    /// use agentgraph_llm::Message;
    /// use agentgraph_llm::middleware::{Pii, PiiKind};
    ///
    /// # fn main() -> agentgraph_llm::Result<()> {
    /// let clean = Pii::new(PiiKind::email()).clean(&Message::user("I am ada@lovelace.org."))?;
    /// assert_eq!(clean.text(), "I am [REDACTED_EMAIL].");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `E_LLM_PII` under [`PiiStrategy::Block`].
    pub fn clean(&self, message: &Message) -> Result<Message> {
        let mut clean = message.clone();
        self.rule.clean_blocks(&mut clean.content)?;
        self.rule.clean_calls(&mut clean.content)?;
        Ok(clean)
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
        let (texts, arguments) =
            (self.places.contains(&PiiPlace::Output), self.places.contains(&PiiPlace::Arguments));
        Ok(match texts || arguments {
            true => stream::clean(self.rule.clone(), stream::Parts { texts, arguments }, stream),
            false => stream,
        })
    }

    async fn wrap_tool(&self, call: &ToolCall, next: NextTool<'_>) -> Result<ToolOutput, ToolError> {
        let output = next.run(call).await;
        if !self.places.contains(&PiiPlace::ToolResults) {
            return output;
        }
        match output {
            Ok(mut output) => {
                self.rule.clean_result(&mut output.content)?;
                Ok(output)
            }
            Err(ToolError::Failed(why)) => {
                Err(ToolError::Failed(json::clean_text_or_json(&self.rule, &why)?))
            }
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

    /// Texts, thinking and results of tools. Signed thinking with a match is dropped.
    fn clean_blocks(&self, blocks: &mut Vec<Block>) -> Result<()> {
        let mut clean = Vec::with_capacity(blocks.len());
        for mut block in std::mem::take(blocks) {
            match &mut block {
                Block::Text(block) => block.text = self.clean_text(&block.text)?,
                Block::Thinking(thinking) => {
                    let text = self.clean_text(&thinking.thinking)?;
                    if thinking.signature.is_some() && text != thinking.thinking {
                        continue;
                    }
                    thinking.thinking = text;
                }
                Block::ToolResult(result) => self.clean_result(&mut result.content)?,
                _ => {}
            }
            clean.push(block);
        }
        *blocks = clean;
        Ok(())
    }

    /// The content of a result, whose texts may be JSON.
    fn clean_result(&self, blocks: &mut [Block]) -> Result<()> {
        for block in blocks {
            if let Block::Text(block) = block {
                block.text = json::clean_text_or_json(self, &block.text)?;
            }
        }
        Ok(())
    }

    /// The arguments of calls.
    fn clean_calls(&self, blocks: &mut [Block]) -> Result<()> {
        for block in blocks {
            if let Block::ToolUse(call) = block {
                call.input = json::clean_input(self, &call.input)?;
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
