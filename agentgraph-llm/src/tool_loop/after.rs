//! What follows an answer: one rule for the loop and for the agent.

use super::LoopEnd;
use crate::model::{ChatResponse, StopReason};

/// What follows an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// Its calls are run.
    RunCalls,
    /// The model is asked again, after each call got this text as its result.
    AskAgain { refusal: &'static str },
    /// It is the last one. Calls that it has get the text.
    End { end: LoopEnd, refusal: &'static str },
}

impl After {
    pub(crate) fn of(response: &ChatResponse) -> Self {
        let has_calls = response.message.tool_uses().next().is_some();
        match response.stop {
            StopReason::Refusal => {
                After::End { end: LoopEnd::Refused, refusal: "not run: the answer ended in a refusal" }
            }
            // Which of the calls are whole, and whether there were to be others, only the provider knows.
            StopReason::MaxTokens | StopReason::ContextWindowExceeded if has_calls => {
                After::AskAgain { refusal: TRUNCATED }
            }
            StopReason::MaxTokens | StopReason::ContextWindowExceeded => {
                After::End { end: LoopEnd::Truncated, refusal: "" }
            }
            StopReason::PauseTurn if !has_calls => After::AskAgain { refusal: "" },
            StopReason::EndTurn | StopReason::StopSequence | StopReason::ToolUse | StopReason::PauseTurn => {
                match has_calls {
                    true => After::RunCalls,
                    false => After::End { end: LoopEnd::Finished, refusal: "" },
                }
            }
        }
    }
}

const TRUNCATED: &str = "not run: the answer reached the token limit, so its calls may be incomplete; make them again, \
                         one at a time or with shorter arguments";
