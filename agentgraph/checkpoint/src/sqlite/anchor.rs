//! Detects that an open file is no longer the one at its path.
//!
//! A deleted file stays open; whatever is written to it is lost when it is closed. SQLite does not notice,
//! so a saver checks before it stores.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::fault::Home;
use crate::error::StoreError;

/// A check takes about a microsecond, a commit ten. So the checks are at least this many microseconds
/// apart.
const INTERVAL: u64 = 1_000;

/// The database, its log and the index of the log, as they were opened.
#[derive(Debug)]
pub(crate) struct Anchor {
    files: Vec<(PathBuf, Identity)>,
    since: Instant,
    /// The time of the next check, in microseconds since `since`.
    next: AtomicU64,
}

/// The device, and the number of the file on it.
type Identity = (u64, u64);

impl Anchor {
    /// Without a path no file can be lost.
    pub(crate) fn of(database: Option<&Path>) -> Self {
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

    /// Fails if a file was deleted, moved or replaced, since data stored into it would be lost.
    pub(crate) fn check(&self, home: &Home) -> Result<(), StoreError> {
        match self.lost() {
            None => Ok(()),
            Some(file) => Err(home.error(format!(
                "is not where it was opened: `{}` was deleted, moved or replaced, so nothing can be stored safely. \
                 Put the database and its `-wal` file back, or open it again; the newest data is in the files that were open",
                file.display()
            ))),
        }
    }

    /// The file that was deleted, moved or replaced, if it is time to check. A file that cannot be checked
    /// counts as present.
    fn lost(&self) -> Option<&Path> {
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

/// Other systems do not allow an open file to be deleted.
#[cfg(not(unix))]
fn identity(_: &Path) -> std::io::Result<Option<Identity>> {
    Ok(None)
}
