//! [`Python`]: code of a model, in a process of its own.
//!
//! It is off unless the person allows it. Code runs in a child process that has
//!
//! - an empty environment, so no key;
//! - a new folder as its working directory, which is removed at the end;
//! - limits: of time, processor time, memory, the size of its files and of its output;
//! - where the system has user namespaces: no network, and no hold on other processes. [`Sandbox`] says
//!   whether that is so, and each result does if it is not.
//!
//! Not limited is the reading of files: the code can read what the person who runs the program can read. That
//! is why it is off.
//!
//! One [`Python`] belongs to one question. Its session lives as long as the question is worked on by this
//! process.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Mutex, OnceCell};

const CHILD: &str = include_str!("python/child.py");
/// The longest line of a reply, which holds the output in JSON.
const LONGEST_REPLY: u64 = 8 << 20;

/// How code may run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PythonSettings {
    /// The interpreter, version 3.8 or later.
    pub program: PathBuf,
    /// The longest time of one call.
    pub timeout: Duration,
    /// The most memory, in bytes.
    pub memory: u64,
    /// The most characters of output; the rest is cut.
    pub output: usize,
    /// The folder in which each process gets a folder of its own.
    pub folder: PathBuf,
    sandbox: Arc<OnceCell<Sandbox>>,
    interpreter: Arc<OnceCell<Option<PathBuf>>>,
}

impl PythonSettings {
    /// `python3` with 30 s, 1 GiB and 20,000 characters, in folders below this one.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        PythonSettings {
            program: "python3".into(),
            timeout: Duration::from_secs(30),
            memory: 1 << 30,
            output: 20_000,
            folder: folder.into(),
            sandbox: Arc::default(),
            interpreter: Arc::default(),
        }
    }

    /// How much the system separates the code from the rest of the machine. Tried once.
    pub async fn sandbox(&self) -> Sandbox {
        *self.sandbox.get_or_init(Sandbox::find).await
    }

    /// The interpreter itself. The program may be a script that chooses one by variables, and code gets none.
    async fn interpreter(&self) -> Result<PathBuf, PythonError> {
        let found = self.interpreter.get_or_init(async || {
            let mut asked = Command::new(which(&self.program)?);
            asked
                .args(["-I", "-c", "import sys; print(sys.executable)"])
                .stdin(Stdio::null())
                .kill_on_drop(true);
            let said = asked.output().await.ok().filter(|said| said.status.success())?;
            let path = PathBuf::from(String::from_utf8(said.stdout).ok()?.trim());
            path.is_absolute().then_some(path)
        });
        let why = || {
            PythonError::NotStarted(format!("`{}` is not installed, or no Python 3", self.program.display()))
        };
        found.await.clone().ok_or_else(why)
    }

    /// Uses this in the place of what the system can do. For tests.
    #[must_use]
    pub fn with_sandbox(mut self, sandbox: Sandbox) -> Self {
        self.sandbox = Arc::new(OnceCell::new_with(Some(sandbox)));
        self
    }
}

/// How much the system separates code from the rest of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sandbox {
    /// Namespaces of its own: no network, and no hold on other processes.
    Namespaces,
    /// The limits alone.
    LimitsOnly,
}

/// `unshare` ends with the program, and its child with it.
const UNSHARE: [&str; 9] =
    ["--user", "--map-root-user", "--net", "--ipc", "--uts", "--pid", "--fork", "--kill-child", "--"];

impl Sandbox {
    async fn find() -> Self {
        if !cfg!(target_os = "linux") {
            return Sandbox::LimitsOnly;
        }
        let mut trial = Command::new("unshare");
        trial.args(UNSHARE).arg("true").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        match trial.status().await {
            Ok(status) if status.success() => Sandbox::Namespaces,
            _ => Sandbox::LimitsOnly,
        }
    }

    /// A warning for the person who allows code; `None` if there is nothing.
    pub fn warning(self) -> Option<&'static str> {
        match self {
            Sandbox::Namespaces => None,
            Sandbox::LimitsOnly => Some(
                "This system has no user namespaces for the program: Python code has limits of time, memory and output, but the \
                 network is open to it.",
            ),
        }
    }
}

/// The Python of one question.
pub struct Python {
    settings: PythonSettings,
    session: Mutex<Option<Process>>,
}

/// The result of a piece of code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Ran {
    /// The printed text.
    pub output: String,
    /// The number of characters that were cut.
    pub lost: u64,
    /// The value of its last expression.
    pub value: Option<String>,
    /// The error that ended it.
    pub error: Option<String>,
    /// Whether a new session was begun for it.
    #[serde(skip)]
    pub is_new_session: bool,
}

/// Why code did not run to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PythonError {
    /// It took too long and was ended, with all that its session held.
    #[error("the code took longer than {0:?} and was ended, with its session")]
    TooSlow(Duration),
    /// It ended its own process, or the system did.
    #[error(
        "the process of the code ended: it used too much memory or processor time, or ended itself; its session ended with it"
    )]
    Ended,
    /// It could not be started.
    #[error("Python could not be started: {0}")]
    NotStarted(String),
}

impl Python {
    /// Nothing runs yet.
    pub fn new(settings: PythonSettings) -> Self {
        Python { settings, session: Mutex::default() }
    }

    /// The warning that belongs to each result: see [`Sandbox::warning`].
    pub async fn warning(&self) -> Option<&'static str> {
        self.settings.sandbox().await.warning()
    }

    /// Runs code in the session of the question, which is begun if there is none.
    ///
    /// # Errors
    /// If the process cannot be started, or ends.
    pub async fn run(&self, code: &str) -> Result<Ran, PythonError> {
        let mut session = self.session.lock().await;
        let (mut process, is_new) = match session.take() {
            Some(process) => (process, false),
            None => (Process::start(&self.settings).await?, true),
        };
        let ran = process.call(&json!({ "code": code }), self.settings.timeout).await?;
        // A call that failed, or was dropped, leaves no session: its process ends with it.
        *session = Some(process);
        Ok(Ran { is_new_session: is_new, ..ran })
    }

    /// Runs a file in a process of its own, in a folder that holds the file alone.
    ///
    /// # Errors
    /// If the process cannot be started, or ends.
    pub async fn run_file(&self, name: &str, source: &[u8]) -> Result<Ran, PythonError> {
        let mut process = Process::start(&self.settings).await?;
        let path = process.folder.0.join(name);
        let written = tokio::fs::write(&path, source).await;
        written.map_err(|error| PythonError::NotStarted(error.to_string()))?;
        let ran = process.call(&json!({ "file": name }), self.settings.timeout).await?;
        Ok(Ran { is_new_session: true, ..ran })
    }
}

/// A child process. It is killed when this is dropped.
struct Process {
    // The first to be dropped.
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    folder: OwnFolder,
}

#[derive(Serialize)]
struct Limits {
    memory: u64,
    /// Of processor time, for all calls of a session.
    processor: u64,
    /// Of one call.
    seconds: u64,
    file: u64,
    output: usize,
}

impl Process {
    async fn start(settings: &PythonSettings) -> Result<Self, PythonError> {
        let wrong = |error: std::io::Error| PythonError::NotStarted(error.to_string());
        let folder = OwnFolder::make(&settings.folder).map_err(wrong)?;
        let limits = Limits {
            memory: settings.memory,
            processor: 10 * settings.timeout.as_secs().max(1),
            seconds: settings.timeout.as_secs() + 2,
            file: 16 << 20,
            output: settings.output,
        };
        let limits =
            serde_json::to_string(&limits).map_err(|error| PythonError::NotStarted(error.to_string()))?;
        let program = settings.interpreter().await?;
        let mut command = match settings.sandbox().await {
            Sandbox::LimitsOnly => Command::new(program),
            Sandbox::Namespaces => {
                let mut command =
                    Command::new(which(Path::new("unshare")).unwrap_or_else(|| "unshare".into()));
                command.args(UNSHARE).arg(program);
                command
            }
        };
        // Isolated: no variables, no folder of the user or of the script in the path, and no files of
        // bytecode.
        command.args(["-I", "-B", "-X", "utf8", "-c", CHILD]).arg(limits);
        command.env_clear().current_dir(&folder.0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn().map_err(wrong)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(PythonError::NotStarted("it has no streams".to_owned()));
        };
        Ok(Process { child, input, output: BufReader::new(output), folder })
    }

    async fn call(&mut self, request: &serde_json::Value, timeout: Duration) -> Result<Ran, PythonError> {
        match tokio::time::timeout(timeout, self.exchange(request)).await {
            Ok(ran) => ran,
            Err(_) => Err(PythonError::TooSlow(timeout)),
        }
    }

    async fn exchange(&mut self, request: &serde_json::Value) -> Result<Ran, PythonError> {
        use tokio::io::AsyncReadExt as _;
        let line = format!("{request}\n");
        self.input.write_all(line.as_bytes()).await.map_err(|_| PythonError::Ended)?;
        let mut reply = Vec::new();
        let mut limited = (&mut self.output).take(LONGEST_REPLY);
        limited.read_until(b'\n', &mut reply).await.map_err(|_| PythonError::Ended)?;
        serde_json::from_slice(&reply).map_err(|_| PythonError::Ended)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Also what the code has started, where no namespace ends it.
        #[cfg(unix)]
        if let Some(group) =
            self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.start_kill();
    }
}

/// A folder that is removed on drop.
struct OwnFolder(PathBuf);

impl OwnFolder {
    fn make(parent: &Path) -> std::io::Result<Self> {
        let path = parent.join(format!("python-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir_all(&path)?;
        Ok(OwnFolder(path))
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The whole path of a program, since the child's environment has no path to search.
fn which(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_owned());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

impl fmt::Debug for Python {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Python").field("settings", &self.settings).finish_non_exhaustive()
    }
}
