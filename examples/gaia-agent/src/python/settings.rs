//! [`PythonSettings`]: which Python runs, its limits, and how much the system confines it.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::OnceCell;

use super::PythonError;
use super::interpreter::{Interpreter, which};
use super::process::OwnFolder;

/// How code may run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PythonSettings {
    /// The interpreter, version 3.8 or later.
    pub program: PathBuf,
    /// The longest time of one call.
    pub timeout: Duration,
    /// The most memory, in bytes: of one process, and of all processes of a confined session.
    pub memory: u64,
    /// The most characters of output; the rest is cut.
    pub output: usize,
    /// The most processes of a confined session.
    pub processes: usize,
    /// The most bytes on disk of a confined session; each file counts 16 KiB more than its content.
    pub disk: u64,
    /// How often a confined session is compared with its limits.
    pub poll: Duration,
    /// Whether code may run where the system cannot confine it.
    pub unconfined: bool,
    /// The folder in which each process gets a folder of its own.
    pub folder: PathBuf,
    pub(super) helper: Option<PathBuf>,
    sandbox: Arc<OnceCell<Result<Sandbox, PythonError>>>,
    interpreter: Arc<OnceCell<Result<Interpreter, PythonError>>>,
}

impl PythonSettings {
    /// `python3` with 30 s, 1 GiB, 20,000 characters, 32 processes and 256 MiB on disk, in folders below this
    /// one.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        PythonSettings {
            program: "python3".into(),
            timeout: Duration::from_secs(30),
            memory: 1 << 30,
            output: 20_000,
            processes: 32,
            disk: 256 << 20,
            poll: Duration::from_millis(100),
            unconfined: false,
            folder: folder.into(),
            helper: None,
            sandbox: Arc::default(),
            interpreter: Arc::default(),
        }
    }

    /// Sets the program that confines code: one that begins with [`helper`](super::helper). Without it, code
    /// cannot be confined.
    #[must_use]
    pub fn helper(mut self, program: Option<PathBuf>) -> Self {
        self.helper = program;
        self
    }

    /// How much the system separates the code from the rest of the machine. Tried once.
    ///
    /// # Errors
    /// If code may not run here, or there is no Python.
    pub async fn sandbox(&self) -> Result<Sandbox, PythonError> {
        let found = self.sandbox.get_or_init(async || Sandbox::find(self).await).await.clone()?;
        match found {
            Sandbox { is_confined: false, .. } if !self.unconfined => {
                Err(PythonError::Refused("this system has not what it takes".to_owned()))
            }
            found => Ok(found),
        }
    }

    /// The interpreter itself. The program may be a script that chooses one by variables, and code gets none.
    pub(super) async fn interpreter(&self) -> Result<Interpreter, PythonError> {
        let find = async || Interpreter::find(&self.program).await;
        self.interpreter.get_or_init(find).await.clone()
    }

    /// Asks the interpreter for what [`introduction`](Self::introduction) says. Asked once.
    pub(crate) async fn learn(&self) {
        let _ = self.interpreter().await;
    }

    /// The version and the libraries, for the model; empty if the interpreter was not asked.
    pub(crate) fn introduction(&self) -> String {
        let known = self.interpreter.get().and_then(|found| found.as_ref().ok());
        known.map(Interpreter::introduction).unwrap_or_default()
    }

    /// Uses this in the place of what the system can do. For tests.
    #[must_use]
    pub fn with_sandbox(mut self, sandbox: Sandbox) -> Self {
        self.sandbox = Arc::new(OnceCell::new_with(Some(Ok(sandbox))));
        self
    }
}

/// How much the system separates code from the rest of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sandbox {
    /// It reads and writes its own files alone, and has no network: Landlock, and a filter of system calls.
    pub is_confined: bool,
    /// Namespaces of its own: no network, and no hold on other processes.
    pub has_namespaces: bool,
}

/// `unshare` ends with the program, and its child with it.
pub(super) const UNSHARE: [&str; 9] =
    ["--user", "--map-root-user", "--net", "--ipc", "--uts", "--pid", "--fork", "--kill-child", "--"];

impl Sandbox {
    /// The most that works; the reason why code is not confined is an error if it has to be.
    async fn find(settings: &PythonSettings) -> Result<Self, PythonError> {
        let has_namespaces = cfg!(target_os = "linux") && namespaces_work().await;
        let mut why = "only Linux can".to_owned();
        for has_namespaces in [true, false].into_iter().filter(|wanted| has_namespaces || !wanted) {
            let sandbox = Sandbox { is_confined: true, has_namespaces };
            match sandbox.try_out(settings).await {
                Ok(()) => return Ok(sandbox),
                Err(PythonError::Refused(reason)) => why = reason,
                Err(error) => return Err(error),
            }
        }
        match settings.unconfined {
            true => Ok(Sandbox { is_confined: false, has_namespaces }),
            false => Err(PythonError::Refused(why)),
        }
    }

    /// Runs an empty program.
    async fn try_out(self, settings: &PythonSettings) -> Result<(), PythonError> {
        let folder = OwnFolder::make(&settings.folder)?;
        let mut command = self.command(settings, &folder, &["-I", "-c", ""]).await?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let ended = command.output().await.map_err(|error| PythonError::Refused(error.to_string()))?;
        let said = String::from_utf8_lossy(&ended.stderr);
        match ended.status.success() {
            true => Ok(()),
            false => Err(PythonError::Refused(said.lines().last().unwrap_or("no reason").to_owned())),
        }
    }

    /// A warning for the person who allows code; `None` if there is nothing.
    pub fn warning(self) -> Option<&'static str> {
        match self {
            Sandbox { is_confined: true, .. } => None,
            Sandbox { has_namespaces: true, .. } => Some(
                "Python code is not confined: it has limits of time, memory and output and no network, but it can read and change \
                 your files.",
            ),
            _ => Some(
                "Python code is not confined: it has limits of time, memory and output, but it can read and change your files, and the \
                 network is open to it.",
            ),
        }
    }
}

async fn namespaces_work() -> bool {
    let Some(unshare) = which("unshare".as_ref()) else { return false };
    let mut trial = Command::new(unshare);
    trial.args(UNSHARE).arg("true").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    trial.status().await.is_ok_and(|status| status.success())
}
