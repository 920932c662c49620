//! Conversations on a Restate server: [`Server`] reads and changes them from here, the command `worker` runs
//! their turns, and the command `relay` carries pieces of replies. A program that was built without the
//! feature `restate` says how to build it.

use std::net::SocketAddr;

use clap::Args;

#[cfg(feature = "restate")]
mod address;
#[cfg(not(feature = "restate"))]
mod missing;
#[cfg(feature = "restate")]
mod server;
#[cfg(feature = "restate")]
mod work;

#[cfg(not(feature = "restate"))]
pub(super) use missing::{Server, relay, work};
#[cfg(feature = "restate")]
pub(super) use server::Server;
#[cfg(feature = "restate")]
pub(super) use work::{of_serving, relay, work};

/// The addresses of a worker.
#[derive(Debug, Args)]
#[cfg_attr(not(feature = "restate"), allow(dead_code))]
pub(super) struct WorkerOptions {
    /// The address to listen on; after a restart it must be the same
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9080")]
    listen: SocketAddr,
    /// The URL under which the server reaches the worker, if it is not that address. Workers behind one proxy
    /// have its URL
    #[arg(long, value_name = "URL")]
    advertise: Option<String>,
    /// The public key of the server (publickeyv1_...), which a worker needs to listen on another address than
    /// loopback
    #[arg(long, value_name = "KEY")]
    identity_key: Option<String>,
}

/// The address of a relay.
#[derive(Debug, Args)]
#[cfg_attr(not(feature = "restate"), allow(dead_code))]
pub(super) struct RelayOptions {
    /// The address to listen on. Another address than loopback needs a token in UPGRADE_AGENT_RELAY_TOKEN,
    /// here and for those who use the relay
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9090")]
    listen: SocketAddr,
}
