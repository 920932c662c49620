//! A connection to an MCP server.

mod builder;
mod offers;
mod startup;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, Implementation, ServerPeerInfo, SubscriptionFilter,
};
use rmcp::service::{
    NotificationContext, Peer, RequestContext, RunningService, RunningServiceCancellationToken,
};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use tokio::sync::{MutexGuard, mpsc, oneshot, watch};

use super::access::Access;
use super::elicitation::Asked;
use super::failure::Server;
use super::names;
use super::tool::McpTool;
use crate::error::{Code, Error, Result};

pub use builder::{McpClientBuilder, McpProtocol};
pub use offers::{McpPrompt, McpResource};

/// A connection to an MCP server. Cheap to clone; clones and the tools share one connection, which is closed
/// when the last of them is dropped.
///
/// ```no_run
/// use agentgraph_llm::mcp::McpClient;
/// use agentgraph_llm::prelude::*;
/// use std::process::Command;
///
/// # async fn example(model: AnthropicModel) -> agentgraph_llm::Result<()> {
/// let mut command = Command::new("npx");
/// command.args(["-y", "@modelcontextprotocol/server-everything"]);
/// let server = McpClient::command(command).prefix("everything").connect().await?;
///
/// let mut agent = ToolLoop::new(&model);
/// for tool in server.tools().await? {
///     agent = agent.tool(tool);
/// }
/// let outcome = agent.run(ChatRequest::user("2 + 3?")).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct McpClient {
    connection: Arc<Connection>,
    prefix: Option<Arc<str>>,
    /// Counts the changes of the server's list.
    changes: watch::Receiver<u64>,
}

/// What tools and clients share.
pub(super) struct Connection {
    server: Server,
    access: Access,
    timeout: Duration,
    peer: Peer<RoleClient>,
    stop: Mutex<Option<RunningServiceCancellationToken>>,
    /// The questions of the server, if it may ask. A call holds them while it runs, since the server does not
    /// say which call a question belongs to.
    questions: Option<tokio::sync::Mutex<mpsc::Receiver<Asked>>>,
    /// Whether the task of the connection has ended.
    ended: watch::Receiver<bool>,
}

impl Connection {
    /// Ends the connection, without waiting for the end.
    fn stop(&self) {
        if let Some(stop) = self.stop.lock().unwrap_or_else(PoisonError::into_inner).take() {
            stop.cancel();
        }
    }

    /// Waits until either side ends the connection.
    async fn end(&self) {
        // An error means that the task is gone, and so ended.
        let _ = self.ended.clone().wait_for(|ended| *ended).await;
    }

    pub(super) fn server(&self) -> &Server {
        &self.server
    }

    pub(super) fn access(&self) -> &Access {
        &self.access
    }

    /// The limit of one call.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The questions of the server, if it may ask: for one call at a time.
    pub(super) async fn questions(&self) -> Option<MutexGuard<'_, mpsc::Receiver<Asked>>> {
        Some(self.questions.as_ref()?.lock().await)
    }

    pub(super) fn peer(&self) -> &Peer<RoleClient> {
        &self.peer
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.stop();
    }
}

impl McpClient {
    fn new(
        running: RunningService<RoleClient, Listener>,
        (changes, questions): Heard,
        settings: builder::Settings,
        access: Access,
    ) -> Self {
        let (peer, stop) = (running.peer().clone(), Mutex::new(Some(running.cancellation_token())));
        let (end, ended) = watch::channel(false);
        tokio::spawn(async move {
            // How it ended, the next call finds out.
            let _ = running.waiting().await;
            end.send_replace(true);
        });
        let builder::Settings { server, timeout, prefix, may_ask, .. } = settings;
        let questions = may_ask.then(|| tokio::sync::Mutex::new(questions));
        McpClient {
            connection: Arc::new(Connection { server, access, timeout, peer, stop, questions, ended }),
            prefix: prefix.map(Into::into),
            changes,
        }
    }

    /// The tools that the server offers now.
    ///
    /// # Errors
    /// If the server does not answer, or if two tools have the same name after the prefix was added.
    pub async fn tools(&self) -> Result<Vec<McpTool>> {
        let server = self.connection.server();
        let listed = self.in_time("list its tools", || self.connection.peer().list_all_tools()).await?;
        let mut tools: Vec<McpTool> = Vec::with_capacity(listed.len());
        for definition in listed {
            let name = names::for_models(self.prefix.as_deref(), &definition.name);
            if let Some(twin) = tools.iter().find(|tool| tool.name() == name) {
                return Err(same_name(&server.name, &name, twin.server_name(), &definition.name));
            }
            tools.push(McpTool::new(Arc::clone(&self.connection), name, definition));
        }
        Ok(tools)
    }

    /// Waits until the server says that its list of tools has changed. Changes since the last return of this
    /// method count; read the new list with [`tools`](McpClient::tools).
    ///
    /// # Errors
    /// If the connection has ended.
    pub async fn tools_changed(&mut self) -> Result<()> {
        let closed = || self.connection.server.closed();
        tokio::select! {
            biased;
            changed = self.changes.changed() => changed.map_err(|_| closed()),
            () = self.connection.end() => Err(closed()),
        }
    }

    /// The server's advice for the use of its tools, for the system prompt.
    pub fn instructions(&self) -> Option<String> {
        self.peer_info()?.instructions.clone()
    }

    /// The version of the protocol that client and server speak, such as `2025-11-25`.
    pub fn protocol_version(&self) -> Option<String> {
        self.peer_info().map(|info| info.protocol_version.as_str().to_owned())
    }

    fn peer_info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.connection.peer.peer_info()
    }

    /// Whether the connection has ended: the server's process has exited, or [`close`](McpClient::close) was
    /// called. Calls then fail.
    pub fn is_closed(&self) -> bool {
        *self.connection.ended.borrow() || self.connection.peer.is_transport_closed()
    }

    /// Ends the connection and waits for the end of the server's process: a few seconds for it to exit by
    /// itself, then it is killed.
    pub async fn close(&self) {
        self.connection.stop();
        self.connection.end().await;
    }
}

impl std::fmt::Debug for McpClient {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("McpClient")
            .field("server", &self.connection.server.name)
            .field("prefix", &self.prefix)
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

fn same_name(server: &str, name: &str, one: &str, other: &str) -> Error {
    let message = format!(
        "the tools `{one}` and `{other}` of the MCP server `{server}` would both be named `{name}`: wrap one of them in \
         a tool of your own"
    );
    Error::new(Code::BadTool, message)
}

/// Hears the notifications of the server, and passes its questions to a person on to the call that runs. It
/// answers no requests for a model.
pub(super) struct Listener {
    changes: watch::Sender<u64>,
    questions: mpsc::Sender<Asked>,
    may_ask: bool,
}

/// Counts the changes of the server's list, and its questions.
type Heard = (watch::Receiver<u64>, mpsc::Receiver<Asked>);

impl Listener {
    fn new(may_ask: bool) -> (Self, Heard) {
        let (changes, heard) = watch::channel(0);
        let (questions, asked) = mpsc::channel(1);
        (Listener { changes, questions, may_ask }, (heard, asked))
    }
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let client = Implementation::new("agentgraph", env!("CARGO_PKG_VERSION"));
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = self.may_ask.then(|| {
            let mut kinds = ElicitationCapability::new();
            (kinds.form, kinds.url) = (Some(Default::default()), Some(Default::default()));
            kinds
        });
        ClientConfig::new(capabilities, client)
    }

    async fn create_elicitation(
        &self,
        question: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let (answer, answered) = oneshot::channel();
        // Fails while no call is open: as after an interrupt, the server hears `cancel`.
        let _ = self.questions.try_send(Asked { question, answer });
        Ok(answered.await.unwrap_or(ElicitResult::new(ElicitationAction::Cancel)))
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.send_modify(|count| *count += 1);
    }
}

/// Asks a server without a handshake for its notifications; it sends none by itself.
async fn listen(peer: Peer<RoleClient>, changes: watch::Sender<u64>) {
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    let Ok(mut notifications) = peer.listen(filter).await else { return };
    while let Ok(Some(_)) = notifications.next().await {
        changes.send_modify(|count| *count += 1);
    }
}
