//! The helper: starts the process that becomes Python, watches all that comes of it, and ends it.
//!
//! It is outside of the confinement, so that the code can neither end nor deceive it. Every process that
//! the code starts stays below it, also one that its parent leaves behind: the helper is the reaper.

use std::process::{Command, ExitCode};

use rustix::process::{WaitOptions, getpid, getppid, set_child_subreaper, wait};

use super::Limit;
use super::confine::Confinement;
use super::settings::UNSHARE;
use super::tree;

/// The first arguments of the two processes of the helper.
pub(super) const KEEP: &str = "keep-python";
const CONFINE: &str = "confine-python";
const FAILED: u8 = 100;
const LIMITS: [Limit; 3] = [Limit::Processes, Limit::Memory, Limit::Disk];

/// The limit that an exit code of the helper stands for.
pub(super) fn limit_of(code: i32) -> Option<Limit> {
    let at = usize::try_from(code).ok()?.checked_sub(usize::from(FAILED) + 1)?;
    LIMITS.get(at).copied()
}

pub(super) fn run(arguments: &[String]) -> Option<ExitCode> {
    let [stage, text] = arguments else { return None };
    let ended = match (stage.as_str(), serde_json::from_str::<Confinement>(text)) {
        (KEEP | CONFINE, Err(error)) => Err(error.into()),
        (KEEP, Ok(confinement)) => keep(&confinement, text),
        (CONFINE, Ok(confinement)) => Err(confinement.become_python()),
        _ => return None,
    };
    Some(ExitCode::from(ended.unwrap_or_else(|error| {
        eprintln!("{error}");
        FAILED
    })))
}

fn keep(confinement: &Confinement, text: &str) -> Result<u8, Box<dyn std::error::Error>> {
    set_child_subreaper(Some(getpid()))?;
    let helper = std::env::current_exe()?;
    let mut command = match &confinement.unshare {
        None => Command::new(helper),
        Some(unshare) => {
            let mut command = Command::new(unshare);
            command.args(UNSHARE).arg(helper);
            command
        }
    };
    let child = command.args([CONFINE, text]).spawn()?.id();
    let is = |pid: rustix::process::Pid, id: u32| u32::try_from(pid.as_raw_nonzero().get()) == Ok(id);
    let ended = loop {
        // Also those that the code left behind.
        let mut ended = None;
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if is(pid, child) {
                ended = Some(u8::from(status.exit_status() != Some(0)) * FAILED);
            }
        }
        if let Some(ended) = ended {
            break ended;
        }
        if !getppid().is_some_and(|parent| is(parent, confinement.parent)) {
            break FAILED;
        }
        let limit = tree::exceeded(getpid(), &confinement.limits, &confinement.work);
        if let Some(at) = LIMITS.iter().position(|one| Some(*one) == limit) {
            break FAILED + 1 + u8::try_from(at)?;
        }
        std::thread::sleep(confinement.limits.poll);
    };
    tree::end(getpid());
    let _ = std::fs::remove_dir_all(&confinement.folder);
    Ok(ended)
}
