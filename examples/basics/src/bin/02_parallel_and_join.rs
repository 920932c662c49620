//! Two searches side by side, and a node that waits for both. The notes come in the order of the nodes'
//! declaration, whichever search is faster.

use agentgraph::prelude::*;

#[derive(State, Clone, Debug, Default)]
struct Research {
    question: String,
    #[reduce(append)]
    notes: Vec<String>,
    answer: String,
}

async fn library(state: Snapshot<Research>) -> ResearchUpdate {
    tokio::task::yield_now().await; // slower than the archive
    Research::update().notes([format!("the library on {}", state.question)])
}

async fn archive(state: Snapshot<Research>) -> ResearchUpdate {
    Research::update().notes([format!("the archive on {}", state.question)])
}

async fn write(state: Snapshot<Research>) -> ResearchUpdate {
    Research::update().answer(state.notes.join("; "))
}

fn graph() -> Result<CompiledGraph<Research>> {
    let graph = StateGraph::new()
        .node("library", library)
        .node("archive", archive)
        .node("write", write)
        .edge(START, "library")
        .edge(START, "archive")
        .edge(["library", "archive"], "write");
    Ok(graph.compile()?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let graph = graph()?;
    println!("{}", graph.mermaid());
    let state = graph.invoke(Research::update().question("comets")).finish().await?;
    println!("{}", state.answer);
    assert_eq!(state.answer, "the library on comets; the archive on comets");
    Ok(())
}

#[cfg(test)]
mod tests {
    use agentgraph::testing::TestGraph;

    use super::*;

    #[tokio::test]
    async fn the_answer_is_the_same_in_every_order_and_after_every_kill() -> Result<()> {
        let test = TestGraph::of(graph()?);
        let question = Research::update().question("comets");
        let trace = test.trace(question.clone()).await;
        assert_eq!(trace.steps(), [vec!["library", "archive"], vec!["write"]]);
        test.every_order(question.clone()).await.assert_none();
        test.every_kill(question).await.assert_none();
        Ok(())
    }
}
