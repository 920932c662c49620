//! [`Session<T>`]: one cell per run that nodes and tools read and change.
//!
//! For data of a run that no reducer describes: a cart, a browser, a running count of calls. It belongs to
//! the run, never to the process: two runs of one graph have two cells. Changes apply immediately, so
//! parallel nodes see each other's changes. Data that must merge in task order belongs in the state.
//!
//! A task on a host gets a copy of the cells, and what it changed comes back with its end.

use std::any::{Any, TypeId, type_name};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Code, Error};
use crate::record::blob::Blob;
use crate::record::bytes::Bytes;
use crate::record::unordered;
use agentgraph_checkpoint::TaskId;
use agentgraph_checkpoint::canonical;
use agentgraph_checkpoint::delta::{EncodeError, encode};
use agentgraph_checkpoint::engine::Lock;

/// The run's cell of type `T`. The graph declares it with
/// [`StateGraph::session`](crate::StateGraph::session); a new run starts with `T::default()`, a resumed one
/// with the value in the checkpoint.
///
/// ```
/// # use agentgraph::prelude::*;
/// # use serde::{Deserialize, Serialize};
/// #[derive(Default, Serialize, Deserialize)]
/// struct Cart {
///     items: Vec<String>,
/// }
/// # #[derive(State, Clone, Default)]
/// # struct Shop { total: usize }
///
/// async fn pick(cart: Session<Cart>) {
///     cart.with(|cart| cart.items.push("tea".into()));
/// }
/// async fn pay(cart: Session<Cart>) -> ShopUpdate {
///     Shop::update().total(cart.with(|cart| cart.items.len()))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let graph = StateGraph::new()
///     .session::<Cart>("cart")
///     .node("pick", pick)
///     .node("pay", pay)
///     .edge(START, "pick")
///     .edge("pick", "pay")
///     .compile()?;
/// assert_eq!(graph.invoke(Shop::update()).await?.output().total, 1);
/// # Ok(())
/// # }
/// ```
pub struct Session<T>(Arc<SessionCell<T>>);

/// A value, and the number of its uses.
struct SessionCell<T> {
    value: Lock<T>,
    uses: AtomicU64,
    /// The last change that came back from a host.
    changed: Lock<Option<SessionChange>>,
}

/// A change of a session by a task on a host.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SessionChange {
    pub(crate) task: TaskId,
    pub(crate) node: String,
    /// The superstep, by its namespace and number; `None` in runs without supersteps.
    pub(crate) step: Option<(String, u64)>,
}

impl<T> Session<T> {
    /// Reads or changes the value. Do not call it again inside `change`: the cell is locked meanwhile.
    ///
    /// The next commit stores the value, whether or not `change` changed it; so does the record of a task
    /// that finishes while its superstep is running. A task that fails or asks a question runs again on the
    /// session it has already changed, unless the process has ended in between.
    ///
    /// On a [`Host`](crate::host::Host) the change reaches the run when the attempt ends, and two tasks that
    /// change one session side by side are an error:
    /// [`Code::ConcurrentSession`](crate::Code::ConcurrentSession).
    pub fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut value = self.0.value.lock();
        // Counted under the lock, so that a commit which reads the new count also reads the changed value.
        self.0.uses.fetch_add(1, Ordering::Release);
        change(&mut value)
    }
}

impl<T> Clone for Session<T> {
    fn clone(&self) -> Self {
        Session(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Session<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Session<{}>", type_name::<T>())
    }
}

/// The graph has no session of the type that a node needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no session of type `{0}` here: declare it with `.session(..)` on the builder")]
pub struct MissingSession(&'static str);

/// A cell of any type.
type AnyCell = Arc<dyn Any + Send + Sync>;

/// A declared session: its name in checkpoints, and how its type is created and stored.
#[derive(Clone)]
pub(crate) struct SessionKind {
    name: String,
    pub(crate) id: TypeId,
    /// From stored bytes, or with its default.
    open: fn(Option<&[u8]>, bool) -> Result<AnyCell, rmp_serde::decode::Error>,
    uses: fn(&AnyCell) -> u64,
    encode: fn(&AnyCell, &mut Vec<u8>) -> Result<(), EncodeError>,
    /// Puts a value of another process in, by its bytes.
    replace: fn(&AnyCell, &[u8]) -> Result<(), rmp_serde::decode::Error>,
    changed: fn(&AnyCell) -> Option<&Lock<Option<SessionChange>>>,
}

impl SessionKind {
    pub(crate) fn of<T: Default + Serialize + DeserializeOwned + Send + 'static>(name: String) -> Self {
        SessionKind {
            name,
            id: TypeId::of::<T>(),
            open: |stored, used| {
                let value = stored.map_or_else(|| Ok(T::default()), agentgraph_checkpoint::delta::decode)?;
                let (value, uses) = (Lock::new(value), AtomicU64::new(used.into()));
                Ok(Arc::new(SessionCell { value, uses, changed: Lock::default() }))
            },
            uses: |cell| {
                cell.downcast_ref::<SessionCell<T>>().map_or(0, |cell| cell.uses.load(Ordering::Acquire))
            },
            encode: |cell, bytes| {
                let cell = cell.downcast_ref::<SessionCell<T>>();
                let cell = cell.ok_or_else(|| EncodeError::new("its cell has another type"))?;
                encode(bytes, &*cell.value.lock())
            },
            replace: |cell, bytes| {
                let value = agentgraph_checkpoint::delta::decode(bytes)?;
                if let Some(cell) = cell.downcast_ref::<SessionCell<T>>() {
                    let mut old = cell.value.lock();
                    cell.uses.fetch_add(1, Ordering::Release);
                    *old = value;
                }
                Ok(())
            },
            changed: |cell| cell.downcast_ref::<SessionCell<T>>().map(|cell| &cell.changed),
        }
    }
}

impl SessionKind {
    fn check_order(&self, bytes: &[u8]) -> Result<(), Error> {
        let again = |bytes: &[u8]| {
            let mut encoded = Vec::new();
            (self.encode)(&(self.open)(Some(bytes), false).ok()?, &mut encoded).ok()?;
            Some(encoded)
        };
        if unordered::is_unordered(bytes, again) {
            return Err(unordered::error(&format!("the session `{}`", self.name)));
        }
        Ok(())
    }
}

/// The cells of one run, in the order in which the graph declares them.
#[derive(Default)]
pub(crate) struct Sessions {
    kinds: Arc<[SessionKind]>,
    cells: Vec<AnyCell>,
    /// The sum of the uses of all cells when this run last stored them. Runs inside it store some of them
    /// too, with their own records.
    stored_uses: AtomicU64,
}

/// The stored form: name and MessagePack of each cell.
pub(crate) type StoredSessions = Vec<(String, Bytes)>;

impl Sessions {
    /// The cells of a run: as stored, or new.
    ///
    /// `used` is set if they are newer than the checkpoint that the run continues from, so that the next
    /// one stores them.
    pub(crate) fn open(
        kinds: &Arc<[SessionKind]>,
        stored: &StoredSessions,
        used: bool,
    ) -> Result<Self, Error> {
        let open = |kind: &SessionKind| {
            let bytes = stored.iter().find(|(name, _)| *name == kind.name).map(|(_, bytes)| &bytes.0[..]);
            (kind.open)(bytes, used).map_err(|error| {
                Error::new(
                    Code::CorruptCheckpoint,
                    format!("the session `{}` cannot be read: {error}", kind.name),
                )
            })
        };
        let cells: Result<Vec<AnyCell>, Error> = kinds.iter().map(open).collect();
        Ok(Sessions { kinds: Arc::clone(kinds), cells: cells?, stored_uses: AtomicU64::new(0) })
    }

    /// The cells of a run inside a task: those of the parent run for the types it has, and its own for the
    /// others.
    pub(crate) fn within(&self, own: Sessions) -> Sessions {
        let cells = own.kinds.iter().zip(own.cells).map(|(kind, cell)| {
            let around = self.kinds.iter().position(|outer| outer.id == kind.id);
            around.and_then(|at| self.cells.get(at)).map_or(cell, Arc::clone)
        });
        Sessions { cells: cells.collect(), kinds: Arc::clone(&own.kinds), stored_uses: own.stored_uses }
    }

    /// The cell of a type.
    pub(crate) fn get<T: Send + 'static>(&self) -> Result<Session<T>, MissingSession> {
        let found = self.cells.iter().find_map(|cell| Arc::clone(cell).downcast::<SessionCell<T>>().ok());
        found.map(Session).ok_or(MissingSession(type_name::<T>()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Whether any cell was used since the last call.
    pub(crate) fn take_used(&self) -> bool {
        let uses = self.kinds.iter().zip(&self.cells).map(|(kind, cell)| (kind.uses)(cell));
        let uses = uses.fold(0, u64::wrapping_add);
        self.stored_uses.swap(uses, Ordering::AcqRel) != uses
    }

    pub(crate) fn encode(&self) -> Result<StoredSessions, Error> {
        let stored = self.kinds.iter().zip(&self.cells).map(|(kind, cell)| {
            let mut bytes = Vec::new();
            (kind.encode)(cell, &mut bytes).map_err(|error| {
                Error::new(Code::Encode, format!("the session `{}` cannot be stored: {error}", kind.name))
            })?;
            if canonical::is_on() {
                kind.check_order(&bytes)?;
            }
            Ok((kind.name.clone(), Bytes(bytes)))
        });
        stored.collect()
    }

    /// The cells that a task has changed, given their bytes before it ran.
    pub(crate) fn changes_since(&self, before: &StoredSessions) -> Result<StoredSessions, Error> {
        if !self.take_used() {
            return Ok(StoredSessions::new());
        }
        let mut after = self.encode()?;
        after.retain(|cell| !before.contains(cell));
        Ok(after)
    }

    /// Takes the changes of a task on a host, which was sent the cells as they were `before`.
    ///
    /// # Errors
    /// Another task has changed a cell beside it, or the bytes are no value of the cell.
    pub(crate) fn adopt(
        &self,
        before: &StoredSessions,
        changes: &[(String, Blob)],
        by: &SessionChange,
    ) -> Result<(), Error> {
        for (name, bytes) in changes {
            let cells = self.kinds.iter().zip(&self.cells);
            let Some((kind, cell)) = cells.into_iter().find(|(kind, _)| kind.name == *name) else { continue };
            let Some(last) = (kind.changed)(cell) else { continue };
            let mut last = last.lock();
            if let Some(other) = last.as_ref().filter(|other| other.task != by.task)
                && (other.is_beside(by) || kind.differs(cell, before))
            {
                return Err(changed_twice(name, &other.node, &by.node));
            }
            if last.is_none() && kind.differs(cell, before) {
                return Err(changed_twice(name, "a node in the process of the run", &by.node));
            }
            (kind.replace)(cell, &bytes.0).map_err(|error| {
                Error::new(Code::Host, format!("the session `{name}` in a host's reply is damaged: {error}"))
            })?;
            *last = Some(by.clone());
        }
        Ok(())
    }
}

impl SessionKind {
    /// Whether a cell is not as it was.
    fn differs(&self, cell: &AnyCell, before: &StoredSessions) -> bool {
        let mut now = Vec::new();
        let encoded = (self.encode)(cell, &mut now);
        encoded.is_err() || before.iter().all(|(name, bytes)| *name != self.name || bytes.0 != now)
    }
}

impl SessionChange {
    /// Whether both are in one superstep: then they are parallel, whichever came back first.
    fn is_beside(&self, other: &SessionChange) -> bool {
        self.step.is_some() && self.step == other.step
    }
}

fn changed_twice(session: &str, first: &str, second: &str) -> Error {
    let problem = format!(
        "the parallel nodes `{first}` and `{second}` both changed the session `{session}` on a host, so one change would be \
         lost: write it to a channel with a reducer, or change the session in one node after them"
    );
    Error::new(Code::ConcurrentSession, problem)
}
