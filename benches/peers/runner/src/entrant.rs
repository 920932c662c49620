//! The entrants, and how each is built and started.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::Problem;

pub const FLOOR: &str = "by hand";
pub const OURS: &str = "agentgraph";
const PYTHON: &str = "LangGraph (Python)";

/// One way to do the work of the cases.
pub struct Entrant {
    pub name: &'static str,
    /// Its folder, which is its package too; empty for Python.
    folder: &'static str,
    /// The crate that is measured, for its version.
    krate: &'static str,
}

const fn entrant(name: &'static str, folder: &'static str, krate: &'static str) -> Entrant {
    Entrant { name, folder, krate }
}

pub const ALL: [Entrant; 13] = [
    entrant(FLOOR, "bare", ""),
    entrant(OURS, "ours", "agentgraph"),
    entrant("petgraph", "petgraph", "petgraph"),
    entrant("entelix", "entelix", "entelix-graph"),
    entrant("cognis", "older/cognis", "cognis-graph"),
    entrant("graph-flow", "graph-flow", "graph-flow"),
    entrant("langgraph", "older/langgraph", "langgraph"),
    entrant("adk-graph", "older/adk-graph", "adk-graph"),
    entrant("juncture", "older/juncture", "juncture-core"),
    entrant("rusty-agent-runtime", "rusty-agent-runtime", "rusty-agent-runtime"),
    entrant("swiftide", "swiftide", "swiftide-agents"),
    entrant("synaptic-graph", "older/synaptic-graph", "synaptic-graph"),
    entrant(PYTHON, "", ""),
];

/// What one process says about a case: one of both.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum Said {
    Lacks { lacks: String },
    Measured(Measured),
}

/// Nanoseconds a unit, and for some cases bytes.
#[derive(Serialize, Deserialize, Clone)]
pub struct Measured {
    pub cpu: f64,
    pub wall: f64,
    pub bytes: Option<f64>,
    #[serde(default, skip_serializing)]
    pub note: String,
}

/// What a program costs beside its running time.
#[derive(Serialize, Clone)]
pub struct Size {
    /// Bytes of the stripped program with all cases.
    pub program: u64,
    /// Crates that it is built of, without itself and the harness.
    pub crates: usize,
    /// Processor seconds and bytes that a further graph adds to a release build.
    pub further: Option<(f64, f64)>,
}

impl Entrant {
    /// The version in the lock file.
    pub fn version(&self) -> String {
        let found = std::fs::read_to_string(self.workspace().join("Cargo.lock")).ok().and_then(|lock| {
            let (_, rest) = lock.split_once(&format!("name = \"{}\"\nversion = \"", self.krate))?;
            Some(rest.split_once('"')?.0.to_owned())
        });
        found.unwrap_or_default()
    }

    /// Builds the program.
    ///
    /// # Errors
    /// What cargo, or the script of Python, said.
    pub fn build(&self) -> Result<(), Problem> {
        match self.name {
            PYTHON => run(Command::new(home().join("langgraph.sh")).args(["case", "install"])).map(drop),
            _ => self.cargo(&["build", "--release", "--locked", "-p", &self.package("peer")]).map(drop),
        }
    }

    /// Runs a case in a fresh process.
    pub fn ask(&self, case: &str, is_quick: bool) -> Result<Said, Problem> {
        let mut command = match self.name {
            PYTHON => Command::new(home().join("langgraph.sh")),
            _ => Command::new(self.program("peer")),
        };
        if self.name == PYTHON {
            command.arg("case");
        }
        command.arg(case).args(is_quick.then_some("quick"));
        let output = run(&mut command)?;
        serde_json::from_str(&output)
            .map_err(|error| format!("{} said about {case}: {output} ({error})", self.name).into())
    }

    /// The sizes of the program; `None` for Python.
    pub fn size(&self) -> Result<Option<Size>, Problem> {
        if self.name == PYTHON {
            return Ok(None);
        }
        let program = std::fs::metadata(self.program("peer"))?.len();
        let tree = self.cargo(&[
            "tree",
            "--locked",
            "-p",
            &self.package("peer"),
            "-e",
            "normal",
            "--prefix",
            "none",
        ])?;
        let mut crates: Vec<&str> = tree.lines().map(|line| line.trim_end_matches(" (*)")).collect();
        crates.sort_unstable();
        crates.dedup();
        let has_further = home().join(self.folder).join("further.rs").exists();
        let further = has_further.then(|| self.further()).transpose()?;
        Ok(Some(Size { program, crates: crates.len() - 2, further }))
    }

    /// Builds programs with one graph and with five, and divides the difference.
    fn further(&self) -> Result<(f64, f64), Problem> {
        let source = home().join(self.folder).join("further.rs");
        let build = |graphs: &[&str]| -> Result<(f64, f64), Problem> {
            let name = self.package("further");
            // Else cargo takes what an earlier call has built with the same arguments.
            File::options().append(true).open(&source)?.set_modified(SystemTime::now())?;
            let before = processor_time_of_children();
            let build = ["rustc", "--release", "--locked", "-p", &self.package("peer"), "--bin", &name, "--"];
            self.cargo(&[&build, graphs].concat())?;
            let took = processor_time_of_children() - before;
            run(&mut Command::new(self.program("further")))?;
            Ok((took.as_secs_f64(), std::fs::metadata(self.program("further"))?.len() as f64))
        };
        // The first build may have to build dependencies of this program alone.
        build(&["--cfg", "many"])?;
        let (one, many) = (build(&[])?, build(&["--cfg", "many"])?);
        Ok(((many.0 - one.0) / 4.0, (many.1 - one.1) / 4.0))
    }

    fn package(&self, kind: &str) -> String {
        let name = self.folder.rsplit('/').next().unwrap_or_default();
        format!("{kind}-{name}")
    }

    fn program(&self, kind: &str) -> PathBuf {
        target().join("release").join(self.package(kind))
    }

    fn workspace(&self) -> PathBuf {
        home().join(if self.folder.starts_with("older/") { "older" } else { "" })
    }

    fn cargo(&self, arguments: &[&str]) -> Result<String, Problem> {
        run(Command::new("cargo")
            .args(arguments)
            .current_dir(self.workspace())
            .env("CARGO_TARGET_DIR", target()))
    }
}

/// The output of a command.
fn run(command: &mut Command) -> Result<String, Problem> {
    let output = command.stdin(Stdio::null()).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned().into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// The folder of the workspace.
fn home() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The folder that `run` builds in.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| home().join("target"), PathBuf::from)
}

/// The processor time of all children that have ended, in ticks of a hundredth of a second.
fn processor_time_of_children() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program, in parentheses, may have spaces; fields 16 and 17 are counted from behind it.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(13).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}
