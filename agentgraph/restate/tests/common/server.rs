//! A Restate server of the test: one process on random ports of the loopback interface, with its data in a
//! folder of its own. It ends with its value.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Server {
    process: Option<Child>,
    folder: PathBuf,
    pub ingress: String,
    pub admin: String,
}

/// Settings beside the defaults, as lines of the server's configuration.
#[derive(Clone, Copy, Default)]
pub struct Settings<'a> {
    /// Before the first section.
    pub top: &'a str,
    /// After the last section.
    pub sections: &'a str,
}

impl Server {
    pub async fn start() -> Server {
        Server::with(Settings::default()).await
    }

    /// A server that suspends each invocation at once when it waits, so that every await is replayed.
    pub async fn that_suspends_at_once() -> Server {
        Server::with(Settings { sections: "[worker.invoker]\ninactivity-timeout = \"0s\"\n", top: "" }).await
    }

    pub async fn with(settings: Settings<'_>) -> Server {
        let folder = fresh_folder();
        let [ingress, admin, node] = free_ports();
        let config = format!(
            "cluster-name = \"test\"\nnode-name = \"n1\"\ndisable-telemetry = true\nlisten-mode = \"tcp\"\n\
             auto-provision = true\ndefault-num-partitions = 4\nrocksdb-total-memory-size = \"128MB\"\n\
             base-dir = {:?}\nbind-address = \"127.0.0.1:{node}\"\n\
             advertised-address = \"http://127.0.0.1:{node}\"\nlog-filter = \"warn\"\n{}\n\
             [ingress]\nbind-address = \"127.0.0.1:{ingress}\"\n\
             [admin]\nbind-address = \"127.0.0.1:{admin}\"\n{}\n",
            folder.join("data"),
            settings.top,
            settings.sections,
        );
        fs::write(folder.join("restate.toml"), config).unwrap();
        let mut server = Server {
            process: None,
            folder,
            ingress: format!("http://127.0.0.1:{ingress}"),
            admin: format!("http://127.0.0.1:{admin}"),
        };
        server.start_process().await;
        server
    }

    /// Ends the process as a power cut would; its data stays.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().ok();
            process.wait().ok();
        }
    }

    /// Starts the process on its data, and waits until it answers.
    pub async fn start_process(&mut self) {
        let log = fs::File::create(self.folder.join("server.log")).unwrap();
        let process = Command::new(binary())
            .arg("--config-file")
            .arg(self.folder.join("restate.toml"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .expect("the server of Restate starts");
        self.process = Some(process);
        let begun = Instant::now();
        let client = http();
        for url in [format!("{}/health", self.admin), format!("{}/restate/health", self.ingress)] {
            while !client.get(&url).send().await.is_ok_and(|answer| answer.status().is_success()) {
                assert!(begun.elapsed() < PATIENCE, "{url} does not answer:\n{}", self.log());
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("server.log")).unwrap_or_default()
    }

    /// The rows of an SQL query of the server's own tables, as JSON.
    pub async fn query(&self, sql: &str) -> Vec<serde_json::Value> {
        let answer = http()
            .post(format!("{}/query", self.admin))
            .header("accept", "application/json")
            .json(&serde_json::json!({ "query": sql }))
            .send()
            .await
            .unwrap();
        let answer: serde_json::Value = answer.json().await.unwrap();
        answer["rows"].as_array().cloned().unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("--- server log\n{}", self.log());
        }
        fs::remove_dir_all(&self.folder).ok();
    }
}

/// The server's program: `RESTATE_SERVER` names it, or `RESTATE_PACKAGE` the folder of the npm packages.
fn binary() -> PathBuf {
    if let Some(binary) = std::env::var_os("RESTATE_SERVER") {
        return binary.into();
    }
    let packages = std::env::var_os("RESTATE_PACKAGE").expect(
        "these tests need the server of Restate: `npm i @restatedev/restate-server` in a folder, and \
         RESTATE_PACKAGE=<that folder>/node_modules/@restatedev",
    );
    Path::new(&packages).join("restate-server-linux-x64/bin/restate-server")
}

/// A client, for the admin API and the health of servers.
pub fn http() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::new()
}

fn fresh_folder() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("agentgraph-restate-{}", uuid::Uuid::new_v4()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Ports that were free a moment ago.
fn free_ports<const N: usize>() -> [u16; N] {
    let held: [TcpListener; N] = std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    held.map(|listener| listener.local_addr().unwrap().port())
}
