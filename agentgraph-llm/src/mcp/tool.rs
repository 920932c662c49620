//! A tool of an MCP server.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use async_trait::async_trait;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotificationParam, ClientRequest,
    RequestId, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions};
use rmcp::{RoleClient, ServiceError};
use serde_json::Value;
use tokio::sync::mpsc;

use super::client::Connection;
use super::elicitation::{Asked, Questions};
use super::{arguments, content};
use crate::json::RawJson;
use crate::tool::{Tool, ToolCall, ToolError, ToolOutput, ToolSpec};

/// How often a tool may ask for further input in one call.
const MAX_ROUNDS: usize = 10;

/// A tool of an MCP server. Cheap to clone; it keeps the connection open.
///
/// The library of the protocol sends parsed arguments and not their text. A call whose arguments would arrive
/// as others, because a name is there twice or a number does not fit in 64 bits, is refused with a text for
/// the model.
#[derive(Clone)]
pub struct McpTool {
    connection: Arc<Connection>,
    spec: Arc<ToolSpec>,
    definition: Arc<rmcp::model::Tool>,
}

impl McpTool {
    pub(super) fn new(connection: Arc<Connection>, name: String, definition: rmcp::model::Tool) -> Self {
        let description =
            definition.description.as_deref().or(definition.title.as_deref()).unwrap_or_default();
        let schema = Value::Object((*definition.input_schema).clone());
        let spec = Arc::new(ToolSpec::new(name, description, schema));
        McpTool { connection, spec, definition: Arc::new(definition) }
    }

    /// The name that models see: the client's prefix and the server's name.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// The name that the server knows.
    pub fn server_name(&self) -> &str {
        &self.definition.name
    }

    /// The server's definition, with its title, its annotations and the schema of its structured output. The
    /// annotations, such as `readOnlyHint`, are claims of the server.
    pub fn definition(&self) -> Value {
        serde_json::to_value(&*self.definition).unwrap_or_default()
    }

    /// Makes the call, and answers the questions of the server while it runs.
    async fn ask_and_answer(
        &self,
        params: CallToolRequestParams,
        questions: &mut Questions<'_>,
        asked: Option<&mut mpsc::Receiver<Asked>>,
    ) -> Result<ServerResult, ToolError> {
        let mut answer = pin!(self.ask(params));
        let Some(asked) = asked else { return answer.await };
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => return answer,
                Some(Asked { question, answer }) = asked.recv() => {
                    // The server may have given up.
                    let _ = answer.send(questions.answer(&question)?);
                }
            }
        }
    }

    async fn ask(&self, params: CallToolRequestParams) -> Result<ServerResult, ToolError> {
        let (server, limit) = (self.connection.server(), self.connection.timeout());
        let late = |_| ToolError::failed(format!("the tool took longer than {limit:?} and was stopped"));
        let params = &params;
        let send =
            || async move { tokio::time::timeout(limit, self.ask_once(params.clone())).await.map_err(late) };
        let answer = self.connection.access().send(server, ServiceError::auth_challenge, send).await?;
        answer.map_err(|error| server.call_failed(error))
    }

    async fn ask_once(&self, params: CallToolRequestParams) -> Result<ServerResult, ServiceError> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let peer = self.connection.peer();
        let handle = peer.send_request_with_option(request, PeerRequestOptions::no_options()).await?;
        let mut abandoned = CancelIfDropped { peer, id: Some(handle.id.clone()) };
        let answer = handle.await_response().await;
        abandoned.id = None;
        answer
    }
}

#[async_trait]
impl Tool for McpTool {
    fn spec(&self) -> ToolSpec {
        (*self.spec).clone()
    }

    async fn call(&self, input: &RawJson, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        let arguments = arguments::object(input)?;
        let mut params = CallToolRequestParams::new(self.definition.name.clone()).with_arguments(arguments);
        let mut asked = self.connection.questions().await;
        // What was asked after the end of the last call gets no answer.
        while asked.as_deref_mut().is_some_and(|asked| asked.try_recv().is_ok()) {}
        let mut questions = Questions::new(&self.connection.server().name, call);
        for _ in 0..MAX_ROUNDS {
            match self.ask_and_answer(params.clone(), &mut questions, asked.as_deref_mut()).await? {
                ServerResult::InputRequiredResult(required) if asked.is_some() => {
                    params.input_responses = Some(questions.answers(&required)?);
                    params.request_state = required.request_state;
                }
                result => return self.output(result),
            }
        }
        Err(ToolError::failed("the tool asks a person again and again; try without it"))
    }
}

impl McpTool {
    fn output(&self, result: ServerResult) -> Result<ToolOutput, ToolError> {
        match result {
            ServerResult::CallToolResult(result) => output(result),
            ServerResult::InputRequiredResult(_) => Err(ToolError::failed(
                "the tool asks a person for further input, which cannot be given here; try without it",
            )),
            ServerResult::CreateTaskResult(_) => {
                Err(ToolError::failed("the tool runs in the background and gives no result here"))
            }
            // A result with a kind of content that `rmcp` does not know.
            ServerResult::CustomResult(result) => content::unknown_result(result.0),
            ServerResult::EmptyResult(_) => Ok(ToolOutput::default()),
            _ => Err(self.connection.server().call_failed(ServiceError::UnexpectedResponse)),
        }
    }
}

fn output(result: CallToolResult) -> Result<ToolOutput, ToolError> {
    let blocks = result.content.into_iter().map(content::to_block);
    content::output(blocks.collect(), result.structured_content, result.is_error == Some(true))
}

impl fmt::Debug for McpTool {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("McpTool")
            .field("server", &self.connection.server().name)
            .field("spec", &self.spec)
            .finish()
    }
}

/// Cancels a call on the server, after a timeout or when the run was cancelled.
struct CancelIfDropped<'a> {
    peer: &'a Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for CancelIfDropped<'_> {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) else { return };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let reason = Some("the caller stopped waiting".to_owned());
            let _ = peer.notify_cancelled(CancelledNotificationParam::new(Some(id), reason)).await;
        });
    }
}
