//! The embedded server alone, until it is told to end.

use std::path::PathBuf;

use upgrade_agent::server::EmbeddedServer;

use super::failure::Failure;
use super::screen;

pub(super) async fn run(port: u16, data_file: Option<PathBuf>) -> Result<(), Failure> {
    let builder = EmbeddedServer::builder().port(port);
    let builder = match data_file {
        Some(path) => builder.data_file(path),
        None => builder,
    };
    // The signals are caught before the address is told, so that whoever reads it can end us properly.
    let ended = ended()?;
    let server = builder.start().await?;
    screen::line(server.url());
    ended.await;
    server.shutdown().await;
    Ok(())
}

/// Resolves on an interrupt or a request to terminate.
#[cfg(unix)]
fn ended() -> Result<impl Future<Output = ()>, Failure> {
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
fn ended() -> Result<impl Future<Output = ()>, Failure> {
    Ok(async {
        // Without signals it runs until it is killed.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}
