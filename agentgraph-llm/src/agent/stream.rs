//! The events of an agent's run, and its answer at their end.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use agentgraph::{Error, Event, EventKind, EventStream, Outcome, RunBuilder};
use futures_util::{Stream, StreamExt};

use super::answer::AgentAnswer;
use super::state::{AgentChannels, AgentState};

/// Runs of agents as streams that end with their answer.
pub trait AgentRunExt<T, S: AgentChannels> {
    /// Runs the call as a stream of events, with [`finish`](AgentStream::finish) for the answer. The settings
    /// of the stream, such as its views, come before.
    ///
    /// ```
    /// use agentgraph::prelude::*;
    /// use agentgraph_llm::prelude::*;
    /// use futures_util::StreamExt;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let agent = Agent::new(ScriptedModel::new(["Take a coat."])).compile()?;
    /// let mut events = agent.invoke("A coat or not?").stream_answer();
    /// let mut count = 0;
    /// while events.next().await.is_some() {
    ///     count += 1;
    /// }
    /// assert!(count > 0);
    /// assert_eq!(events.finish().await?.text(), "Take a coat.");
    /// # Ok(())
    /// # }
    /// ```
    fn stream_answer(self) -> AgentStream<T, S>;
}

impl<T, S: AgentChannels> AgentRunExt<T, S> for RunBuilder<S, AgentAnswer<T, S>> {
    fn stream_answer(self) -> AgentStream<T, S> {
        AgentStream { events: self.stream(), outcome: None, of: PhantomData }
    }
}

/// The events of an agent's run. The last one, [`EventKind::Ended`], is not among them: it is what
/// [`finish`](Self::finish) returns.
pub struct AgentStream<T = String, S: AgentChannels = AgentState> {
    events: EventStream<S>,
    outcome: Option<Result<Outcome<S>, Error>>,
    of: PhantomData<fn() -> T>,
}

impl<T, S: AgentChannels> AgentStream<T, S> {
    /// Runs to the end and returns the answer; events that were not read are dropped.
    ///
    /// # Errors
    /// That of the run, and those of [`Outcome::into_finished`] for a run that was interrupted or stopped.
    pub async fn finish(mut self) -> Result<AgentAnswer<T, S>, Error> {
        Ok(self.outcome().await?.into_finished()?.into())
    }

    /// Runs to the end and returns the outcome, which may be a question.
    ///
    /// # Errors
    /// That of the run.
    pub async fn outcome(&mut self) -> Result<Outcome<S>, Error> {
        while self.next().await.is_some() {}
        match self.outcome.take() {
            Some(outcome) => outcome,
            None => Err(Error::new(agentgraph::Code::NotFinished, "the outcome of the run was taken before")),
        }
    }
}

/// Nothing in it is pinned: the run has a box of its own.
impl<T, S: AgentChannels> Unpin for AgentStream<T, S> {}

impl<T, S: AgentChannels> Stream for AgentStream<T, S> {
    type Item = Event<S>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event<S>>> {
        if self.outcome.is_some() {
            return Poll::Ready(None);
        }
        let Some(event) = ready!(self.events.poll_next_unpin(context)) else { return Poll::Ready(None) };
        match event.kind {
            EventKind::Ended(outcome) => {
                self.outcome = Some(outcome);
                Poll::Ready(None)
            }
            _ => Poll::Ready(Some(event)),
        }
    }
}

impl<T, S: AgentChannels> fmt::Debug for AgentStream<T, S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AgentStream").field("ended", &self.outcome.is_some()).finish_non_exhaustive()
    }
}
