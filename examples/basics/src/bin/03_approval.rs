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

async fn graph(file: &std::path::Path) -> Result<CompiledGraph<Payment>> {
    let graph = StateGraph::new()
        .node("check", check)
        .node("approve", approve.targets(["pay", END]))
        .node("pay", pay)
        .edge(START, "check")
        .route("check", after_check)
        .compile()?;
    Ok(graph.checkpointer(SqliteSaver::open(file).await?))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("agentgraph-approval-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let file = folder.join("payments.db");

    let outcome = graph(&file).await?.invoke(Payment::update().amount(250)).thread("invoice-7").await?;
    let asked = outcome.interrupts()[0].value.clone();
    println!("the run waits: {asked}");

    // The first graph is dropped. Another process would resume the run in the same way.
    let state = graph(&file).await?.resume(true).thread("invoice-7").await?.into_finished()?;
    println!("{}", state.log.join(", "));
    assert_eq!(asked, "pay 250?");
    assert_eq!(state.log, ["checked 250", "approved: true", "paid 250"]);
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
