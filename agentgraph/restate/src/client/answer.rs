//! [`RemoteAnswer`]: an answer for a call that waits.

use std::future::IntoFuture;

use agentgraph::Error;
use agentgraph::host::RunCall;
use agentgraph::state::StoredState;
use futures_util::future::BoxFuture;

use super::RemoteGraph;
use super::call::no_thread;

/// An answer for a call that waits, in the making: `graph.answer(true).thread("t-1").await?`.
#[must_use = "nothing is answered until it is awaited"]
pub struct RemoteAnswer<S: StoredState> {
    graph: RemoteGraph<S>,
    call: Result<RunCall, Error>,
    thread: Option<String>,
}

impl<S: StoredState> RemoteAnswer<S> {
    pub(super) fn new(graph: &RemoteGraph<S>, call: Result<RunCall, Error>) -> Self {
        RemoteAnswer { graph: graph.clone(), call, thread: None }
    }

    /// The thread.
    pub fn thread(mut self, thread: impl AsRef<str>) -> Self {
        self.thread = Some(thread.as_ref().to_owned());
        self
    }

    async fn send(self) -> Result<(), Error> {
        let RemoteAnswer { graph, call, thread } = self;
        let thread = thread.ok_or_else(no_thread)?;
        graph.threads.answer(&thread, call?).await
    }
}

impl<S: StoredState> IntoFuture for RemoteAnswer<S> {
    type Output = Result<(), Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    /// Returns when the answer is with the call that waits for it. An answer that does not fit its question
    /// leaves the question open.
    ///
    /// # Errors
    /// [`Code::NothingToResume`](agentgraph::Code::NothingToResume) if no call waits for an answer.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
