//! [`AnswerCache`]: answers of earlier runs, in a file.
//!
//! The key is all that an answer depends on: the question, the content of its files, the model and the
//! prompt. A question that is asked anew about another file, or of another model, is another question.
//!
//! The file is JSON. It is replaced whole, by renaming, and under a lock, so several processes may share it
//! and a kill leaves either the old file or the new one. A file that cannot be read is set aside and never
//! overwritten.

mod likeness;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use likeness::{are_alike, likeness};

/// The version of the file's form.
const VERSION: u32 = 1;

/// All that an answer depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheKey {
    /// The question.
    pub question: String,
    /// The hashes of its files, in order.
    pub files: Vec<String>,
    /// The model.
    pub model: String,
    /// The prompt and its version.
    pub prompt: String,
    /// How many runs of the question voted, if several did. An answer serves requests for as many or fewer;
    /// this is no part of the hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<u8>,
}

impl CacheKey {
    /// A hash of the key. White space of the question does not count.
    pub fn hash(&self) -> String {
        let question = self.question.split_whitespace().collect::<Vec<_>>().join(" ");
        let files = self.files.join(",");
        let mut hash = Sha256::new();
        for part in [question.as_str(), &files, &self.model, &self.prompt] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// An answer of an earlier run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheEntry {
    /// The question and all else that the answer depends on.
    #[serde(flatten)]
    pub key: CacheKey,
    /// The answer.
    pub answer: String,
    /// When it was stored, in seconds since 1970.
    pub stored: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct CacheFile {
    version: u32,
    entries: BTreeMap<String, CacheEntry>,
}

/// How a cache was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The answer.
    pub answer: String,
    /// The question that it was stored under, if it is another one.
    pub other_question: Option<String>,
}

/// Answers of earlier runs, in a file. Cheap to clone; clones share the file.
///
/// ```
/// use gaia_agent::cache::{AnswerCache, CacheKey};
///
/// # fn main() -> std::io::Result<()> {
/// let folder = std::env::temp_dir().join(format!("cache-{}", std::process::id()));
/// let cache = AnswerCache::new(folder.join("agent_cache.json"));
/// let (model, prompt) = ("m".into(), "a-1".into());
/// let key = CacheKey { question: "2 + 2?".into(), files: vec![], model, prompt, runs: None };
/// assert_eq!(cache.get(&key)?, None);
/// cache.put(&key, "4")?;
/// assert_eq!(cache.get(&key)?.unwrap().answer, "4");
/// # std::fs::remove_dir_all(folder)
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct AnswerCache {
    path: PathBuf,
    lifetime: Option<Duration>,
    max_entries: usize,
    fuzzy: Option<f64>,
    now: fn() -> SystemTime,
    read: Arc<Mutex<Read>>,
}

/// The time, the length and the number of a file. A file that is replaced has another number, also within one
/// tick of the clock.
type FileState = (SystemTime, u64, u64);

#[cfg(unix)]
fn number(about: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(about)
}

#[cfg(not(unix))]
fn number(_: &fs::Metadata) -> u64 {
    0
}

/// The entries that were read, and the state of the file then.
#[derive(Debug, Default)]
struct Read {
    seen: Option<FileState>,
    entries: Arc<BTreeMap<String, CacheEntry>>,
    set_aside: Vec<PathBuf>,
}

impl AnswerCache {
    /// A cache in this file, which need not exist. Answers live for ever, up to 10,000 of them.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        AnswerCache {
            path: path.into(),
            lifetime: None,
            max_entries: 10_000,
            fuzzy: None,
            now: SystemTime::now,
            read: Arc::default(),
        }
    }

    /// Sets how long an answer lives.
    #[must_use]
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = Some(lifetime);
        self
    }

    /// Sets the most entries; the oldest are removed.
    #[must_use]
    pub fn max_entries(mut self, entries: usize) -> Self {
        self.max_entries = entries.max(1);
        self
    }

    /// Takes the answer of a question that is alike, from this [likeness](likeness()) up. Two questions with
    /// different numbers, names or negations are never alike: see [`are_alike`].
    #[must_use]
    pub fn fuzzy(mut self, from: f64) -> Self {
        self.fuzzy = Some(from);
        self
    }

    /// Sets the clock, for tests.
    #[must_use]
    pub fn clock(mut self, now: fn() -> SystemTime) -> Self {
        self.now = now;
        self
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The answer to a question.
    ///
    /// # Errors
    /// If the file is there and cannot be opened. A file with another content is set aside.
    pub fn get(&self, key: &CacheKey) -> io::Result<Option<Hit>> {
        let entries = self.current()?;
        let now = self.seconds();
        let serves = |entry: &&CacheEntry| self.is_alive(entry, now) && entry.key.runs >= key.runs;
        if let Some(entry) = entries.get(&key.hash()).filter(serves) {
            return Ok(Some(Hit { answer: entry.answer.clone(), other_question: None }));
        }
        let Some(from) = self.fuzzy else { return Ok(None) };
        let fits = |entry: &&CacheEntry| {
            let other = &entry.key;
            (&other.files, &other.model, &other.prompt) == (&key.files, &key.model, &key.prompt)
                && serves(entry)
                && are_alike(&other.question, &key.question, from)
        };
        let near = |entry: &&CacheEntry| likeness(&entry.key.question, &key.question);
        let found = entries.values().filter(fits).max_by(|one, other| near(one).total_cmp(&near(other)));
        Ok(found.map(|entry| Hit {
            answer: entry.answer.clone(),
            other_question: Some(entry.key.question.clone()),
        }))
    }

    /// Stores an answer. An empty one is not stored.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn put(&self, key: &CacheKey, answer: &str) -> io::Result<()> {
        if answer.trim().is_empty() {
            return Ok(());
        }
        self.change(|entries, now| {
            let entry = CacheEntry { key: key.clone(), answer: answer.to_owned(), stored: now };
            entries.insert(key.hash(), entry);
        })
    }

    /// Removes all entries, and returns how many there were.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn clear(&self) -> io::Result<usize> {
        let mut removed = 0;
        self.change(|entries, _| removed = std::mem::take(entries).len())?;
        Ok(removed)
    }

    /// The entries that are alive, the newest first.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn entries(&self) -> io::Result<Vec<CacheEntry>> {
        let now = self.seconds();
        let entries = self.current()?;
        let mut alive: Vec<_> = entries.values().filter(|entry| self.is_alive(entry, now)).cloned().collect();
        alive.sort_by_key(|entry| std::cmp::Reverse(entry.stored));
        Ok(alive)
    }

    /// The files that were set aside by this cache, since they could not be read.
    pub fn set_aside(&self) -> Vec<PathBuf> {
        self.lock_read().set_aside.clone()
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<String, CacheEntry>, u64)) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let lock = File::create(self.beside("lock"))?;
        lock.lock()?;
        let mut entries = (*self.current()?).clone();
        let now = self.seconds();
        change(&mut entries, now);
        entries.retain(|_, entry| self.is_alive(entry, now));
        while entries.len() > self.max_entries {
            let oldest = entries.iter().min_by_key(|(_, entry)| entry.stored).map(|(hash, _)| hash.clone());
            oldest.and_then(|hash| entries.remove(&hash));
        }
        let file = CacheFile { version: VERSION, entries };
        crate::files::replace(&self.path, &serde_json::to_vec_pretty(&file)?)?;
        let mut read = self.lock_read();
        read.seen = self.state_of_file()?;
        read.entries = Arc::new(file.entries);
        // The lock ends with its file.
        Ok(())
    }

    /// The entries of the file as it is now.
    fn current(&self) -> io::Result<Arc<BTreeMap<String, CacheEntry>>> {
        let mut read = self.lock_read();
        let state = self.state_of_file()?;
        if state != read.seen || state.is_none() {
            read.entries = Arc::default();
            read.seen = state;
            if state.is_some() {
                match fs::read(&self.path).map(|bytes| serde_json::from_slice::<CacheFile>(&bytes)) {
                    Ok(Ok(file)) if file.version == VERSION => read.entries = Arc::new(file.entries),
                    Ok(_) => {
                        let aside = self.beside(&format!("corrupt-{}", uuid::Uuid::new_v4()));
                        fs::rename(&self.path, &aside)?;
                        read.set_aside.push(aside);
                        read.seen = None;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(Arc::clone(&read.entries))
    }

    fn state_of_file(&self) -> io::Result<Option<FileState>> {
        match fs::metadata(&self.path) {
            Ok(about) => Ok(Some((about.modified()?, about.len(), number(&about)))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn beside(&self, end: &str) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{end}"));
        self.path.with_file_name(name)
    }

    fn is_alive(&self, entry: &CacheEntry, now: u64) -> bool {
        self.lifetime.is_none_or(|lifetime| now.saturating_sub(entry.stored) < lifetime.as_secs())
    }

    fn seconds(&self) -> u64 {
        (self.now)().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
    }

    fn lock_read(&self) -> std::sync::MutexGuard<'_, Read> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
