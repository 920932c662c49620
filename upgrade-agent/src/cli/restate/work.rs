//! The commands `worker` and `relay`, which run until they are told to end.

use agentgraph_restate::{EventRelay, RestateWorker, ServeError};
use secrecy::ExposeSecret;

use super::super::failure::Failure;
use super::super::patience::hinted;
use super::super::screen::Screen;
use super::super::simulator::termination_signal;
use super::super::world;
use super::address::{self, RelayAddress};
use super::server::check_relay;
use super::{RelayOptions, WorkerOptions};
use crate::config::{Config, ConfigError};

/// Runs turns for the server until it is told to end. Then turns under way go on in another worker.
pub(in crate::cli) async fn work(
    config: &Config,
    options: WorkerOptions,
    screen: Screen,
) -> Result<(), Failure> {
    let admin = address::url(config, "restate_admin", &config.restate.admin)?;
    let relay = RelayAddress::of(config)?;
    if config.url.is_none() {
        return Err(no_server().into());
    }
    let agent = world::for_workers(config)?;
    let worker = agent.worker()?.register(admin.as_str());
    let worker = addressed(worker, relay.as_ref(), &options);
    let mut ended = std::pin::pin!(termination_signal()?);
    let hint =
        format!("Waiting for the admin API of a Restate server at {admin}; --restate-admin names another.");
    let serving = tokio::select! {
        serving = hinted(screen, &hint, worker.start(options.listen)) => serving?,
        () = &mut ended => return Ok(()),
    };
    screen.line(&format!("http://{}", serving.addr()));
    screen.warn(&world::introduction(config));
    check_relay(relay.as_ref(), screen).await;
    ended.await;
    serving.stop().await;
    Ok(())
}

fn addressed(
    mut worker: RestateWorker,
    relay: Option<&RelayAddress>,
    options: &WorkerOptions,
) -> RestateWorker {
    if let Some(relay) = relay {
        worker = match relay.token() {
            Some(token) => worker.relay_with_token(relay.url.as_str(), token),
            None => worker.relay(relay.url.as_str()),
        };
    }
    if let Some(url) = &options.advertise {
        worker = worker.advertise(url);
    }
    if let Some(key) = &options.identity_key {
        worker = worker.identity_key(key);
    }
    worker
}

/// An embedded server would be another one in each worker, so that an experiment would be there or not
/// depending on the worker that runs the turn.
fn no_server() -> ConfigError {
    let why = "a worker needs --url, the UpGrade server that all workers call; `upgrade-agent simulator` runs one for \
               a trial";
    ConfigError::Value { from: "worker".to_owned(), why: why.to_owned() }
}

/// Carries pieces of replies from workers to chats until it is told to end.
pub(in crate::cli) async fn relay(
    config: &Config,
    options: RelayOptions,
    screen: Screen,
) -> Result<(), Failure> {
    let ended = termination_signal()?;
    let mut relay = EventRelay::new();
    if let Some(token) = &config.restate.relay_token {
        relay = relay.token(token.expose_secret());
    }
    let relaying = relay.start(options.listen).await?;
    screen.line(&format!("http://{}", relaying.addr()));
    ended.await;
    Ok(())
}

/// The library's message names its own methods; the program has flags and variables.
pub(in crate::cli) fn of_serving(error: &ServeError) -> String {
    let text = error.to_string();
    let text = text.replace("set `.identity_key(..)` to", "set --identity-key to");
    let text = text.replace("set `.token(..)`", "set UPGRADE_AGENT_RELAY_TOKEN");
    format!("{}: {text}", error.code())
}
