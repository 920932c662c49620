//! `.ci/test` on simulated machines: the command by which it installs missing programs, and when it only
//! prints that command.
//!
//! The package managers, `sudo`, `id` and `uname` are fakes. The first two record their calls.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A machine that has only the programs of its test.
struct Machine(PathBuf);

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Machine {
    fn new(system: &str, user: u32, managers: &[&str]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let process = std::process::id();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let machine =
            Machine(Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("machine-{process}-{count}")));
        let _ = fs::remove_dir_all(&machine.0);
        fs::create_dir_all(&machine.0).unwrap();
        symlink("/bin/sh", machine.0.join("sh")).unwrap();
        machine.program("uname", &format!("echo {system}"));
        machine.program("id", &format!("echo {user}"));
        for manager in managers {
            machine.program(manager, r#"echo "${0##*/} $*" >>"${0%/*}/called""#);
        }
        machine
    }

    fn program(&self, name: &str, body: &str) {
        let path = self.0.join(name);
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Adds the programs of a server.
    fn has_server(&self) {
        self.program("postgres", "echo 'postgres (PostgreSQL) 17.2 (Debian 17.2-1)'");
        self.program("initdb", "");
        self.program("dirname", r#"echo "${1%/*}""#);
    }

    /// Adds a `sudo` that needs no password.
    fn with_free_sudo(self) -> Self {
        let log = r#"[ "$1" != -n ] || exit 0; echo "sudo $*" >>"${0%/*}/called"; exec "$@""#;
        self.program("sudo", log);
        self
    }

    /// Adds a `sudo` that needs a password.
    fn with_sudo(self) -> Self {
        self.program("sudo", r#"[ "$1" != -n ] || exit 1; echo "sudo $*" >>"${0%/*}/called"; exit 1"#);
        self
    }

    /// Installs missing programs. Returns whether that succeeded, the output, and the recorded calls.
    fn installs(&self, missing: &str) -> (bool, String, Vec<String>) {
        self.runs(&format!("install_missing {missing}"))
    }

    /// Runs a line with the functions of `.ci/machine`. Returns the same.
    fn runs(&self, line: &str) -> (bool, String, Vec<String>) {
        let script = format!("set -eu; . ./machine; {line}");
        let output = Command::new("/bin/sh")
            .args(["-c", &script])
            .env_clear()
            .env("PATH", &self.0)
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.ci"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let printed = [output.stdout, output.stderr].concat();
        let called = fs::read_to_string(self.0.join("called")).unwrap_or_default();
        (
            output.status.success(),
            String::from_utf8_lossy(&printed).into_owned(),
            called.lines().map(str::to_owned).collect(),
        )
    }
}

#[test]
fn the_superuser_installs_with_the_manager_of_the_machine() {
    for (manager, expected) in [
        ("apt-get", &["apt-get update -q", "apt-get install -y -q gcc libc6-dev postgresql"][..]),
        ("dnf", &["dnf install -y gcc postgresql-server"]),
        ("apk", &["apk add build-base postgresql"]),
        ("brew", &["brew install gcc postgresql@17"]),
    ] {
        let (done, printed, called) = Machine::new("Linux", 0, &[manager]).installs("c postgres");
        assert!(done, "{manager}: {printed}");
        assert_eq!(called, expected);
        assert!(printed.starts_with("Missing: a C compiler, a PostgreSQL server. Installing: "), "{printed}");
    }
}

#[test]
fn pgbouncer_is_installed_beside_the_server() {
    for (manager, expected) in [
        ("apt-get", "apt-get install -y -q postgresql pgbouncer"),
        ("dnf", "dnf install -y postgresql-server pgbouncer"),
        ("apk", "apk add postgresql pgbouncer"),
        ("brew", "brew install postgresql@17 pgbouncer"),
    ] {
        let (done, printed, called) = Machine::new("Linux", 0, &[manager]).installs("postgres pooler");
        assert!(done, "{manager}: {printed}");
        assert_eq!(called.last().map(String::as_str), Some(expected));
        assert!(printed.starts_with("Missing: a PostgreSQL server, PgBouncer. Installing: "), "{printed}");
    }
    let machine = Machine::new("Linux", 0, &[]);
    machine.program("pgbouncer", "");
    let (found, printed, _) = machine.runs("pooler_program");
    assert!(found && printed.trim_end().ends_with("/pgbouncer"), "{printed}");
}

#[test]
fn pgvector_is_installed_for_the_version_of_the_server() {
    for (manager, expected) in [
        ("apt-get", "apt-get install -y -q postgresql-17-pgvector"),
        ("dnf", "dnf install -y pgvector"),
        ("apk", "apk add postgresql-pgvector"),
        ("brew", "brew install pgvector"),
    ] {
        let machine = Machine::new("Linux", 0, &[manager]);
        machine.program("apt-cache", "exit 0");
        machine.has_server();
        // The install is a fake, so nothing is found after it.
        let (_, printed, called) = machine.runs("fetch_vectors() { echo fetched; }; install_vectors");
        assert_eq!(called.last().map(String::as_str), Some(expected), "{printed}");
        assert!(printed.contains("Missing: the extension pgvector."), "{printed}");
    }
}

#[test]
fn a_server_with_pgvector_is_fetched_where_the_system_has_no_package_of_it() {
    let machine = Machine::new("Linux", 0, &["apt-get"]);
    machine.program("apt-cache", "exit 100");
    machine.has_server();
    let (done, printed, called) = machine.runs("fetch_vectors() { echo fetched; }; install_vectors");
    assert_eq!((done, called), (true, vec![]), "{printed}");
    assert_eq!(printed, "fetched\n");
}

#[test]
fn a_manager_of_the_system_comes_before_brew() {
    let (done, _, called) = Machine::new("Linux", 0, &["brew", "apk"]).installs("c++");
    assert_eq!((done, called), (true, vec!["apk add build-base".to_owned()]));
}

#[test]
fn another_user_installs_with_a_sudo_that_needs_no_password() {
    let (done, printed, called) =
        Machine::new("Linux", 1000, &["apt-get"]).with_free_sudo().installs("postgres");
    assert!(done, "{printed}");
    let expected = [
        "sudo apt-get update -q",
        "apt-get update -q",
        "sudo apt-get install -y -q postgresql",
        "apt-get install -y -q postgresql",
    ];
    assert_eq!(called, expected);
}

#[test]
fn without_a_sudo_or_a_password_the_command_is_printed() {
    let machines = [Machine::new("Linux", 1000, &["dnf"]), Machine::new("Linux", 1000, &["dnf"]).with_sudo()];
    for machine in machines {
        let (done, printed, called) = machine.installs("c postgres");
        assert_eq!((done, called), (false, vec![]), "{printed}");
        assert!(printed.contains("Run this as the superuser"), "{printed}");
        assert!(printed.contains("\n    dnf install -y gcc postgresql-server\n"), "{printed}");
    }
}

#[test]
fn an_install_that_fails_is_a_failure() {
    let machine = Machine::new("Linux", 0, &["apt-get"]);
    machine.program("apt-get", "exit 100");
    assert!(!machine.installs("postgres").0);
}

#[test]
fn programs_that_no_known_manager_can_install_are_named() {
    let (done, printed, _) = Machine::new("Linux", 0, &[]).installs("c postgres");
    assert!(!done && printed.contains("Missing: a C compiler, a PostgreSQL server."), "{printed}");
    // Homebrew installs the server. The compiler on macOS comes from Apple.
    let (done, printed, called) = Machine::new("Darwin", 501, &["brew", "apt-get"]).installs("c postgres");
    assert!(!done && called.is_empty() && printed.contains("xcode-select --install"), "{printed}");
    let (done, printed, called) = Machine::new("Darwin", 501, &["brew", "apt-get"]).installs("postgres");
    assert_eq!((done, called), (true, vec!["brew install postgresql@17".to_owned()]), "{printed}");
}
