//! [`Confinement`]: what a process may do that gives up all other rights and becomes Python.
//!
//! Four parts, since none of them decides everything. No capability is left, so being the superuser gives no
//! more than owning its files. Landlock decides which files can be opened, changed and run. Landlock does not
//! know modes, times and owners of files, most sockets, keyrings and other processes' priorities: a filter of
//! system calls does. Limits of resources bound each process. What none of them hides is that a path exists,
//! and its size.
//!
//! It must be called while the process has one thread.

use std::collections::BTreeMap;
use std::error::Error;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope, path_beneath_rules,
};
use rustix::process::{Resource, Rlimit, Signal, nice, set_parent_process_death_signal, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use serde::{Deserialize, Serialize};

use super::interpreter::Interpreter;
use super::process::{Limits, OwnFolder};
use super::tree;

/// The newest rights that this was checked with; a kernel that has fewer of them gives those.
const NEWEST: ABI = ABI::V10;
/// Without the rights of this one, code could empty files that it cannot write.
const LEAST: ABI = ABI::V3;
/// Without a namespace for processes, it could send signals to all of the user's.
const LEAST_WITHOUT_NAMESPACES: ABI = ABI::V6;
/// Where shared libraries are, and what Python reads beside them.
const SYSTEM: [&str; 8] = [
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/etc/ld.so.cache",
    "/usr/share/zoneinfo",
    "/dev/urandom",
];

/// What a process may do, as an argument of the helper.
#[derive(Serialize, Deserialize)]
pub(super) struct Confinement {
    pub(super) folder: PathBuf,
    pub(super) work: PathBuf,
    files: PathBuf,
    read: Vec<PathBuf>,
    execute: Vec<PathBuf>,
    pub(super) limits: Limits,
    /// The program that makes namespaces, where there are some.
    pub(super) unshare: Option<PathBuf>,
    /// The process whose end ends the session.
    pub(super) parent: u32,
    program: PathBuf,
    arguments: Vec<String>,
}

impl Confinement {
    /// The text of a confinement to this folder.
    pub(super) fn argument(
        interpreter: Interpreter,
        folder: &OwnFolder,
        unshare: Option<PathBuf>,
        limits: Limits,
        arguments: &[&str],
    ) -> serde_json::Result<String> {
        let work = folder.work();
        let mut read = interpreter.read;
        // Libraries in a folder that holds the data, such as the home folder, are not worth the data.
        read.retain(|path| !work.starts_with(path));
        serde_json::to_string(&Confinement {
            folder: work.parent().unwrap_or(&work).to_owned(),
            files: folder.files(),
            work,
            read,
            execute: interpreter.execute,
            limits,
            unshare,
            parent: std::process::id(),
            program: interpreter.program,
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
        })
    }

    /// Becomes Python, and returns only if that fails.
    pub(super) fn become_python(&self) -> Box<dyn Error> {
        match self
            .limit_resources()
            .and_then(|()| self.restrict_files())
            .and_then(|()| filter_calls(self.unshare.is_some()))
        {
            Ok(()) => Command::new(&self.program).args(&self.arguments).env_clear().exec().into(),
            Err(error) => error,
        }
    }

    fn limit_resources(&self) -> Result<(), Box<dyn Error>> {
        for (resource, most) in [
            (Resource::As, self.limits.memory),
            (Resource::Cpu, self.limits.processor),
            (Resource::Fsize, self.limits.file),
            (Resource::Core, 0),
            (Resource::Nofile, 64),
        ] {
            setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
        }
        if self.unshare.is_some() {
            // Counted in the namespace. The superuser has no such limit, and the helper alone.
            let most = Some((2 * tree::THREADS * self.limits.processes) as u64);
            setrlimit(Resource::Nproc, Rlimit { current: most, maximum: most })?;
        }
        // The helper goes first, also before many processes.
        nice(10)?;
        let none = CapabilitySet::empty();
        set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
        // The helper that watches it, or `unshare`.
        Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
    }

    fn restrict_files(&self) -> Result<(), Box<dyn Error>> {
        let mut rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        rules = match self.unshare {
            Some(_) => rules.handle_access(AccessFs::from_all(LEAST))?,
            None => {
                let least = LEAST_WITHOUT_NAMESPACES;
                rules.handle_access(AccessFs::from_all(least))?.scope(Scope::from_all(least))?
            }
        };
        let read: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::ReadDir;
        let devices = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::MakeSock | AccessFs::IoctlDev;
        let write = AccessFs::from_all(NEWEST) & !(devices | AccessFs::Execute | AccessFs::ResolveUnix);
        let status = rules
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(NEWEST))?
            .handle_access(AccessNet::from_all(NEWEST))?
            .scope(Scope::from_all(NEWEST))?
            .create()?
            .add_rules(path_beneath_rules(SYSTEM, read))?
            .add_rules(path_beneath_rules(&self.read, read))?
            .add_rules(path_beneath_rules([&self.files], read))?
            .add_rules(path_beneath_rules(&self.execute, AccessFs::ReadFile | AccessFs::Execute))?
            .add_rules(path_beneath_rules([&self.work], write))?
            .restrict_self()?;
        match status.ruleset {
            RulesetStatus::NotEnforced => Err("the kernel has no Landlock".into()),
            _ => Ok(()),
        }
    }
}

/// Calls that do nothing and report success: `shutil.copy` and `tarfile` make them and would fail otherwise.
/// Landlock has no rights for modes, owners and times, so without this code could change those of files that
/// it cannot open. 469 is `file_setattr`, which `libc` does not name yet.
#[rustfmt::skip]
const IGNORED: [i64; 7] = [
    libc::SYS_fchmod, libc::SYS_fchmodat, libc::SYS_fchmodat2, libc::SYS_fchown, libc::SYS_fchownat, libc::SYS_utimensat, 469,
];

/// Calls that are denied: attributes; memory and messages that the watcher could not count; sockets except
/// pairs, and passing descriptors through them; namespaces; other processes; keyrings; priorities; limits;
/// watches on files. 463 is `setxattrat` and 466 `removexattrat`.
#[rustfmt::skip]
const DENIED: [i64; 36] = [
    libc::SYS_setxattr, libc::SYS_lsetxattr, libc::SYS_fsetxattr, libc::SYS_removexattr, libc::SYS_lremovexattr, libc::SYS_fremovexattr, 463,
    466, libc::SYS_memfd_create, libc::SYS_memfd_secret, libc::SYS_shmget, libc::SYS_semget, libc::SYS_msgget, libc::SYS_mq_open, libc::SYS_socket,
    libc::SYS_sendmsg, libc::SYS_sendmmsg, libc::SYS_io_uring_setup, libc::SYS_unshare, libc::SYS_setns, libc::SYS_ptrace, libc::SYS_add_key,
    libc::SYS_request_key, libc::SYS_keyctl, libc::SYS_bpf, libc::SYS_perf_event_open, libc::SYS_syslog, libc::SYS_setpriority, libc::SYS_ioprio_set,
    libc::SYS_sched_setaffinity, libc::SYS_sched_setparam, libc::SYS_sched_setscheduler, libc::SYS_sched_setattr, libc::SYS_setrlimit,
    libc::SYS_inotify_add_watch, libc::SYS_fanotify_mark,
];

/// Their older forms, which newer processors do not have.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const OLDER: [i64; 6] = [libc::SYS_chmod, libc::SYS_chown, libc::SYS_lchown, libc::SYS_utime, libc::SYS_utimes, libc::SYS_futimesat];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: [i64; 0] = [];
#[cfg(target_arch = "x86_64")]
const FORKS: [i64; 2] = [libc::SYS_fork, libc::SYS_vfork];
#[cfg(not(target_arch = "x86_64"))]
const FORKS: [i64; 0] = [];

/// Without a namespace for processes, code may start threads alone: processes that leave their parents faster
/// than the helper finds them could not be ended.
fn filter_calls(may_fork: bool) -> Result<(), Box<dyn Error>> {
    let any = |calls: &[i64]| calls.iter().map(|&call| (call, Vec::new())).collect::<BTreeMap<_, _>>();
    let only = |argument, length, operator, value| -> Result<_, seccompiler::BackendError> {
        Ok(vec![SeccompRule::new(vec![SeccompCondition::new(argument, length, operator, value)?])?])
    };
    use SeccompCmpArgLen::{Dword, Qword};
    let mut denied = any(&DENIED);
    // Limits may be read. A process that is not dumpable would hide its open files from the helper. In a
    // namespace of its own it would have capabilities again.
    denied.insert(libc::SYS_prlimit64, only(2, Qword, SeccompCmpOp::Ne, 0)?);
    let [dumpable, user] = [libc::PR_SET_DUMPABLE, libc::CLONE_NEWUSER].map(|n| u64::from(n.unsigned_abs()));
    denied.insert(libc::SYS_prctl, only(0, Dword, SeccompCmpOp::Eq, dumpable)?);
    let mut clone = only(0, Dword, SeccompCmpOp::MaskedEq(user), user)?;
    if !may_fork {
        let thread = u64::from(libc::CLONE_THREAD.unsigned_abs());
        clone.extend(only(0, Dword, SeccompCmpOp::MaskedEq(thread), 0)?);
        denied.extend(any(&FORKS));
    }
    denied.insert(libc::SYS_clone, clone);
    let mut ignored = any(&IGNORED);
    ignored.extend(any(&OLDER));
    // The flags of this one are in memory, where no filter sees them; libraries then call `clone`.
    let missing = any(&[libc::SYS_clone3]);
    for (calls, number) in [(denied, libc::EPERM), (missing, libc::ENOSYS), (ignored, 0)] {
        let arch = std::env::consts::ARCH.try_into()?;
        let error = SeccompAction::Errno(number.unsigned_abs());
        let filter = SeccompFilter::new(calls, SeccompAction::Allow, error, arch)?;
        seccompiler::apply_filter(&BpfProgram::try_from(filter)?)?;
    }
    Ok(())
}
