//! Runs of every kind. Each of their values contains the needle, a word that the stored bytes must not
//! contain.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agentgraph::checkpoint::Retention;
use agentgraph::prelude::*;
use agentgraph::{BoxError, Checkpointer, Durability, Failure, RetryPolicy};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::common::poll::pending_for;

/// The word in every value.
pub(crate) const NEEDLE: &str = "xyzzyNeedle";

/// Returns a text that contains the needle.
fn needle(what: &str) -> String {
    format!("{what} {NEEDLE} {what}")
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub(crate) struct Case {
    pub question: String,
    #[reduce(append)]
    pub notes: Vec<String>,
    #[reduce(merge)]
    pub by_name: BTreeMap<String, String>,
    #[channel(secret)]
    pub token: String,
    #[channel(secret, ephemeral)]
    pub hint: String,
    #[reduce(last)]
    pub large: String,
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub(crate) struct Part {
    #[channel(secret)]
    pub text: String,
}

#[derive(Default, Serialize, Deserialize)]
struct Notes(Vec<String>);

#[derive(Serialize, Deserialize, Debug, thiserror::Error)]
#[error("refused: {0}")]
struct Refused(String);

async fn asks(ctx: Ctx, notes: Session<Notes>) -> Result<CaseUpdate> {
    notes.with(|notes| notes.0.push(needle("session")));
    let answer: String = ctx.interrupt(json!({ "may I?": needle("question") }))?;
    Ok(Case::update().notes([answer]).token(needle("token")))
}

async fn finishes_beside(state: Snapshot<Case>) -> CaseUpdate {
    pending_for(3).await;
    let entry = (format!("key {}", state.question), needle("entry"));
    Case::update().by_name(BTreeMap::from([entry])).hint(needle("hint")).large(needle("large").repeat(400))
}

async fn flaky(ctx: Ctx) -> Result<CaseUpdate> {
    match ctx.attempt() {
        1 | 2 => Err(needle("not yet").into()),
        _ => Ok(Case::update().notes([needle("third attempt")])),
    }
}

async fn fails() -> Result<CaseUpdate> {
    Err(Refused(needle("card")).into())
}

async fn handles(failure: Failure) -> CaseUpdate {
    Case::update().notes([format!("handled {}", failure.message())])
}

async fn splits() -> Command<Case> {
    Command::to(["one", "two"].map(|which| Dispatch::new("part", needle(which))))
}

async fn part_asks(ctx: Ctx, part: Snapshot<Part>) -> Result<PartUpdate> {
    let more: String = ctx.interrupt(format!("inside {}", part.text))?;
    Ok(Part::update().text(format!("{} {more}", part.text)))
}

async fn edits(ctx: Ctx) -> Result<CaseUpdate> {
    ctx.edits().add_node("extra#1", "extra", needle("argument of a template"))?;
    ctx.edits().add_edge("edits", "extra#1")?;
    Ok(Case::update().notes([needle("edits")]))
}

/// The number of calls of a node that fails at its first call only.
#[derive(Clone, Default)]
pub(crate) struct Once(Arc<AtomicUsize>);

fn supersteps(once: &Once) -> StateGraph<Case> {
    let once = once.clone();
    let stumbles = move || {
        let first = once.0.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            if first {
                Err::<CaseUpdate, BoxError>(needle("stumbled").into())
            } else {
                Ok(Case::update().notes([needle("stood up")]))
            }
        }
    };
    let part = StateGraph::new().node("part_asks", part_asks).edge(START, "part_asks").compile().unwrap();
    let same = StateGraph::new().node("inner", finishes_beside).edge(START, "inner").compile().unwrap();
    let part = part.embed(
        |Input(text): Input<String>| Part::update().text(text),
        |part: Part| Case::update().notes([part.text]),
    );
    StateGraph::new()
        .session::<Notes>("notes")
        .node("asks", asks)
        .node("beside", finishes_beside.keep_output())
        .node("flaky", flaky.retry(RetryPolicy::attempts(3).initial(Duration::from_millis(1))))
        .node("fails", fails.keeps_error::<Refused>().on_error("handles"))
        .node("handles", handles)
        .node("stumbles", stumbles)
        .node("splits", splits.targets(["part"]))
        .node("part", part)
        .node("same", same)
        .node("edits", edits)
        .template("extra", |text: String| {
            move || {
                let text = text.clone();
                async move { Case::update().notes([text]) }
            }
        })
        .edge(START, "asks")
        .edge(START, "beside")
        .edge(START, "flaky")
        .edge(["asks", "beside", "flaky"], "fails")
        .edge("handles", "stumbles")
        .edge("stumbles", "splits")
        .edge("part", "same")
        .edge("same", "edits")
}

/// Runs a graph with an interrupt, a failure, interrupts in subgraphs, time travel, a copy, pruning and a
/// thread that stays open.
pub(crate) async fn run_supersteps(saver: Arc<dyn Checkpointer>, durability: Durability) -> Case {
    let graph = supersteps(&Once::default()).compile().unwrap().checkpointer(Arc::clone(&saver));
    let asked = graph
        .invoke(Case::update().question(needle("input")))
        .thread("t")
        .durability(durability)
        .await
        .unwrap();
    assert_eq!(asked.interrupts().len(), 1);
    let waiting = graph.waiting().await.unwrap();
    assert!(waiting[0].interrupts[0].value.to_string().contains(NEEDLE));
    graph.copy_thread("t", "copy").await.unwrap();
    let failed = graph.resume(needle("answer")).thread("t").durability(durability).await.unwrap_err();
    assert!(failed.to_string().contains("stumbled"), "{failed}");
    let inside = graph.proceed().thread("t").durability(durability).await.unwrap();
    assert_eq!(inside.interrupts().len(), 2);
    let answers = inside.interrupts().iter().map(|asked| (asked.id.unwrap(), needle("inside")));
    let answers: Vec<_> = answers.collect();
    let done = graph.resume_many(answers).thread("t").durability(durability).await.unwrap();
    let done = done.into_finished().unwrap();
    let history = graph.history("t").await.unwrap();
    assert_eq!(history[0].values.token, needle("token"));
    let early = history[history.len() - 2].id;
    graph.update_state("t").at(early).update(Case::update().notes([needle("edited")])).await.unwrap();
    let copied = graph.state("copy").await.unwrap().unwrap();
    let id = copied.interrupts[0].id.unwrap();
    graph.resume_many([(id, needle("answer to the copy"))]).thread("copy").await.unwrap();
    graph.prune(Retention::keep_last(3)).await.unwrap();
    let left = graph.invoke(Case::update().question(needle("again"))).thread("open").await.unwrap();
    assert_eq!(left.interrupts().len(), 1);
    done
}

pub(crate) async fn run_eager(saver: Arc<dyn Checkpointer>, durability: Durability) -> Case {
    let graph = StateGraph::new()
        .session::<Notes>("notes")
        .eager()
        .node("asks", asks)
        .node("beside", finishes_beside)
        .node("flaky", flaky.retry(RetryPolicy::attempts(3).initial(Duration::from_millis(1))))
        .node("gathers", finishes_beside)
        .edge(START, "asks")
        .edge(START, "beside")
        .edge(START, "flaky")
        .edge(["asks", "flaky"], "gathers");
    let graph = graph.compile().unwrap().checkpointer(saver);
    let input = Case::update().question(needle("input"));
    let asked = graph.invoke(input).thread("eager").durability(durability).await.unwrap();
    assert_eq!(asked.interrupts().len(), 1);
    let done = graph.resume(needle("answer")).thread("eager").durability(durability).await.unwrap();
    let input = Case::update().question(needle("left open"));
    graph.invoke(input).thread("eager").durability(durability).await.unwrap();
    done.into_finished().unwrap()
}

pub(crate) async fn run_dependencies(saver: Arc<dyn Checkpointer>, durability: Durability) -> String {
    let ask = |deps: Deps<'static, String>, ctx: Ctx| {
        let before = deps[0].clone();
        async move { Ok::<String, BoxError>(ctx.interrupt(format!("after {before}?"))?) }
    };
    let graph = DependencyGraph::<String>::new()
        .node("a", |_: Deps<'_, String>| needle("a"))
        .node("c", |_: Deps<'_, String>| needle("c"))
        .node("ask", ask)
        .node("b", |deps: Deps<'_, String>| format!("{} and {}", deps[0], needle("b")))
        .edge("a", "ask")
        .edge("ask", "b");
    let graph = graph.compile().unwrap().checkpointer(saver);
    graph.invoke(()).thread("pass").durability(durability).await.unwrap();
    let done = graph.resume(needle("answer")).thread("pass").durability(durability).await.unwrap();
    graph.invoke(()).thread("open pass").durability(durability).await.unwrap();
    done.into_finished().unwrap()["b"].clone()
}

/// Runs all graphs in every durability.
pub(crate) async fn run_all(saver: impl Fn() -> Arc<dyn Checkpointer>) {
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let saver = saver();
        let case = run_supersteps(Arc::clone(&saver), durability).await;
        assert_eq!(case.token, needle("token"));
        let eager = run_eager(Arc::clone(&saver), durability).await;
        assert_eq!(eager.token, needle("token"));
        let last = run_dependencies(Arc::clone(&saver), durability).await;
        assert!(last.contains(NEEDLE));
        if durability != Durability::Exit {
            for thread in saver.threads().await.unwrap() {
                saver.delete_thread(&thread).await.unwrap();
            }
        }
    }
}
