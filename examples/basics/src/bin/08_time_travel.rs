//! A thread can be read, edited and continued at any of its checkpoints. Stored checkpoints never
//! change: to continue from an older one starts a branch.

use agentgraph::prelude::*;

#[derive(State, Clone, Debug, Default)]
struct Trip {
    city: String,
    #[reduce(append)]
    plan: Vec<String>,
}

async fn travel(trip: Snapshot<Trip>) -> TripUpdate {
    Trip::update().plan([format!("by train to {}", trip.city)])
}

async fn stay(trip: Snapshot<Trip>) -> TripUpdate {
    Trip::update().plan([format!("two nights in {}", trip.city)])
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let graph = StateGraph::new()
        .node("travel", travel)
        .node("stay", stay)
        .edge(START, "travel")
        .edge("travel", "stay")
        .compile()?
        .checkpointer(MemorySaver::new());

    let first = graph.invoke(Trip::update().city("Graz")).thread("trip").finish().await?;
    assert_eq!(first.plan, ["by train to Graz", "two nights in Graz"]);

    // Newest first: after `stay`, after `travel`, after the input.
    let history = graph.history("trip").await?;
    let next: Vec<_> = history.iter().map(|checkpoint| checkpoint.next.join(", ")).collect();
    assert_eq!(next, ["", "stay", "travel"]);
    let after_travel = history[1].id;

    // Another city after `travel`: only `stay` runs again.
    graph.update_state("trip").at(after_travel).update(Trip::update().city("Linz")).await?;
    let second = graph.proceed().thread("trip").finish().await?;
    assert_eq!(second.plan, ["by train to Graz", "two nights in Linz"]);

    // Another output of `travel`: the node after it runs next.
    let by_bus = Trip::update().city("Wels").plan(["by bus to Wels"]);
    graph.update_state("trip").at(history[2].id).as_node("travel", by_bus).await?;
    let third = graph.proceed().thread("trip").finish().await?;
    assert_eq!(third.plan, ["by bus to Wels", "two nights in Wels"]);

    // The first branch is unchanged.
    let before = graph.history("trip").branch(0).await?;
    assert_eq!(before[0].values.plan, first.plan);
    println!("{}\n{}\n{}", first.plan.join(", "), second.plan.join(", "), third.plan.join(", "));
    Ok(())
}
