//! `.finish().await?` of a call is the output of its run, and an error for every run that has not finished.
//! An outcome names the reason of its stop, its stuck joins and its cancelled nodes, whatever its arm.

use agentgraph::prelude::*;
use agentgraph::{Code, Error};
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Words {
    #[reduce(append)]
    seen: Vec<String>,
}

struct Count(usize);

impl From<Words> for Count {
    fn from(words: Words) -> Self {
        Count(words.seen.len())
    }
}

async fn note(ctx: Ctx) -> WordsUpdate {
    Words::update().seen([ctx.node()])
}

async fn ask(ctx: Ctx) -> Result<WordsUpdate> {
    Ok(Words::update().seen([ctx.interrupt::<String>("more?")?]))
}

fn asking() -> Result<CompiledGraph<Words>> {
    let graph = StateGraph::new().node("note", note).node("ask", ask).edge(START, "note").edge("note", "ask");
    Ok(graph.compile()?.checkpointer(MemorySaver::new()))
}

fn unfinished(error: &Error) -> (Code, Vec<String>) {
    (error.code(), error.state::<Words>().unwrap().seen.clone())
}

#[tokio::test]
async fn every_call_finishes() -> Result<()> {
    let graph = asking()?;
    let asked = graph.invoke(Words::update()).thread("t").finish().await.unwrap_err();
    assert_eq!(unfinished(&asked), (Code::NotFinished, vec!["note".to_owned()]));
    assert_eq!(graph.resume("tea").thread("t").finish().await?.seen, ["note", "tea"]);

    let stopped = graph.invoke(Words::update()).thread("u").max_supersteps(0).finish().await.unwrap_err();
    assert_eq!(unfinished(&stopped), (Code::NotFinished, vec![]));
    let asked = graph.proceed().thread("u").finish().await.unwrap_err();
    assert_eq!(unfinished(&asked).1, ["note"]);
    let id = graph.state("u").await?.unwrap().interrupts[0].id.unwrap();
    let Count(words) = graph.resume_many([(id, "milk")]).thread("u").output().finish().await?;
    assert_eq!(words, 2);

    let Count(words) = graph
        .narrow::<WordsUpdate, Count>()
        .invoke(Words::update())
        .thread("v")
        .output::<Count>()
        .finish()
        .await
        .or_else(|error| if error.code() == Code::NotFinished { Ok(Count(0)) } else { Err(error) })?;
    assert_eq!(words, 0);
    Ok(())
}

#[tokio::test]
async fn a_failed_run_keeps_its_error() -> Result<()> {
    async fn fails() -> Result<WordsUpdate> {
        Err("no tea".into())
    }
    let graph = StateGraph::<Words>::new().node("fails", fails).edge(START, "fails").compile()?;
    let error = graph.invoke(Words::update()).finish().await.unwrap_err();
    assert_eq!((error.code(), error.message()), (Code::NodeFailed, "no tea"));
    Ok(())
}

#[tokio::test]
async fn passes_and_workflows_finish_too() -> Result<()> {
    let pass = DependencyGraph::<u32>::new().node("one", |_: Deps<'_, u32>| async { 1 }).compile()?;
    assert_eq!(pass.invoke(()).finish().await?.get("one"), Some(&1));

    async fn double(ctx: Ctx, number: u32) -> Result<u32> {
        let factor: u32 = ctx.interrupt("times?")?;
        Ok(factor * number)
    }
    let double = Workflow::new("double", double).compile()?.checkpointer(MemorySaver::new());
    let asked = double.invoke(4).thread("t").returned().await.unwrap_err();
    assert_eq!(asked.code(), Code::NotFinished);
    assert_eq!(double.resume(2).thread("t").returned().await?, 8);
    Ok(())
}

#[tokio::test]
async fn a_stuck_join_is_an_error_and_is_listed() -> Result<()> {
    let graph = StateGraph::new()
        .node("search", note)
        .node("never", note)
        .node("report", note)
        .branch(START, |_: &Words| "search", ["search", "never"])
        .edge(["search", "never"], "report")
        .compile()?;
    let error = graph.invoke(Words::update()).finish().await.unwrap_err();
    assert_eq!(unfinished(&error), (Code::StuckJoin, vec!["search".to_owned()]));

    let outcome = graph.invoke(Words::update()).await?;
    assert_eq!(outcome.stuck()[0].missing, ["never"]);
    assert!(outcome.stop_reason().is_none() && outcome.cancelled().is_empty());
    Ok(())
}

#[tokio::test]
async fn stopped_and_cancelled_work_is_named() -> Result<()> {
    let stopped = asking()?.invoke(Words::update()).thread("t").max_supersteps(1).await?;
    assert_eq!(stopped.stop_reason(), Some(&StopReason::Limit));
    assert!(stopped.stuck().is_empty() && stopped.cancelled().is_empty());

    async fn forever() {
        std::future::pending().await
    }
    let graph = StateGraph::<Words>::new()
        .eager()
        .node("talk", forever.detached())
        .node("work", note)
        .edge(START, "talk")
        .edge(START, "work")
        .compile()?;
    assert_eq!(graph.invoke(Words::update()).await?.cancelled(), ["talk"]);
    Ok(())
}
