//! A private Postgres for the tests of one process: its own folder, port and user, gone with the last who holds it.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

pub(crate) struct PostgresServer {
    folder: PathBuf,
    port: u16,
    process: Child,
}

static RUNNING: Mutex<Weak<PostgresServer>> = Mutex::new(Weak::new());

impl PostgresServer {
    /// Whether there is a program to start.
    pub(crate) fn is_installed() -> bool {
        find("initdb").is_some()
    }

    /// The one that runs, or a new one.
    pub(crate) fn get() -> Arc<Self> {
        let mut running = RUNNING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(server) = running.upgrade() {
            return server;
        }
        let server = Arc::new(Self::start());
        *running = Arc::downgrade(&server);
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://agent@127.0.0.1:{}/postgres", self.port)
    }

    /// A database that nobody else has, for who wants to cut others off it.
    #[cfg(feature = "postgres")]
    pub(crate) async fn fresh_database(&self) -> String {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("alone_{}", COUNT.fetch_add(1, Ordering::Relaxed));
        self.sql(&format!("CREATE DATABASE {name}")).await;
        name
    }

    pub(crate) fn url_of(&self, database: &str) -> String {
        format!("postgres://agent@127.0.0.1:{}/{database}", self.port)
    }

    /// Runs statements; the first column of the last row that one of them gives.
    #[cfg(feature = "postgres")]
    pub(crate) async fn sql(&self, statements: &str) -> String {
        self.sql_in("postgres", statements).await
    }

    /// The same, in another database.
    #[cfg(feature = "postgres")]
    pub(crate) async fn sql_in(&self, database: &str, statements: &str) -> String {
        let url = self.url_of(database);
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        let answers = client.simple_query(statements).await.unwrap();
        drop(client);
        connection.await.unwrap().unwrap();
        let rows = answers.iter().rev().find_map(|answer| match answer {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        });
        rows.unwrap_or_default()
    }

    /// A schema that nobody else has.
    pub(crate) fn fresh_schema(&self) -> String {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        format!("test_{}", COUNT.fetch_add(1, Ordering::Relaxed))
    }

    fn start() -> Self {
        // The one before may still be ending.
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(format!("agentgraph-postgres-{process}-{count}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let user = unprivileged();
        if let Some((uid, gid)) = user {
            chown(&folder, Some(uid), Some(gid)).unwrap();
        }
        let data = folder.join("data");
        let mut init = command(&program("initdb"), user);
        init.args(["--auth=trust", "--username=agent", "--encoding=UTF8", "--locale=C", "--no-sync", "-D"]);
        let made = init.arg(&data).output().expect("initdb runs");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        // The port is free now and may not be in a moment, so several are tried.
        for _ in 0..10 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            if let Some(process) = serve(&data, &folder, port, user) {
                return PostgresServer { folder, port, process };
            }
        }
        panic!("Postgres does not start: {}", fs::read_to_string(folder.join("log")).unwrap_or_default());
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // The shell ends the server when nobody holds its input any more.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn serve(data: &Path, folder: &Path, port: u16, user: Option<(u32, u32)>) -> Option<Child> {
    let script = r#""$@" >"$LOG" 2>&1 & server=$!; (cat >/dev/null; kill -QUIT $server 2>/dev/null) <&3 & wait $server"#;
    let script = format!("exec 3<&0; {script}");
    let mut shell = command(Path::new("sh"), user);
    shell.args(["-c", &script, "sh"]).arg(program("postgres")).arg("-D").arg(data);
    for setting in [
        format!("port={port}"),
        "listen_addresses=127.0.0.1".into(),
        "unix_socket_directories=".into(),
        "fsync=off".into(),
        "max_connections=200".into(),
        "shared_buffers=16MB".into(),
    ] {
        shell.arg("-c").arg(setting);
    }
    shell.env("LOG", folder.join("log")).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = shell.spawn().expect("a shell");
    for _ in 0..600 {
        if process.try_wait().unwrap().is_some() {
            return None;
        }
        if TcpStream::connect(("127.0.0.1", port)).is_ok() && is_ready(port) {
            return Some(process);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    None
}

fn is_ready(port: u16) -> bool {
    let mut asks = Command::new(program("pg_isready"));
    asks.args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()])
        .status()
        .is_ok_and(|status| status.success())
}

/// Postgres refuses to run as root, so it runs as somebody who may do less.
fn unprivileged() -> Option<(u32, u32)> {
    let id = |flag: &str| {
        let said = Command::new("id").arg(flag).output().expect("`id` runs").stdout;
        String::from_utf8_lossy(&said).trim().parse::<u32>().unwrap()
    };
    if id("-u") != 0 {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let found = ["postgres", "nobody"].iter().find_map(|name| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut parts = line.split(':').skip(2);
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    });
    Some(found.expect("a user `postgres` or `nobody`"))
}

fn command(program: &Path, user: Option<(u32, u32)>) -> Command {
    let mut command = Command::new(program);
    command.current_dir("/").env("LC_ALL", "C");
    if let Some((uid, gid)) = user {
        command.uid(uid).gid(gid);
    }
    command
}

fn program(name: &str) -> PathBuf {
    find(name).unwrap_or_else(|| panic!("`{name}` is not there: install Postgres (`.ci/run` does)"))
}

/// In the path, or where Debian puts the servers.
fn find(name: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&paths).collect();
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    folders.extend(debian.filter_map(|version| Some(version.ok()?.path().join("bin"))));
    folders.into_iter().map(|folder| folder.join(name)).find(|path| path.is_file())
}
