//! [`Server`]: a Restate server with the conversations, and the relay beside it.

use std::time::{Duration, Instant};

use agentgraph::{Code, Error};
use agentgraph_restate::{RemoteGraph, RestateClient};
use reqwest::{Client, Url};
use serde::Deserialize;
use serde_json::json;
use upgrade_agent::agent::{AgentError, GRAPH, UpgradeAgent};
use upgrade_agent::state::ConversationState;

use super::super::failure::Failure;
use super::super::screen::Screen;
use super::address::{self, RelayAddress};
use crate::config::{Config, ConfigError};

/// How long the relay and the admin API may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The time between two attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// A Restate server with the conversations.
pub(in crate::cli) struct Server {
    ingress: Url,
    admin: Url,
    relay: Option<RelayAddress>,
    client: RestateClient,
    graph: RemoteGraph<ConversationState>,
}

/// The answer of the admin API to a query.
#[derive(Deserialize)]
struct Rows {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    service_key: String,
}

impl Server {
    /// Checks the addresses. Nothing is sent yet.
    pub(in crate::cli) fn connect(config: &Config, ingress: &str) -> Result<Self, Failure> {
        let ingress = address::url(config, "restate", ingress)?;
        let admin = address::url(config, "restate_admin", &config.restate.admin)?;
        let relay = RelayAddress::of(config)?;
        let client = RestateClient::connect(ingress.as_str())
            .map_err(|why| ConfigError::Value { from: config.source("restate"), why: why.to_string() })?;
        let client = match &relay {
            None => client,
            Some(relay) => match relay.token() {
                Some(token) => client.relay_with_token(relay.url.as_str(), token),
                None => client.relay(relay.url.as_str()),
            },
        };
        let graph = client.graph(GRAPH);
        Ok(Server { ingress, admin, relay, client, graph })
    }

    /// The agent whose turns run in the workers.
    pub(in crate::cli) fn agent(&self) -> Result<UpgradeAgent, Failure> {
        Ok(UpgradeAgent::on_restate(&self.client)?)
    }

    pub(in crate::cli) fn introduction(&self) -> String {
        format!("The workers of the Restate server {} answer.", self.ingress)
    }

    /// What to look at if there is no answer.
    pub(in crate::cli) fn advice(&self) -> String {
        format!(
            "The server has to run at {}, and a worker at the server: `upgrade-agent worker` starts one",
            self.ingress
        )
    }

    /// Says if pieces of replies cannot be read.
    pub(in crate::cli) async fn check_relay(&self, screen: Screen) {
        check_relay(self.relay.as_ref(), screen).await;
    }

    /// The names of the conversations. Each of them is an object of the server.
    pub(in crate::cli) async fn threads(&self) -> Result<Vec<String>, Failure> {
        let query =
            format!("SELECT service_key FROM state WHERE service_name = '{GRAPH}' AND key = 'status'");
        let rows = self.query(&query).await.map_err(|why| {
            let problem = format!(
                "the conversations cannot be listed: the admin API of the Restate server at {}: {why}; \
                 --restate-admin names another address",
                self.admin
            );
            AgentError::from(Error::new(Code::Host, problem))
        })?;
        Ok(rows.into_iter().map(|row| row.service_key).collect())
    }

    async fn query(&self, query: &str) -> Result<Vec<Row>, String> {
        let mut url = self.admin.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push("query");
        }
        let (client, begun) = (http(&url)?, Instant::now());
        loop {
            let request = client.post(url.clone()).header("accept", "application/json");
            let answer = request.json(&json!({ "query": query })).send().await.map_err(|why| cause(&why))?;
            // A server that has just started cannot read its tables yet.
            if answer.status().is_server_error() && begun.elapsed() < PATIENCE {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            let answer = answer.error_for_status().map_err(|why| cause(&why.without_url()))?;
            return Ok(answer.json::<Rows>().await.map_err(|why| cause(&why.without_url()))?.rows);
        }
    }

    /// Deletes a conversation.
    pub(in crate::cli) async fn delete(&self, name: &str) -> Result<(), Failure> {
        Ok(self.graph.delete_thread(name).await.map_err(AgentError::from)?)
    }
}

/// Says if a relay does not answer.
pub(super) async fn check_relay(relay: Option<&RelayAddress>, screen: Screen) {
    if let Some(relay) = relay
        && let Err(why) = reach(relay).await
    {
        screen.warn(&format!("The relay {} does not answer, so replies come whole: {why}", relay.url));
    }
}

/// Whether the relay answers those who have this token.
async fn reach(relay: &RelayAddress) -> Result<(), String> {
    let mut url = relay.url.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(["threads", GRAPH, "-"]);
    }
    let mut request = http(&url)?.get(url);
    if let Some(token) = relay.token() {
        request = request.bearer_auth(token);
    }
    // The events of a thread, which have no end, are not read.
    let answer = request.send().await.map_err(|why| cause(&why))?;
    match answer.status() {
        status if status.is_success() => Ok(()),
        status if status == 401 => Err("it refuses the token in UPGRADE_AGENT_RELAY_TOKEN".to_owned()),
        status => Err(format!("it answers with status {status}")),
    }
}

fn http(url: &Url) -> Result<Client, String> {
    let mut builder = Client::builder().connect_timeout(PATIENCE).read_timeout(PATIENCE);
    if address::is_loopback(url) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|why| cause(&why))
}

/// The innermost cause of a failure.
fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
