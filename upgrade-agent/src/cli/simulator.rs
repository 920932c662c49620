//! The embedded server alone, until it is told to end.

use std::path::{Path, PathBuf};

use clap::Args;
use secrecy::SecretString;
use upgrade_agent::client::{ContextMetadata, Dialect};
use upgrade_agent::server::{EmbeddedServer, EmbeddedServerBuilder};

use super::failure::Failure;
use super::occupant::Note;
use super::screen::Screen;
use crate::config::ConfigError;

/// The account of the administrators' token; the server has it from the start.
const ADMIN: &str = "admin@example.com";
const TOKEN: &str = "UPGRADE_TOKEN";
const CLIENT_KEY: &str = "UPGRADE_CLIENT_KEY";
const CLIENT_SECRET: &str = "UPGRADE_CLIENT_SECRET";

/// What the server is to be.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The port; 0 takes a free one
    #[arg(long, default_value_t = 3030)]
    port: u16,
    /// The version of UpGrade that it answers as: 6.5 or 6.2
    #[arg(long, value_name = "VERSION", default_value = "6.5", value_parser = dialect)]
    dialect: Dialect,
    /// Keep the data in this file; in memory without it
    #[arg(long, value_name = "FILE")]
    data_file: Option<PathBuf>,
    /// Make the ids of new things from this number, the same every time
    #[arg(long, value_name = "NUMBER", conflicts_with = "data_file")]
    seed: Option<u64>,
    /// Serve the contexts in this file, which holds what a server answers to
    /// GET /experiments/contextMetaData; without it, assign-prog and mathstream
    #[arg(long, value_name = "FILE")]
    contexts: Option<PathBuf>,
    /// Ask administrators for the token in UPGRADE_TOKEN. Students' applications are asked for a token
    /// of UPGRADE_CLIENT_KEY, signed with UPGRADE_CLIENT_SECRET, while the setting toCheckAuth holds
    #[arg(long)]
    require_token: bool,
    /// Let web pages of this site call, with its subdomains and on every port; may be given more than once.
    /// The sites that are given stand in place of the default
    #[arg(long, value_name = "SITE", default_value = "localhost", value_parser = site)]
    cors_origin: Vec<String>,
}

/// A host name; the origin of a page is accepted as well.
fn site(name: &str) -> Result<String, String> {
    let name = name.trim();
    if name.is_empty() || name.contains(['*', ',']) || name.chars().any(char::is_whitespace) {
        Err("name one host, such as localhost, 127.0.0.1 or example.org".to_owned())
    } else {
        Ok(name.to_owned())
    }
}

fn dialect(version: &str) -> Result<Dialect, String> {
    match version {
        "6.5" | "6.5.0" => Ok(Dialect::V65),
        "6.2" | "6.2.0" => Ok(Dialect::V62),
        _ => Err("there are 6.5 and 6.2".to_owned()),
    }
}

impl Options {
    fn builder(self, env: impl Fn(&str) -> Option<String>) -> Result<EmbeddedServerBuilder, Failure> {
        let mut builder = EmbeddedServer::builder().port(self.port).dialect(self.dialect);
        builder = builder.cors_origins(self.cors_origin);
        if let Some(path) = self.data_file {
            builder = builder.data_file(path);
        }
        if let Some(seed) = self.seed {
            builder = builder.seed(seed);
        }
        if let Some(path) = self.contexts {
            builder = builder.contexts(contexts(&path)?);
        }
        let env = |name| env(name).filter(|value| !value.trim().is_empty());
        if let (Some(key), Some(secret)) = (env(CLIENT_KEY), env(CLIENT_SECRET)) {
            builder = builder.client_key(key, SecretString::from(secret));
        }
        if self.require_token {
            let why = || "--require-token wants to know the token".to_owned();
            let token =
                env(TOKEN).ok_or_else(|| ConfigError::Value { from: TOKEN.to_owned(), why: why() })?;
            builder = builder.admin_token(SecretString::from(token.trim()), ADMIN);
        }
        Ok(builder)
    }
}

fn contexts(path: &Path) -> Result<ContextMetadata, ConfigError> {
    let failed = |why: String| ConfigError::File { path: path.to_owned(), why };
    let text = std::fs::read_to_string(path).map_err(|why| failed(why.to_string()))?;
    let answer = serde_json::from_str(&text).map_err(|why| failed(why.to_string()))?;
    let contexts = ContextMetadata::of_answer(&answer).filter(|found| !found.contexts.is_empty());
    contexts.ok_or_else(|| failed("it has no `contextMetadata` object with contexts in it".to_owned()))
}

pub(super) async fn run(options: Options, screen: Screen) -> Result<(), Failure> {
    let data_file = options.data_file.clone();
    let builder = options.builder(|name| std::env::var(name).ok())?;
    // Signals are caught before the address is printed, so a reader of the address can end the process
    // cleanly.
    let ended = termination_signal()?;
    let server = builder.start().await?;
    let _note = data_file.map(|path| Note::leave(&path, server.url()));
    screen.line(server.url());
    screen.warn(&format!(
        "The first line is the URL for `upgrade-agent --url` and other callers of the API; UpGrade's client libraries want \
         the one before /api: {}",
        server.host_url()
    ));
    ended.await;
    server.shutdown().await;
    Ok(())
}

/// Resolves on an interrupt or a request to terminate.
#[cfg(unix)]
pub(super) fn termination_signal() -> Result<impl Future<Output = ()>, Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

#[cfg(not(unix))]
pub(super) fn termination_signal() -> Result<impl Future<Output = ()>, Failure> {
    Ok(async {
        // On a platform without signals it runs until it is killed.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}
