//! One graph, in one process and on many machines. `docs/guide/restate.md` goes through it step by step.
//!
//! ```text
//! cluster local tea,rain                              in this process
//! cluster worker 127.0.0.1:9080                       a process that runs it for Restate
//! cluster ask t-1 tea,rain                            a call of it, from anywhere
//! cluster answer t-1 true
//! cluster show t-1
//! cluster balance 127.0.0.1:9085 127.0.0.1:9081 ...   spreads requests over several workers
//! ```
//!
//! `INGRESS` is the address of Restate's ingress, and `ADMIN` that of its admin API. A worker keeps the
//! history of threads in the file that `HISTORY` names, and serves under the address `ADVERTISED` if it is
//! not the one that it listens on.

mod balance;
mod digest;

use agentgraph::prelude::*;
use agentgraph::{BoxError, SqliteSaver};
use agentgraph_restate::{RemoteGraph, RestateClient, RestateWorker};
use balance::balance;
use digest::{Digest, digest};

const USAGE: &str = "cluster local TOPICS | worker ADDRESS | ask THREAD TOPICS | answer THREAD true|false | show THREAD | \
                     balance ADDRESS WORKER..";

#[tokio::main]
async fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["local", topics] => local(topics).await,
        ["worker", address] => worker(address).await,
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
        ["balance", address, ref workers @ ..] if !workers.is_empty() => {
            let workers = workers.iter().map(|worker| worker.parse()).collect::<Result<_, _>>()?;
            balance(address.parse()?, workers).await
        }
        _ => Err(BoxError::from(USAGE)),
    }
}

/// The graph in this process.
async fn local(topics: &str) -> Result<()> {
    let graph = digest()?.checkpointer(MemorySaver::new());
    show(graph.invoke(Digest::update().topics(split(topics))).thread("t-1").await?)?;
    show(graph.resume(true).thread("t-1").await?)
}

/// A process that runs it for Restate.
async fn worker(address: &str) -> Result<()> {
    let mut graph = digest()?;
    if let Ok(file) = std::env::var("HISTORY") {
        graph = graph.checkpointer(SqliteSaver::open(file).await?);
    }
    let mut worker = RestateWorker::new().graph("digest", graph);
    if let Ok(address) = std::env::var("ADVERTISED") {
        worker = worker.advertise(address);
    }
    let worker = worker.register(var("ADMIN", "http://127.0.0.1:9070")).start(address.parse()?).await?;
    println!("works on {}", worker.addr());
    tokio::signal::ctrl_c().await?;
    worker.stop().await;
    Ok(())
}

/// A client of it.
fn remote() -> Result<RemoteGraph<Digest>> {
    Ok(RestateClient::connect(&var("INGRESS", "http://127.0.0.1:8080"))?.graph("digest"))
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
