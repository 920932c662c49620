//! [`Stage`]: a Restate server and an UpGrade server, and the program as a caller and as a worker.

use std::process::Command;

use serde_json::Value;

use crate::server::{Server, free_ports};
use crate::shell::{Folder, Running, Simulator, agent, finish};

/// The servers of a test.
pub(crate) struct Stage {
    pub(crate) folder: Folder,
    pub(crate) restate: Server,
    pub(crate) upgrade: Simulator,
    runtime: tokio::runtime::Runtime,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let restate = runtime.block_on(Server::start());
        let folder = Folder::new();
        let upgrade = Simulator::start(&folder);
        Stage { folder, restate, upgrade, runtime }
    }

    /// Starts a worker that calls the UpGrade server at this URL, and waits until it serves.
    pub(crate) fn worker(&self, upgrade: &str, more: &[&str]) -> Running {
        let [port] = free_ports();
        self.worker_on(port, upgrade, more)
    }

    pub(crate) fn worker_on(&self, port: u16, upgrade: &str, more: &[&str]) -> Running {
        let address = format!("127.0.0.1:{port}");
        let own = ["worker", "--restate-admin", &self.restate.admin, "--listen", &address, "--url", upgrade];
        let mut worker = Running::start(agent(&self.folder, &[&own[..], more].concat()));
        assert_eq!(worker.line(), format!("http://{address}"), "{}", self.restate.log());
        worker
    }

    /// The program as a caller, whose turns run in the workers.
    pub(crate) fn caller(&self, args: &[&str]) -> Command {
        let servers = ["--restate", &self.restate.ingress, "--restate-admin", &self.restate.admin];
        agent(&self.folder, &[&servers[..], args].concat())
    }

    /// Runs one turn, which must succeed.
    pub(crate) fn ask(&self, thread: &str, text: &str) -> Value {
        let ran = finish(self.caller(&["ask", "--json", "--thread", thread, text]), "").good();
        assert_eq!(ran.err(), "");
        ran.json()
    }

    /// Waits until a query of the Restate server's own tables has a row.
    pub(crate) fn has_row(&self, sql: &str) {
        let found = || !self.runtime.block_on(self.restate.query(sql)).is_empty();
        until(&format!("a row of {sql}"), found);
    }
}

/// Waits until this is so.
pub(crate) fn until(wish: &str, mut is_so: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed().as_secs() < 60, "{wish} did not come");
        std::thread::yield_now();
    }
}

/// Sends a signal, such as `-INT`.
pub(crate) fn signal(name: &str, process: &Running) {
    let sent = Command::new("kill").args([name, &process.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// The lines of the output, as JSON.
pub(crate) fn events(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}"))).collect()
}
