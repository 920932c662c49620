//! What a server offers beside tools: resources and prompts.

use std::future::Future;

use rmcp::ServiceError;
use rmcp::model::{
    GetPromptRequestParams, GetPromptResponse, JsonObject, ReadResourceRequestParams, ReadResourceResponse,
    Role as McpRole,
};

use super::McpClient;
use crate::error::{Code, Error, Result};
use crate::mcp::content;
use crate::message::{Block, Message, Role};

/// A resource that an MCP server offers: a file, a table, a page.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpResource {
    /// The address by which the server knows it.
    pub uri: String,
    /// The name.
    pub name: String,
    /// What it is, for a model.
    pub description: Option<String>,
    /// The media type.
    pub media_type: Option<String>,
}

/// A prompt that an MCP server offers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpPrompt {
    /// The name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// The names of its arguments, and whether they are required.
    pub arguments: Vec<(String, bool)>,
}

/// # Resources and prompts
impl McpClient {
    /// The resources that the server offers now.
    ///
    /// # Errors
    /// If the server does not answer.
    pub async fn resources(&self) -> Result<Vec<McpResource>> {
        let listed =
            self.in_time("list its resources", || self.connection.peer().list_all_resources()).await?;
        let resource = |found: rmcp::model::Resource| McpResource {
            uri: found.uri,
            name: found.name,
            description: found.description,
            media_type: found.mime_type,
        };
        Ok(listed.into_iter().map(resource).collect())
    }

    /// The content of a resource, as blocks for a message.
    ///
    /// # Errors
    /// If the server does not answer, or does not have it.
    pub async fn read_resource(&self, uri: impl Into<String>) -> Result<Vec<Block>> {
        let params = ReadResourceRequestParams::new(uri);
        let what = "read the resource";
        match self.in_time(what, || self.connection.peer().read_resource_once(params.clone())).await? {
            ReadResourceResponse::Complete(read) => {
                Ok(read.contents.into_iter().map(content::resource_block).collect())
            }
            _ => Err(self.asks(what)),
        }
    }

    /// The prompts that the server offers now.
    ///
    /// # Errors
    /// If the server does not answer.
    pub async fn prompts(&self) -> Result<Vec<McpPrompt>> {
        let listed = self.in_time("list its prompts", || self.connection.peer().list_all_prompts()).await?;
        let prompt = |found: rmcp::model::Prompt| {
            let arguments = found.arguments.into_iter().flatten();
            let arguments = arguments.map(|argument| (argument.name, argument.required == Some(true)));
            McpPrompt { name: found.name, description: found.description, arguments: arguments.collect() }
        };
        Ok(listed.into_iter().map(prompt).collect())
    }

    /// The messages of a prompt with these arguments, for the beginning of a conversation.
    ///
    /// # Errors
    /// If the server does not answer, does not have it, or refuses the arguments.
    pub async fn prompt<N: Into<String>, V: Into<String>>(
        &self,
        name: impl Into<String>,
        arguments: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Vec<Message>> {
        let arguments = arguments.into_iter().map(|(name, value)| (name.into(), value.into().into()));
        let params = GetPromptRequestParams::new(name).with_arguments(arguments.collect::<JsonObject>());
        let what = "give the prompt";
        match self.in_time(what, || self.connection.peer().get_prompt_once(params.clone())).await? {
            GetPromptResponse::Complete(prompt) => {
                let message = |said: rmcp::model::PromptMessage| {
                    let role = if said.role == McpRole::Assistant { Role::Assistant } else { Role::User };
                    Message::new(role, [content::to_block(said.content)])
                };
                Ok(prompt.messages.into_iter().map(message).collect())
            }
            _ => Err(self.asks(what)),
        }
    }

    pub(super) async fn in_time<T, W: Future<Output = Result<T, ServiceError>>>(
        &self,
        what: &str,
        work: impl Fn() -> W,
    ) -> Result<T> {
        let (server, limit) = (self.connection.server(), self.connection.timeout());
        let late = |_| server.late(what, limit);
        let work = &work;
        let send = || async move { tokio::time::timeout(limit, work()).await.map_err(late) };
        let done = self.connection.access().send(server, ServiceError::auth_challenge, send).await?;
        done.map_err(|error| server.not_done(what, &error))
    }

    fn asks(&self, what: &str) -> Error {
        let message =
            format!("the MCP server `{}` asks a person before it can {what}", self.connection.server().name);
        Error::new(Code::BadRequest, message)
    }
}
