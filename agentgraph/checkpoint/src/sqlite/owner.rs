//! Who takes leases, and whether another one who did still lives.
//!
//! A process that was killed cannot give its threads back, and nobody shall wait for their time to pass. So
//! whoever takes leases holds a lock on a file of his own beside the database for as long as he lives; the
//! system lets go of it when he dies, however that happens. A process that is merely stopped keeps the lock,
//! and its leases until their time.

use std::collections::hash_map::RandomState;
use std::fs::{File, OpenOptions, TryLockError};
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// One saver, among all that use a file.
#[derive(Debug)]
pub(super) struct Owner {
    name: String,
    /// The database; none for one in memory.
    database: Option<PathBuf>,
    /// Locked while this lives. Made with the first lease, so that a reader leaves no file.
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

    /// The name that leases carry: empty for an owner whose life cannot be told.
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

    /// Whether the owner of that name may be alive. What a dead one left is removed.
    pub(super) fn sees_alive(&self, name: &str) -> bool {
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

/// `threads.db` and `threads.db-owner-0123456789abcdef`, as SQLite names what belongs to a file. A name is
/// read from the file, which may come from anywhere, so nothing but its letters and digits becomes part of a
/// path.
fn sign_of(database: &Path, name: &str) -> PathBuf {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).take(32).collect();
    let mut path = database.as_os_str().to_owned();
    path.push(format!("-owner-{plain}"));
    PathBuf::from(path)
}
