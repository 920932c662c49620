//! The answer of an agent.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{Error as ValueError, StringDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};

use super::best::BestAnswer;
use super::state::{AgentChannels, AgentState};
use crate::error::{Code, Error, Result};
use crate::message::{Message, Role};
use crate::model::Usage;
use crate::tool_loop::LoopEnd;

/// The answer of an agent at the end of a run, and the state behind it.
#[derive(Clone)]
#[non_exhaustive]
pub struct AgentAnswer<T = String, S = AgentState> {
    /// The last state: the conversation, and channels of your own.
    pub state: S,
    of: PhantomData<fn() -> T>,
}

impl<T, S: AgentChannels> From<S> for AgentAnswer<T, S> {
    fn from(state: S) -> Self {
        AgentAnswer { state, of: PhantomData }
    }
}

impl<T, S: AgentChannels> AgentAnswer<T, S> {
    /// The text: of the model's last answer, or of the tool that returned directly.
    pub fn text(&self) -> String {
        let messages = self.state.messages();
        if let Some(direct) = self.state.run_record().direct.first() {
            let results = messages.iter().rev().flat_map(Message::results);
            let found = results.into_iter().find(|result| result.tool_use_id == *direct);
            return found.map(|result| result.as_text()).unwrap_or_default();
        }
        let last = messages.iter().rev().find(|message| message.role == Role::Assistant);
        last.map(Message::text).unwrap_or_default()
    }

    /// The reason for the end of the run.
    pub fn end(&self) -> LoopEnd {
        let record = self.state.run_record();
        let direct = !record.direct.is_empty();
        record.end.unwrap_or(if direct { LoopEnd::ReturnedDirectly } else { LoopEnd::Finished })
    }

    /// The best answer of the run: its text if it finished with one, else the last text of the model, else
    /// the result of the last call that succeeded. After a limit, a refusal or a cut answer the caller gets
    /// what there is, and sees what it is.
    ///
    /// ```
    /// use agentgraph::prelude::*;
    /// use agentgraph_llm::agent::BestAnswer;
    /// use agentgraph_llm::prelude::*;
    /// use serde_json::json;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let model = ScriptedModel::from_fn(|_| Reply::text("Perhaps 7.").and_tool_call("count", json!({})));
    /// let answer = Agent::new(model).max_rounds(3).compile()?.invoke("How many?").finish().await?;
    /// assert_eq!(answer.best(), BestAnswer::Text("Perhaps 7.".into()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A run that failed has no answer: [`BestAnswer::of`] looks at the messages of its last state.
    pub fn best(&self) -> BestAnswer {
        let has_finished = matches!(self.end(), LoopEnd::Finished | LoopEnd::ReturnedDirectly);
        let text = self.text();
        match has_finished && !text.trim().is_empty() {
            true => BestAnswer::Final(text),
            false => BestAnswer::of(self.state.messages()),
        }
    }

    /// The number of the model's answers in the run.
    pub fn rounds(&self) -> u64 {
        self.state.run_record().rounds
    }

    /// The tokens of the run.
    pub fn usage(&self) -> Usage {
        self.state.run_record().usage
    }

    /// The answer as a value: in the form of [`Agent::output`](super::Agent::output), or the text.
    ///
    /// # Errors
    /// `E_LLM_ANSWER_REJECTED` if the run ended without an answer of the form, such as at a limit;
    /// [`end`](AgentAnswer::end) has the reason.
    pub fn value(&self) -> Result<T>
    where
        T: DeserializeOwned,
    {
        let output = &self.state.run_record().output;
        let value = match output {
            Some(value) => value.parse().map_err(|error| error.to_string()),
            None => {
                let text: StringDeserializer<ValueError> = self.text().into_deserializer();
                T::deserialize(text).map_err(|error| error.to_string())
            }
        };
        value.map_err(|problem| {
            let message =
                format!("the run ended without an answer of the form ({:?}): {problem}", self.end());
            Error::new(Code::AnswerRejected, message).with_usage(self.usage())
        })
    }
}

impl<T, S: AgentChannels> fmt::Debug for AgentAnswer<T, S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = out.debug_struct("AgentAnswer");
        parts.field("text", &self.text()).field("end", &self.end()).field("rounds", &self.rounds());
        parts.finish_non_exhaustive()
    }
}
