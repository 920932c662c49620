//! The parts of a program that was built without the feature `restate`: errors that say how to build it.

use upgrade_agent::agent::UpgradeAgent;

use super::super::failure::Failure;
use super::super::screen::Screen;
use super::{RelayOptions, WorkerOptions};
use crate::config::{Config, ConfigError};

/// Has no values: there is no server in such a program.
#[derive(Debug)]
pub(in crate::cli) enum Server {}

impl Server {
    pub(in crate::cli) fn connect(config: &Config, _: &str) -> Result<Self, Failure> {
        Err(not_built(&config.source("restate")))
    }

    pub(in crate::cli) fn agent(&self) -> Result<UpgradeAgent, Failure> {
        match *self {}
    }

    pub(in crate::cli) fn introduction(&self) -> String {
        match *self {}
    }

    pub(in crate::cli) fn advice(&self) -> String {
        match *self {}
    }

    pub(in crate::cli) async fn check_relay(&self, _: Screen) {
        match *self {}
    }

    pub(in crate::cli) async fn threads(&self) -> Result<Vec<String>, Failure> {
        match *self {}
    }

    pub(in crate::cli) async fn delete(&self, _: &str) -> Result<(), Failure> {
        match *self {}
    }
}

pub(in crate::cli) async fn work(_: &Config, _: WorkerOptions, _: Screen) -> Result<(), Failure> {
    Err(not_built("worker"))
}

pub(in crate::cli) async fn relay(_: &Config, _: RelayOptions, _: Screen) -> Result<(), Failure> {
    Err(not_built("relay"))
}

fn not_built(from: &str) -> Failure {
    let why = "this program was built without Restate: build it with `cargo build -p upgrade-agent --features restate`";
    ConfigError::Value { from: from.to_owned(), why: why.to_owned() }.into()
}
