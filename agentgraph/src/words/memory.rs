//! What a subgraph remembers.

/// What a subgraph remembers from one call to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Memory {
    /// Nothing: each call is a run of its own, also in a loop. A call that was interrupted, stopped or cut
    /// off goes on where it stood. The default.
    #[default]
    PerCall,
    /// The state at the end of its last call in the thread, as a thread of its own does. Calls must come one
    /// after the other: two at once are [`Code::ConcurrentSubgraph`](crate::Code::ConcurrentSubgraph). A
    /// subgraph over the same state reads the state around it all the same.
    ///
    /// Each checkpoint of the thread names the checkpoint of the memory
    /// ([`Checkpoint::memories`](crate::Checkpoint::memories)), and the next call begins there. So a replay
    /// or a fork remembers what was known then, and a call that was given up, that failed or that left no
    /// trace in the thread is not remembered.
    ///
    /// ```
    /// use agentgraph::prelude::*;
    /// use agentgraph::Memory;
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
    /// struct Order { item: String, note: String }
    /// #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
    /// struct Notes { #[reduce(append)] items: Vec<String> }
    /// async fn think() {}
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let notes = StateGraph::new().node("think", think).edge(START, "think").compile()?;
    /// let notes = notes.embed(
    ///     |order: Snapshot<Order>| Notes::update().items([order.item.clone()]),
    ///     |notes: Notes| Order::update().note(notes.items.join(", ")),
    /// );
    /// let graph = StateGraph::new().node("notes", notes.memory(Memory::PerThread)).edge(START, "notes").compile()?;
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
    /// Nothing, and nothing is stored: a call that was cut off starts over. It may not ask with
    /// [`interrupt`](crate::Ctx::interrupt) where the graph around it is kept, since nobody could go on with
    /// it.
    None,
}
