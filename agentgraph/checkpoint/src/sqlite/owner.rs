//! The owner of leases, and whether another owner is alive.
//!
//! A killed process cannot release its threads, and other processes should not wait for the leases to end.
//! So each owner holds an exclusive lock on a file of its own beside the database while it lives; the system
//! releases the lock when the process dies for any reason. A process that is only paused keeps the lock. Its
//! leases do not end by time alone, since the clock of this process may have jumped: see
//! [`Leases::acquire`](crate::Leases::acquire).
//!
//! An owner is dead if its file can be locked by another one, with a shared lock; the file is then removed.
//! Shared locks do not exclude each other, so two that look at once both see that the owner is dead. No name
//! is used twice, so a file that is removed late is never that of another owner.

use std::collections::hash_map::RandomState;
use std::fs::{File, OpenOptions, TryLockError};
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// One saver among all that use a file.
#[derive(Debug)]
pub(super) struct Owner {
    /// The database; `None` for one in memory.
    database: Option<PathBuf>,
    /// Created with the first lease, so that a reader creates no file.
    sign: OnceLock<Option<Sign>>,
}

/// The file that shows that an owner lives.
#[derive(Debug)]
struct Sign {
    name: String,
    path: PathBuf,
    /// Locked while this lives.
    _file: File,
}

/// The most attempts to create a sign, while other savers remove each as that of a dead owner.
const TRIES: usize = 16;

impl Owner {
    pub(super) fn new(database: Option<&Path>) -> Self {
        Owner { database: database.map(Path::to_owned), sign: OnceLock::new() }
    }

    /// The name in leases: empty for an owner without a lock file, which cannot be checked.
    pub(super) fn name(&self) -> &str {
        let create = || {
            let database = self.database.as_deref()?;
            (0..TRIES).find_map(|_| Sign::create(database))
        };
        self.sign.get_or_init(create).as_ref().map_or("", |sign| &sign.name)
    }

    /// Whether [`may_be_alive`](Self::may_be_alive) can distinguish a dead owner with this name from a living
    /// one. A database in memory ends with its process.
    pub(super) fn shows_life(&self, name: &str) -> bool {
        !name.is_empty() || self.database.is_none()
    }

    /// Whether the owner with this name may be alive. The file of a dead one is removed.
    pub(super) fn may_be_alive(&self, name: &str) -> bool {
        let Some(database) = self.database.as_deref() else { return true };
        let is_own = || self.sign.get().is_some_and(|sign| sign.as_ref().is_some_and(|own| own.name == name));
        name.is_empty() || is_own() || is_locked(&sign_of(database, name))
    }
}

impl Sign {
    /// Creates a file and locks it. `None` if that is not possible, or if another saver removed the file
    /// before it was locked.
    fn create(database: &Path) -> Option<Self> {
        let random = RandomState::new().hash_one(std::process::id());
        let name = format!("{random:016x}");
        let path = sign_of(database, &name);
        let file = OpenOptions::new().write(true).create_new(true).open(&path).ok()?;
        if file.try_lock().is_err() {
            let _ = std::fs::remove_file(path);
            return None;
        }
        path.exists().then_some(Sign { name, path, _file: file })
    }
}

impl Drop for Sign {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Whether an owner holds the lock on this file. An unlocked file is removed.
fn is_locked(path: &Path) -> bool {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) => return error.kind() != std::io::ErrorKind::NotFound,
    };
    match file.try_lock_shared() {
        Ok(()) => {
            // Removed while it is locked: an owner that has just created it will not get the lock.
            let _ = std::fs::remove_file(path);
            false
        }
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => true,
    }
}

/// Removes the signs of dead owners beside a database. One that cannot be removed is left to the next time.
pub(super) fn sweep(database: &Path) {
    let Some((folder, file)) = database.parent().zip(database.file_name()) else { return };
    let mut prefix = file.to_owned();
    prefix.push(SIGN);
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let signs = entries.flatten().filter(|entry| {
        let name = entry.file_name();
        let name = name.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes());
        name.is_some_and(|name| !name.is_empty() && name.iter().all(u8::is_ascii_alphanumeric))
    });
    signs.for_each(|sign| _ = is_locked(&sign.path()));
}

/// Between the path of a database and the name of an owner.
const SIGN: &str = "-owner-";

/// `threads.db-owner-0123456789abcdef` beside `threads.db`, as SQLite names the files of a database. The
/// name is read from a file that may be untrusted, so only its letters and digits become part of the path.
fn sign_of(database: &Path, name: &str) -> PathBuf {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).take(32).collect();
    let mut path = database.as_os_str().to_owned();
    path.push(SIGN);
    path.push(plain);
    PathBuf::from(path)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn signs(folder: &Path) -> usize {
        std::fs::read_dir(folder).unwrap().count()
    }

    /// The threads sweep as fast as they can, so that signs are found between their creation and their lock.
    #[test]
    fn an_owner_that_begins_beside_a_sweep_is_alive() {
        let folder = std::env::temp_dir().join(format!("agentgraph-signs-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let database = folder.join("threads.db");
        let stops = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !stops.load(Ordering::Relaxed) {
                        sweep(&database);
                    }
                });
            }
            let other = Owner::new(Some(&database));
            for _ in 0..500 {
                let owner = Owner::new(Some(&database));
                let name = owner.name().to_owned();
                if !name.is_empty() {
                    assert!(other.may_be_alive(&name));
                    drop(owner);
                    assert!(!other.may_be_alive(&name));
                }
            }
            stops.store(true, Ordering::Relaxed);
        });
        std::fs::write(sign_of(&database, "0123456789abcdef"), "").unwrap();
        std::fs::write(folder.join("threads.db-owner-notes.txt"), "not a sign").unwrap();
        std::fs::write(folder.join("threads.db-owner-"), "not a sign").unwrap();
        let living = Owner::new(Some(&database));
        assert!(!living.name().is_empty());
        sweep(&database);
        assert_eq!(signs(&folder), 3, "the living owner, and two files of others");
        drop(living);
        assert_eq!(signs(&folder), 2);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
