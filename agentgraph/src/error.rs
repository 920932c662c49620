//! The errors of the engine: one opaque [`Error`] with a stable [`Code`], and the error a node may return.
//!
//! A node's own error is any [`BoxError`]; it is *retryable unless terminal*: a retry policy tries again
//! unless the error is, or was caused by, a [`Terminal`].

pub(crate) mod causes;
pub(crate) mod failure;

use std::any::Any;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use self::failure::Failure;
use agentgraph_checkpoint::engine::message_and_causes;
use agentgraph_checkpoint::{StoreCode, StoreError};

/// The error a node returns: anything that implements [`std::error::Error`], by `?`, or text by `.into()`.
pub type BoxError = Box<dyn StdError + Send + Sync + 'static>;

/// The result of a node. The error defaults to [`BoxError`], so `?` works on every standard error.
///
/// ```
/// fn parse(text: &str) -> agentgraph::Result<u8> {
///     Ok(text.parse()?)
/// }
/// assert_eq!(parse("7").unwrap(), 7);
/// assert!(parse("seven").is_err());
/// ```
pub type Result<T, E = BoxError> = std::result::Result<T, E>;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal $end:ident,)*) => {
        /// The kind of failure of an [`Error`]. The text of a code never changes; every code has a page in
        /// `docs/errors/`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])* $variant,)*
        }

        impl Code {
            /// Every code, in the order of declaration.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            /// The stable text, such as `E_UNKNOWN_TARGET`.
            ///
            /// ```
            /// assert_eq!(agentgraph::Code::UnknownTarget.as_str(), "E_UNKNOWN_TARGET");
            /// ```
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Code::$variant => $text,)*
                }
            }

            pub(crate) fn of(text: &str) -> Option<Code> {
                Code::ALL.iter().copied().find(|code| code.as_str() == text)
            }

            /// Whether a failure with this code ends the run even if it happens inside a subgraph: no retry
            /// and no handler of the nodes around it gets it.
            ///
            /// True for a failing store or lease, for stored bytes that cannot be used, and for a wrong call.
            /// False for a failure of a node or its graph, which a policy of the surrounding node may handle.
            pub(crate) const fn ends_the_run(self) -> bool {
                [$(codes!(@$end),)*][self as usize]
            }
        }
    };
    (@ends_the_run) => { true };
    (@may_be_handled) => { false };
}

codes! {
    /// A value could not be turned into bytes for a checkpoint.
    Encode = "E_ENCODE" may_be_handled,
    /// A value of a run that is driven from outside has another order each time it is encoded.
    UnorderedValue = "E_UNORDERED_VALUE" may_be_handled,
    /// Stored bytes break the format.
    CorruptCheckpoint = "E_CORRUPT_CHECKPOINT" ends_the_run,
    /// Stored bytes were written by a newer format than this release reads.
    UnknownFormat = "E_UNKNOWN_FORMAT" ends_the_run,
    /// Stored bytes are encrypted with a key that is not in the key ring, or the given key was no key.
    UnknownKey = "E_UNKNOWN_KEY" ends_the_run,
    /// Stored bytes are encrypted with another key than the one in the key ring under that name.
    WrongKey = "E_WRONG_KEY" ends_the_run,
    /// Encrypted bytes were changed, cut off, or moved from another place.
    SealBroken = "E_SEAL_BROKEN" ends_the_run,
    /// Stored bytes are not encrypted, and only encrypted ones are accepted.
    NotEncrypted = "E_NOT_ENCRYPTED" ends_the_run,
    /// The state has a secret channel, and the checkpointer does not encrypt.
    SecretNeedsKey = "E_SECRET_NEEDS_KEY" ends_the_run,
    /// The checkpointer itself failed (disk full, file locked, connection lost).
    Store = "E_STORE" ends_the_run,
    /// Another writer committed to the thread first.
    Stale = "E_STALE" ends_the_run,
    /// Another run is running in the thread.
    ThreadBusy = "E_THREAD_BUSY" ends_the_run,
    /// Another run took the thread, so this one can no longer store anything.
    LeaseLost = "E_LEASE_LOST" ends_the_run,
    /// The target thread of a copy exists already.
    ThreadExists = "E_THREAD_EXISTS" ends_the_run,
    /// The thread to be copied does not exist.
    UnknownThread = "E_UNKNOWN_THREAD" ends_the_run,
    // Long-term memory is used by nodes, which may go on without it.
    /// The namespace or the key of an item of a [`Store`](crate::store::Store) is not valid.
    ItemName = "E_ITEM_NAME" may_be_handled,
    /// The value of an item cannot be stored, or is not of the type that was asked for.
    ItemValue = "E_ITEM_VALUE" may_be_handled,
    /// A search of a [`Store`](crate::store::Store) is not valid: its filter, its limits or its pattern.
    ItemQuery = "E_ITEM_QUERY" may_be_handled,
    /// A stored item cannot be read.
    ItemUnreadable = "E_ITEM_UNREADABLE" may_be_handled,
    /// An item is not as the condition of a change requires.
    ItemConflict = "E_ITEM_CONFLICT" may_be_handled,
    /// An embedder failed, or there is none.
    Embedder = "E_EMBEDDER" may_be_handled,
    /// A search would have to look at more items than its store allows.
    ScanLimit = "E_SCAN_LIMIT" may_be_handled,
    /// A node asks for a [`Store`](crate::store::Store), and its graph has none.
    NoStore = "E_NO_STORE" may_be_handled,
    /// A route, `goto` or dispatch named a node that is not in the graph.
    UnknownTarget = "E_UNKNOWN_TARGET" may_be_handled,
    /// Two tasks of one superstep wrote a channel that accepts one write.
    ConcurrentUpdate = "E_CONCURRENT_UPDATE" may_be_handled,
    /// `compile()` found problems in the graph.
    Compile = "E_COMPILE" may_be_handled,
    /// An update names a key that the schema does not have.
    UnknownChannel = "E_UNKNOWN_CHANNEL" may_be_handled,
    /// A value does not fit its channel.
    BadValue = "E_BAD_VALUE" may_be_handled,
    /// A node returned an error and no policy handled it.
    NodeFailed = "E_NODE_FAILED" may_be_handled,
    /// A node panicked.
    NodePanicked = "E_NODE_PANICKED" may_be_handled,
    /// A node ran longer than its timeout.
    NodeTimeout = "E_NODE_TIMEOUT" may_be_handled,
    /// A node was not run because its breaker is open.
    BreakerOpen = "E_BREAKER_OPEN" may_be_handled,
    // The limit for a superstep is set by the caller, and ends all its nodes.
    /// A superstep took longer than allowed.
    StepTimeout = "E_STEP_TIMEOUT" ends_the_run,
    /// An extractor needs a dependency that the graph does not have.
    MissingDependency = "E_MISSING_DEPENDENCY" may_be_handled,
    /// A node reads a context that its call was not passed.
    MissingContext = "E_MISSING_CONTEXT" ends_the_run,
    /// The input of a dispatch is missing, or has another type than the node expects.
    BadInput = "E_BAD_INPUT" may_be_handled,
    /// The thread's last run has not finished.
    RunUnfinished = "E_RUN_UNFINISHED" ends_the_run,
    /// `resume` or `proceed` on a thread that waits for nothing.
    NothingToResume = "E_NOTHING_TO_RESUME" ends_the_run,
    /// A call names a checkpoint that the thread does not have.
    UnknownCheckpoint = "E_UNKNOWN_CHECKPOINT" ends_the_run,
    /// The call needs a checkpointer, and the graph has none.
    NoCheckpointer = "E_NO_CHECKPOINTER" may_be_handled,
    /// The graph has a checkpointer, and the call names no thread.
    NoThread = "E_NO_THREAD" ends_the_run,
    /// An answer names an interrupt that is not open.
    UnknownInterrupt = "E_UNKNOWN_INTERRUPT" ends_the_run,
    /// A bare answer while several interrupts are open.
    AmbiguousAnswer = "E_AMBIGUOUS_ANSWER" ends_the_run,
    /// An answer does not have the type or the schema of its interrupt.
    BadAnswer = "E_BAD_ANSWER" ends_the_run,
    /// A task asked two questions with one key in one attempt.
    SameKey = "E_SAME_KEY" may_be_handled,
    /// A task refused an answer that it was not given.
    NothingToRefuse = "E_NOTHING_TO_REFUSE" may_be_handled,
    /// The thread waits at a part of the graph that no longer exists.
    GraphChanged = "E_GRAPH_CHANGED" ends_the_run,
    /// The thread was stored with a version of the state that this graph cannot read.
    SchemaVersion = "E_SCHEMA_VERSION" ends_the_run,
    // The structure of an inner graph: a handler may continue without it.
    /// Two parallel tasks called a subgraph with one memory for its thread.
    ConcurrentSubgraph = "E_CONCURRENT_SUBGRAPH" may_be_handled,
    /// Two tasks on a host changed one session side by side.
    ConcurrentSession = "E_CONCURRENT_SESSION" may_be_handled,
    /// A command for the parent graph, where there is none, or with an update of another state.
    ParentCommand = "E_PARENT_COMMAND" may_be_handled,
    /// A durable step was used in a way that its result cannot be stored or found.
    Once = "E_ONCE" may_be_handled,
    /// The run has finished while a join still waits, and its graph or its caller does not allow that.
    StuckJoin = "E_STUCK_JOIN" may_be_handled,
    /// A run that was expected to be finished was interrupted or stopped.
    NotFinished = "E_NOT_FINISHED" may_be_handled,
    /// A pass of a dependency graph has ended while a node still waits, and its graph does not allow that.
    NotRun = "E_NOT_RUN" may_be_handled,
    /// A temporary edit does not fit the graph that its task sees.
    EditRejected = "E_EDIT_REJECTED" may_be_handled,
    /// A node is to be skipped and has no output to use again.
    NothingToReuse = "E_NOTHING_TO_REUSE" may_be_handled,
    /// A temporary node is a function where it would have to be stored or sent elsewhere.
    NeedsTemplate = "E_NEEDS_TEMPLATE" may_be_handled,
    // At each level around it a policy would try again.
    /// Too many runs are inside one another.
    Depth = "E_DEPTH" ends_the_run,
    /// The host that runs tasks elsewhere failed.
    Host = "E_HOST" may_be_handled,
    /// Each process that ran the node was lost, and its host does not run it again.
    WorkerLost = "E_WORKER_LOST" may_be_handled,
}

impl From<StoreCode> for Code {
    /// A code of a store has the same text here.
    fn from(code: StoreCode) -> Self {
        Code::of(code.as_str()).unwrap_or(Code::Store)
    }
}

impl PartialEq<Code> for StoreCode {
    fn eq(&self, other: &Code) -> bool {
        Code::from(*self) == *other
    }
}

impl PartialEq<StoreCode> for Code {
    fn eq(&self, other: &StoreCode) -> bool {
        *self == Code::from(*other)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// The error of an engine call. Opaque: read its [`code`](Error::code), the node, the thread, the last
/// state, and the error that a node returned by [`source`](StdError::source).
pub struct Error(Box<Inner>);

struct Inner {
    code: Code,
    message: String,
    node: Option<String>,
    thread: Option<String>,
    source: Option<BoxError>,
    state: Option<Arc<dyn Any + Send + Sync>>,
    /// The attempt of its task that failed.
    attempt: u32,
    failures: Vec<Failure>,
}

impl Error {
    /// An error of the given code; `message` states what happened and what to do. For authors of hosts.
    ///
    /// ```
    /// use agentgraph::{Code, Error};
    /// let error = Error::new(Code::Store, "the disk is full: free some space, then `proceed()`");
    /// assert_eq!(error.code(), Code::Store);
    /// ```
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Error(Box::new(Inner {
            code,
            message: message.into(),
            node: None,
            thread: None,
            source: None,
            state: None,
            attempt: 1,
            failures: Vec::new(),
        }))
    }

    /// The same error with its cause.
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// The same error with more text at the end of its message.
    pub(crate) fn adding(mut self, text: &str) -> Self {
        self.0.message.push_str(text);
        self
    }

    pub(crate) fn at_node(mut self, node: &str) -> Self {
        self.0.node.get_or_insert_with(|| node.to_owned());
        self
    }

    pub(crate) fn on_thread(mut self, thread: Option<&str>) -> Self {
        if self.0.thread.is_none() {
            self.0.thread = thread.map(str::to_owned);
        }
        self
    }

    pub(crate) fn with_state(mut self, state: Arc<dyn Any + Send + Sync>) -> Self {
        self.0.state.get_or_insert(state);
        self
    }

    pub(crate) fn on_attempt(mut self, attempt: u32) -> Self {
        self.0.attempt = attempt;
        self
    }

    pub(crate) fn attempt(&self) -> u32 {
        self.0.attempt
    }

    /// The same error with the tasks that failed.
    pub(crate) fn with_failures(mut self, failures: Vec<Failure>) -> Self {
        self.0.failures = failures;
        self
    }

    /// The text: what happened and what to do, without the code, the node and the thread.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Trip { city: String }
    /// async fn flight() -> Result<()> {
    ///     Err("no seat".into())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::<Trip>::new().node("flight", flight).edge(START, "flight").compile()?;
    /// let error = graph.invoke(Trip::update()).await.unwrap_err();
    /// assert_eq!(error.to_string(), "E_NODE_FAILED: node `flight`: no seat");
    /// assert_eq!(error.message(), "no seat");
    /// # Ok(())
    /// # }
    /// ```
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The stable code.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The failing node, if there is one.
    pub fn node(&self) -> Option<&str> {
        self.0.node.as_deref()
    }

    /// The thread of the run, if it had one.
    pub fn thread(&self) -> Option<&str> {
        self.0.thread.as_deref()
    }

    /// The tasks that failed, in task order, including the one of this error. Empty if the failure was not
    /// in a task of the frontier: in the store, say, in the merge of updates, or in the node for the limit.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Trip { city: String }
    /// async fn flight() -> Result<()> {
    ///     Err("no seat".into())
    /// }
    /// async fn hotel() -> Result<()> {
    ///     Err("no room".into())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::<Trip>::new()
    ///     .node("flight", flight)
    ///     .node("hotel", hotel)
    ///     .edge(START, "flight")
    ///     .edge(START, "hotel")
    ///     .compile()?;
    /// let error = graph.invoke(Trip::update()).await.unwrap_err();
    /// let failed: Vec<_> = error.failures().iter().map(|failure| (failure.node(), failure.message())).collect();
    /// assert_eq!(failed, [("flight", "no seat"), ("hotel", "no room")]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn failures(&self) -> &[Failure] {
        &self.0.failures
    }

    /// The last state before the failure: everything merged, without the failed superstep.
    ///
    /// `None` if the run had not read or built a state yet, if it failed in the middle of a merge, or if
    /// `S` is another type than the graph's.
    pub fn state<S: Any + Send + Sync>(&self) -> Option<&S> {
        self.any_state()?.downcast_ref()
    }

    pub(crate) fn any_state(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.0.state.as_deref()
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let told = Error::new(error.code().into(), error.message()).on_thread(error.thread());
        match error.into_source() {
            Some(source) => told.with_source(source),
            None => told,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { code, message, node, thread, .. } = &*self.0;
        write!(out, "{code}: ")?;
        if let Some(node) = node {
            write!(out, "node `{node}`: ")?;
        }
        out.write_str(message)?;
        match thread {
            Some(thread) => write!(out, " (thread `{thread}`)"),
            None => Ok(()),
        }
    }
}

/// The message and the causes that it does not quote, as `fn main() -> Result<()>` prints `Debug`; `{:#?}`
/// shows the fields.
impl fmt::Debug for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !out.alternate() {
            return message_and_causes(self, out);
        }
        let mut parts = out.debug_struct("Error");
        parts.field("code", &self.0.code).field("message", &self.0.message);
        if let Some(node) = &self.0.node {
            parts.field("node", node);
        }
        if let Some(thread) = &self.0.thread {
            parts.field("thread", thread);
        }
        if let Some(source) = &self.0.source {
            parts.field("source", source);
        }
        if self.0.failures.len() > 1 {
            parts.field("failures", &self.0.failures);
        }
        parts.finish_non_exhaustive()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

/// Marks an error that no retry policy may retry.
///
/// ```
/// use agentgraph::Terminal;
/// let error = Terminal::new("the card was refused");
/// assert_eq!(error.to_string(), "the card was refused");
/// ```
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Terminal(BoxError);

impl Terminal {
    /// Wraps an error, or a text.
    pub fn new(error: impl Into<BoxError>) -> Self {
        Terminal(error.into())
    }

    /// The wrapped error.
    pub fn into_inner(self) -> BoxError {
        self.0
    }
}

/// The first `T` among `error` and its causes.
pub(crate) fn caused_by<'a, T: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    let mut current = Some(error);
    while let Some(error) = current {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        current = error.source();
    }
    None
}

/// The known name nearest to a wrong one, if it is near enough to be a typing error. Looks at a limited
/// number of names, so that even thousands of errors in a graph of thousands of nodes are found quickly.
pub(crate) fn nearest<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    const LOOKED_AT: usize = 200;
    let length = wrong.chars().count();
    if length < 2 {
        return None;
    }
    let allowed = (length / 3).max(1);
    let known = known.filter(|name| name.chars().count().abs_diff(length) <= allowed).take(LOOKED_AT);
    known
        .map(|name| (strsim::damerau_levenshtein(wrong, name), name))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The end of a message about a wrong name.
pub(crate) fn hint(nearest: Option<impl AsRef<str>>) -> String {
    nearest.map(|name| format!("; did you mean `{}`?", name.as_ref())).unwrap_or_default()
}

/// An engine error where a node's error is expected. It keeps its code.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct OwnError(#[from] pub(crate) Error);
