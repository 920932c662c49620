//! Two nodes, one after the other.

use agentgraph::prelude::*;

#[derive(State, Clone, Debug, Default)]
struct Greeting {
    name: String,
    #[reduce(append)]
    words: Vec<String>,
}

async fn hello() -> GreetingUpdate {
    Greeting::update().words(["hello"])
}

async fn name(state: Snapshot<Greeting>) -> GreetingUpdate {
    Greeting::update().words([state.name.clone()])
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let graph = StateGraph::new()
        .node("hello", hello)
        .node("name", name)
        .edge(START, "hello")
        .edge("hello", "name")
        .compile()?;

    let state = graph.invoke(Greeting::update().name("graph")).finish().await?;
    println!("{}", state.words.join(" "));
    assert_eq!(state.words, ["hello", "graph"]);
    Ok(())
}
