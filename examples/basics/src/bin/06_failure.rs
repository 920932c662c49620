//! A failing node is retried, then the call fails. The result of its sibling is kept, and the run
//! proceeds once the cause is fixed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use agentgraph::prelude::*;

#[derive(State, Clone, Debug, Default)]
struct Order {
    #[reduce(append)]
    done: Vec<String>,
}

/// A shop that can be closed, with counters of its calls.
#[derive(Default)]
struct Shop {
    open: AtomicBool,
    asked: AtomicU32,
    letters: AtomicU32,
}

async fn buy(shop: Dep<Arc<Shop>>) -> Result<OrderUpdate> {
    shop.asked.fetch_add(1, SeqCst);
    if !shop.open.load(SeqCst) {
        return Err("the shop is closed".into());
    }
    Ok(Order::update().done(["bought"]))
}

async fn write_letter(shop: Dep<Arc<Shop>>) -> OrderUpdate {
    shop.letters.fetch_add(1, SeqCst);
    Order::update().done(["wrote"])
}

fn graph(shop: &Arc<Shop>) -> Result<CompiledGraph<Order>> {
    let graph = StateGraph::new()
        .node("buy", buy.retry(RetryPolicy::attempts(2).initial(Duration::from_millis(1))))
        .node("write_letter", write_letter)
        .edge(START, "buy")
        .edge(START, "write_letter")
        .dep(Arc::clone(shop));
    Ok(graph.compile()?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let shop = Arc::new(Shop::default());
    let graph = graph(&shop)?.checkpointer(MemorySaver::new());

    let Err(error) = graph.invoke(Order::update()).thread("monday").await else {
        return Err("it is closed".into());
    };
    println!("{error}");

    shop.open.store(true, SeqCst);
    let order = graph.proceed().thread("monday").finish().await?;
    println!("{}", order.done.join(", "));
    assert_eq!(order.done, ["bought", "wrote"]);
    assert_eq!(shop.asked.load(SeqCst), 3, "two attempts, and one after the shop opened");
    assert_eq!(shop.letters.load(SeqCst), 1, "a finished sibling is not run again");
    Ok(())
}

#[cfg(test)]
mod tests {
    use agentgraph::testing::TestGraph;

    use super::*;

    #[tokio::test]
    async fn a_busy_shop_is_asked_twice() -> Result<()> {
        let shop = Arc::new(Shop { open: true.into(), ..Shop::default() });
        let test = TestGraph::of(graph(&shop)?).fail("buy", 1, || "busy");
        let trace = test.trace(Order::update()).await;
        assert_eq!((trace.attempts("buy"), trace.waits()), (2, &[Duration::from_millis(1)][..]));
        assert_eq!(trace.state().done, ["bought", "wrote"]);
        test.every_kill(Order::update()).await.assert_none();

        let closed = test.fail("buy", 1, || "closed").trace(Order::update()).await;
        assert_eq!(closed.ran(), ["write_letter"]);
        assert_eq!(closed.outcome().map(|_| ()).map_err(|error| error.node()), Err(Some("buy")));
        Ok(())
    }
}
