//! The settings of a connection.

use std::collections::HashMap;
use std::process::Stdio;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientInitializeError, RunningService};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{IntoTransport, StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient};
use secrecy::{ExposeSecret, SecretString};
use tokio::process::Command;
use tokio::sync::watch;

use super::startup::{Awaited, Startup};
use super::{Heard, Listener, McpClient, listen};
use crate::error::{Code, Error, Result};
use crate::mcp::access::Access;
use crate::mcp::failure::Server;
#[cfg(feature = "mcp-oauth")]
use crate::mcp::oauth::{Authorization, McpOAuth};

/// The era of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum McpProtocol {
    /// The newest that the server speaks. A server of the older era that does not answer to an unknown
    /// request costs ten seconds.
    #[default]
    Auto,
    /// With the `initialize` handshake: versions up to 2025-11-25.
    Handshake,
    /// Without a handshake: version 2026-07-28.
    Stateless,
}

impl From<McpProtocol> for ClientLifecycleMode {
    fn from(protocol: McpProtocol) -> Self {
        let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
        match protocol {
            McpProtocol::Auto => ClientLifecycleMode::Auto { preferred_versions, legacy_version: None },
            McpProtocol::Handshake => ClientLifecycleMode::Initialize,
            McpProtocol::Stateless => ClientLifecycleMode::Discover { preferred_versions },
        }
    }
}

pub(super) struct Settings {
    pub(super) server: Server,
    pub(super) prefix: Option<String>,
    pub(super) timeout: Duration,
    pub(super) may_ask: bool,
    connect_timeout: Duration,
    protocol: McpProtocol,
}

enum Transport {
    Process { command: Command, stderr: Stdio },
    Http(Address),
}

struct Address {
    url: String,
    client: Option<reqwest::Client>,
    bearer: Option<SecretString>,
    headers: Vec<(String, SecretString)>,
    #[cfg(feature = "mcp-oauth")]
    oauth: Option<McpOAuth>,
}

/// The settings of a [`McpClient`]: see [`McpClient::command`] and [`McpClient::http`].
pub struct McpClientBuilder {
    settings: Settings,
    transport: Transport,
}

impl McpClient {
    /// A server that is a program: it is started, and spoken to over its standard input and output. It ends
    /// with the client. Its standard error is that of this process.
    ///
    /// The program gets the environment of this process, with all keys in it, unless the command says
    /// otherwise (`env_clear`).
    pub fn command(command: impl Into<Command>) -> McpClientBuilder {
        let command = command.into();
        let name = command.as_std().get_program().to_string_lossy().into_owned();
        McpClientBuilder::new(name, Transport::Process { command, stderr: Stdio::inherit() })
    }

    /// A server at an address, over streamable HTTP.
    pub fn http(url: impl Into<String>) -> McpClientBuilder {
        let url = url.into();
        // The query may contain a key.
        let name = url.split(['?', '#']).next().unwrap_or_default().to_owned();
        let address = Address {
            url: url.clone(),
            client: None,
            bearer: None,
            headers: Vec::new(),
            #[cfg(feature = "mcp-oauth")]
            oauth: None,
        };
        let mut builder = McpClientBuilder::new(name.clone(), Transport::Http(address));
        if url != name {
            builder.settings.server.secrets.push(url.into());
        }
        builder
    }
}

impl McpClientBuilder {
    fn new(name: String, transport: Transport) -> Self {
        let settings = Settings {
            server: Server { name, ..Server::default() },
            prefix: None,
            may_ask: false,
            timeout: Duration::from_secs(60),
            connect_timeout: Duration::from_secs(30),
            protocol: McpProtocol::default(),
        };
        McpClientBuilder { settings, transport }
    }

    /// Sets a prefix for the names of the tools, so that tools of several servers have different names:
    /// `read` with the prefix `files` is `files_read`.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.settings.prefix = Some(prefix.into());
        self
    }

    /// Sets the limit of a call, and of a request for the list of tools. Default: 60 seconds.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.settings.timeout = limit;
        self
    }

    /// Sets the limit for the start of the server and the first exchange with it. Default: 30 seconds.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.settings.connect_timeout = limit;
        self
    }

    /// Sets the era of the protocol.
    pub fn protocol(mut self, protocol: McpProtocol) -> Self {
        self.settings.protocol = protocol;
        self
    }

    /// Sets a token, which is sent as `Authorization: Bearer`. Only for HTTP.
    pub fn bearer(mut self, token: impl Into<SecretString>) -> Self {
        if let Transport::Http(address) = &mut self.transport {
            address.bearer = Some(token.into());
        }
        self
    }

    /// Sets how the program is authorized at the server, and a person asked: see [`McpOAuth`]. Only for HTTP,
    /// and in place of [`bearer`](McpClientBuilder::bearer).
    #[cfg(feature = "mcp-oauth")]
    pub fn oauth(mut self, oauth: McpOAuth) -> Self {
        if let Transport::Http(address) = &mut self.transport {
            (address.oauth, address.bearer) = (Some(oauth), None);
        }
        self
    }

    /// Sets the HTTP client, such as one from [`http_client_builder`](crate::http_client_builder) with a
    /// proxy or certificates of your own. Only for HTTP.
    pub fn http_client(mut self, client: reqwest::Client) -> Self {
        if let Transport::Http(address) = &mut self.transport {
            address.client = Some(client);
        }
        self
    }

    /// Adds a header to every request. Only for HTTP.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<SecretString>) -> Self {
        if let Transport::Http(address) = &mut self.transport {
            address.headers.push((name.into(), value.into()));
        }
        self
    }

    /// Lets the server ask a person while a tool runs: an [`Elicitation`](crate::mcp::Elicitation) is an
    /// interrupt of the run, and its answer an [`ElicitationAnswer`](crate::mcp::ElicitationAnswer). The
    /// call is cancelled for the time, and made again from its beginning when the answer came. Calls of
    /// such a connection run one at a time.
    pub fn elicitation(mut self) -> Self {
        self.settings.may_ask = true;
        self
    }

    /// Sets where the standard error of the program goes. Only for a command.
    pub fn stderr(mut self, target: impl Into<Stdio>) -> Self {
        if let Transport::Process { stderr, .. } = &mut self.transport {
            *stderr = target.into();
        }
        self
    }

    /// Starts or reaches the server.
    ///
    /// # Errors
    /// `E_LLM_CONFIG` if the program cannot be started or a setting is invalid, `E_LLM_AUTH`,
    /// `E_LLM_CONNECTION`, and `E_LLM_TIMEOUT` if the server does not answer in time.
    pub async fn connect(self) -> Result<McpClient> {
        let McpClientBuilder { mut settings, transport } = self;
        settings.server.secrets.extend(transport.secrets());
        let (started, access) = match transport {
            Transport::Process { command, stderr } => {
                let process = spawn(command, stderr, &settings.server.name)?;
                (start(process, &settings).await?, Access::default())
            }
            Transport::Http(address) => reach(address, &settings).await?,
        };
        let started = started.map_err(|error| settings.server.not_connected(&error))?;
        let running = &started.running;
        if let Some(info) = running.peer().peer_info()
            && !info.protocol_version.has_initialize()
            && info.capabilities.tools.as_ref().is_some_and(|tools| tools.list_changed == Some(true))
        {
            tokio::spawn(listen(running.peer().clone(), started.changes));
        }
        Ok(McpClient::new(started.running, started.heard, settings, access))
    }
}

impl Transport {
    fn secrets(&self) -> Vec<SecretString> {
        let Transport::Http(address) = self else { return Vec::new() };
        let secrets = address.bearer.iter().chain(address.headers.iter().map(|(_, value)| value));
        #[cfg(feature = "mcp-oauth")]
        let secrets = secrets.chain(address.oauth.iter().filter_map(McpOAuth::secret));
        secrets.cloned().collect()
    }
}

/// The first exchange with a server.
struct Started {
    running: RunningService<RoleClient, Listener>,
    changes: watch::Sender<u64>,
    heard: Heard,
}

async fn start<T, E, A>(transport: T, settings: &Settings) -> Result<Result<Started, ClientInitializeError>>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let (listener, heard) = Listener::new(settings.may_ask);
    let changes = listener.changes.clone();
    let (limit, awaited) = (settings.connect_timeout, Awaited::default());
    let transport = Startup::new(transport.into_transport(), awaited.clone());
    let connecting = listener.serve_with_lifecycle(transport, settings.protocol.into());
    let connected = tokio::time::timeout(limit, connecting).await;
    let connected = connected.map_err(|_| settings.server.not_started(&awaited.text(), limit))?;
    Ok(connected.map(|running| Started { running, changes, heard }))
}

async fn reach(
    address: Address,
    settings: &Settings,
) -> Result<(Result<Started, ClientInitializeError>, Access)> {
    let config = address.config()?;
    let client = address.client.map_or_else(|| client(&address.url), Ok)?;
    #[cfg(feature = "mcp-oauth")]
    if let Some(oauth) = address.oauth {
        let server = &settings.server;
        let authorization = Authorization::new(oauth, client, server).await?;
        let client = authorization.client();
        let access = Access { authorization: Some(authorization) };
        let transport = || StreamableHttpClientTransport::with_client(client.clone(), config.clone());
        let send = || start(transport(), settings);
        let started = access.send(server, ClientInitializeError::auth_challenge, send).await?;
        return Ok((started, access));
    }
    let transport = StreamableHttpClientTransport::with_client(client, config);
    Ok((start(transport, settings).await?, Access::default()))
}

fn spawn(command: Command, stderr: Stdio, server: &str) -> Result<TokioChildProcess> {
    let spawned = TokioChildProcess::builder(command).stderr(stderr).spawn();
    let (process, _) = spawned.map_err(|error| {
        let message =
            format!("the MCP server `{server}` cannot be started ({error}): check the program's name");
        Error::new(Code::Config, message).with_source(error)
    })?;
    Ok(process)
}

impl Address {
    fn config(&self) -> Result<StreamableHttpClientTransportConfig> {
        let mut config = StreamableHttpClientTransportConfig::with_uri(self.url.as_str());
        if let Some(token) = &self.bearer {
            config = config.auth_header(token.expose_secret());
        }
        let headers: Result<HashMap<_, _>> =
            self.headers.iter().map(|(name, value)| header(name, value)).collect();
        Ok(config.custom_headers(headers?))
    }
}

fn header(name: &str, value: &SecretString) -> Result<(HeaderName, HeaderValue)> {
    let invalid = || Error::new(Code::Config, format!("the header `{name}` of an MCP server cannot be sent"));
    let mut sent = HeaderValue::from_str(value.expose_secret()).map_err(|_| invalid())?;
    sent.set_sensitive(true);
    Ok((HeaderName::try_from(name).map_err(|_| invalid())?, sent))
}

fn client(url: &str) -> Result<reqwest::Client> {
    let invalid = "the address of an MCP server is no URL: begin it with `https://` or `http://`";
    let url = reqwest::Url::parse(url).map_err(|_| Error::new(Code::Config, invalid))?;
    let mut builder = crate::http_client_builder();
    // A proxy is for the network, and not for servers on this machine.
    if matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]")) {
        builder = builder.no_proxy();
    }
    builder
        .build()
        .map_err(|error| Error::new(Code::Config, format!("the HTTP client cannot be built: {error}")))
}
