//! [`AnswerForm`]: an answer has to be marked as one. A last message without a mark is no final answer: the
//! model is asked once more; if it marks none again, one call may bring its words into the form.

use std::sync::Arc;

use agentgraph_llm::{
    AskExt, ChatModel, ChatRequest, Hooks, Jump, Message, Middleware, Origin, Result, Role, StopReason, Turn,
};
use async_trait::async_trait;

use super::Asked;
use crate::answer::marked;
use crate::log::{Log, chain};

/// The provider that a message in a form of ours names as its origin.
pub(super) const REFORMULATED: &str = "reformulated";

/// The beginning of the request for the form, by which it is known.
const AGAIN: &str = "Your last message has no answer in the form that was asked for.";

const SYSTEM: &str = "You bring an answer into its form, and change nothing else. You get a question and the last words of someone \
who worked on it. Write one line: `FINAL ANSWER: ` and the answer alone, a number in digits without units, or as few words as possible, or such \
elements with commas between them. If the words hold no answer, write `FINAL ANSWER: unknown`.";

pub(super) struct AnswerForm {
    pub(super) model: Arc<dyn ChatModel>,
    pub(super) reformulate: bool,
    pub(super) log: Log,
}

/// Whether a message is our request for the form, and not one of a person.
pub(super) fn is_request(message: &Message) -> bool {
    message.role == Role::User && message.text().starts_with(AGAIN)
}

#[async_trait]
impl Middleware for AnswerForm {
    fn name(&self) -> &str {
        "answer_form"
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE.after_model()
    }

    async fn after_model(&self, turn: &mut Turn) -> Result<Jump> {
        // A message that was cut or refused is not asked for again; the answer is the best so far.
        let has_ended = matches!(turn.stop(), Some(StopReason::EndTurn | StopReason::StopSequence));
        let Some(last) = turn.messages().last().filter(|_| has_ended && turn.open_calls().is_empty()) else {
            return Ok(Jump::Next);
        };
        let (text, id) = (last.text(), last.id.clone());
        if marked(&text).is_some() {
            return Ok(Jump::Next);
        }
        let Ok(asked) = turn.ctx()?.call_context::<Asked>() else { return Ok(Jump::Next) };
        if !turn.messages().iter().any(is_request) {
            if text.trim().is_empty() {
                // Some providers refuse a conversation with an empty message.
                turn.remove(&id);
            }
            self.log.line(&asked.task, "form", "the model is asked once more, for the form of the answer");
            turn.push(Message::user(format!(
                "{AGAIN} {} Use the tools if something is still missing; else end with the line `FINAL ANSWER: ` and the answer.",
                asked.facts
            )));
            return Ok(Jump::Model);
        }
        if self.reformulate && !text.trim().is_empty() {
            let words = format!("Question:\n{}\n\nLast words:\n{text}", asked.question);
            let request = ChatRequest::new([Message::user(words)]).with_system(SYSTEM);
            match turn.billed(&self.model).chat(request).await {
                Ok(response) if marked(&response.message.text()).is_some() => {
                    let answer = Message::assistant(response.message.text());
                    turn.push(answer.with_origin(Origin::new(REFORMULATED, response.model)));
                }
                Ok(_) => {}
                // The words are an answer without the form, too.
                Err(error) => self.log.line(&asked.task, "form", &chain(&error)),
            }
        }
        Ok(Jump::Next)
    }
}
