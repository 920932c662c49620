//! [`Memory`]: the state that a subgraph keeps between calls.

/// The state that a subgraph keeps from one call to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Memory {
    /// None: each call is a run of its own, also in a loop. A call that was interrupted, stopped or cut off
    /// continues from its last checkpoint. The default.
    #[default]
    PerCall,
    /// The state at the end of its last call in the thread, like a thread of its own. Calls must come one
    /// after the other: two at once fail with
    /// [`Code::ConcurrentSubgraph`](crate::Code::ConcurrentSubgraph). A subgraph over the state of its
    /// parent still reads the parent's state.
    ///
    /// Each checkpoint of the thread names the checkpoint of the memory
    /// ([`Checkpoint::memories`](crate::Checkpoint::memories)), and the next call starts from there. So a
    /// replay or a fork has the memory of its checkpoint, and a call that was abandoned, that failed or
    /// that left no trace in the thread is not remembered.
    ///
    /// ```
    /// use agentgraph::prelude::*;
    /// use agentgraph::Memory;
    ///
    /// #[derive(State, Clone, Debug, Default)]
    /// struct Order {
    ///     item: String,
    ///     note: String,
    /// }
    /// #[derive(State, Clone, Debug, Default)]
    /// struct Notes {
    ///     #[reduce(append)]
    ///     items: Vec<String>,
    /// }
    /// async fn think() {}
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let notes = StateGraph::new().node("think", think).edge(START, "think").compile()?;
    /// let notes = notes.embed(
    ///     |order: Snapshot<Order>| Notes::update().items([order.item.clone()]),
    ///     |notes: Notes| Order::update().note(notes.items.join(", ")),
    /// );
    /// let graph =
    ///     StateGraph::new().node("notes", notes.memory(Memory::PerThread)).edge(START, "notes").compile()?;
    /// let graph = graph.checkpointer(MemorySaver::new());
    /// let order = |item: &str| graph.invoke(Order::update().item(item)).thread("t-1");
    /// order("tea").await?;
    /// let after_tea = graph.state("t-1").await?.expect("it is kept").id;
    /// assert_eq!(order("milk").await?.output().note, "tea, milk");
    ///
    /// assert_eq!(order("sugar").from(after_tea).await?.output().note, "tea, sugar");
    /// # Ok(())
    /// # }
    /// ```
    PerThread,
    /// None, and nothing is stored: a call that was cut off starts again. It may not
    /// [`interrupt`](crate::Ctx::interrupt) if its parent graph has a checkpointer, since the question
    /// could not be resumed.
    None,
}
