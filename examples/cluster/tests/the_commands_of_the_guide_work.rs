//! Every command of `docs/guide/restate.md` works, and prints what the page says.
//!
//! The test runs them in the order of the page, in a folder of its own: programs that go on (servers,
//! workers, the balancer) beside the others. Only addresses are others, since those of the page may be in
//! use.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A block of the page: its language and its text.
struct Block {
    language: String,
    text: String,
    /// The line of prose before it.
    before: String,
}

/// Everything that is started, in a folder of its own.
struct Bed {
    folder: PathBuf,
    /// The ports of the page, and those that stand for them.
    ports: HashMap<String, u16>,
    running: Vec<Child>,
    begun: Instant,
}

#[test]
#[ignore = "needs the server of Restate: `.ci/restate` fetches it and runs this test"]
fn in_the_order_of_the_page() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/restate.md");
    let page = std::fs::read_to_string(page).unwrap();
    let blocks = blocks(&page);
    let mut bed = Bed::new();
    let mut commands = 0;
    for (at, block) in blocks.iter().enumerate() {
        match &*block.language {
            // The file's name is the last word in backticks before it.
            "toml" => {
                let name = block.before.rsplit('`').nth(1).unwrap();
                std::fs::write(bed.folder.join(name), bed.with_ports(&block.text)).unwrap();
            }
            "sh" => {
                if block.text.contains("n1.toml") && block.text.starts_with("npx") {
                    bed.stop_servers();
                }
                let mut shown = bed.run(&block.text);
                // A node that lost the others a moment ago does not look for them again at once, and says so.
                while shown.contains("connect throttled") {
                    assert!(bed.begun.elapsed() < Duration::from_secs(300), "{shown}{}", bed.logs());
                    std::thread::sleep(Duration::from_millis(50));
                    shown = bed.run(&block.text);
                }
                if let Some(expected) = blocks.get(at + 1).filter(|next| next.language == "text") {
                    assert_eq!(shown.trim(), expected.text.trim(), "of `{}`", block.text);
                }
                commands += 1;
            }
            _ => {}
        }
    }
    assert!(commands >= 14, "the page has only {commands} blocks of commands");
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    let mut before = String::new();
    for line in page.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => {
                let language = language.split(',').next().unwrap_or_default().to_owned();
                open = Some(Block { language, text: String::new(), before: before.clone() });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => block.text += &format!("{line}\n"),
            (None, None) if !line.is_empty() => line.clone_into(&mut before),
            (None, None) => {}
        }
    }
    blocks
}

impl Bed {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("agentgraph-guide-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let of_page = ["8080", "8081", "8082", "9070", "9071", "9072", "5122", "5222", "5322"];
        let of_workers = ["9080", "9081", "9082", "9083", "9085"];
        let ports = of_page.iter().chain(&of_workers);
        let held: Vec<(String, TcpListener)> =
            ports.map(|port| ((*port).to_owned(), TcpListener::bind("127.0.0.1:0").unwrap())).collect();
        let ports = held.into_iter().map(|(port, free)| (port, free.local_addr().unwrap().port())).collect();
        Bed { folder, ports, running: Vec::new(), begun: Instant::now() }
    }

    /// A text with the ports of this test.
    fn with_ports(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (of_page, of_test) in &self.ports {
            text = text.replace(&format!("127.0.0.1:{of_page}"), &format!("127.0.0.1:{of_test}"));
        }
        text
    }

    /// Runs a block of commands. Returns what it prints, unless it goes on.
    fn run(&mut self, block: &str) -> String {
        let script = self
            .with_ports(block)
            .replace("cargo run -p cluster --", env!("CARGO_BIN_EXE_cluster"))
            .replace("npx --yes @restatedev/restate-server@1.7.12", &server().display().to_string());
        assert!(!script.contains("cargo ") && !script.contains("npx "), "{script}");
        let goes_on = ["npx ", " -- worker ", " -- balance "].iter().any(|word| block.contains(word));
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).current_dir(&self.folder).stdin(Stdio::null());
        shell.env("RESTATE_DISABLE_TELEMETRY", "true").env("RESTATE_LOG_FILTER", "warn");
        let address = |port: &str| format!("127.0.0.1:{}", self.ports[port]);
        if !block.contains("INGRESS=") {
            shell.env("INGRESS", format!("http://{}", address("8080")));
        }
        shell.env("ADMIN", format!("http://{}", address("9070")));
        // A node of the cluster has its file.
        if block.starts_with("npx") && !block.contains("--config-file") {
            shell.env("RESTATE_INGRESS__BIND_ADDRESS", address("8080"));
            shell.env("RESTATE_ADMIN__BIND_ADDRESS", address("9070"));
            shell.env("RESTATE_BIND_ADDRESS", address("5122"));
            shell.env("RESTATE_ADVERTISED_ADDRESS", format!("http://{}", address("5122")));
            shell.env("RESTATE_LISTEN_MODE", "tcp");
        }
        if goes_on {
            let log = std::fs::File::create(self.folder.join(format!("{}.log", self.running.len()))).unwrap();
            // A group of its own, so that what the shell starts ends with it.
            std::os::unix::process::CommandExt::process_group(&mut shell, 0);
            let child = shell.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
            self.running.push(child);
            self.is_up(&script);
            return String::new();
        }
        let output = shell.stderr(Stdio::inherit()).output().unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "`{block}` failed: {shown}{}", self.logs());
        shown
    }

    /// Waits until what a script starts can be reached: its own address, or the admin API of a server.
    fn is_up(&self, script: &str) {
        let port = match script.split_once("--config-file ") {
            Some((_, file)) => {
                let config = std::fs::read_to_string(self.folder.join(file.trim())).unwrap();
                let (_, admin) = config.split_once("[admin]").unwrap();
                admin.rsplit(':').next().unwrap().trim().trim_matches('"').parse().unwrap()
            }
            None => match script.split_once("127.0.0.1:") {
                Some(_) => {
                    let listens =
                        ["worker ", "balance "].iter().find_map(|word| script.split_once(*word)).unwrap().1;
                    let address = listens.split_whitespace().next().unwrap();
                    address.rsplit(':').next().unwrap().parse().unwrap()
                }
                None => self.ports["9070"],
            },
        };
        let begun = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(60), "`{script}` is not up:{}", self.logs());
            std::thread::sleep(Duration::from_millis(50));
        }
        if script.contains("worker ") {
            // It is registered a moment after it listens.
            let log = self.folder.join(format!("{}.log", self.running.len() - 1));
            while !std::fs::read_to_string(&log).unwrap().contains("works on") {
                assert!(
                    begun.elapsed() < Duration::from_secs(60),
                    "`{script}` does not work:{}",
                    self.logs()
                );
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }

    /// Ends all that goes on, and waits until the addresses are free again.
    fn stop_servers(&mut self) {
        self.running.drain(..).for_each(end);
        let begun = Instant::now();
        for port in self.ports.values() {
            while TcpListener::bind(("127.0.0.1", *port)).is_err()
                && begun.elapsed() < Duration::from_secs(10)
            {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    fn logs(&self) -> String {
        let logs = std::fs::read_dir(&self.folder).unwrap().map(|entry| entry.unwrap().path());
        let logs = logs.filter(|path| path.extension().is_some_and(|kind| kind == "log"));
        logs.map(|path| format!("\n--- {}\n{}", path.display(), std::fs::read_to_string(&path).unwrap()))
            .collect()
    }
}

/// Ends a shell and what it has started.
fn end(mut child: Child) {
    Command::new("kill").args(["-9", "--", &format!("-{}", child.id())]).status().ok();
    child.wait().ok();
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.stop_servers();
        std::fs::remove_dir_all(&self.folder).ok();
    }
}

fn server() -> PathBuf {
    if let Some(server) = std::env::var_os("RESTATE_SERVER") {
        return server.into();
    }
    let packages = std::env::var_os("RESTATE_PACKAGE").expect("`.ci/restate` runs this test");
    let mut found =
        std::fs::read_dir(packages).unwrap().map(|entry| entry.unwrap().path().join("bin/restate-server"));
    found.find(|program| program.is_file()).expect("a package with the program of this system")
}
