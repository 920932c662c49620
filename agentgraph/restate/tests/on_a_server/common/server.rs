//! Restate servers of the tests: processes on random ports of the loopback interface, each with its data in a
//! folder of its own. They end with the program of the tests, however that ends.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tokio::sync::OnceCell;

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a program until its input ends, then kills it, and removes its folder if it is told to.
const UNTIL_INPUT_ENDS: &str = r#"
"$0" --config-file "$1/restate.toml" >>"$1/server.log" 2>&1 </dev/null & server=$!
read -r last
kill -9 $server; wait $server 2>/dev/null
[ "$last" = keep ] || rm -rf "$1"
"#;

/// One node of a cluster, or a server alone.
pub struct Server {
    /// The shell around the process, while that runs.
    shell: Option<Child>,
    folder: PathBuf,
    node: u16,
    pub ingress: String,
    pub admin: String,
}

/// Settings beside the defaults.
#[derive(Clone, Copy, Default)]
pub struct Settings<'a> {
    /// The inactivity timeout of the invoker: how long an invocation waits before it is suspended.
    pub suspends_after: Option<&'a str>,
    /// The attempts of the default retry policy, after which an invocation pauses.
    pub pauses_after: Option<u32>,
    /// The address that spans are sent to.
    pub traces_to: Option<&'a str>,
    pub nodes: u16,
}

/// A server that the tests of this program share. Names of graphs must differ between them.
pub async fn shared() -> &'static Server {
    static SERVER: OnceCell<Server> = OnceCell::const_new();
    SERVER.get_or_init(Server::start).await
}

/// A shared server that suspends each invocation at once when it waits, so that every await is replayed.
pub async fn that_suspends_at_once() -> &'static Server {
    static SERVER: OnceCell<Server> = OnceCell::const_new();
    SERVER.get_or_init(|| Server::that_suspends_after("0s")).await
}

impl Server {
    pub async fn start() -> Server {
        Server::with(Settings::default()).await
    }

    pub async fn that_suspends_after(time: &str) -> Server {
        Server::with(Settings { suspends_after: Some(time), ..Settings::default() }).await
    }

    pub async fn that_pauses_after(attempts: u32) -> Server {
        Server::with(Settings { pauses_after: Some(attempts), ..Settings::default() }).await
    }

    async fn with(settings: Settings<'_>) -> Server {
        let mut server = Server::prepare(1, &[free_ports()], settings);
        server.start_process();
        server.answers().await;
        server
    }

    /// One that suspends each invocation at once, too.
    pub async fn that_traces_to(address: &str) -> Server {
        let settings =
            Settings { suspends_after: Some("0s"), traces_to: Some(address), ..Settings::default() };
        Server::with(settings).await
    }

    /// A cluster in which each log entry is on two nodes. The first node sets it up.
    pub async fn cluster(nodes: u16) -> Vec<Server> {
        let ports: Vec<[u16; 3]> = (0..nodes).map(|_| free_ports()).collect();
        let settings = Settings { nodes, ..Settings::default() };
        let mut servers: Vec<Server> =
            (1..=nodes).map(|number| Server::prepare(number, &ports, settings)).collect();
        servers.iter_mut().for_each(Server::start_process);
        for server in &servers {
            server.answers().await;
        }
        servers
    }

    fn prepare(number: u16, nodes: &[[u16; 3]], settings: Settings<'_>) -> Server {
        let folder = fresh_folder();
        let [ingress, admin, node] = nodes[usize::from(number) - 1];
        let mut config = format!(
            "cluster-name = \"test\"\nnode-name = \"n{number}\"\ndisable-telemetry = true\nlisten-mode = \"tcp\"\n\
             auto-provision = {}\ndefault-num-partitions = 4\nrocksdb-total-memory-size = \"128MB\"\n\
             base-dir = {:?}\nbind-address = \"127.0.0.1:{node}\"\n\
             advertised-address = \"http://127.0.0.1:{node}\"\nlog-filter = \"warn\"\n",
            number == 1,
            folder.join("data"),
        );
        let mut sections = format!(
            "[ingress]\nbind-address = \"127.0.0.1:{ingress}\"\n[admin]\nbind-address = \"127.0.0.1:{admin}\"\n"
        );
        if settings.nodes > 1 {
            config += "default-replication = 2\n";
            let addresses: Vec<String> =
                nodes.iter().map(|[.., node]| format!("\"http://127.0.0.1:{node}/\"")).collect();
            sections += &format!("[metadata-client]\naddresses = [{}]\n", addresses.join(", "));
        }
        if let Some(address) = settings.traces_to {
            config += &format!("tracing-endpoint = \"{address}\"\n");
        }
        if let Some(time) = settings.suspends_after {
            sections += &format!("[worker.invoker]\ninactivity-timeout = \"{time}\"\n");
        }
        if let Some(attempts) = settings.pauses_after {
            sections +=
                &format!("[default-retry-policy]\ninitial-interval = \"50ms\"\nmax-attempts = {attempts}\n");
        }
        // So that a test can look for bytes in the files.
        for store in ["worker.storage", "log-server", "bifrost.local"] {
            sections += &format!(
                "[{store}]\nrocksdb-disable-wal-compression = true\nrocksdb-disable-l0-l1-compression = true\n"
            );
        }
        fs::write(folder.join("restate.toml"), config + &sections).unwrap();
        Server {
            shell: None,
            folder,
            node,
            ingress: format!("http://127.0.0.1:{ingress}"),
            admin: format!("http://127.0.0.1:{admin}"),
        }
    }

    /// Ends the process as a power cut would; its data stays.
    pub fn kill(&mut self) {
        if let Some(mut shell) = self.shell.take() {
            use std::io::Write;
            shell.stdin.take().unwrap().write_all(b"keep\n").unwrap();
            shell.wait().unwrap();
        }
    }

    /// Starts the process on its data, and waits until it answers.
    pub async fn restart(&mut self) {
        self.start_process();
        self.answers().await;
    }

    fn start_process(&mut self) {
        let shell = Command::new("sh")
            .args(["-c", UNTIL_INPUT_ENDS])
            .arg(binary())
            .arg(&self.folder)
            // Spans are sent soon.
            .env("OTEL_BSP_SCHEDULE_DELAY", "100")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.shell = Some(shell.expect("a shell starts"));
    }

    pub async fn answers(&self) {
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

    /// Whether the data of the server contains these bytes: its log of commands, its state, its journals.
    pub fn data_contains(&self, bytes: &[u8]) -> bool {
        fn search(folder: &Path, bytes: &[u8]) -> bool {
            fs::read_dir(folder).unwrap().any(|entry| {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => search(&path, bytes),
                    // A file may be gone by now.
                    false => {
                        fs::read(&path).is_ok_and(|all| all.windows(bytes.len()).any(|part| part == bytes))
                    }
                }
            })
        }
        search(&self.folder.join("data"), bytes)
    }

    /// The bytes of the server's data.
    pub fn data_size(&self) -> u64 {
        fn size(folder: &Path) -> u64 {
            let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
            // A file may be gone by now.
            entries
                .map(|path| {
                    if path.is_dir() { size(&path) } else { fs::metadata(&path).map_or(0, |file| file.len()) }
                })
                .sum()
        }
        size(&self.folder.join("data"))
    }

    pub async fn open_invocations(&self) -> usize {
        self.query("select id from sys_invocation where status <> 'completed'").await.len()
    }

    pub async fn until_nothing_is_open(&self) {
        let begun = Instant::now();
        while self.open_invocations().await > 0 {
            assert!(begun.elapsed() < PATIENCE, "invocations stay open:\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
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
        if std::thread::panicking() {
            eprintln!("--- log of the server on port {}\n{}", self.node, self.log());
        }
        if let Some(mut shell) = self.shell.take() {
            drop(shell.stdin.take());
            shell.wait().ok();
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
        "these tests need the server of Restate: `.ci/restate` fetches it. Or `npm i @restatedev/restate-server` in a \
         folder, and RESTATE_PACKAGE=<that folder>/node_modules/@restatedev",
    );
    let found = fs::read_dir(&packages).unwrap().map(|entry| entry.unwrap().path());
    let mut binaries = found.map(|folder| folder.join("bin/restate-server"));
    binaries
        .find(|binary| binary.is_file())
        .expect("a package `restate-server-*` with the program of this system")
}

/// A client, for the admin API and the health of servers.
pub fn http() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::new()
}

pub fn fresh_folder() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("agentgraph-restate-{}", uuid::Uuid::new_v4()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Ports that were free a moment ago.
pub fn free_ports<const N: usize>() -> [u16; N] {
    let held: [TcpListener; N] = std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    held.map(|listener| listener.local_addr().unwrap().port())
}
