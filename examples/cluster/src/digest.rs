//! The graph: it reads about several topics beside each other, writes a digest, asks, and publishes. Nothing
//! in it knows where it runs.

use std::time::Duration;

use agentgraph::prelude::*;

#[derive(State, Clone, Debug, Default)]
pub(crate) struct Digest {
    pub(crate) topics: Vec<String>,
    #[reduce(append)]
    pub(crate) notes: Vec<String>,
    pub(crate) text: String,
    pub(crate) published: bool,
}

async fn split(digest: Snapshot<Digest>) -> Command<Digest> {
    Command::to(digest.topics.iter().map(|topic| Dispatch::new("read", topic.clone())).collect::<Vec<_>>())
}

/// Takes as many milliseconds as `PAUSE` says, so that there is time to kill something.
async fn read(Input(topic): Input<String>) -> DigestUpdate {
    eprintln!("process {} reads about {topic}", std::process::id());
    tokio::time::sleep(pause()).await;
    Digest::update().notes([format!("all about {topic}")])
}

async fn write(digest: Snapshot<Digest>) -> DigestUpdate {
    let mut notes = digest.notes.clone();
    notes.sort();
    Digest::update().text(notes.join("; "))
}

async fn approve(ctx: Ctx, digest: Snapshot<Digest>) -> Result<Command<Digest>> {
    let yes: bool = ctx.interrupt(format!("publish \"{}\"?", digest.text))?;
    Ok(Command::to(if yes { "publish" } else { END }))
}

async fn publish() -> DigestUpdate {
    eprintln!("process {} publishes", std::process::id());
    Digest::update().published(true)
}

pub(crate) fn digest() -> Result<CompiledGraph<Digest>> {
    let graph = StateGraph::new()
        .node("split", split.targets(["read"]))
        .node("read", read.remote())
        .node("write", write)
        .node("approve", approve.targets(["publish", END]))
        .node("publish", publish)
        .edge(START, "split")
        .edge("read", "write")
        .edge("write", "approve")
        .compile()?;
    Ok(graph)
}

fn pause() -> Duration {
    let pause = std::env::var("PAUSE").ok().and_then(|pause| pause.parse().ok());
    Duration::from_millis(pause.unwrap_or(0))
}
