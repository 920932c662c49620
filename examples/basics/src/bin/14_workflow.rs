//! An order as an ordinary async function: it looks prices up side by side, asks, charges with retries,
//! and waits a while before it sends a reminder. The process "dies" between the calls: every call has a new
//! graph over the same file, and nothing is done twice.

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use agentgraph::prelude::*;
use agentgraph::workflow::WorkflowState;
use futures_util::future::try_join_all;

/// What the world has seen.
static EFFECTS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn effect(what: impl Into<String>) -> usize {
    let what = what.into();
    #[cfg(test)]
    agentgraph::testing::Probe::new().effect(what.as_str());
    let mut effects = EFFECTS.lock().unwrap_or_else(|lock| lock.into_inner());
    effects.push(what);
    effects.len()
}

async fn price_of(item: &str) -> Result<u32> {
    effect(format!("price of {item}"));
    Ok(item.len() as u32)
}

/// The bank is busy at first.
async fn charge(sum: u32) -> Result<String> {
    match effect(format!("charge {sum}")) {
        3 => Err("the bank is busy".into()),
        _ => Ok(format!("{sum} paid")),
    }
}

async fn order(ctx: Ctx, items: Vec<String>) -> Result<String> {
    let prices = items.iter().map(|item| ctx.once_for("price", item, price_of(item)));
    let sum = try_join_all(prices).await?.into_iter().sum::<u32>();

    let approved: bool = ctx.interrupt(format!("pay {sum}?"))?;
    if !approved {
        return Ok("cancelled".to_owned());
    }

    let again = RetryPolicy::attempts(5).initial(Duration::from_millis(1));
    let paid = ctx.durable("charge").retry(again).run(|| charge(sum)).await?;

    ctx.sleep("before the reminder", Duration::from_millis(50)).await?;
    ctx.once("remind", async { Ok(effect("reminder")) }).await?;
    Ok(paid)
}

fn orders() -> Result<CompiledGraph<WorkflowState<Vec<String>, String>>> {
    Ok(Workflow::new("order", order).compile()?)
}

/// The program as a new process makes it.
async fn open(file: &Path) -> Result<CompiledGraph<WorkflowState<Vec<String>, String>>> {
    Ok(orders()?.checkpointer(SqliteSaver::open(file).await?))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("agentgraph-workflow-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let file = folder.join("orders.db");

    let items = vec!["tea".to_owned(), "milk".to_owned()];
    let asked = open(&file).await?.invoke(items).thread("order-7").await?;
    println!("{}", asked.interrupts()[0].value);

    let mut outcome = open(&file).await?.resume(true).thread("order-7").await?;
    while let Some(end) = outcome.sleeps_until() {
        println!("sleeps");
        tokio::time::sleep(end.duration_since(SystemTime::now()).unwrap_or_default()).await;
        outcome = open(&file).await?.proceed().thread("order-7").await?;
    }
    println!("{}", outcome.into_returned()?);

    let end = open(&file).await?.state("order-7").await?.ok_or("the thread is stored")?;
    println!("{}", end.mermaid());

    let effects = EFFECTS.lock().unwrap_or_else(|lock| lock.into_inner()).clone();
    assert_eq!(effects, ["price of tea", "price of milk", "charge 7", "charge 7", "reminder"]);
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use agentgraph::testing::{FindingKind, TestGraph};

    use super::*;

    #[tokio::test]
    async fn an_order_is_paid_and_reminded_once() -> Result<()> {
        while effect("before") < 3 {} // the bank is not busy any more
        let items = || vec!["tea".to_owned(), "milk".to_owned()];
        let test = TestGraph::of(orders()?).answer(true);
        let trace = test.trace(items()).await;
        assert_eq!(trace.state().returned().map(String::as_str), Some("7 paid"));
        assert_eq!(trace.effects().len(), 4);
        trace.report().assert_none();

        // A durable step is done again if the process dies before its result is stored. A real bank gets a
        // key with each charge.
        let report = test.every_kill(items()).await;
        let mut again: Vec<&str> = report.findings().iter().map(|found| found.subject()).collect();
        again.sort_unstable();
        assert_eq!(again, ["charge 7", "price of milk", "price of tea", "reminder"], "{report}");
        assert!(report.findings().iter().all(|found| found.kind() == FindingKind::EffectTwice), "{report}");
        Ok(())
    }
}
