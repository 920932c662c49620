//! [`Probe`]: how the code of a node tells the kit about its effects.

use std::cell::RefCell;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::test_run::TestRun;
use crate::context::is_in_once;
use crate::extract::{FromTask, Task};
use crate::state::State;

/// Reports effects of nodes to the kit: a charge, a mail, a row in another system. It does nothing outside
/// a [`TestGraph`](super::TestGraph), so it may stay in the code that it watches; cheap to clone.
///
/// Call it where the effect happens, in a node or in the substitute of an external service:
///
/// ```
/// use agentgraph::prelude::*;
/// use agentgraph::testing::{Probe, TestGraph};
///
/// # #[derive(State, Clone, Debug, Default)]
/// # struct Order { sum: u32, #[reduce(append)] log: Vec<String> }
/// async fn charge(sum: u32) {
///     Probe::new().effect(("charge", sum));
/// }
///
/// async fn pay(order: Snapshot<Order>) -> OrderUpdate {
///     charge(order.sum).await;
///     Order::update().log(["paid"])
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let graph = StateGraph::new().node("pay", pay).edge(START, "pay").compile()?;
/// let trace = TestGraph::of(graph).trace(Order::update().sum(7)).await;
/// assert_eq!(trace.effects(), ["pay: charge 7"]);
/// # Ok(())
/// # }
/// ```
///
/// A new probe reports for the node that is polled when it is called. As an argument of a node, or from
/// [`here`](Probe::here), it reports for that node also from tasks which the node spawns.
#[derive(Clone, Default)]
pub struct Probe(Option<Here>);

impl Probe {
    /// A probe for the node that is polled when it is called.
    pub fn new() -> Self {
        Probe(None)
    }

    /// A probe for the node that is polled now, wherever it is called.
    pub fn here() -> Self {
        Probe(Here::now())
    }

    /// Something happens outside the graph. A tuple adds a key, which tells effects of one name apart:
    /// `("charge", order.id)`.
    pub fn effect(&self, effect: impl Into<Effect>) {
        self.report(effect.into());
    }

    /// An effect whose receiver ignores a second one with the same key. Only effects with different keys
    /// count as several.
    pub fn idempotent(&self, name: impl AsRef<str>, key: impl fmt::Display) {
        self.report(Effect {
            name: name.as_ref().to_owned(),
            key: Some(key.to_string()),
            once_per_key: true,
        });
    }

    /// A point in the middle of a node where a kill may come in, or another task: the substitute of a
    /// service that would wait awaits it. Ready at once outside the kit.
    ///
    /// ```
    /// use agentgraph::testing::Probe;
    ///
    /// async fn send(mail: &str) {
    ///     Probe::new().effect(("mail", mail));
    ///     Probe::new().pause().await; // the reply is on its way
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() { send("hello").await }
    /// ```
    pub fn pause(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut paused = self.place().is_none();
        std::future::poll_fn(move |cx| {
            if std::mem::replace(&mut paused, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
    }

    /// Waits by the clock of the run under test: the substitute of a slow service. Ready at once outside the
    /// kit.
    pub fn wait(&self, duration: Duration) -> impl Future<Output = ()> + Send + use<> {
        let wait = self.place().map(|here| here.run.time.sleep(duration));
        async move {
            if let Some(wait) = wait {
                wait.await;
            }
        }
    }

    fn place(&self) -> Option<Here> {
        self.0.clone().or_else(Here::now)
    }

    fn report(&self, effect: Effect) {
        if let Some(here) = self.place() {
            here.run.happened(&here.place, effect, is_in_once());
        }
    }
}

impl fmt::Debug for Probe {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Probe")
    }
}

impl<S: State> FromTask<S> for Probe {
    type Error = Infallible;

    fn from_task(_: &Task<'_, S>) -> Result<Self, Infallible> {
        Ok(Probe::here())
    }
}

/// The name of an effect, and a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Effect {
    pub(super) name: String,
    pub(super) key: Option<String>,
    pub(super) once_per_key: bool,
}

impl From<&str> for Effect {
    fn from(name: &str) -> Self {
        Effect { name: name.to_owned(), key: None, once_per_key: false }
    }
}

impl From<String> for Effect {
    fn from(name: String) -> Self {
        Effect { name, key: None, once_per_key: false }
    }
}

impl<N: AsRef<str>, K: fmt::Display> From<(N, K)> for Effect {
    fn from((name, key): (N, K)) -> Self {
        Effect { name: name.as_ref().to_owned(), key: Some(key.to_string()), once_per_key: false }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            None => out.write_str(&self.name),
            Some(key) => write!(out, "{} {key}", self.name),
        }
    }
}

thread_local! {
    /// The code of the user that runs on this thread.
    static HERE: RefCell<Option<Here>> = const { RefCell::new(None) };
}

/// A run of the kit, and the place in it.
#[derive(Clone)]
pub(super) struct Here {
    pub(super) run: Arc<TestRun>,
    pub(super) place: Arc<CodePlace>,
}

/// The code that an effect is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CodePlace {
    /// The n-th call of a node.
    Node { path: Arc<str>, call: usize },
    /// A route behind a node.
    Route(Arc<str>),
    /// The reducers of an update of a node.
    Reducer(Arc<str>),
}

impl CodePlace {
    /// The node.
    pub(super) fn node(&self) -> &Arc<str> {
        match self {
            CodePlace::Node { path, .. } | CodePlace::Route(path) | CodePlace::Reducer(path) => path,
        }
    }
}

impl Here {
    fn now() -> Option<Here> {
        HERE.with(|here| here.borrow().clone())
    }

    /// Calls `code` as the code of this place.
    pub(super) fn scope<T>(self, code: impl FnOnce() -> T) -> T {
        let _back = Back(HERE.with(|here| here.borrow_mut().replace(self)));
        code()
    }
}

/// Restores the place around, also when the code panics.
struct Back(Option<Here>);

impl Drop for Back {
    fn drop(&mut self) {
        HERE.with(|here| *here.borrow_mut() = self.0.take());
    }
}
