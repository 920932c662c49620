//! One graph, in one process and on many machines. `docs/guide/restate.md` goes through it step by step.
//!
//! ```text
//! cluster local tea,rain                              in this process
//! cluster worker 127.0.0.1:9080 [digests.db]          a machine that runs it
//! cluster ask t-1 tea,rain                            through Restate
//! cluster answer t-1 true
//! cluster show t-1
//! ```
//!
//! `RESTATE` is the address of Restate's ingress, and `RESTATE_ADMIN` that of its admin API.

mod digest;

use agentgraph::prelude::*;
use agentgraph::{BoxError, SqliteSaver};
use agentgraph_restate::{RemoteGraph, RestateClient, RestateWorker};
use digest::{Digest, digest};

const USAGE: &str = "cluster local TOPICS | worker ADDRESS [FILE] | ask THREAD TOPICS | answer THREAD true|false | \
                     show THREAD";

#[tokio::main]
async fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["local", topics] => local(topics).await,
        ["worker", address] => worker(address, None).await,
        ["worker", address, file] => worker(address, Some(file)).await,
        ["ask", thread, topics] => {
            show(remote()?.invoke(Digest::update().topics(split(topics))).thread(thread).await?)
        }
        ["answer", thread, answer] => show(remote()?.resume(answer == "true").thread(thread).await?),
        ["show", thread] => {
            match remote()?.state(thread).await? {
                Some(state) => println!("{:#?}", state.values),
                None => println!("there is no thread {thread}"),
            }
            Ok(())
        }
        _ => Err(BoxError::from(USAGE)),
    }
}

/// Step 1: the graph in this process.
async fn local(topics: &str) -> Result<()> {
    let graph = digest()?.checkpointer(MemorySaver::new());
    show(graph.invoke(Digest::update().topics(split(topics))).thread("t-1").await?)?;
    show(graph.resume(true).thread("t-1").await?)
}

/// Step 2: a process that runs it for Restate. With a file it also keeps the history.
async fn worker(address: &str, file: Option<&str>) -> Result<()> {
    let mut graph = digest()?;
    if let Some(file) = file {
        graph = graph.checkpointer(SqliteSaver::open(file).await?);
    }
    let worker =
        RestateWorker::new().graph("digest", graph).register(var("RESTATE_ADMIN", "http://127.0.0.1:9070"));
    Ok(worker.serve(address.parse()?).await?)
}

/// Step 3: a client of it.
fn remote() -> Result<RemoteGraph<Digest>> {
    Ok(RestateClient::connect(&var("RESTATE", "http://127.0.0.1:8080"))?.graph("digest"))
}

fn show(outcome: Outcome<Digest>) -> Result<()> {
    match outcome {
        Outcome::Interrupted { interrupts, .. } => println!("it asks: {}", interrupts[0].value),
        outcome => {
            let digest = outcome.into_finished()?;
            println!("{} ({})", digest.text, if digest.published { "published" } else { "not published" });
        }
    }
    Ok(())
}

fn split(topics: &str) -> Vec<String> {
    topics.split(',').map(str::to_owned).collect()
}

fn var(name: &str, otherwise: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| otherwise.to_owned())
}
