//! [`Process`]: a child process, and the exchange of requests and replies with it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

#[cfg(target_os = "linux")]
use super::confine::Confinement;
use super::interpreter::which;
use super::settings::{PythonSettings, Sandbox, UNSHARE};
use super::{PythonError, Ran};

const CHILD: &str = include_str!("child.py");
/// The longest replies of a call, which hold the output in JSON, with what the code wrote between them.
const LONGEST_REPLY: u64 = 8 << 20;

/// A child process. It is killed when this is dropped.
pub(super) struct Process {
    // The first to be dropped.
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pub(super) folder: OwnFolder,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Limits {
    pub(super) memory: u64,
    /// Of processor time, for all calls of a session.
    pub(super) processor: u64,
    /// Of one call.
    pub(super) seconds: u64,
    pub(super) file: u64,
    pub(super) output: usize,
    pub(super) processes: usize,
    pub(super) disk: u64,
    pub(super) poll: Duration,
}

#[derive(Deserialize)]
struct Reply {
    nonce: String,
    #[serde(flatten)]
    ran: Ran,
}

impl Process {
    pub(super) async fn start(settings: &PythonSettings) -> Result<Self, PythonError> {
        let folder = OwnFolder::make(&settings.folder)?;
        let limits = serde_json::to_string(&settings.limits()).map_err(not_started)?;
        // Isolated: no variables, no folder of the user or of the script in the path, and no files of
        // bytecode.
        let arguments = ["-I", "-B", "-X", "utf8", "-c", CHILD, &limits];
        let mut command = settings.sandbox().await?.command(settings, &folder, &arguments).await?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(not_started)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(not_started("it has no streams"));
        };
        Ok(Process { child, input, output: BufReader::new(output), folder })
    }

    pub(super) async fn call(
        &mut self,
        request: serde_json::Value,
        timeout: Duration,
    ) -> Result<Ran, PythonError> {
        match tokio::time::timeout(timeout, self.exchange(request)).await {
            Ok(ran) => ran,
            Err(_) => Err(PythonError::TooSlow(timeout)),
        }
    }

    async fn exchange(&mut self, mut request: serde_json::Value) -> Result<Ran, PythonError> {
        // Lines without it are of earlier calls, or of what the code started.
        let nonce = uuid::Uuid::new_v4().to_string();
        request["nonce"] = nonce.as_str().into();
        if self.input.write_all(format!("{request}\n").as_bytes()).await.is_err() {
            return Err(self.ended().await);
        }
        let mut limited = (&mut self.output).take(LONGEST_REPLY);
        loop {
            let mut line = Vec::new();
            let read = limited.read_until(b'\n', &mut line).await;
            if limited.limit() == 0 {
                return Err(PythonError::Ended);
            }
            if !read.is_ok_and(|length| length > 0) {
                return Err(self.ended().await);
            }
            match serde_json::from_slice::<Reply>(&line) {
                Ok(reply) if reply.nonce == nonce => return Ok(reply.ran),
                _ => {}
            }
        }
    }

    /// Why there is no reply. The exit code is of the helper, which the code cannot reach.
    async fn ended(&mut self) -> PythonError {
        #[cfg(target_os = "linux")]
        if let Ok(status) = self.child.wait().await
            && let Some(limit) = status.code().and_then(super::keeper::limit_of)
        {
            return PythonError::TooMuch(limit);
        }
        PythonError::Ended
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Also what the code has started, where no namespace ends it.
        #[cfg(unix)]
        if let Some(id) =
            self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw)
        {
            #[cfg(target_os = "linux")]
            super::tree::end(id);
            let _ = rustix::process::kill_process_group(id, rustix::process::Signal::KILL);
        }
        let _ = self.child.start_kill();
    }
}

impl PythonSettings {
    fn limits(&self) -> Limits {
        Limits {
            memory: self.memory,
            processor: 10 * self.timeout.as_secs().max(1),
            seconds: self.timeout.as_secs() + 2,
            file: 16 << 20,
            output: self.output,
            processes: self.processes,
            disk: self.disk,
            poll: self.poll,
        }
    }
}

impl Sandbox {
    /// The interpreter with these arguments, in a folder of its own.
    pub(super) async fn command(
        self,
        settings: &PythonSettings,
        folder: &OwnFolder,
        arguments: &[&str],
    ) -> Result<Command, PythonError> {
        let interpreter = settings.interpreter().await?;
        let unshare = self.has_namespaces.then(|| which(Path::new("unshare"))).flatten();
        let mut command = match (self.is_confined, unshare) {
            #[cfg(target_os = "linux")]
            (true, unshare) => {
                let missing = || PythonError::Refused("no program was named to confine it".to_owned());
                let helper = settings.helper.as_ref().ok_or_else(missing)?;
                let confinement =
                    Confinement::argument(interpreter, folder, unshare, settings.limits(), arguments);
                let mut command = Command::new(helper);
                command.arg(super::keeper::KEEP).arg(confinement.map_err(not_started)?);
                command
            }
            #[cfg(not(target_os = "linux"))]
            (true, _) => return Err(PythonError::Refused("only Linux can".to_owned())),
            (false, Some(unshare)) => {
                let mut command = Command::new(unshare);
                command.args(UNSHARE).arg(interpreter.program).args(arguments);
                command
            }
            (false, None) => {
                let mut command = Command::new(interpreter.program);
                command.args(arguments);
                command
            }
        };
        command.env_clear().current_dir(folder.work()).kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        Ok(command)
    }
}

fn not_started(error: impl std::fmt::Display) -> PythonError {
    PythonError::NotStarted(error.to_string())
}

/// A folder that is removed on drop.
pub(super) struct OwnFolder(PathBuf);

impl OwnFolder {
    pub(super) fn make(parent: &Path) -> Result<Self, PythonError> {
        // Rules and links need the whole path.
        let parent = std::path::absolute(parent).map_err(not_started)?;
        let folder = OwnFolder(parent.join(format!("python-{}", uuid::Uuid::new_v4())));
        for part in [folder.work(), folder.files()] {
            std::fs::create_dir_all(part).map_err(not_started)?;
        }
        Ok(folder)
    }

    /// The working directory, the only folder that confined code can write.
    pub(super) fn work(&self) -> PathBuf {
        self.0.join("work")
    }

    /// The files that the code can read.
    pub(super) fn files(&self) -> PathBuf {
        self.0.join("files")
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
