//! A private PgBouncer before the private server. It ends when it is dropped or when the process ends.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{PostgresServer, make_folder, run_until, unprivileged};

pub(crate) struct Pooler {
    port: u16,
    behind: u16,
    settings: String,
    /// The shell around the pooler, and its folder.
    process: Mutex<(Child, PathBuf)>,
}

impl Pooler {
    /// Whether PgBouncer is installed.
    pub(crate) fn is_installed() -> bool {
        program().is_some()
    }

    /// Starts a pooler in a mode (`session` or `transaction`), with so many connections to the server.
    pub(crate) fn start(server: &PostgresServer, mode: &str, connections: usize) -> Self {
        let settings = format!("pool_mode={mode}\ndefault_pool_size={connections}\n");
        let mut log = String::new();
        // Another process may take the free port before the pooler does.
        for _ in 0..10 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            match serve(port, server.port, &settings) {
                Ok(process) => {
                    return Pooler { port, behind: server.port, settings, process: Mutex::new(process) };
                }
                Err(output) => log = output,
            }
        }
        panic!("PgBouncer does not start: {log}");
    }

    pub(crate) fn url(&self) -> String {
        self.url_of("postgres")
    }

    pub(crate) fn url_of(&self, database: &str) -> String {
        format!("postgres://agent@127.0.0.1:{}/{database}", self.port)
    }

    /// Ends the pooler with all its connections, and starts it again at the same address.
    pub(crate) fn restart(&self) {
        let (shell, folder) = &mut *self.process.lock().unwrap();
        let number = fs::read_to_string(folder.join("pid")).unwrap();
        assert!(Command::new("kill").arg(number.trim()).status().unwrap().success());
        shell.wait().unwrap();
        (*shell, *folder) = serve(self.port, self.behind, &self.settings).unwrap();
    }
}

/// No startup parameters are ignored, so those that the pooler does not know are refused.
fn serve(port: u16, behind: u16, settings: &str) -> Result<(Child, PathBuf), String> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("agentgraph-pooler-{}-{number}", std::process::id()));
    let user = unprivileged();
    make_folder(&folder, user);
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    fs::write(file("users"), "\"agent\" \"\"\n").unwrap();
    let written = format!(
        "[databases]\n* = host=127.0.0.1 port={behind}\n[pgbouncer]\nlisten_addr=127.0.0.1\nlisten_port={port}\n\
         unix_socket_dir=\nauth_type=trust\nauth_file={}\npidfile={}\nmax_client_conn=400\n{settings}",
        file("users"),
        file("pid"),
    );
    fs::write(file("ini"), written).unwrap();
    let program = program().expect("PgBouncer is not installed: `.ci/test` installs it");
    let is_ready = || fs::read_to_string(file("log")).is_ok_and(|log| log.contains("process up"));
    Ok((run_until(&program, &[file("ini")], "TERM", &folder, user, is_ready)?, folder))
}

/// The program in the path, or in one of the folders that `.ci/machine` lists.
fn program() -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let outside = ["/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin", "/home/linuxbrew/.linuxbrew/bin"];
    let folders = std::env::split_paths(&paths).chain(outside.map(PathBuf::from));
    folders.map(|folder| folder.join("pgbouncer")).find(|program| program.is_file())
}
