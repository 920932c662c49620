//! A run edits its own graph: nodes, edges and skips that last until it ends. The plan adds a node for
//! each topic; without topics it skips the search, whose last output is used again. The compiled graph
//! never changes.

use agentgraph::prelude::*;

#[derive(State, Clone, Debug, Default)]
struct Report {
    topics: Vec<String>,
    #[reduce(append)]
    notes: Vec<String>,
    text: String,
}

/// Puts one node for each topic between `search` and `write`. With a checkpointer the nodes come from a
/// template, so that another process that continues the run can make the same nodes.
async fn plan(ctx: Ctx, report: Snapshot<Report>) -> Result<()> {
    let edits = ctx.edits();
    if report.topics.is_empty() {
        // The output of `search` in the previous run is used again.
        edits.skip(["search"])?;
        return Ok(());
    }
    edits.remove_edge("search", "write")?;
    for (number, topic) in report.topics.iter().enumerate() {
        let node = format!("read#{number}");
        edits.add_node(&node, "read", topic)?;
        edits.add_edge("search", &node)?;
        edits.add_edge(&node, "write")?;
    }
    // A rejected edit returns an error; the node may continue, and the graph is unchanged.
    if let Err(refused) = edits.add_edge("plan", "wrte") {
        println!("{refused}");
    }
    Ok(())
}

async fn search() -> ReportUpdate {
    Report::update().notes(["three sources found"])
}

async fn write(report: Snapshot<Report>) -> ReportUpdate {
    Report::update().text(report.notes.join("; "))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let graph = StateGraph::new()
        .node("plan", plan)
        .node("search", search.keep_output())
        .node("write", write)
        .edge(START, "plan")
        .edge("plan", "search")
        .edge("search", "write")
        .template("read", |topic: String| {
            move || {
                let topic = topic.clone();
                async move { Report::update().notes([format!("read about {topic}")]) }
            }
        })
        .compile()?
        .checkpointer(MemorySaver::new());

    let topics = Report::update().topics(vec!["tea".into(), "milk".into()]);
    let first = graph.invoke(topics).thread("t").await?;
    let last = first.checkpoint();
    let first = first.into_finished()?;
    assert_eq!(first.text, "three sources found; read about tea; read about milk");

    // The graph of that run; its temporary parts are dashed.
    let edited = match last {
        Some(last) => graph.topology_at("t", last).await?,
        None => None,
    };
    let temporary = |graph: &agentgraph::graph::GraphTopology| {
        graph.nodes.iter().filter(|node| node.is_temporary).count()
    };
    assert_eq!(edited.as_ref().map(temporary), Some(2));
    println!("{}", edited.map(|graph| graph.mermaid()).unwrap_or_default());

    // The next run starts with the compiled graph; its plan skips the search.
    let second = graph.invoke(Report::update().topics(vec![])).thread("t").finish().await?;
    assert_eq!(second.notes.len(), first.notes.len() + 1);

    // The caller can also edit the graph before a run starts.
    let hurry = graph.invoke(Report::update()).thread("t2").for_this_run(|edits| {
        edits.remove_node("search")?;
        edits.remove_node("plan")?;
        edits.add_edge(START, "write")
    });
    assert_eq!(hurry.await?.into_finished()?.text, "");
    Ok(())
}
