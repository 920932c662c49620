//! A graph as a node of another one. A subgraph writes each section of a report, all side by side; the
//! interrupt of one of them is answered at the root.

use agentgraph::prelude::*;

#[derive(State, Clone, Debug, Default)]
struct Report {
    topics: Vec<String>,
    #[reduce(append)]
    sections: Vec<String>,
}

#[derive(State, Clone, Debug, Default)]
struct Section {
    topic: String,
    text: String,
}

async fn draft(section: Snapshot<Section>) -> SectionUpdate {
    Section::update().text(format!("about {}", section.topic))
}

async fn review(ctx: Ctx, section: Snapshot<Section>) -> Result<SectionUpdate> {
    if section.topic != "prices" {
        return Ok(Section::update());
    }
    let remark: String = ctx.interrupt(format!("\"{}\": what is to be added?", section.text))?;
    Ok(Section::update().text(format!("{}, {remark}", section.text)))
}

async fn split(report: Snapshot<Report>) -> Command<Report> {
    Command::to(report.topics.iter().map(|topic| Dispatch::new("section", topic.clone())).collect::<Vec<_>>())
}

fn section() -> Result<CompiledGraph<Section>> {
    let section = StateGraph::new()
        .node("draft", draft)
        .node("review", review)
        .edge(START, "draft")
        .edge("draft", "review");
    Ok(section.compile()?)
}

fn report() -> Result<CompiledGraph<Report>> {
    let as_node = section()?.embed(
        |Input(topic): Input<String>| Section::update().topic(topic),
        |section: Section| Report::update().sections([section.text]),
    );
    let report = StateGraph::new()
        .node("split", split.targets(["section"]))
        .node("section", as_node)
        .edge(START, "split");
    Ok(report.compile()?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let saver = MemorySaver::new();
    let report = report()?.checkpointer(saver.clone());

    let topics = ["goals", "prices", "risks"].map(str::to_owned).to_vec();
    let outcome = report.invoke(Report::update().topics(topics)).thread("q3").await?;
    let asked = &outcome.interrupts()[0];
    println!("{} asks: {}", asked.namespace, asked.value);
    assert_eq!(asked.value, "\"about prices\": what is to be added?");

    // The state of the waiting subgraph can be read.
    let inside = section()?.checkpointer(saver).namespace(&asked.namespace);
    let waits = inside.state("q3").await?.ok_or("it is kept")?;
    assert_eq!((waits.values.topic.as_str(), waits.next), ("prices", vec!["review".to_owned()]));

    let report = report.resume("they hold until May").thread("q3").finish().await?;
    println!("{}", report.sections.join("\n"));
    assert_eq!(report.sections, ["about goals", "about prices, they hold until May", "about risks"]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use agentgraph::testing::TestGraph;

    use super::*;

    #[tokio::test]
    async fn sections_are_written_in_every_order_and_after_every_kill() -> Result<()> {
        let topics = Report::update().topics(["goals", "prices", "risks"].map(str::to_owned).to_vec());
        let test = TestGraph::of(report()?).answer_to("section/review", "they hold");
        let trace = test.trace(topics.clone()).await;
        assert_eq!(trace.state().sections, ["about goals", "about prices, they hold", "about risks"]);
        assert_eq!((trace.attempts("section/draft"), trace.attempts("section/review")), (3, 4));
        test.every_order(topics.clone()).seeds(16).await.assert_none();
        test.every_kill(topics).await.assert_none();
        Ok(())
    }
}
