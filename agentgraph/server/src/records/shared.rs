//! [`SharedRecords`]: what several servers on one store of records need of it. A server is a *replica* while
//! it says often enough that it is alive; the runs of a thread are driven by the one replica that has the
//! *claim* to it. The claims of a replica that is silent for too long go to others.

use std::time::Duration;

use super::{LogEntry, Record};
use crate::error::RecordError;

/// News from another replica: what to look at again. They may get lost; who waits for one looks from time to
/// time without it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Signal {
    /// A run was admitted.
    Admitted {
        /// Its thread.
        thread: String,
        /// The run.
        run: String,
    },
    /// A run is to be stopped.
    Stopped {
        /// The run.
        run: String,
    },
    /// A log has entries, or its first reader.
    Logged {
        /// The log.
        log: String,
    },
    /// Claims are free.
    Free,
    /// Signals may have been lost.
    Missed,
}

/// How a run is to be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// What it has done stays.
    Interrupt,
    /// It is undone.
    RollBack,
}

/// A run that a client asks for.
#[derive(Clone, Debug)]
pub struct Admission {
    /// The replica that admits it.
    pub replica: String,
    /// The run, whose status is `pending`.
    pub run: Record,
    /// The thread as it is with the run: it replaces the version that it names.
    pub thread: Record,
    /// The graph of the run.
    pub graph: String,
    /// Whether the run is refused if the thread has another one that is `pending` or `running`.
    pub alone: bool,
    /// What happens to those before it.
    pub stops: Option<Stop>,
}

/// The answer to an [`Admission`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// The thread has another run. Nothing has changed.
    Refused,
    /// The thread has another version, or is gone. Nothing has changed.
    Stale,
    /// The replica has the claim to the thread.
    Mine {
        /// Whether it did not have it before.
        is_new: bool,
    },
    /// Another replica has it.
    Elsewhere,
}

/// What the holder of a claim does next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// It drives this run, the oldest of the thread.
    Run(Box<Record>, Option<Stop>),
    /// Nothing: the thread has no run, and the claim was given back.
    Released,
    /// Nothing: another replica has the claim.
    Lost,
}

/// A store of records for several servers. [`conformance::check_shared`](super::conformance::check_shared)
/// tests one.
#[async_trait::async_trait]
pub trait SharedRecords: Send + Sync {
    /// Adds a replica under a new name, which dies after the lease unless it is renewed.
    async fn enter(&self, replica: &str, lease: Duration) -> Result<(), RecordError>;

    /// Renews the lease of a replica. `false` if it was declared dead: its claims are with others.
    async fn renew(&self, replica: &str, lease: Duration) -> Result<bool, RecordError>;

    /// Removes a replica. Its claims are free at once.
    async fn leave(&self, replica: &str) -> Result<(), RecordError>;

    /// Adds a run to its thread, and claims the thread if it is free.
    async fn admit(&self, admission: Admission) -> Result<Admitted, RecordError>;

    /// The oldest run of a claimed thread that is `pending` or `running`. Without one the claim ends.
    async fn next(&self, replica: &str, thread: &str) -> Result<Next, RecordError>;

    /// Claims some threads of dead replicas whose graphs are among these.
    async fn take_over(
        &self,
        replica: &str,
        graphs: &[String],
        limit: usize,
    ) -> Result<Vec<String>, RecordError>;

    /// Asks for the stop of a run. `false` if it is neither `pending` nor `running`. The first stop counts.
    async fn stop(&self, run: &str, stop: Stop) -> Result<bool, RecordError>;

    /// The runs of a replica's threads that are to be stopped.
    async fn stops(&self, replica: &str) -> Result<Vec<(String, Stop)>, RecordError>;

    /// Adds entries to a log, if the replica has the claim to the thread; otherwise `false`, and nothing
    /// changes. Entries that are `fleeting` may be swept.
    async fn append_claimed(
        &self,
        claim: (&str, &str),
        log: &str,
        entries: Vec<LogEntry>,
        fleeting: bool,
    ) -> Result<bool, RecordError>;

    /// Says that a log has a reader: unless it has entries, it gets a fleeting one with the number 0.
    async fn begin(&self, log: &str) -> Result<(), RecordError>;

    /// Removes fleeting entries that are older.
    async fn sweep(&self, age: Duration) -> Result<(), RecordError>;

    /// The signals of other replicas.
    fn signals(&self) -> tokio::sync::broadcast::Receiver<Signal>;
}
