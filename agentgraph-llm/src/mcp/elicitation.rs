//! Questions of a server to a person, as interrupts of the run.

use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest, InputRequiredResult, InputResponses,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::tool::{ToolCall, ToolError};

/// A question of an MCP server to a person: the value of the interrupt with which the run stops. The
/// answer is an [`ElicitationAnswer`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Elicitation {
    /// The server that asks. Show it: a server may ask for anything.
    pub server: String,
    /// The tool that was called.
    pub tool: String,
    /// The question.
    pub message: String,
    /// The JSON Schema of the answer, a flat object; `None` for a page to visit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// The page on which the person answers, after which the answer here has no content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// The answer of a person to an [`Elicitation`].
///
/// ```
/// use agentgraph_llm::mcp::ElicitationAnswer;
/// use serde_json::json;
///
/// let answer: ElicitationAnswer = serde_json::from_value(json!({"accept": {"seat": "12A"}})).unwrap();
/// assert_eq!(answer, ElicitationAnswer::Accept(json!({"seat": "12A"})));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ElicitationAnswer {
    /// The content, in the form of the schema; null after a page was visited.
    Accept(Value),
    /// The person does not want to say.
    Decline,
    /// The person closed the question.
    Cancel,
}

/// A question that the server asked over the connection, and the place for its answer.
pub(super) struct Asked {
    pub(super) question: ElicitRequestParams,
    pub(super) answer: oneshot::Sender<ElicitResult>,
}

/// The questions of one call. Each has a key of its own, so that the answers find them when the call runs
/// again.
pub(super) struct Questions<'a> {
    server: &'a str,
    call: &'a ToolCall,
    asked: usize,
}

impl<'a> Questions<'a> {
    pub(super) fn new(server: &'a str, call: &'a ToolCall) -> Self {
        Questions { server, call, asked: 0 }
    }

    /// The answer, if there is one already.
    ///
    /// # Errors
    /// The interrupt of the engine, with which the call ends: it runs again when the answer came.
    pub(super) fn answer(&mut self, question: &ElicitRequestParams) -> Result<ElicitResult, ToolError> {
        let (message, schema, url) = match question {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                (message, serde_json::to_value(requested_schema).ok(), None)
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                (message, None, Some(url.clone()))
            }
            _ => return Ok(ElicitResult::new(ElicitationAction::Decline)),
        };
        let (server, tool) = (self.server.to_owned(), self.call.name().to_owned());
        let question = Elicitation { server, tool, message: message.clone(), schema, url };
        self.asked += 1;
        let key = format!("{} (question {})", self.call.id(), self.asked);
        Ok(match self.call.ctx()?.interrupt_as(key, question)? {
            ElicitationAnswer::Accept(Value::Null) => ElicitResult::new(ElicitationAction::Accept),
            ElicitationAnswer::Accept(content) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(content)
            }
            ElicitationAnswer::Decline => ElicitResult::new(ElicitationAction::Decline),
            ElicitationAnswer::Cancel => ElicitResult::new(ElicitationAction::Cancel),
        })
    }

    /// The answers to all questions of a result that needs them.
    ///
    /// # Errors
    /// As [`answer`](Self::answer), and if the server asks for something else than an answer of a person.
    pub(super) fn answers(&mut self, required: &InputRequiredResult) -> Result<InputResponses, ToolError> {
        let questions = required.input_requests.iter().flatten();
        let answers = questions.map(|(name, request)| match request {
            InputRequest::Elicitation(question) => {
                let answer = self.answer(&question.params)?;
                Ok((name.clone(), serde_json::to_value(answer).unwrap_or_default()))
            }
            _ => Err(ToolError::failed("the tool asks for a model or for folders, which are not given here")),
        });
        answers.collect()
    }
}
