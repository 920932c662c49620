//! The attempts of a node: call, check, and call again with the reason of the refusal.

use std::fmt;

use agentgraph::dependency::{Deps, PassEdits};
use agentgraph::{BoxError, Ctx};
use serde::{Deserialize, Serialize};

use super::answer::{Answer, Attempt, Exchange};
use super::check::JsonCheck;
use super::checked_answer::{CheckedAnswer, Refusal};
use super::compose::Composition;
use super::database::Database;
use super::meter::MeterReading;
use super::{Feedback, LlmNode};
use crate::error::{Code, Error};
use crate::message::Message;
use crate::model::{ChatRequest, Usage};
use crate::tool_loop::{LoopEnd, ToolLoop, ToolLoopOutcome};

/// The refused answers of a node: the [cause](crate::Error::cause) of `E_LLM_ANSWER_REJECTED`. They are not
/// in the error's message, because a reason may quote the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RefusedAnswers {
    /// The reason of each refusal, in order.
    pub reasons: Vec<String>,
    /// The usage of all attempts.
    pub usage: Usage,
}

impl fmt::Display for RefusedAnswers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} answers were refused", self.reasons.len())
    }
}

impl std::error::Error for RefusedAnswers {}

/// The inputs of a node's call.
pub(super) struct Call<O: 'static, S> {
    pub(super) deps: Deps<'static, O>,
    pub(super) ctx: Ctx,
    pub(super) edits: PassEdits<O, S>,
    pub(super) db: Option<Database>,
}

/// The rejection of an answer, and whether another attempt is useless.
struct Rejection {
    reason: String,
    is_final: bool,
}

impl<O, S> LlmNode<O, S>
where
    O: Exchange + Clone + Send + Sync + 'static,
    S: Send + Sync + 'static,
{
    /// Calls the model until an answer is accepted or no attempt is left.
    pub(super) async fn answer(&self, call: Call<O, S>) -> Result<O, BoxError> {
        let (prompt, mut request) = self.question(&call)?;
        let asked = request.messages.len();
        let mut answer = Answer::new(prompt, "");
        loop {
            let mark = call.edits.mark();
            let outcome = self.ask(&call.ctx, request.clone()).await?;
            answer.tries.push(Attempt { usage: outcome.usage, refused: None });
            let refused = match self.judge(&call, &answer, &outcome).await? {
                Ok(accepted) => return Ok(accepted.accept().into()),
                Err(refused) => refused,
            };
            call.edits.undo_to(mark);
            let is_last = refused.is_final || answer.tries.len() >= self.tries;
            if let Some(attempt) = answer.tries.last_mut() {
                attempt.refused = Some(refused.reason.clone());
            }
            if is_last {
                return self.exhausted(call.ctx.node(), answer);
            }
            if self.feedback == Feedback::LastOnly {
                request.messages.truncate(asked);
            }
            request.messages.extend(outcome.messages);
            request.messages.push(Message::user(refused.reason));
        }
    }

    /// The prompt with its values, and the request that contains it.
    fn question(&self, call: &Call<O, S>) -> crate::Result<(String, ChatRequest)> {
        let compose = |db: &serde_json::Value| {
            let texts = (self.system.as_ref(), &self.prompt);
            let mut composition = Composition::new(call.ctx.node(), texts, &call.deps, db)?;
            if let Some(schema) =
                self.check.as_ref().filter(|_| self.shows_schema).and_then(JsonCheck::schema)
            {
                let told = format!("Answer with JSON of this schema:\n{schema}");
                let system = composition.system.take().into_iter().chain([told]);
                composition.system = Some(system.collect::<Vec<_>>().join("\n\n"));
            }
            let request = match &self.compose {
                Some(compose) => compose(&composition)?,
                None => composition.request(),
            };
            Ok((composition.prompt, request))
        };
        match &call.db {
            Some(db) => db.read(compose),
            None => compose(&serde_json::Value::Null),
        }
    }

    async fn ask(&self, ctx: &Ctx, request: ChatRequest) -> crate::Result<ToolLoopOutcome> {
        let tools = ToolLoop::new(&self.model).tools(&self.tools);
        let tools = tools.max_rounds(self.max_rounds).max_concurrency(self.max_concurrency);
        let asked = tools.run(request).await;
        let used = match &asked {
            Ok(outcome) => MeterReading { answers: 1, usage: outcome.usage },
            Err(error) => MeterReading { answers: 0, usage: error.usage() },
        };
        if used != MeterReading::default() {
            ctx.spend("tokens", used.usage.total());
            if let Some(meter) = &self.meter {
                meter.count(ctx.run(), ctx.node(), used);
            }
        }
        asked
    }

    /// Checks an answer. The outer error is the node's failure.
    async fn judge(
        &self,
        call: &Call<O, S>,
        answer: &Answer,
        outcome: &ToolLoopOutcome,
    ) -> Result<Result<CheckedAnswer<O, S>, Rejection>, BoxError> {
        let again = |reason: String| Ok(Err(Rejection { reason, is_final: false }));
        let in_vain = |reason: &str| Ok(Err(Rejection { reason: reason.to_owned(), is_final: true }));
        match outcome.ended {
            LoopEnd::Refused => return in_vain("The model refused to answer."),
            LoopEnd::LimitReached => {
                return in_vain("The model still called tools when its rounds were used up.");
            }
            LoopEnd::Truncated if !self.accepts_cut => return again(CUT.to_owned()),
            _ => {}
        }
        let mut answer = Answer { text: outcome.text(), ..answer.clone() };
        if let Some(check) = &self.check {
            match check.read(&answer.text) {
                Ok(json) => answer.json = Some(json),
                Err(reason) => return again(reason),
            }
        }
        let after = CheckedAnswer {
            answer,
            deps: call.deps.clone(),
            ctx: call.ctx.clone(),
            edits: call.edits.clone(),
            db: call.db.clone(),
            changes: Vec::new(),
        };
        match self.own_code(after).await {
            Ok(after) => Ok(Ok(after)),
            Err(Refusal::Again(reason)) => again(reason),
            Err(Refusal::Fail(error)) => Err(error),
        }
    }

    async fn own_code(&self, mut after: CheckedAnswer<O, S>) -> Result<CheckedAnswer<O, S>, Refusal> {
        for step in &self.after {
            after = step(after).await?;
        }
        Ok(after)
    }

    fn exhausted(&self, node: &str, mut answer: Answer) -> Result<O, BoxError> {
        if let Some(text) = &self.otherwise {
            answer.text.clone_from(text);
            answer.fell_back = true;
            return Ok(answer.into());
        }
        let count = answer.tries.len();
        let usage = answer.usage();
        let reasons = answer.tries.into_iter().filter_map(|attempt| attempt.refused).collect();
        let message = format!(
            "node `{node}` refused all {count} answers of `{}`; the cause, a `RefusedAnswers`, has the reasons; allow more tries \
             with `.tries(..)`, or say what to go on with by `.otherwise(..)`",
            self.model.info().model
        );
        let error = Error::new(Code::AnswerRejected, message);
        Err(error.with_source(RefusedAnswers { reasons, usage }).into())
    }
}

const CUT: &str = "The answer was cut off because it was too long. Answer again, and be shorter.";
