//! Errors of a store: one opaque [`StoreError`] with a stable [`StoreCode`].

use std::error::Error as StdError;
use std::fmt;

use crate::format::FormatError;
use crate::id::CheckpointId;
use crate::place::Place;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        /// The kind of failure of a [`StoreError`]. The text of a code never changes; the engine's `Code`
        /// has the same codes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum StoreCode {
            $($(#[$doc])* $variant,)*
        }

        impl StoreCode {
            /// Every code, in the order of declaration.
            pub const ALL: &'static [StoreCode] = &[$(StoreCode::$variant,)*];

            /// The stable text, such as `E_STALE`.
            ///
            /// ```
            /// assert_eq!(agentgraph_checkpoint::StoreCode::Stale.as_str(), "E_STALE");
            /// ```
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(StoreCode::$variant => $text,)*
                }
            }
        }
    };
}

codes! {
    /// A value could not be turned into bytes.
    Encode = "E_ENCODE",
    /// Stored bytes break the format.
    CorruptCheckpoint = "E_CORRUPT_CHECKPOINT",
    /// Stored bytes were written by a newer format than this release reads.
    UnknownFormat = "E_UNKNOWN_FORMAT",
    /// Stored bytes are encrypted with a key that is not in the key ring, or the given key was no key.
    UnknownKey = "E_UNKNOWN_KEY",
    /// Stored bytes are encrypted with another key than the one in the key ring under that name.
    WrongKey = "E_WRONG_KEY",
    /// Encrypted bytes were changed, cut off, or moved from another place.
    SealBroken = "E_SEAL_BROKEN",
    /// Stored bytes are not encrypted, and only encrypted ones are accepted.
    NotEncrypted = "E_NOT_ENCRYPTED",
    /// The state has secrets, and the checkpointer does not encrypt.
    SecretNeedsKey = "E_SECRET_NEEDS_KEY",
    /// The checkpointer itself failed (disk full, file locked, connection lost).
    Store = "E_STORE",
    /// Another writer committed to the thread first.
    Stale = "E_STALE",
    /// Another writer has the thread now.
    ThreadBusy = "E_THREAD_BUSY",
    /// Another writer took the thread, so this one can no longer store anything.
    LeaseLost = "E_LEASE_LOST",
    /// The target thread of a copy exists already.
    ThreadExists = "E_THREAD_EXISTS",
    /// The thread to be copied does not exist.
    UnknownThread = "E_UNKNOWN_THREAD",
    /// The namespace or the key of an item is not valid.
    ItemName = "E_ITEM_NAME",
    /// The value of an item cannot be stored, or is not of the type that was asked for.
    ItemValue = "E_ITEM_VALUE",
    /// A search of a [`Store`](crate::Store) is not valid: its filter, its limits or its pattern.
    ItemQuery = "E_ITEM_QUERY",
    /// A stored item cannot be read.
    ItemUnreadable = "E_ITEM_UNREADABLE",
    /// An item is not as the condition of a change requires.
    ItemConflict = "E_ITEM_CONFLICT",
    /// An embedder failed, or there is none.
    Embedder = "E_EMBEDDER",
    /// A search would have to look at more items than its store allows.
    ScanLimit = "E_SCAN_LIMIT",
}

impl fmt::Display for StoreCode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// The error of a store. Opaque: read its [`code`](StoreError::code), its thread, and its cause by
/// [`source`](StdError::source).
pub struct StoreError(Box<Inner>);

struct Inner {
    code: StoreCode,
    message: String,
    thread: Option<String>,
    source: Option<Cause>,
}

type Cause = Box<dyn StdError + Send + Sync + 'static>;

impl StoreError {
    /// An error of the given code; `message` states what happened and what to do.
    ///
    /// ```
    /// use agentgraph_checkpoint::{StoreCode, StoreError};
    /// let error = StoreError::new(StoreCode::Store, "the disk is full: free some space, then go on").on_thread("t-1");
    /// assert_eq!(error.code(), StoreCode::Store);
    /// assert_eq!(error.thread(), Some("t-1"));
    /// ```
    pub fn new(code: StoreCode, message: impl Into<String>) -> Self {
        StoreError(Box::new(Inner { code, message: message.into(), thread: None, source: None }))
    }

    /// The same error with its cause.
    pub fn with_source(mut self, source: impl Into<Cause>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// The same error with its thread, unless it has one already.
    pub fn on_thread(mut self, thread: &str) -> Self {
        self.0.thread.get_or_insert_with(|| thread.to_owned());
        self
    }

    /// The stable code.
    pub fn code(&self) -> StoreCode {
        self.0.code
    }

    /// The text: what happened and what to do, without the code and the thread.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The affected thread, if there is one.
    pub fn thread(&self) -> Option<&str> {
        self.0.thread.as_deref()
    }

    /// The cause, for use in another error.
    pub fn into_source(self) -> Option<Cause> {
        self.0.source
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { code, message, thread, .. } = &*self.0;
        match thread {
            Some(thread) => write!(out, "{code}: {message} (thread `{thread}`)"),
            None => write!(out, "{code}: {message}"),
        }
    }
}

/// The message, as `fn main() -> Result<()>` prints `Debug`; `{:#?}` shows the fields.
impl fmt::Debug for StoreError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !out.alternate() {
            return message_and_causes(self, out);
        }
        let mut parts = out.debug_struct("StoreError");
        parts.field("code", &self.0.code).field("message", &self.0.message);
        if let Some(thread) = &self.0.thread {
            parts.field("thread", thread);
        }
        if let Some(source) = &self.0.source {
            parts.field("source", source);
        }
        parts.finish()
    }
}

impl StdError for StoreError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

/// Writes an error for a person: its message, then those of its causes that no message before them quotes.
pub fn message_and_causes(error: &dyn StdError, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut told = error.to_string();
    out.write_str(&told)?;
    let mut heading = "\n\nCaused by:";
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        if !told.contains(&message) {
            write!(out, "{heading}\n    {message}")?;
            heading = "";
            told = message;
        }
        cause = error.source();
    }
    Ok(())
}

/// The error of a lost race, for authors of checkpointers.
pub fn stale(place: Place<'_>, id: CheckpointId) -> StoreError {
    StoreError::new(
        StoreCode::Stale,
        format!("checkpoint {id} was committed by another run; read the thread again before you continue"),
    )
    .on_thread(place.thread)
}

/// The error of a copy onto an existing thread, for authors of checkpointers.
pub fn thread_exists(thread: &str) -> StoreError {
    StoreError::new(
        StoreCode::ThreadExists,
        "a thread with this name exists: choose another name, or delete it first",
    )
    .on_thread(thread)
}

/// The error of a copy of a thread that does not exist, for authors of checkpointers.
pub fn unknown_thread(thread: &str) -> StoreError {
    let problem = "no thread has this name: names are case-sensitive, and `threads()` lists them";
    StoreError::new(StoreCode::UnknownThread, problem).on_thread(thread)
}

/// The error of a call that needs an extension which the store lacks.
pub(crate) fn missing_extension(thread: &str, ability: &str, extension: &str) -> StoreError {
    let problem = format!(
        "the checkpointer cannot {ability}, since it has no {extension}: use one whose `{extension}()` is not `None`"
    );
    StoreError::new(StoreCode::Store, problem).on_thread(thread)
}

/// The error for stored bytes that cannot be read.
pub fn corrupt(place: Place<'_>, id: CheckpointId, problem: impl std::fmt::Display) -> StoreError {
    StoreError::new(
        StoreCode::CorruptCheckpoint,
        format!(
            "checkpoint {id} cannot be read: {problem}; earlier checkpoints of the thread are not affected"
        ),
    )
    .on_thread(place.thread)
}

/// The error for a record that this release cannot read.
pub fn unreadable(place: Place<'_>, id: CheckpointId, error: FormatError) -> StoreError {
    let code = match error {
        FormatError::Newer(_) => StoreCode::UnknownFormat,
        FormatError::Sealed => StoreCode::UnknownKey,
        FormatError::Damaged(_) => return corrupt(place, id, error),
    };
    StoreError::new(code, format!("checkpoint {id} cannot be read: {error}")).on_thread(place.thread)
}
