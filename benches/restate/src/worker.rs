//! [`Worker`]: a process of this program that serves one side.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tokio::net::TcpSocket;

use crate::Problem;
use crate::processor::ProcessorTime;
use crate::server::{first_line, fresh_folder};
use crate::side::Side;
use crate::{bare, ours};

/// The first argument of a worker's process.
pub(crate) const WORKER: &str = "--worker";

/// A worker in a process of its own. It ends with its value.
pub(crate) struct Worker {
    process: Child,
    folder: PathBuf,
}

impl Worker {
    /// Starts it, and waits until it is registered.
    pub(crate) fn start(side: Side, admin: &str) -> Result<Self, Problem> {
        let folder = fresh_folder()?;
        let mut process = Command::new(std::env::current_exe()?)
            .args([WORKER, side.name(), admin])
            .arg(folder.join("history.db"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        match first_line(&mut process)?.as_str() {
            "serves" => Ok(Worker { process, folder }),
            _ => Err("a worker ended before it served".into()),
        }
    }

    pub(crate) fn processor_time(&self) -> Result<ProcessorTime, Problem> {
        ProcessorTime::of(self.process.id())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The worker's process: serves until its input ends.
pub(crate) async fn run(side: &str, admin: &str, history: &Path) -> Result<(), Problem> {
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut serving = None;
    match Side::named(side)? {
        Side::Ours => serving = Some(ours::serve(loopback, admin, history).await?),
        side => bare::serve(side, listener(loopback)?, admin, history).await?,
    }
    println!("serves");
    tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink())).await??;
    drop(serving);
    Ok(())
}

/// A listener whose connections do not wait to fill packets, as those of our worker.
fn listener(addr: SocketAddr) -> Result<tokio::net::TcpListener, Problem> {
    let socket = TcpSocket::new_v4()?;
    socket.set_nodelay(true)?;
    socket.bind(addr)?;
    Ok(socket.listen(1024)?)
}
