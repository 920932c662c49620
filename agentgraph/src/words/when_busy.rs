//! [`WhenBusy`]: the effect of a call on a thread with a running run.

/// The effect of a call on a thread where another run is running, in this process or another one.
///
/// ```
/// # use agentgraph::prelude::*;
/// # #[derive(State, Clone, Debug, Default)]
/// # struct Chat { #[reduce(append)] said: Vec<String> }
/// # async fn reply(chat: Snapshot<Chat>) -> ChatUpdate {
/// #     tokio::task::yield_now().await;
/// #     Chat::update().said([format!("{}!", chat.said[chat.said.len() - 1])])
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// use agentgraph::run::WhenBusy;
///
/// # let graph = StateGraph::new().node("reply", reply).edge(START, "reply").compile()?;
/// let graph = graph.checkpointer(MemorySaver::new());
/// let say = |word: &str| graph.invoke(Chat::update().said([word])).thread("t-1").when_busy(WhenBusy::Queue);
/// let (first, second) = tokio::join!(say("tea").into_future(), say("milk").into_future());
/// assert_eq!(first?.output().said, ["tea", "tea!"]);
/// assert_eq!(second?.output().said, ["tea", "tea!", "milk", "milk!"]);
/// # Ok(())
/// # }
/// # use std::future::IntoFuture;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WhenBusy {
    /// It fails with [`Code::ThreadBusy`](crate::Code::ThreadBusy). The default. It waits for up to two
    /// seconds if the other run has let its lease expire and its process is alive.
    #[default]
    Refuse,
    /// It waits until the thread is free, and is checked then. Calls of one graph that wait for one thread
    /// run in order of arrival.
    Queue,
    /// It takes the thread. The other run ends with [`Code::LeaseLost`](crate::Code::LeaseLost); its
    /// commits stay. An `invoke` abandons that run and starts from the state it left, `resume` and
    /// `proceed` continue it.
    ///
    /// A call that would be refused, such as an answer to a question that is no longer open, is refused
    /// before it takes the thread. If the other run changes the thread between this check and the take-over,
    /// the call is refused afterwards: the other run is suspended then, as the error says, and `proceed`
    /// continues it.
    Replace,
    /// Like `Replace`, but an `invoke` starts from the state before the other run, on a new branch. The old
    /// branch stays unchanged, and the new one records which run it abandoned:
    /// [`Checkpoint::abandoned`](crate::Checkpoint).
    RollBack,
}
