//! The question to a person about tool calls, and the answer.
//!
//! The answer names the calls that it is for, so that it cannot be taken for an answer to other calls. Pure.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Code, Error, Result};
use crate::message::{ToolInput, ToolResult, ToolUse};

/// A question about pending tool calls, which is the value of the run's interrupt.
///
/// ```
/// use agentgraph_llm::middleware::{AskedCall, Question, Verdict};
/// use agentgraph_llm::ToolUse;
/// use serde_json::json;
///
/// let call = ToolUse::new("call-1", "delete", json!({ "path": "/tmp/a" }));
/// let question = Question::new([AskedCall::new(&call)]);
/// let answer = question.answer([Verdict::Approve]);
/// assert_eq!(
///     serde_json::to_value(answer).unwrap(),
///     json!({ "decisions": [{ "call": "call-1", "verdict": "approve" }] })
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Question {
    /// The calls, in the order of the message.
    pub calls: Vec<AskedCall>,
    /// Why the last answer was refused, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// One call in a [`Question`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AskedCall {
    /// The id of the call.
    pub call: String,
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub input: ToolInput,
    /// What the call would do, for the person.
    pub description: String,
    /// The verdicts that are allowed.
    pub allowed: Vec<VerdictKind>,
}

/// The kinds of a [`Verdict`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum VerdictKind {
    /// The call runs as it is.
    Approve,
    /// The call runs with other arguments.
    Edit,
    /// The call does not run.
    Reject,
    /// The call does not run, and the model reads a text of the person as its result.
    Respond,
}

/// The answer to a [`Question`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// One decision for each call, in the order of the question.
    pub decisions: Vec<Decision>,
}

/// The decision about one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The id of the call.
    pub call: String,
    /// What is done with it.
    pub verdict: Verdict,
}

/// What is done with a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// The call runs as it is.
    Approve,
    /// The call runs changed. The model is told.
    Edit {
        /// Another tool, if it is to be another one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        /// The arguments.
        input: Value,
    },
    /// The call does not run; its result is an error.
    Reject {
        /// The reason, which the model reads.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The call does not run; this text is its result.
    Respond {
        /// The text.
        text: String,
    },
}

impl Verdict {
    /// Runs the call with other arguments.
    pub fn edit(input: impl Into<Value>) -> Self {
        Verdict::Edit { tool: None, input: input.into() }
    }

    /// Refuses the call with a reason.
    pub fn reject(reason: impl Into<String>) -> Self {
        Verdict::Reject { reason: Some(reason.into()) }
    }

    /// Answers in place of the tool.
    pub fn respond(text: impl Into<String>) -> Self {
        Verdict::Respond { text: text.into() }
    }

    /// The kind.
    pub fn kind(&self) -> VerdictKind {
        match self {
            Verdict::Approve => VerdictKind::Approve,
            Verdict::Edit { .. } => VerdictKind::Edit,
            Verdict::Reject { .. } => VerdictKind::Reject,
            Verdict::Respond { .. } => VerdictKind::Respond,
        }
    }
}

impl VerdictKind {
    /// All kinds.
    pub const ALL: [VerdictKind; 4] =
        [VerdictKind::Approve, VerdictKind::Edit, VerdictKind::Reject, VerdictKind::Respond];
}

impl AskedCall {
    /// A call with all verdicts allowed.
    pub fn new(call: &ToolUse) -> Self {
        AskedCall {
            call: call.id.clone(),
            tool: call.name.clone(),
            input: call.input.clone(),
            description: format!("The model wants to call `{}`.", call.name),
            allowed: VerdictKind::ALL.to_vec(),
        }
    }
}

/// What becomes of one call.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Settled {
    /// It runs as the model wrote it.
    Run,
    /// It runs changed.
    Changed(ToolUse),
    /// It does not run.
    Answered(ToolResult),
}

impl Question {
    /// A question about these calls.
    pub fn new(calls: impl IntoIterator<Item = AskedCall>) -> Self {
        Question { calls: calls.into_iter().collect(), problem: None }
    }

    /// The answer with these verdicts, one for each call in order.
    pub fn answer(&self, verdicts: impl IntoIterator<Item = Verdict>) -> Answer {
        let calls = self.calls.iter().map(|asked| asked.call.clone());
        let decisions = calls.zip(verdicts).map(|(call, verdict)| Decision { call, verdict });
        Answer { decisions: decisions.collect() }
    }

    /// What becomes of each call of the message; calls that were not asked for run.
    pub(super) fn settle(&self, calls: &[ToolUse], answer: &Answer) -> Result<Vec<Settled>> {
        self.check(answer)?;
        let decided = |call: &ToolUse| answer.decisions.iter().find(|decision| decision.call == call.id);
        let settle = |call| decided(call).map_or(Settled::Run, |decision| decision.verdict.settle(call));
        Ok(calls.iter().map(settle).collect())
    }

    /// Whether the answer fits: one decision for each call, in order, each with a verdict that is allowed.
    ///
    /// # Errors
    /// `E_LLM_ANSWER_MISMATCH` says what does not fit.
    pub fn check(&self, answer: &Answer) -> Result<()> {
        let (asked, given) = (self.calls.len(), answer.decisions.len());
        if asked != given {
            let message =
                format!("the answer has {given} decisions for {asked} calls: decide on each call, in order");
            return Err(Error::new(Code::AnswerMismatch, message));
        }
        for (asked, decision) in self.calls.iter().zip(&answer.decisions) {
            if asked.call != decision.call {
                let message = format!(
                    "the answer decides on call `{}` where call `{}` of `{}` was asked for: answer the question that \
                     the thread waits for now",
                    decision.call, asked.call, asked.tool
                );
                return Err(Error::new(Code::AnswerMismatch, message));
            }
            asked.check_verdict(&decision.verdict)?;
        }
        Ok(())
    }
}

impl AskedCall {
    fn check_verdict(&self, verdict: &Verdict) -> Result<()> {
        if !self.allowed.contains(&verdict.kind()) {
            let message = format!(
                "the verdict {:?} is not allowed for call `{}` of `{}`: use one of {:?}",
                verdict.kind(),
                self.call,
                self.tool,
                self.allowed
            );
            return Err(Error::new(Code::AnswerMismatch, message));
        }
        match verdict {
            Verdict::Edit { input, .. } if !input.is_object() => {
                let message = format!("the edited arguments of call `{}` are not a JSON object", self.call);
                Err(Error::new(Code::AnswerMismatch, message))
            }
            _ => Ok(()),
        }
    }
}

impl Verdict {
    fn settle(&self, call: &ToolUse) -> Settled {
        match self {
            Verdict::Approve => Settled::Run,
            Verdict::Edit { tool, input } => {
                let mut changed = call.clone();
                changed.input = ToolInput::Json(input.clone().into());
                if let Some(tool) = tool {
                    changed.name.clone_from(tool);
                }
                Settled::Changed(changed)
            }
            Verdict::Reject { reason } => {
                let text = match reason {
                    Some(reason) => {
                        format!("A person rejected this call; it did not run. The reason: {reason}")
                    }
                    None => "A person rejected this call; it did not run.".to_owned(),
                };
                Settled::Answered(ToolResult::error(&call.id, text))
            }
            Verdict::Respond { text } => Settled::Answered(ToolResult::text(&call.id, text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn calls(count: usize) -> Vec<ToolUse> {
        (0..count).map(|number| ToolUse::new(format!("c{number}"), "send", json!({"n": number}))).collect()
    }

    fn verdict() -> impl Strategy<Value = Verdict> {
        prop_oneof![
            Just(Verdict::Approve),
            any::<u8>().prop_map(|n| Verdict::edit(json!({"n": n}))),
            Just(Verdict::Reject { reason: None }),
            "[a-z]{0,4}".prop_map(Verdict::respond),
        ]
    }

    proptest! {
        #[test]
        fn each_call_keeps_its_position_and_gets_its_own_verdict(
            plan in prop::collection::vec(prop::option::of(verdict()), 0..8),
        ) {
            let calls = calls(plan.len());
            let asked = calls.iter().zip(&plan).filter(|(_, verdict)| verdict.is_some());
            let question = Question::new(asked.map(|(call, _)| AskedCall::new(call)));
            let answer = question.answer(plan.iter().flatten().cloned());
            let settled = question.settle(&calls, &answer).unwrap();
            prop_assert_eq!(settled.len(), calls.len());
            for ((settled, call), verdict) in settled.iter().zip(&calls).zip(&plan) {
                match (verdict, settled) {
                    (None | Some(Verdict::Approve), Settled::Run) => {}
                    (Some(Verdict::Edit { input, .. }), Settled::Changed(changed)) => {
                        prop_assert_eq!(&changed.id, &call.id);
                        let written = input.to_string();
                        prop_assert_eq!(changed.input.text(), written.as_str());
                    }
                    (Some(Verdict::Reject { .. }), Settled::Answered(result)) => {
                        prop_assert!(result.is_error && result.tool_use_id == call.id);
                    }
                    (Some(Verdict::Respond { text }), Settled::Answered(result)) => {
                        prop_assert!(!result.is_error && result.as_text() == *text);
                    }
                    other => prop_assert!(false, "{other:?}"),
                }
            }
        }

        /// An answer is taken only if its calls are exactly the calls of the question, in order.
        #[test]
        fn an_answer_for_other_calls_is_refused(
            asked in prop::collection::vec(0_usize..5, 0..4),
            given in prop::collection::vec(0_usize..5, 0..4),
        ) {
            let all = calls(5);
            let question = Question::new(asked.iter().map(|number| AskedCall::new(&all[*number])));
            let decide = |number: &usize| Decision { call: all[*number].id.clone(), verdict: Verdict::Approve };
            let answer = Answer { decisions: given.iter().map(decide).collect() };
            let settled = question.settle(&all, &answer);
            prop_assert_eq!(settled.is_ok(), asked == given);
            if let Err(error) = settled {
                prop_assert_eq!(error.code(), Code::AnswerMismatch);
            }
        }

        #[test]
        fn a_verdict_outside_of_the_allowed_ones_is_refused(
            allowed in prop::sample::subsequence(VerdictKind::ALL.to_vec(), 0..=4),
            verdict in verdict(),
        ) {
            let calls = calls(1);
            let question = Question::new([AskedCall { allowed: allowed.clone(), ..AskedCall::new(&calls[0]) }]);
            let kind = verdict.kind();
            prop_assert_eq!(question.settle(&calls, &question.answer([verdict])).is_ok(), allowed.contains(&kind));
        }
    }

    #[test]
    fn answers_are_plain_json() {
        let answer: Answer = serde_json::from_value(json!({"decisions": [
            {"call": "a", "verdict": "approve"},
            {"call": "b", "verdict": {"edit": {"input": {"n": 1}}}},
            {"call": "c", "verdict": {"reject": {"reason": "no"}}},
            {"call": "d", "verdict": {"respond": {"text": "42"}}},
        ]}))
        .unwrap();
        let kinds: Vec<_> = answer.decisions.iter().map(|decision| decision.verdict.kind()).collect();
        assert_eq!(kinds, VerdictKind::ALL);
    }
}
