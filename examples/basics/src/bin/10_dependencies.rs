//! A dependency graph: each node runs once its dependencies are done, and gets their outputs. Each turn
//! of a game is one pass. The plan is kept while it is good, and a turn edits its own graph where it
//! needs more or fewer nodes.
//!
//! Models are simulated: a node that would call one returns a fixed text.

use agentgraph::CompiledDependencyGraph;
use agentgraph::dependency::{Join, NotRunReason, Outputs};
use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

/// The input of a turn.
#[derive(Clone, Serialize, Deserialize)]
struct Turn {
    number: u32,
    danger: bool,
}

/// Looks around, and edits the rest of the turn. In danger, there is no planning. Otherwise there is no
/// fleeing, and from the second turn on the old plan is used again.
async fn observe(turn: Given<Turn>, edits: PassEdits<String, Turn>) -> Result<String> {
    if turn.danger {
        edits.remove_node("plan")?;
        return Ok("a wolf".to_owned());
    }
    edits.remove_edge("observe", "flee")?;
    if turn.number > 1 {
        edits.skip(["plan"])?;
    }
    Ok("all quiet".to_owned())
}

async fn plan(deps: Deps<'_, String>, turn: Given<Turn>) -> String {
    format!("plan of turn {} ({})", turn.number, deps["observe"])
}

/// Adds a node to its own pass: in the second turn, the axe must be mended.
fn work(deps: Deps<'_, String>, turn: Given<Turn>, edits: PassEdits<String, Turn>) -> Result<String> {
    if turn.number == 2 {
        edits.add_fn("mend the axe", |_: Deps<String>| "as good as new".to_owned())?;
        edits.add_edge("mend the axe", "report")?;
    }
    Ok(format!("wood, by the {}", deps["plan"]))
}

fn flee(deps: Deps<'_, String>) -> String {
    format!("away from {}", deps["observe"])
}

fn report(deps: Deps<'_, String>) -> String {
    deps.iter().map(|(name, output)| format!("{name}: {output}")).collect::<Vec<_>>().join("; ")
}

fn graph() -> Result<CompiledDependencyGraph<String, Turn>> {
    let graph = DependencyGraph::<String, Turn>::with_input()
        .node("observe", observe)
        .node("plan", plan)
        .node("work", work)
        .node("flee", flee)
        .node("report", DependencyNode::of(report).join(Join::AllNotPruned))
        .edge("observe", "plan")
        .edge("plan", "work")
        .edge("observe", "flee")
        .edge("work", "report")
        .edge("flee", "report");
    Ok(graph.compile()?)
}

fn show(number: u32, outputs: &Outputs<String, Turn>) {
    println!("turn {number}: {}", outputs.names().collect::<Vec<_>>().join(" -> "));
    println!("  {}", outputs["report"]);
    outputs.not_run().iter().for_each(|missed| println!("  {missed}"));
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut turns = graph()?.passes();
    for (number, danger) in [(1, false), (2, false), (3, true)] {
        let outcome = turns.invoke(Turn { number, danger }).await?;
        show(number, outcome.output());
    }

    let reports: Vec<&str> = turns.history().map(|outputs| &*outputs["report"]).collect();
    assert_eq!(reports[0], "work: wood, by the plan of turn 1 (all quiet)");
    assert_eq!(reports[1], "work: wood, by the plan of turn 1 (all quiet); mend the axe: as good as new");
    assert_eq!(reports[2], "flee: away from a wolf");
    let last = turns.history().next_back().map(Outputs::not_run).unwrap_or_default();
    assert!(last.iter().all(|missed| missed.reason == NotRunReason::Pruned) && last.len() == 2);
    Ok(())
}

#[cfg(test)]
mod tests {
    use agentgraph::testing::TestGraph;

    use super::*;

    #[tokio::test]
    async fn turns_take_their_ways_in_every_order_and_after_every_kill() -> Result<()> {
        let test = TestGraph::of(graph()?);
        let quiet = test.trace(Turn { number: 1, danger: false }).await;
        assert_eq!(quiet.ran(), ["observe", "plan", "work", "report"]);
        let danger = Turn { number: 1, danger: true };
        assert_eq!(test.trace(danger.clone()).await.ran(), ["observe", "flee", "report"]);
        test.every_order(danger.clone()).await.assert_none();
        test.every_kill(danger).await.assert_none();
        Ok(())
    }
}
