//! Versions: code that changes while runs are open.

use futures_util::future::BoxFuture;

use super::Ctx;
use super::OnceError;
use super::once::DurableStep;
use crate::error::BoxError;
use crate::record::once::{OnceCall, OnceKey};

impl Ctx {
    /// The version of a change of this node's code that the task follows. Use it when you change the durable
    /// steps of a node while runs are open: a task that was past this place before the change keeps the old
    /// code.
    ///
    /// The first call of a name in a task gives `newest` if this attempt has called every durable step that
    /// has a result and asked every question that has an answer: then the task has never been past this
    /// place. Otherwise an earlier program was, and the version is 0. The number is stored, so later calls of
    /// that name give the same, whatever `newest` has become meanwhile.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Order { price: u32 }
    /// # async fn net() -> Result<u32> { Ok(100) }
    /// # async fn gross() -> Result<u32> { Ok(119) }
    /// /// Orders were net before; those that have a price keep it.
    /// async fn price(ctx: Ctx) -> Result<OrderUpdate> {
    ///     let price = match ctx.version("with tax", 1).await? {
    ///         0 => ctx.once("net price", net()).await?,
    ///         _ => ctx.once("gross price", gross()).await?,
    ///     };
    ///     Ok(Order::update().price(price))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new().node("price", price).edge(START, "price").compile()?;
    /// assert_eq!(graph.invoke(Order::update()).finish().await?.price, 119);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`OnceError::NewerVersion`] if the task follows a version above `newest`, which a newer program gave
    /// it; and those of [`once`](Ctx::once).
    pub fn version(&self, name: impl AsRef<str>, newest: u32) -> BoxFuture<'static, Result<u32, BoxError>> {
        let name = name.as_ref().to_owned();
        let key = OnceKey { name: name.clone(), call: OnceCall::Version };
        let is_new = self.shared.control.is_beyond_earlier_calls(self.request);
        let version = std::future::ready(Ok(if is_new { newest } else { 0 }));
        let stored = DurableStep::new(self, |_| key, version);
        Box::pin(async move {
            match stored.await? {
                version if version > newest => Err(OnceError::NewerVersion { name, version, newest }.into()),
                version => Ok(version),
            }
        })
    }
}
