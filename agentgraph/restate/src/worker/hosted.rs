//! [`Hosted`]: a graph as a worker serves it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agentgraph::BoxError;
use agentgraph::checkpoint::Checkpointer;
use agentgraph::host::{FarSide, HostedGraph};
use bytes::Bytes;
use restate_sdk::errors::{HandlerError, TerminalError};
use tokio_util::sync::CancellationToken;

use super::posting::{CallPosts, Poster, TaskPosts};
use super::tasks::of_wire;
use crate::headers::Headers;
use crate::wire::message::{CallInfo, Order};
use crate::wire::{Label, Part, Wire};

/// Settings of a service, by name.
pub(super) type Settings = std::collections::HashMap<String, String>;

/// Adds a context to what a task is given.
pub(super) type ContextMaker =
    Arc<dyn Fn(FarSide, &Headers, &str) -> Result<FarSide, BoxError> + Send + Sync>;

/// The steps of invocations that this process has begun and not ended. One that is to be done again, because
/// a connection was lost, has not cost a worker.
#[derive(Default)]
pub(super) struct Begun(Mutex<HashSet<(String, u64)>>);

/// So many are remembered, which other workers may have ended.
const REMEMBERED: usize = 10_000;

impl Begun {
    /// Remembers a step. Returns whether it was remembered already.
    pub(super) fn begin(&self, invocation: &str, number: u64) -> bool {
        let mut steps = self.steps();
        if steps.len() >= REMEMBERED {
            steps.clear();
        }
        !steps.insert((invocation.to_owned(), number))
    }

    pub(super) fn end(&self, invocation: &str, number: u64) {
        self.steps().remove(&(invocation.to_owned(), number));
    }

    fn steps(&self) -> MutexGuard<'_, HashSet<(String, u64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct Hosted {
    pub(super) name: String,
    /// The code of the worker, which tasks of its invocations ask for.
    pub(super) build: String,
    pub(super) graph: Arc<dyn HostedGraph>,
    pub(super) saver: Option<Arc<dyn Checkpointer>>,
    pub(super) wire: Wire,
    pub(super) contexts: Vec<ContextMaker>,
    pub(super) poster: Option<Poster>,
    /// The most supersteps of one invocation.
    pub(super) share: u64,
    /// The longest time for an attempt of a node.
    pub(super) longest_task: Duration,
    /// After how many lost workers a node is given up.
    pub(super) deaths: u32,
    /// The header by whose value limits count apart.
    pub(super) limits_by: Option<String>,
    /// The tasks that this process has begun.
    pub(super) begun: Begun,
    /// Whether the worker is about to stop.
    pub(super) parts: CancellationToken,
}

impl Hosted {
    pub(super) fn label<'a>(&'a self, part: Part, thread: &'a str) -> Label<'a> {
        Label::new(part, &self.name, thread, "")
    }

    /// The checkpointer, if it can list what it has of a thread.
    pub(super) fn catalogued_saver(&self) -> Option<&dyn Checkpointer> {
        self.saver.as_deref().filter(|saver| saver.catalog().is_some())
    }

    /// What this worker gives a task, and the receiver of its events if they are read.
    pub(super) fn far_side(
        &self,
        about: CallInfo,
        thread: &str,
    ) -> Result<(FarSide, Option<Arc<TaskPosts>>), BoxError> {
        let posts = self.posts(&about, thread).map(|posts| Arc::new(posts.of_task(&about.views)));
        let headers = Headers::sent(about.headers);
        let mut far = FarSide::new().timeout(self.longest_task);
        if let Some(saver) = &self.saver {
            far = far.once_in(Arc::clone(saver));
        }
        if let Some(posts) = &posts {
            far = far.events(Arc::clone(posts) as _);
        }
        let far = self.contexts.iter().try_fold(far, |far, make| make(far, &headers, thread))?;
        Ok((far, posts))
    }

    /// Where the events of a call go, if they are read and there is a relay.
    pub(super) fn posts(&self, about: &CallInfo, thread: &str) -> Option<CallPosts> {
        let (poster, call) = (self.poster.as_ref()?, about.name.as_ref()?);
        (!about.views.is_empty()).then(|| CallPosts::new(poster, &self.name, thread, call))
    }

    /// Checks that a request is an order of this kind.
    pub(super) async fn check_order(
        &self,
        expected: Order,
        thread: &str,
        input: Bytes,
    ) -> Result<(), HandlerError> {
        let read = self.wire.receive::<Order>(self.label(Part::Request, thread), input).await;
        match read.map_err(of_wire)?.0 == expected {
            true => Ok(()),
            false => Err(TerminalError::new("the request asks for something else").into()),
        }
    }

    /// The name of the service of steps.
    pub(super) fn steps(&self) -> String {
        steps_of(&self.name)
    }

    /// The name of the service of tasks. An invocation of the steps goes on with the code that it began with,
    /// and so do the tasks that leave it: it calls the service of its own build.
    pub(super) fn tasks(&self) -> String {
        format!("{}.tasks.{}", self.name, self.build)
    }

    /// What a server keeps of each service. A worker whose services and settings are the same is the same.
    pub(super) fn settings(&self) -> Settings {
        let (fingerprint, limit) = (self.graph.fingerprint().to_owned(), self.longest_task);
        [
            ("agentgraph.fingerprint".to_owned(), fingerprint),
            ("agentgraph.longest_task".to_owned(), format!("{limit:?}")),
        ]
        .into()
    }
}

/// The name of the service of steps of a graph.
pub(crate) fn steps_of(graph: &str) -> String {
    format!("{graph}.steps")
}
