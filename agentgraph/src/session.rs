//! [`Session<T>`]: one cell per run that nodes and tools read and change.
//!
//! For data of a run that no reducer describes: a cart, a browser, a running count of calls. It belongs to
//! the run, never to the process: two runs of one graph have two cells. Changes apply immediately, so
//! parallel nodes see each other's changes. Data that must merge in task order belongs in the state.

use std::any::{Any, TypeId, type_name};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Code, Error};
use crate::extract::{FromTask, Requirement, Task};
use crate::record::bytes::Bytes;
use crate::record::unordered;
use crate::state::State;
use agentgraph_checkpoint::canonical;
use agentgraph_checkpoint::delta::{EncodeError, encode};

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
/// # #[derive(State, Serialize, Deserialize, Clone, Default)]
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
    value: Mutex<T>,
    uses: AtomicU64,
}

impl<T> Session<T> {
    /// Reads or changes the value. Do not call it again inside `change`: the cell is locked meanwhile.
    ///
    /// The next commit stores the value, whether or not `change` changed it; so does the record of a task
    /// that finishes while its superstep is running. A task that fails or asks a question runs again on the
    /// session it has already changed, unless the process has ended in between.
    pub fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut value = self.0.value.lock().unwrap_or_else(PoisonError::into_inner);
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

/// The graph has no session of the type that a node needs, or the task runs in another process than the
/// run's sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no session of type `{0}` here: declare it with `.session(..)` on the builder; tasks that a host runs elsewhere have none"
)]
pub struct MissingSession(&'static str);

impl<S: State, T: Send + 'static> FromTask<S> for Session<T> {
    type Error = MissingSession;

    fn from_task(task: &Task<'_, S>) -> Result<Self, MissingSession> {
        let found = task
            .shared
            .sessions
            .cells
            .iter()
            .find_map(|cell| Arc::clone(cell).downcast::<SessionCell<T>>().ok());
        found.map(Session).ok_or(MissingSession(type_name::<T>()))
    }

    fn requirement() -> Option<Requirement> {
        Some(Requirement::session::<T>())
    }
}

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
}

impl SessionKind {
    pub(crate) fn of<T: Default + Serialize + DeserializeOwned + Send + 'static>(name: String) -> Self {
        SessionKind {
            name,
            id: TypeId::of::<T>(),
            open: |stored, used| {
                let value = stored.map_or_else(|| Ok(T::default()), agentgraph_checkpoint::delta::decode)?;
                Ok(Arc::new(SessionCell { value: Mutex::new(value), uses: AtomicU64::new(used.into()) }))
            },
            uses: |cell| {
                cell.downcast_ref::<SessionCell<T>>().map_or(0, |cell| cell.uses.load(Ordering::Acquire))
            },
            encode: |cell, bytes| {
                let cell = cell.downcast_ref::<SessionCell<T>>();
                let cell = cell.ok_or_else(|| EncodeError::new("its cell has another type"))?;
                encode(bytes, &*cell.value.lock().unwrap_or_else(PoisonError::into_inner))
            },
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
}
