//! A run interrupts to ask a person. Its process may end; the answer resumes the run from a file.

use agentgraph::prelude::*;

#[derive(State, Clone, Debug, Default)]
struct Payment {
    amount: u32,
    #[reduce(append)]
    log: Vec<String>,
}

#[derive(Route)]
enum AfterCheck {
    Approve,
    Pay,
}

async fn check(state: Snapshot<Payment>) -> PaymentUpdate {
    Payment::update().log([format!("checked {}", state.amount)])
}

fn after_check(state: &Payment) -> AfterCheck {
    if state.amount > 100 { AfterCheck::Approve } else { AfterCheck::Pay }
}

/// The question depends on the state alone, so the node asks the same question when it runs again, and gets
/// the answer. An answer to another question would not reach it.
async fn approve(ctx: Ctx, state: Snapshot<Payment>) -> Result<Command<Payment>> {
    let approved: bool = ctx.interrupt(format!("pay {}?", state.amount))?;
    let noted = Command::update(Payment::update().log([format!("approved: {approved}")]));
    Ok(if approved { noted.goto("pay") } else { noted.goto(END) })
}

async fn pay(state: Snapshot<Payment>) -> PaymentUpdate {
    Payment::update().log([format!("paid {}", state.amount)])
}

fn graph() -> Result<CompiledGraph<Payment>> {
    let graph = StateGraph::new()
        .node("check", check)
        .node("approve", approve.targets(["pay", END]))
        .node("pay", pay)
        .edge(START, "check")
        .route("check", after_check);
    Ok(graph.compile()?)
}

/// The graph as a new process opens it.
async fn open(file: &std::path::Path) -> Result<CompiledGraph<Payment>> {
    Ok(graph()?.checkpointer(SqliteSaver::open(file).await?))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("agentgraph-approval-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let file = folder.join("payments.db");

    let outcome = open(&file).await?.invoke(Payment::update().amount(250)).thread("invoice-7").await?;
    let asked = outcome.interrupts()[0].value.clone();
    println!("the run waits: {asked}");

    // The first graph is dropped. Another process would resume the run in the same way.
    let state = open(&file).await?.resume(true).thread("invoice-7").finish().await?;
    println!("{}", state.log.join(", "));
    assert_eq!(asked, "pay 250?");
    assert_eq!(state.log, ["checked 250", "approved: true", "paid 250"]);
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use agentgraph::testing::TestGraph;

    use super::*;

    #[tokio::test]
    async fn a_large_amount_needs_an_approval() -> Result<()> {
        let test = TestGraph::of(graph()?);
        let small = test.trace(Payment::update().amount(20)).await;
        assert_eq!(small.ran(), ["check", "pay"]);
        let refused = test.clone().answer(false).trace(Payment::update().amount(250)).await;
        assert_eq!(refused.ran(), ["check", "approve"]);
        let approved = test.answer(true).trace(Payment::update().amount(250)).await;
        assert_eq!(approved.ran(), ["check", "approve", "pay"]);
        assert_eq!(approved.asked(), ["pay 250?"]);
        Ok(())
    }

    #[tokio::test]
    async fn a_payment_survives_every_kill() -> Result<()> {
        let test = TestGraph::of(graph()?).answer(true);
        test.every_kill(Payment::update().amount(250)).await.assert_none();
        Ok(())
    }
}
