//! [`Servers`]: one Restate server, or a cluster of three. They end with this program, however that ends.

use std::fs;
use std::io::Read as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Problem;
use crate::processor::ProcessorTime;

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs the server until the input ends, then kills it and removes its folder.
const UNTIL_INPUT_ENDS: &str = r#"
"$0" --config-file "$1/restate.toml" >>"$1/server.log" 2>&1 </dev/null & server=$!
echo $server
read -r last
kill -9 $server; wait $server 2>/dev/null
rm -rf "$1"
"#;

/// Servers that know each other.
pub(crate) struct Servers(Vec<Server>);

struct Server {
    shell: Child,
    process: u32,
    ingress: String,
    admin: String,
}

/// The ports of a server.
struct Ports {
    ingress: u16,
    admin: u16,
    node: u16,
}

impl Servers {
    /// Starts one server, or several with each log entry on two of them.
    pub(crate) async fn start(nodes: usize) -> Result<Self, Problem> {
        let binary = binary()?;
        let ports = (0..nodes).map(|_| Ports::free()).collect::<Result<Vec<_>, _>>()?;
        let servers = (0..nodes).map(|at| Server::start(&binary, at, &ports));
        let servers = Servers(servers.collect::<Result<_, _>>()?);
        for server in &servers.0 {
            server.answers().await?;
        }
        Ok(servers)
    }

    /// The ingresses of all nodes.
    pub(crate) fn ingresses(&self) -> Vec<String> {
        self.0.iter().map(|server| server.ingress.clone()).collect()
    }

    /// The admin API of the first node.
    pub(crate) fn admin(&self) -> &str {
        &self.0[0].admin
    }

    /// The processor time of all nodes.
    pub(crate) fn processor_time(&self) -> Result<ProcessorTime, Problem> {
        self.0.iter().map(|server| ProcessorTime::of(server.process)).sum()
    }

    /// The rows of an SQL query of the server's own tables. A busy server refuses some.
    pub(crate) async fn query(&self, sql: &str) -> Result<Vec<Value>, Problem> {
        let client = client()?;
        let mut tries = 0..5;
        loop {
            let request = client.post(format!("{}/query", self.admin())).header("accept", "application/json");
            match request.json(&json!({ "query": sql })).send().await?.error_for_status() {
                Ok(answer) => {
                    let answer: Value = answer.json().await?;
                    return Ok(answer["rows"].as_array().cloned().unwrap_or_default());
                }
                Err(error) => {
                    tries.next().ok_or(error)?;
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }
}

impl Server {
    fn start(binary: &Path, at: usize, all: &[Ports]) -> Result<Self, Problem> {
        let folder = fresh_folder()?;
        fs::write(folder.join("restate.toml"), settings(&folder, at, all))?;
        let mut shell = Command::new("sh")
            .args(["-c", UNTIL_INPUT_ENDS])
            .arg(binary)
            .arg(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let process = first_line(&mut shell)?.parse()?;
        let Ports { ingress, admin, .. } = &all[at];
        let url = |port: &u16| format!("http://127.0.0.1:{port}");
        Ok(Server { shell, process, ingress: url(ingress), admin: url(admin) })
    }

    async fn answers(&self) -> Result<(), Problem> {
        let begun = Instant::now();
        let client = client()?;
        for url in [format!("{}/health", self.admin), format!("{}/restate/health", self.ingress)] {
            while !client.get(&url).send().await.is_ok_and(|answer| answer.status().is_success()) {
                if begun.elapsed() > PATIENCE {
                    return Err(format!("the server does not answer at {url}").into());
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

impl Ports {
    /// Ports that were free a moment ago.
    fn free() -> Result<Self, Problem> {
        let held = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0"));
        let [ingress, admin, node] = held.map(|held| Ok::<_, Problem>(held?.local_addr()?.port()));
        Ok(Ports { ingress: ingress?, admin: admin?, node: node? })
    }
}

/// The server's defaults, on random ports. A cluster has each log entry on two nodes.
fn settings(folder: &Path, at: usize, all: &[Ports]) -> String {
    let Ports { ingress, admin, node } = &all[at];
    let mut settings = format!(
        "cluster-name = \"bench\"\nnode-name = \"n{at}\"\ndisable-telemetry = true\nlisten-mode = \"tcp\"\n\
         auto-provision = {}\nbase-dir = {:?}\nbind-address = \"127.0.0.1:{node}\"\n\
         advertised-address = \"http://127.0.0.1:{node}\"\nlog-filter = \"warn\"\n",
        at == 0,
        folder.join("data"),
    );
    let mut sections = format!(
        "[ingress]\nbind-address = \"127.0.0.1:{ingress}\"\n[admin]\nbind-address = \"127.0.0.1:{admin}\"\n"
    );
    if all.len() > 1 {
        settings += "default-replication = 2\n";
        let nodes = all.iter().map(|ports| format!("\"http://127.0.0.1:{}/\"", ports.node));
        let nodes = nodes.collect::<Vec<_>>().join(", ");
        sections += &format!("[metadata-client]\naddresses = [{nodes}]\n");
    }
    settings + &sections
}

/// The server's program: `RESTATE_SERVER` names it, or `RESTATE_PACKAGE` the folder of the npm packages.
fn binary() -> Result<PathBuf, Problem> {
    if let Some(binary) = std::env::var_os("RESTATE_SERVER") {
        return Ok(binary.into());
    }
    let packages = std::env::var_os("RESTATE_PACKAGE").ok_or("start this by `benches/restate/run.sh`")?;
    let found = fs::read_dir(packages)?.flatten().map(|entry| entry.path().join("bin/restate-server"));
    let binary = found.into_iter().find(|binary| binary.is_file());
    Ok(binary.ok_or("RESTATE_PACKAGE has no package with the server of this system")?)
}

/// The first line that a process prints.
pub(crate) fn first_line(process: &mut Child) -> Result<String, Problem> {
    let output = process.stdout.as_mut().ok_or("the process has no output")?;
    let mut line = Vec::new();
    let mut byte = [0];
    while output.read(&mut byte)? == 1 && byte != *b"\n" {
        line.push(byte[0]);
    }
    Ok(String::from_utf8(line)?)
}

/// A client for admin APIs and calls, with the settings of `agentgraph-restate`.
pub(crate) fn client() -> Result<reqwest::Client, Problem> {
    // Fails if there is one already, which is the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Ok(reqwest::Client::builder().tcp_nodelay(true).build()?)
}

pub(crate) fn fresh_folder() -> Result<PathBuf, Problem> {
    let folder = std::env::temp_dir().join(format!("agentgraph-restate-bench-{}", uuid::Uuid::new_v4()));
    fs::create_dir_all(&folder)?;
    Ok(folder)
}
