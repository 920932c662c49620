//! The processes below one, by `/proc`: what they use, and their end.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::Limit;
use super::process::Limits;

/// The bytes that a file or folder counts beside its blocks, so that empty ones are counted too.
const ENTRY: u64 = 16 << 10;
/// The threads of a process, on average.
pub(super) const THREADS: usize = 16;
/// How long the end of processes is waited for, in milliseconds.
const PATIENCE: u32 = 1_000;

struct Found {
    pid: Pid,
    parent: i32,
    is_zombie: bool,
}

impl Found {
    fn read(pid: i32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name of the program may have any character in it.
        let mut fields = text.rsplit_once(')')?.1.split_whitespace();
        let is_zombie = matches!(fields.next()?, "Z" | "X");
        Some(Found { pid: Pid::from_raw(pid)?, parent: fields.next()?.parse().ok()?, is_zombie })
    }

    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.pid.as_raw_nonzero()))
    }

    /// The sum of these figures of a file, in bytes.
    fn sum(&self, file: &str, names: [&str; 2]) -> u64 {
        let text = fs::read_to_string(self.path(file)).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.split_once(':'));
        let named = lines.filter(|(name, _)| names.contains(name));
        let sum = named.filter_map(|(_, value)| value.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        sum.sum::<u64>() * 1024
    }
}

/// The processes below one, and the number of those whose parents have ended since the list was begun.
fn below(root: Pid) -> (Vec<Found>, usize) {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.file_name());
    let ids = names.filter_map(|name| name.to_str()?.parse().ok());
    let mut rest: Vec<_> = ids.filter_map(Found::read).collect();
    let (mut known, mut found) = (HashSet::from([root.as_raw_nonzero().get()]), Vec::new());
    loop {
        let (mut next, other): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|process| known.contains(&process.parent));
        if next.is_empty() {
            let all: HashSet<_> = other.iter().map(|process| process.pid.as_raw_nonzero().get()).collect();
            let strays = other.iter().filter(|process| process.parent != 0 && !all.contains(&process.parent));
            return (found, strays.count());
        }
        known.extend(next.iter().map(|process| process.pid.as_raw_nonzero().get()));
        found.append(&mut next);
        rest = other;
    }
}

/// Kills all processes below one, which is their reaper, and waits for their end.
pub(super) fn end(root: Pid) {
    let mut rounds_without = 0;
    for _ in 0..PATIENCE {
        let (mut living, _) = below(root);
        living.retain(|process| !process.is_zombie);
        // A process whose parent ended while the list was made is in the next list.
        rounds_without = if living.is_empty() { rounds_without + 1 } else { 0 };
        if rounds_without == 2 {
            return;
        }
        for process in &living {
            let _ = kill_process(process.pid, Signal::KILL);
        }
        if !living.is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The limit that the processes below one have passed.
pub(super) fn exceeded(root: Pid, limits: &Limits, work: &Path) -> Option<Limit> {
    let (all, strays) = below(root);
    let list = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let threads: Vec<_> = all.iter().flat_map(|process| list(process.path("task"))).collect();
    if all.len() + strays > limits.processes || threads.len() > THREADS * limits.processes {
        return Some(Limit::Processes);
    }
    let memory = |file, names| all.iter().map(|process| process.sum(file, names)).sum::<u64>();
    // The second counts pages that several processes share once, and costs more.
    if memory("status", ["VmRSS", "VmSwap"]) > limits.memory
        && memory("smaps_rollup", ["Pss", "SwapPss"]) > limits.memory
    {
        return Some(Limit::Memory);
    }
    let mut disk = Disk { left: Some(limits.disk), seen: HashSet::new() };
    disk.folder(work);
    // Removed files live as long as a descriptor of a thread, or a mapping.
    for file in threads.into_iter().flat_map(|thread| list(thread.join("fd"))) {
        if let Ok(about) = fs::metadata(file)
            && about.is_file()
            && about.nlink() == 0
        {
            disk.file(&about);
        }
    }
    let mut mapped = HashSet::new();
    for process in &all {
        let text = fs::read_to_string(process.path("maps")).unwrap_or_default();
        text.lines().filter_map(|line| removed(line, work)).for_each(|mapping| {
            if mapped.insert(mapping.clone()) {
                disk.take(mapping.1);
            }
        });
    }
    disk.left.is_none().then_some(Limit::Disk)
}

/// The identity and length of a mapping of a removed file, or of memory that processes share.
fn removed(line: &str, work: &Path) -> Option<(String, u64)> {
    let (fields, path) = line.strip_suffix(" (deleted)")?.split_once('/')?;
    if !Path::new("/").join(path).starts_with(work) && path != "dev/zero" {
        return None;
    }
    let (range, rest) = fields.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let at = |text| u64::from_str_radix(text, 16).ok();
    // Offset, device and number of the file.
    Some((rest.split_once(' ')?.1.trim().to_owned(), at(end)?.checked_sub(at(start)?)?))
}

/// The bytes that are left.
struct Disk {
    left: Option<u64>,
    seen: HashSet<(u64, u64)>,
}

impl Disk {
    fn take(&mut self, bytes: u64) {
        self.left = self.left.and_then(|left| left.checked_sub(bytes));
    }

    fn file(&mut self, about: &Metadata) {
        if self.seen.insert((about.dev(), about.ino())) {
            self.take(about.blocks().saturating_mul(512));
        }
        self.take(ENTRY);
    }

    /// A folder that cannot be read, such as one with too long a path, could hide anything.
    fn folder(&mut self, path: &Path) {
        let counted = fs::read_dir(path).and_then(|entries| {
            for entry in entries {
                let entry = entry?;
                let about = match entry.metadata() {
                    Err(error) if error.kind() == ErrorKind::NotFound => continue,
                    about => about?,
                };
                self.file(&about);
                if self.left.is_none() {
                    return Ok(());
                }
                if about.is_dir() {
                    self.folder(&entry.path());
                }
            }
            Ok(())
        });
        if counted.is_err_and(|error| error.kind() != ErrorKind::NotFound) {
            self.left = None;
        }
    }
}
