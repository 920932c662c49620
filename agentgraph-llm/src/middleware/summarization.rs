//! The older part of a long conversation becomes a summary.

mod cut;
mod transcript;

use std::sync::Arc;

use async_trait::async_trait;

use super::{Hooks, Jump, Middleware, Turn};
use crate::error::{Code, Error, Result};
use crate::message::{Message, Role};
use crate::model::{AskExt, ChatModel, ChatRequest, TokenCount};

/// How much of a conversation. A fraction is of the tokens that a model takes, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Extent {
    /// This many tokens, by estimate.
    Tokens(u64),
    /// This many messages.
    Messages(usize),
    /// This part of the context window: see [`Summarization::context_window`].
    Fraction(f64),
}

/// Replaces the older part of a long conversation by a summary, which a model writes and the thread stores.
/// The last messages stay as they are, byte for byte: thinking keeps its signature, and no call is separated
/// from its result. System messages stay, too, and the task: the first message of the user.
///
/// ```
/// use agentgraph_llm::middleware::{Extent, Middleware, Summarization, Turn};
/// use agentgraph_llm::prelude::*;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agentgraph_llm::Result<()> {
/// let model = ScriptedModel::new(["They greeted each other."]);
/// let summary = Summarization::new(model, Extent::Messages(3)).keep(Extent::Messages(1));
///
/// let said = ["Hi", "Hello", "How are you?"].map(Message::user);
/// let mut turn = Turn::detached(summary.name(), said);
/// summary.before_model(&mut turn).await?;
/// assert_eq!(turn.messages()[0].text(), "Hi");
/// assert!(turn.messages()[1].text().contains("They greeted each other."));
/// assert_eq!(turn.messages()[2].text(), "How are you?");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Summarization {
    model: Arc<dyn ChatModel>,
    triggers: Vec<Extent>,
    keep: Extent,
    trim: Option<u64>,
    window: Option<u64>,
    prompt: String,
    keeps_task: bool,
}

/// The beginning of a summary.
const SUMMARY: &str = "Summary of the conversation so far:\n\n";

const PROMPT: &str = "\
Summarise the conversation below for an assistant that continues it and cannot see it. Keep the user's goals and \
wishes, decisions and their reasons, facts, names, numbers, paths and results that are still needed, and what is \
left to do. Leave out greetings and what was replaced later. Reply with the summary only.";

impl Summarization {
    /// Summarises with this model when a conversation has at least this extent; keeps the last 20 messages,
    /// and shows the model the last 4000 tokens of what is summarised.
    pub fn new(model: impl ChatModel + 'static, trigger: Extent) -> Self {
        Summarization {
            model: Arc::new(model),
            triggers: vec![trigger],
            keep: Extent::Messages(20),
            trim: Some(4000),
            window: None,
            prompt: PROMPT.to_owned(),
            keeps_task: true,
        }
    }

    /// Sets whether the first message of the user stays as it is (`true` if not set). Without it, the task is
    /// in the summary only as far as the model writes it there.
    pub fn keep_task(mut self, keeps: bool) -> Self {
        self.keeps_task = keeps;
        self
    }

    /// Summarises also when a conversation has this extent.
    pub fn or_at(mut self, trigger: Extent) -> Self {
        self.triggers.push(trigger);
        self
    }

    /// Sets how much stays. If it would begin between a call and its result, it begins at the call.
    pub fn keep(mut self, extent: Extent) -> Self {
        self.keep = extent;
        self
    }

    /// Sets how many tokens of the older part the model sees, from its end; `None` for all.
    pub fn trim(mut self, tokens: Option<u64>) -> Self {
        self.trim = tokens;
        self
    }

    /// Sets the tokens that fractions are of. The default is what the summarising model takes.
    pub fn context_window(mut self, tokens: u64) -> Self {
        self.window = Some(tokens);
        self
    }

    /// Sets the instructions for the summary. The conversation follows as text.
    pub fn prompt(mut self, prompt: impl Into<String>) -> Self {
        self.prompt = prompt.into();
        self
    }

    fn is_due(&self, messages: &[Message]) -> Result<bool> {
        let tokens = tokens(messages);
        for trigger in &self.triggers {
            let is_reached = match self.in_tokens(*trigger)? {
                Ok(limit) => tokens >= limit,
                Err(count) => messages.len() >= count,
            };
            if is_reached {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn cut(&self, messages: &[Message]) -> Result<usize> {
        let wanted = match self.in_tokens(self.keep)? {
            Ok(limit) => cut::cut_by_tokens(messages, limit, TokenCount::of_message),
            Err(count) => messages.len().saturating_sub(count),
        };
        Ok(cut::safe_cut(messages, wanted))
    }

    /// The extent in tokens, or else its number of messages.
    fn in_tokens(&self, extent: Extent) -> Result<Result<u64, usize>> {
        Ok(match extent {
            Extent::Tokens(tokens) => Ok(tokens),
            Extent::Messages(count) => Err(count),
            Extent::Fraction(fraction) => Ok((self.window()? as f64 * fraction.clamp(0.0, 1.0)) as u64),
        })
    }

    fn window(&self) -> Result<u64> {
        let info = self.model.info();
        self.window.or(info.capabilities.max_input_tokens).ok_or_else(|| {
            let message = format!(
                "the context window of `{}` is not known, so a fraction of it cannot be taken: set it with \
                 `Summarization::context_window`",
                info.model
            );
            Error::new(Code::Config, message)
        })
    }

    async fn summarise(&self, turn: &Turn, old: &[Message]) -> Result<Message> {
        let text = format!("{}\n\n{}", self.prompt, transcript::of(old, self.trim));
        let response = turn.billed(&self.model).chat(ChatRequest::user(text)).await?;
        Ok(Message::user(format!("{SUMMARY}{}", response.message.text())))
    }
}

fn tokens(messages: &[Message]) -> u64 {
    messages.iter().map(TokenCount::of_message).fold(0, u64::saturating_add)
}

#[async_trait]
impl Middleware for Summarization {
    fn name(&self) -> &str {
        "summarization"
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE.before_model()
    }

    async fn before_model(&self, turn: &mut Turn) -> Result<Jump> {
        if !self.is_due(turn.messages())? {
            return Ok(Jump::Next);
        }
        let (old, kept) = turn.messages().split_at(self.cut(turn.messages())?);
        let task = old.iter().find(|message| self.keeps_task && is_of_user(message)).cloned();
        let is_task = |message: &Message| task.as_ref().is_some_and(|task| task.id == message.id);
        let old = old.iter().filter(|message| !is_task(message)).cloned();
        let (instructions, old): (Vec<_>, Vec<_>) = old.partition(|message| message.role == Role::System);
        // A summary of nothing but a summary would be paid for in each round.
        if old.iter().all(is_summary) {
            return Ok(Jump::Next);
        }
        let kept = kept.to_vec();
        let summary = self.summarise(turn, &old).await?;
        turn.set_messages(instructions.into_iter().chain(task).chain([summary]).chain(kept));
        Ok(Jump::Next)
    }
}

/// Whether a person wrote it: neither results of tools nor a summary.
fn is_of_user(message: &Message) -> bool {
    message.role == Role::User && message.results().next().is_none() && !is_summary(message)
}

fn is_summary(message: &Message) -> bool {
    message.role == Role::User && message.text().starts_with(SUMMARY)
}
