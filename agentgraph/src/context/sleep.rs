//! Sleeping: a node waits for a time, and its run does not.

use std::time::Duration;

use futures_util::future::BoxFuture;

use super::Ctx;
use super::once::{Counted, DurableStep, OnceStorage};
use crate::error::BoxError;
use crate::record::once::{OnceCall, OnceKey};
use agentgraph_checkpoint::services::micros;

impl Ctx {
    /// Waits for `duration` without keeping the run: the call ends with
    /// [`Outcome::Interrupted`](crate::Outcome::Interrupted), whose [`Interrupt`](crate::Interrupt) says
    /// [`until`](crate::Interrupt::until) when. The end of the sleep is stored at once, so it stays the same
    /// however often the node runs again. While it sleeps, the thread is a row in the store; nothing runs, in
    /// no process.
    ///
    /// Nothing wakes it by itself, since the engine has no scheduler: after the end,
    /// [`proceed`](crate::CompiledGraph::proceed) runs the node again, and this call returns. A `proceed`
    /// before the end changes nothing. [`waiting`](crate::CompiledGraph::waiting) lists the sleeping threads
    /// with their ends, so a program wakes them in a loop.
    /// [`Outcome::sleeps_until`](crate::Outcome::sleeps_until) is for a caller who waits in place. An answer
    /// to the interrupt's id by [`resume_many`](crate::CompiledGraph::resume_many), whatever its value, ends
    /// the sleep early.
    ///
    /// Sleeps of one name are told apart by their order, as [durable steps](Ctx::once) are. Parallel work
    /// goes on to its end if it is joined by `join!` instead of `try_join!`.
    ///
    /// Without a checkpointer and in a subgraph with [`Memory::None`](crate::Memory) the run itself waits,
    /// since nothing could continue it. Time is that of the run's [`Services`](crate::checkpoint::Services).
    ///
    /// ```
    /// use std::time::Duration;
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Mail { sent: bool }
    /// async fn send(ctx: Ctx) -> Result<MailUpdate> {
    ///     ctx.sleep("office hours", Duration::from_millis(20)).await?;
    ///     Ok(Mail::update().sent(true))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new().node("send", send).edge(START, "send").compile()?.checkpointer(MemorySaver::new());
    /// let mut outcome = graph.invoke(Mail::update()).thread("t-1").await?;
    /// assert_eq!(graph.waiting().await?[0].sleeps_until(), outcome.sleeps_until());
    ///
    /// while let Some(end) = outcome.sleeps_until() {
    ///     tokio::time::sleep(end.duration_since(std::time::SystemTime::now()).unwrap_or_default()).await;
    ///     outcome = graph.proceed().thread("t-1").await?;
    /// }
    /// assert!(outcome.into_finished()?.sent);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Interrupted`](crate::node::Interrupted), to be returned by `?`, while it sleeps; and those of
    /// [`once`](Ctx::once).
    pub fn sleep(
        &self,
        name: impl AsRef<str>,
        duration: Duration,
    ) -> BoxFuture<'static, Result<(), BoxError>> {
        let name = name.as_ref().to_owned();
        let services = self.shared.services.clone();
        let now = micros(services.now());
        let length = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let ends = std::future::ready(Ok(now.saturating_add(length)));
        let mut nth = 0;
        let stored_end = DurableStep::new(
            self,
            |results| {
                nth = results.next_index(Counted::Sleep, &name);
                OnceKey { name: name.clone(), call: OnceCall::Sleep(nth) }
            },
            ends,
        );
        let ctx = self.clone();
        Box::pin(async move {
            let until: u64 = stored_end.await?;
            let now = micros(services.now());
            if until <= now {
                return Ok(());
            }
            match ctx.shared.control.once_storage() {
                OnceStorage::Kept | OnceStorage::AtTheEnd | OnceStorage::Host => {
                    Ok(ctx.shared.control.sleep(ctx.request, name, nth, until)?)
                }
                OnceStorage::InMemory => {
                    services.sleep(Duration::from_micros(until - now)).await;
                    Ok(())
                }
            }
        })
    }
}
