//! A private Postgres server for the tests of one process, with its own folder, port and user. The server
//! ends when the process ends, however that happens, and never earlier: a test may drop its handle while
//! another part of the test still uses the server.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub(crate) mod pooler;

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub(crate) struct PostgresServer {
    port: u16,
    /// The shell around the server. Its open input shows that this process is alive.
    _process: Child,
}

static RUNNING: OnceLock<Arc<PostgresServer>> = OnceLock::new();
/// One that has the extension `pgvector`.
static WITH_VECTORS: OnceLock<Arc<PostgresServer>> = OnceLock::new();

impl PostgresServer {
    /// Whether a Postgres server is installed.
    pub(crate) fn is_installed() -> bool {
        folder_of_programs().is_some()
    }

    /// Returns the running server, or starts one.
    pub(crate) fn get() -> Arc<Self> {
        Arc::clone(RUNNING.get_or_init(|| Arc::new(Self::start(&folder_of_programs(), "plain"))))
    }

    /// Returns the running server with `pgvector`, or starts one.
    pub(crate) fn with_vectors() -> Arc<Self> {
        Arc::clone(WITH_VECTORS.get_or_init(|| Arc::new(Self::start(&folder_with_vectors(), "vectors"))))
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://agent@127.0.0.1:{}/postgres", self.port)
    }

    /// Creates a database for the caller alone, which may then close all connections to it.
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

    /// Runs statements. Returns the first column of the last row in their results.
    #[cfg(feature = "postgres")]
    pub(crate) async fn sql(&self, statements: &str) -> String {
        self.sql_in("postgres", statements).await
    }

    /// Like `sql`, in another database.
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

    /// Returns the name of a schema for the caller alone.
    pub(crate) fn fresh_schema(&self) -> String {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        format!("test_{}", COUNT.fetch_add(1, Ordering::Relaxed))
    }

    fn start(programs: &Option<PathBuf>, name: &str) -> Self {
        let missing = "no PostgreSQL server is installed, or none with `pgvector`: `.ci/test` installs both";
        let programs = programs.as_deref().expect(missing);
        // Another process may take the free port before the server does, so this tries several ports.
        let mut log = String::new();
        for attempt in 0..10 {
            let folder =
                std::env::temp_dir().join(format!("agentgraph-{name}-{}-{attempt}", std::process::id()));
            let user = unprivileged();
            make_folder(&folder, user);
            let programs = &readable(programs, &folder);
            let data = make_data(programs, &folder, user);
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            match serve(programs, &data, &folder, port, user) {
                Ok(process) => return PostgresServer { port, _process: process },
                Err(output) => log = output,
            }
        }
        panic!("Postgres does not start: {log}");
    }
}

/// Creates the folder of a server, which the user of the server may write.
fn make_folder(folder: &Path, user: Option<(u32, u32)>) {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).unwrap();
    if let Some((uid, gid)) = user {
        chown(folder, Some(uid), Some(gid)).unwrap();
    }
}

/// Copies the programs that `.ci/test` fetched: the user of the server may not be allowed to read the folder
/// of the project. Installed programs can be read by all.
fn readable(programs: &Path, folder: &Path) -> PathBuf {
    let fetched = fetched();
    let Ok(inside) = programs.strip_prefix(&fetched) else { return programs.to_owned() };
    let copied = Command::new("cp").arg("-R").arg(&fetched).arg(folder.join("programs")).status();
    assert!(copied.expect("`cp` runs").success(), "the programs of the server cannot be copied");
    folder.join("programs").join(inside)
}

/// Creates the data folder of a server.
fn make_data(programs: &Path, folder: &Path, user: Option<(u32, u32)>) -> PathBuf {
    let data = folder.join("data");
    let mut init = command(&programs.join("initdb"), user);
    init.args(["--auth=trust", "--username=agent", "--encoding=UTF8", "--locale=C", "--no-sync", "-D"]);
    let made = init.arg(&data).output().expect("initdb runs");
    assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
    data
}

/// Runs a server, and beside it a subshell that reads the input of the script. The input ends with the
/// process at its other end. The subshell then ends the server and removes the folder.
const SERVE: &str = r#"
    exec 3<&0
    "$@" >"$FOLDER/log" 2>&1 &
    server=$!
    (
        trap '' HUP INT TERM
        cat >/dev/null
        kill -$END $server 2>/dev/null
        while kill -0 $server 2>/dev/null; do sleep 0.05; done
        rm -rf "$FOLDER"
    ) <&3 &
    wait $server
"#;

/// Starts the shell that runs the server. Returns the log of the server if it does not start.
fn serve(
    programs: &Path,
    data: &Path,
    folder: &Path,
    port: u16,
    user: Option<(u32, u32)>,
) -> Result<Child, String> {
    let mut arguments = vec!["-D".to_owned(), data.to_str().unwrap().to_owned()];
    for setting in [
        format!("port={port}"),
        "listen_addresses=127.0.0.1".into(),
        "unix_socket_directories=".into(),
        "fsync=off".into(),
        "max_connections=200".into(),
        "shared_buffers=16MB".into(),
    ] {
        arguments.extend(["-c".to_owned(), setting]);
    }
    run_until(&programs.join("postgres"), &arguments, "QUIT", folder, user, || is_ready(data))
}

/// Starts the shell around a program that a signal ends. Returns once `is_ready`, or the program's log if it
/// ends before.
fn run_until(
    program: &Path,
    arguments: &[String],
    end: &str,
    folder: &Path,
    user: Option<(u32, u32)>,
    is_ready: impl Fn() -> bool,
) -> Result<Child, String> {
    let mut shell = command(Path::new("sh"), user);
    shell.args(["-c", SERVE, "sh"]).arg(program).args(arguments).env("FOLDER", folder).env("END", end);
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = shell.spawn().expect("a shell");
    let log = || fs::read_to_string(folder.join("log")).unwrap_or_default();
    for _ in 0..2_400 {
        if process.try_wait().unwrap().is_some() {
            return Err(log());
        }
        if is_ready() {
            return Ok(process);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(log())
}

/// Whether the server is ready according to its own file. The port does not show it: another server may have
/// taken the port.
fn is_ready(data: &Path) -> bool {
    fs::read_to_string(data.join("postmaster.pid")).is_ok_and(|file| file.contains("ready"))
}

/// Returns another user for the server if this process runs as root, because Postgres refuses to run as root.
fn unprivileged() -> Option<(u32, u32)> {
    let id = |flag: &str| {
        let output = Command::new("id").arg(flag).output().expect("`id` runs").stdout;
        String::from_utf8_lossy(&output).trim().parse::<u32>().unwrap()
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

/// Returns the folder with the programs of a server: one in the path, or one of those outside of the path
/// that `.ci/machine` lists.
fn folder_of_programs() -> Option<PathBuf> {
    folders_of_programs().next()
}

fn folders_of_programs() -> impl Iterator<Item = PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&paths).collect();
    if let Ok(output) = Command::new("pg_config").arg("--bindir").output() {
        folders.push(String::from_utf8_lossy(&output.stdout).trim().into());
    }
    for (parent, prefix, programs) in [
        ("/usr/lib/postgresql", "", "bin"),
        ("/usr/lib", "postgresql", "bin"),
        ("/usr", "pgsql-", "bin"),
        ("/usr/libexec", "postgresql", ""),
        ("/opt/homebrew/opt", "postgresql", "bin"),
        ("/usr/local/opt", "postgresql", "bin"),
        ("/home/linuxbrew/.linuxbrew/opt", "postgresql", "bin"),
        ("/usr/local", "pgsql", "bin"),
    ] {
        let found = fs::read_dir(parent).into_iter().flatten().flatten();
        let found = found.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
        folders.extend(found.map(|entry| entry.path().join(programs)));
    }
    folders.into_iter().filter(|folder| ["initdb", "postgres"].iter().all(|name| folder.join(name).is_file()))
}

/// Returns the folder of a server that has `pgvector`: the usual one if its package is installed, or the one
/// below `target` that `.ci/test` fetches where the system has no such package.
fn folder_with_vectors() -> Option<PathBuf> {
    let fetched = fetched().join("pgserver/pginstall/bin");
    folders_of_programs().chain([fetched]).find(|folder| has_vectors(folder))
}

fn fetched() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("target/postgres-with-vectors")
}

fn has_vectors(folder: &Path) -> bool {
    let shared = Command::new(folder.join("pg_config")).arg("--sharedir").output();
    let told = shared.ok().map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    // Debian keeps the files of a version apart from its programs, and may lack `pg_config`.
    let version = folder.parent().and_then(Path::file_name).unwrap_or_default();
    let debian = Path::new("/usr/share/postgresql").join(version);
    let beside = folder.join("../share/postgresql");
    told.into_iter().chain([debian, beside]).any(|folder| folder.join("extension/vector.control").is_file())
}
