//! Conversations on a Restate server: the agent that reaches them, and the command `worker`, which runs them.

use std::net::SocketAddr;

use clap::Args;
use upgrade_agent::agent::UpgradeAgent;

use super::failure::Failure;
use super::screen::Screen;
use crate::config::{Config, ConfigError};

/// The addresses of a worker.
#[derive(Debug, Args)]
#[cfg_attr(not(feature = "restate"), allow(dead_code))]
pub(super) struct Options {
    /// The admin API of the Restate server, where the worker registers itself
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9070")]
    admin: String,
    /// The address to listen on; after a restart it must be the same
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9080")]
    listen: SocketAddr,
    /// The URL under which the server reaches the worker, if it is not the address
    #[arg(long, value_name = "URL")]
    advertise: Option<String>,
    /// The identity key of the server, which a worker on another address than loopback asks for
    #[arg(long, value_name = "KEY")]
    identity_key: Option<String>,
}

/// The error of a command that the conversations of a Restate server do not have.
pub(super) fn no_list() -> Failure {
    let why = "the conversations of a Restate server are listed by that server: see `sys_keyed_service_status` of its SQL";
    ConfigError::Value { from: "--restate".to_owned(), why: why.to_owned() }.into()
}

/// The agent whose turns run in the workers of the server.
#[cfg(feature = "restate")]
pub(super) fn agent(ingress: &str) -> Result<UpgradeAgent, Failure> {
    use agentgraph_restate::RestateClient;
    let client = RestateClient::connect(ingress).map_err(|error| not_usable("--restate", &error))?;
    Ok(UpgradeAgent::on_restate(&client)?)
}

/// Runs turns for the server until it is told to end.
#[cfg(feature = "restate")]
pub(super) async fn work(config: &Config, options: Options, screen: Screen) -> Result<(), Failure> {
    use super::simulator::termination_signal;
    use super::world::World;

    let ended = termination_signal()?;
    let world = World::open(&Config { restate: None, ..config.clone() }).await?;
    let Options { admin, listen, advertise, identity_key } = options;
    let mut worker = world.agent.worker().register(admin);
    if let Some(url) = advertise {
        worker = worker.advertise(url);
    }
    if let Some(key) = identity_key {
        worker = worker.identity_key(key);
    }
    let started = worker.start(listen).await;
    let serving = started.map_err(|error| not_usable("worker", &error))?;
    screen.line(&format!("http://{}", serving.addr()));
    screen.warn(&world.introduction);
    ended.await;
    serving.stop().await;
    world.close().await;
    Ok(())
}

#[cfg(feature = "restate")]
fn not_usable(from: &str, why: &dyn std::error::Error) -> Failure {
    ConfigError::Value { from: from.to_owned(), why: why.to_string() }.into()
}

#[cfg(not(feature = "restate"))]
pub(super) fn agent(_: &str) -> Result<UpgradeAgent, Failure> {
    Err(not_built("--restate"))
}

#[cfg(not(feature = "restate"))]
pub(super) async fn work(_: &Config, _: Options, _: Screen) -> Result<(), Failure> {
    Err(not_built("worker"))
}

#[cfg(not(feature = "restate"))]
fn not_built(from: &str) -> Failure {
    let why = "this program was built without Restate: build it with `cargo build -p upgrade-agent --features restate`";
    ConfigError::Value { from: from.to_owned(), why: why.to_owned() }.into()
}
