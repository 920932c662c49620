//! A server in a process of its own, with the processes that it has started.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use reqwest::Client;
use tokio::process::{Child, Command};

use crate::Problem;

pub(crate) struct Process {
    child: Child,
    pub(crate) url: String,
}

impl Process {
    /// Starts one of the servers, and waits until it answers.
    pub(crate) async fn start(kind: &str, folder: &Path, client: &Client) -> Result<Self, Problem> {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new(std::env::current_exe()?);
        match kind {
            "floor" | "engine" => command.arg(kind).arg(folder.join("recorded.json")).arg(port.to_string()),
            "langgraph" => {
                let home = PathBuf::from(std::env::var("LANGGRAPH_DEV")?);
                command = Command::new(home.join("bin/langgraph"));
                command.current_dir(home.join("reference"));
                command.args(["dev", "--no-browser", "--no-reload", "--n-jobs-per-worker", "50", "--port"]);
                command.arg(port.to_string())
            }
            _ => {
                let file = folder.join(format!("{kind}-{port}.db"));
                let database = || std::env::var("DATABASE_URL").map(PathBuf::from);
                let place = if kind == "postgres" { database()? } else { file };
                command.args(["serve", kind]).arg(place).arg(port.to_string())
            }
        };
        // Its own group would outlive a program that is killed; a pipe that is closed ends no server either.
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true).spawn()?;
        let process = Process { child, url: format!("http://127.0.0.1:{port}") };
        let begun = Instant::now();
        let ok = format!("{}/ok", process.url);
        while !client.get(&ok).send().await.is_ok_and(|answer| answer.status().is_success()) {
            if begun.elapsed() > Duration::from_secs(120) {
                return Err(format!("{kind} does not answer").into());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(process)
    }

    /// The process and those that it has started.
    fn family(&self) -> Vec<u32> {
        let mut family: Vec<u32> = self.child.id().into_iter().collect();
        let mut at = 0;
        while let Some(id) = family.get(at) {
            let children =
                std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
            family.extend(children.split_whitespace().filter_map(|id| id.parse::<u32>().ok()));
            at += 1;
        }
        family
    }

    /// The resident memory, in bytes.
    pub(crate) fn memory(&self) -> f64 {
        let of = |id: u32| {
            let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
            line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok()).unwrap_or(0.0) * 1024.0
        };
        self.family().into_iter().map(of).sum()
    }

    /// The processor time so far, in milliseconds: a tick of Linux is ten of them.
    pub(crate) fn cpu(&self) -> f64 {
        let of = |id: u32| {
            let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
            [11, 12].iter().filter_map(|at| fields.get(*at)?.parse::<f64>().ok()).sum::<f64>() * 10.0
        };
        self.family().into_iter().map(of).sum()
    }

    pub(crate) async fn end(mut self) {
        let _ = self.child.kill().await;
    }
}
