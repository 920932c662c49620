//! Threads with the later additions to format 1: join policies, deferred nodes, handlers, budgets,
//! branches and subgraphs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use agentgraph::prelude::*;
use agentgraph::{Checkpointer, Failure, Memory, all, any};

use super::clock::Clock;
use super::stories::{Story, StoryUpdate};
use super::tape::{Recorder, Tape};

fn line(text: &'static str) -> impl Fn() -> std::future::Ready<StoryUpdate> + Clone {
    move || std::future::ready(Story::update().lines([text]))
}

fn compile(graph: StateGraph<Story>, saver: impl Checkpointer) -> CompiledGraph<Story> {
    graph.compile().unwrap().services(Clock::default()).checkpointer(saver)
}

/// Builds a graph that waits in the handler of a failed node, beside a finished node. One join has
/// fired, one waits for its timeout, one node is deferred, and 25 cents were spent.
pub fn handled(saver: impl Checkpointer) -> CompiledGraph<Story> {
    async fn pay(ctx: Ctx) -> StoryUpdate {
        ctx.spend("cents", 25);
        Story::update().lines(["paid"])
    }
    async fn tear() -> Result<()> {
        Err("the page is torn".into())
    }
    async fn mend(ctx: Ctx, failure: Failure) -> Result<StoryUpdate> {
        let with: String = ctx.interrupt(failure.message())?;
        Ok(Story::update().lines([format!("mended with {with}")]))
    }
    let graph = StateGraph::new()
        .node("pay", pay)
        .node("quick", line("quick"))
        .node("slow", line("slow"))
        .node("first", line("first"))
        .node("waited", line("waited"))
        .node("tear", tear.on_error("mend"))
        .node("mend", mend)
        .node("late", line("late").defer())
        .edge(START, "pay")
        .edge(START, "quick")
        .edge(START, "late")
        .edge(any(["quick", "slow"]), "first")
        .edge(all(["quick", "slow"]).timeout(Duration::from_secs(3600)), "waited")
        .edge("pay", "tear");
    compile(graph, saver)
}

/// Builds a graph that, in its second run, waits in two subgraphs: one over the same state that has
/// written something, and one with a memory of the first run.
pub fn nested(saver: impl Checkpointer) -> CompiledGraph<Story> {
    async fn ask(ctx: Ctx) -> Result<StoryUpdate> {
        let answer: String = ctx.interrupt("and then?")?;
        Ok(Story::update().lines([answer]))
    }
    async fn count(ctx: Ctx, story: Snapshot<Story>) -> Result<StoryUpdate> {
        let by = if story.count == 0 { 1 } else { ctx.interrupt(story.count)? };
        Ok(Story::update().count(story.count + by))
    }
    let part = StateGraph::new().node("open", line("opened")).node("ask", ask);
    let part = part.edge(START, "open").edge("open", "ask").compile().unwrap();
    let counter = StateGraph::new().node("count", count).edge(START, "count").compile().unwrap();
    let counter = counter.embed(
        |story: Snapshot<Story>| Story::update().title(story.title.clone()),
        |counted: Story| Story::update().count(counted.count),
    );
    let graph =
        StateGraph::new().node("part", part).node("counter", counter.memory(Memory::PerThread)).branch(
            START,
            |story: &Story| if story.count == 0 { vec!["counter"] } else { vec!["part", "counter"] },
            ["part", "counter"],
        );
    compile(graph, saver)
}

/// Builds a graph whose node asks one question with a key and two without. Its last question has another
/// text in every run of the node but the first. `runs` is the number of earlier runs.
pub fn asked(saver: impl Checkpointer, eager: bool, runs: u32) -> CompiledGraph<Story> {
    let runs = Arc::new(AtomicU32::new(runs));
    let ask = move |ctx: Ctx| {
        let later = runs.fetch_add(1, Ordering::Relaxed) > 0;
        async move {
            let paid = ctx.interrupt_as::<String>("tea", "pay 3 for tea?");
            let first: Option<String> = ctx.interrupt(serde_json::json!({ "question": 1, "price": 0.1 }))?;
            let second: String = ctx.interrupt(if later { "mallory?" } else { "the baker?" })?;
            let answers = [paid?, first.unwrap_or_default(), second];
            Ok::<_, agentgraph::BoxError>(Story::update().lines(answers))
        }
    };
    let graph = StateGraph::new().node("ask", ask).edge(START, "ask");
    compile(if eager { graph.eager() } else { graph }, saver)
}

/// Runs and answers [`asked`] until it asks its last question with a new text. In the eager graph, a
/// record holds the answers; elsewhere, pending writes do.
async fn ask_and_answer(saver: Recorder, eager: bool) {
    let ids =
        |outcome: Outcome<Story>| outcome.interrupts().iter().map(|one| one.id.unwrap()).collect::<Vec<_>>();
    let graph = asked(saver.clone(), eager, 0);
    let both = ids(graph.invoke(Story::update().title("asked")).thread("t").await.unwrap());
    let answers = [(both[0], serde_json::json!("yes")), (both[1], serde_json::Value::Null)];
    // A fresh graph asks about the baker; in its second run, `graph` asks about mallory instead.
    let baker = ids(asked(saver.clone(), eager, 0).resume_many(answers).thread("t").await.unwrap());
    assert_eq!(baker.len(), 1);
    graph.resume("yes").thread("t").await.unwrap();
    if eager {
        graph.update_state("t").update(Story::update().count(1)).await.unwrap();
    }
}

/// Builds a graph that calls a subgraph twice and then fails, unless `mended`. Each call ends with a
/// stuck join.
pub fn failed(saver: impl Checkpointer, mended: bool) -> CompiledGraph<Story> {
    let tear = move || std::future::ready(if mended { Ok(()) } else { Err("the page is torn") });
    let half = StateGraph::new()
        .node("here", line("here"))
        .node("absent", line("absent"))
        .node("both", line("both"));
    let half = half.edge(START, "here").edge(["here", "absent"], "both").compile().unwrap();
    let graph = StateGraph::new().node("one", half.clone()).node("two", half).node("tear", tear);
    compile(graph.edge(START, "one").edge("one", "two").edge("two", "tear"), saver)
}

/// Returns the threads as this release stores them. The file `nested` has the second one as a release
/// stored it that did not name memories.
pub async fn recorded() -> [(&'static str, Tape); 5] {
    let [first, second, third, fourth, fifth] = std::array::from_fn(|_| Recorder::default());
    ask_and_answer(third.clone(), false).await;
    ask_and_answer(fourth.clone(), true).await;
    let graph = failed(fifth.clone(), false);
    graph.invoke(Story::update().title("failed")).thread("t").await.unwrap_err();
    let behind_one = graph.history("t").await.unwrap().remove(1).id;
    graph.proceed().thread("t").from(behind_one).await.unwrap_err();
    let graph = handled(first.clone());
    graph.invoke(Story::update().title("handled")).thread("t").await.unwrap();
    let begin = graph.history("t").await.unwrap().pop().unwrap().id;
    graph.proceed().thread("t").from(begin).await.unwrap();

    let graph = nested(second.clone());
    graph.invoke(Story::update().title("first")).thread("t").await.unwrap().into_finished().unwrap();
    graph.invoke(Story::update().title("nested")).thread("t").await.unwrap();
    [
        ("handled", first.tape()),
        ("named", second.tape()),
        ("asked", third.tape()),
        ("asked_eager", fourth.tape()),
        ("failed", fifth.tape()),
    ]
}
