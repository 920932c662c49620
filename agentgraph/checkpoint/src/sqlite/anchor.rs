//! Whether the open files are still those that their paths name.
//!
//! A file that is deleted stays open, and takes what is written to it along when it is closed. SQLite does
//! not notice that, so a saver looks before it stores.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// To look at a file takes about a microsecond, a commit ten. So there is one look in so many microseconds.
const INTERVAL: u64 = 1_000;

/// The database, its log and the index of that, as they were when they were opened.
#[derive(Debug)]
pub(super) struct Anchor {
    files: Vec<(PathBuf, Identity)>,
    since: Instant,
    /// When to look next, in microseconds.
    next: AtomicU64,
}

/// The device, and the number of the file on it.
type Identity = (u64, u64);

impl Anchor {
    /// Without a path there is nothing that could be lost.
    pub(super) fn of(database: Option<&Path>) -> Self {
        let paths = database.into_iter().flat_map(|path| {
            ["", "-wal", "-shm"].map(|ending| {
                let mut path = path.as_os_str().to_owned();
                path.push(ending);
                PathBuf::from(path)
            })
        });
        let files = paths.filter_map(|path| identity(&path).ok().flatten().map(|found| (path, found)));
        Anchor { files: files.collect(), since: Instant::now(), next: AtomicU64::new(0) }
    }

    /// The file that was deleted, moved or replaced, if any was and it is time to look. What cannot be looked
    /// at is taken for there.
    pub(super) fn lost(&self) -> Option<&Path> {
        if self.files.is_empty() {
            return None;
        }
        let now = u64::try_from(self.since.elapsed().as_micros()).unwrap_or(u64::MAX);
        if now < self.next.load(Ordering::Relaxed) {
            return None;
        }
        let there = |path: &Path, opened: &Identity| match identity(path) {
            Ok(Some(found)) => found == *opened,
            Ok(None) => true,
            Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        };
        let lost = self.files.iter().find(|(path, opened)| !there(path, opened));
        if lost.is_none() {
            self.next.store(now.saturating_add(INTERVAL), Ordering::Relaxed);
        }
        lost.map(|(path, _)| path.as_path())
    }
}

#[cfg(unix)]
fn identity(path: &Path) -> std::io::Result<Option<Identity>> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).map(|found| Some((found.dev(), found.ino())))
}

/// Other systems do not let an open file be deleted.
#[cfg(not(unix))]
fn identity(_: &Path) -> std::io::Result<Option<Identity>> {
    Ok(None)
}
