//! The owner of leases, and whether another owner is alive.
//!
//! A killed process cannot release its threads, and other processes should not wait for the leases to end.
//! So each owner holds a lock on a file of its own beside the database while it lives; the system releases
//! the lock when the process dies for any reason. A process that is only paused keeps the lock. Its leases do
//! not end by time alone, since the clock of this process may have jumped: see
//! [`Leases::acquire`](crate::Leases::acquire).

use std::collections::hash_map::RandomState;
use std::fs::{File, OpenOptions, TryLockError};
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// One saver among all that use a file.
#[derive(Debug)]
pub(super) struct Owner {
    name: String,
    /// The database; `None` for one in memory.
    database: Option<PathBuf>,
    /// Locked while this lives. Created with the first lease, so that a reader creates no file.
    sign: OnceLock<Option<File>>,
}

impl Owner {
    pub(super) fn new(database: Option<&Path>) -> Self {
        let random = RandomState::new().hash_one(std::process::id());
        Owner {
            name: format!("{random:016x}"),
            database: database.map(Path::to_owned),
            sign: OnceLock::new(),
        }
    }

    /// The name in leases: empty for an owner without a lock file, which cannot be checked.
    pub(super) fn name(&self) -> &str {
        match self.sign.get_or_init(|| self.show_life()) {
            Some(_) => &self.name,
            None => "",
        }
    }

    fn show_life(&self) -> Option<File> {
        let path = sign_of(self.database.as_deref()?, &self.name);
        let file = OpenOptions::new().write(true).create_new(true).open(path).ok()?;
        file.try_lock().ok()?;
        Some(file)
    }

    /// Whether [`may_be_alive`](Self::may_be_alive) can distinguish a dead owner with this name from a living
    /// one. A database in memory ends with its process.
    pub(super) fn shows_life(&self, name: &str) -> bool {
        !name.is_empty() || self.database.is_none()
    }

    /// Whether the owner with this name may be alive. The file of a dead one is removed.
    pub(super) fn may_be_alive(&self, name: &str) -> bool {
        let Some(database) = self.database.as_deref() else { return true };
        if name.is_empty() || name == self.name {
            return true;
        }
        let path = sign_of(database, name);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) => return error.kind() != std::io::ErrorKind::NotFound,
        };
        match file.try_lock() {
            Ok(()) => {
                let _ = std::fs::remove_file(path);
                false
            }
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => true,
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let (Some(Some(_)), Some(database)) = (self.sign.get(), &self.database) {
            let _ = std::fs::remove_file(sign_of(database, &self.name));
        }
    }
}

/// `threads.db-owner-0123456789abcdef` beside `threads.db`, as SQLite names the files of a database. The
/// name is read from a file that may be untrusted, so only its letters and digits become part of the path.
fn sign_of(database: &Path, name: &str) -> PathBuf {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).take(32).collect();
    let mut path = database.as_os_str().to_owned();
    path.push(format!("-owner-{plain}"));
    PathBuf::from(path)
}
