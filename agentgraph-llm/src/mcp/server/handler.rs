//! The requests of clients, as calls of tools.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;

use super::McpServer;
use crate::error::{Code, Error, Result};
use crate::json::RawJson;
use crate::mcp::content;
use crate::tool::{Tool, ToolCall, ToolError, ToolOutput, ToolSpec};

/// What all connections of a server share.
#[derive(Clone)]
pub(super) struct Handler {
    config: ServerConfig,
    tools: Arc<BTreeMap<String, Served>>,
}

struct Served {
    tool: Arc<dyn Tool>,
    definition: rmcp::model::Tool,
}

impl Handler {
    pub(super) fn new(server: &McpServer) -> Result<Self> {
        if let Some(mistake) = &server.mistake {
            return Err(Error::new(Code::Config, mistake.clone()));
        }
        let mut tools = BTreeMap::new();
        for tool in &server.tools {
            let spec = tool.spec();
            spec.check()?;
            let served = Served { tool: Arc::clone(tool), definition: definition(&spec) };
            if tools.insert(spec.name.clone(), served).is_some() {
                let message = format!("two tools are named `{}`: give one of them another name", spec.name);
                return Err(Error::new(Code::BadTool, message));
            }
        }
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let identity = Implementation::new(&server.name, &server.version);
        let mut config = ServerConfig::new(capabilities).with_server_info(identity);
        config.instructions.clone_from(&server.instructions);
        Ok(Handler { config, tools: Arc::new(tools) })
    }

    fn unknown(&self, name: &str) -> ErrorData {
        let names: Vec<_> = self.tools.keys().map(|known| format!("`{known}`")).collect();
        let message = format!("there is no tool `{name}`; there are {}", names.join(", "));
        ErrorData::invalid_params(message, None)
    }
}

fn definition(spec: &ToolSpec) -> rmcp::model::Tool {
    let schema = spec.input_schema.as_object().cloned().unwrap_or_default();
    rmcp::model::Tool::new(spec.name.clone(), spec.description.clone(), Arc::new(schema))
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        self.config.clone()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.tools.values().map(|served| served.definition.clone()).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let served = self.tools.get(&*request.name).ok_or_else(|| self.unknown(&request.name))?;
        let input = RawJson::from(Value::Object(request.arguments.unwrap_or_default()));
        let call = ToolCall::detached(context.id.to_string(), &*request.name).with_input(input.clone());
        // A panic would leave the client without an answer.
        let running = AssertUnwindSafe(served.tool.call(&input, &call)).catch_unwind();
        let done = tokio::select! {
            done = running => done,
            () = context.ct.cancelled() => return Err(ErrorData::internal_error("the call was cancelled", None)),
        };
        match done {
            Ok(result) => answer(&request.name, result),
            Err(_) => Err(failed(&request.name)),
        }
    }
}

fn answer(name: &str, result: Result<ToolOutput, ToolError>) -> Result<CallToolResponse, ErrorData> {
    let result = match result {
        Ok(output) => {
            // The artifact stays here: it is not for models, and a client may show all that it gets to one.
            CallToolResult::success(output.content.iter().map(content::from_block).collect())
        }
        Err(ToolError::Fatal(error)) => {
            tracing::error!(tool = name, %error, "a tool failed");
            return Err(failed(name));
        }
        Err(told) => CallToolResult::error(vec![ContentBlock::text(told.to_string())]),
    };
    Ok(result.into())
}

/// The error for the client, without the cause, which may contain secrets of this program.
fn failed(name: &str) -> ErrorData {
    ErrorData::internal_error(format!("the tool `{name}` failed; its server has logged why"), None)
}
