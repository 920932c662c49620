//! [`Ctx::session`]: a task's access to the sessions of its run.

use super::Ctx;
use crate::session::{MissingSession, Session};

impl Ctx {
    /// The run's cell of type `T`. For code that has a `Ctx` and no extractors, such as tools; nodes take a
    /// [`Session`], so that a graph without it does not compile.
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
    /// async fn pick(ctx: Ctx) -> Result<ShopUpdate> {
    ///     let cart = ctx.session::<Cart>()?;
    ///     cart.with(|cart| cart.items.push("tea".into()));
    ///     Ok(Shop::update().total(cart.with(|cart| cart.items.len())))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new().session::<Cart>("cart").node("pick", pick).edge(START, "pick").compile()?;
    /// assert_eq!(graph.invoke(Shop::update()).await?.output().total, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the graph declares no session of this type.
    pub fn session<T: Send + 'static>(&self) -> Result<Session<T>, MissingSession> {
        self.shared.sessions.get()
    }
}
