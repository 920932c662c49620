//! Subgraphs: their tasks run on the host of the graph around them.

use agentgraph::node::IntoGoto;
use agentgraph::prelude::*;
use agentgraph::{Code, Memory};
use futures_util::FutureExt;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::case::{Case, Found, begin, invoke, proceed, questions, resume, same};
use crate::clause::Clause;
use crate::graph::{KitGraph, valid};
use crate::notes::Notes;
use crate::sheet::{Sheet, SheetUpdate};

pub(super) const CLAUSES: &[Clause] = &[
    Clause::new(
        "tasks of subgraphs run, at every depth",
        "A call names the graph nodes that lead to its node. Nodes of different graphs may have the same name.",
        |case| nested(case).boxed(),
    ),
    Clause::new(
        "tasks of a subgraph that a temporary edit added run",
        "The call has the edit that added each temporary node of its path.",
        |case| grown(case).boxed(),
    ),
    Clause::new(
        "a subgraph with a memory for its thread remembers its earlier calls",
        "Its rows are in a namespace of the thread, and kept like those of the root.",
        |case| memory(case).boxed(),
    ),
    Clause::new(
        "questions inside a subgraph are asked at the root, and answered inside",
        "Nodes of the subgraph that had finished do not run again.",
        |case| questions_inside(case).boxed(),
    ),
    Clause::new(
        "a failure inside a subgraph fails the run, and `proceed()` goes on inside",
        "The error names the inner node. Nodes of the subgraph that had finished do not run again.",
        |case| failure_inside(case).boxed(),
    ),
    Clause::new(
        "a node of a subgraph can leave it",
        "The update that `Command::parent` has for the graph around it comes back with the reply.",
        |case| leaves(case).boxed(),
    ),
];

pub(super) fn graphs(notes: &Notes) -> Vec<KitGraph> {
    vec![
        KitGraph::of("kit_nested", three_deep()),
        KitGraph::of("kit_grown", growing()),
        KitGraph::of("kit_memory", remembering()),
        KitGraph::of("kit_inner_question", asking_inside(notes)),
        KitGraph::of("kit_inner_failure", failing_inside(notes)),
        KitGraph::of("kit_exit", leaving()),
    ]
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Topic {
    topic: String,
    #[reduce(append)]
    notes: Vec<String>,
}

async fn says(ctx: Ctx) -> SheetUpdate {
    Sheet::update().lines([ctx.node()])
}

/// Nodes of one name in the root, in a graph over the same state, and in one over another state inside it,
/// called for two topics.
fn three_deep() -> StateGraph<Sheet> {
    async fn work_on_topic(ctx: Ctx, topic: Snapshot<Topic>) -> TopicUpdate {
        Topic::update().notes([format!("{} {}@{}", topic.topic, ctx.node(), ctx.step())])
    }
    async fn work_in_the_middle(sheet: Snapshot<Sheet>) -> Command<Sheet> {
        let topics = ["tea", "milk"].map(|topic| Dispatch::new("topic", topic.to_owned()).into_goto());
        Command::update(Sheet::update().lines([format!("middle {}", sheet.lines.len())]))
            .also_goto(topics.to_vec())
    }
    async fn work_at_the_root(sheet: Snapshot<Sheet>) -> SheetUpdate {
        Sheet::update().lines([format!("root {}", sheet.lines.len())])
    }
    let deep = StateGraph::new()
        .node("work", work_on_topic)
        .node("more", work_on_topic)
        .edge(START, "work")
        .edge("work", "more");
    let deep = valid(deep.compile()).embed_dispatched(
        |topic: &String| Topic::update().topic(topic),
        |_: String, topic: Topic| Sheet::update().lines([topic.notes.join(", ")]),
    );
    let middle = StateGraph::new()
        .node("work", work_in_the_middle.targets(["topic"]))
        .node("topic", deep)
        .edge(START, "work");
    StateGraph::new()
        .node("work", work_at_the_root)
        .node("middle", valid(middle.compile()))
        .edge(START, "work")
        .edge("work", "middle")
}

/// Adds a graph as a temporary node, which adds a node of its own.
fn growing() -> StateGraph<Sheet> {
    async fn plan(ctx: Ctx) -> Result<SheetUpdate> {
        ctx.edits().add_node("grown", "graph", "branch")?;
        ctx.edits().add_edge("plan", "grown")?;
        Ok(Sheet::update().lines([ctx.node()]))
    }
    async fn adds(ctx: Ctx) -> Result<SheetUpdate> {
        ctx.edits().add_node("leaf", "leaf", ())?;
        ctx.edits().add_edge("adds", "leaf")?;
        Ok(Sheet::update().lines([ctx.node()]))
    }
    let graph = |name: String| {
        let says_name = move || std::future::ready(Sheet::update().lines([name.clone()]));
        let inside = StateGraph::new()
            .template("leaf", |(): ()| says)
            .node("first", says_name)
            .node("adds", adds)
            .edge(START, "first")
            .edge("first", "adds");
        valid(inside.compile()).into_node()
    };
    StateGraph::new().template("graph", graph).node("plan", plan).edge(START, "plan")
}

/// A subgraph that collects its inputs.
fn remembering() -> StateGraph<Sheet> {
    async fn takes(topic: Snapshot<Topic>) -> TopicUpdate {
        Topic::update().notes([topic.topic.clone()])
    }
    let inside = StateGraph::new().node("takes", takes).edge(START, "takes");
    let inside = valid(inside.compile()).embed(
        |sheet: Snapshot<Sheet>| Topic::update().topic(&sheet.word),
        |topic: Topic| Sheet::update().lines([topic.notes.join(", ")]),
    );
    StateGraph::new().node("inside", inside.memory(Memory::PerThread)).edge(START, "inside")
}

async fn runs(ctx: Ctx, notes: Dep<Notes>) -> Result<SheetUpdate> {
    notes.note(&ctx, "runs")?;
    Ok(Sheet::update().lines([ctx.node()]))
}

fn asking_inside(notes: &Notes) -> StateGraph<Sheet> {
    async fn asks(ctx: Ctx, notes: Dep<Notes>) -> Result<SheetUpdate> {
        notes.note(&ctx, "runs")?;
        let answer: String = ctx.interrupt("inside?")?;
        Ok(Sheet::update().lines([answer]))
    }
    let inside = StateGraph::new()
        .dep(notes.clone())
        .node("first", runs)
        .node("asks", asks)
        .edge(START, "first")
        .edge("first", "asks");
    StateGraph::new()
        .node("inside", valid(inside.compile()))
        .node("last", says)
        .edge(START, "inside")
        .edge("inside", "last")
}

/// The note of the kit after which the node fails no more.
const MENDED: &str = "mended";

fn failing_inside(notes: &Notes) -> StateGraph<Sheet> {
    async fn fails(ctx: Ctx, notes: Dep<Notes>) -> Result<SheetUpdate> {
        notes.note(&ctx, "runs")?;
        let thread = ctx.thread().unwrap_or_default();
        match notes.of_thread(thread)?.iter().any(|note| note.what == MENDED) {
            true => Ok(Sheet::update().lines([ctx.node()])),
            false => Err("torn inside".into()),
        }
    }
    let inside = StateGraph::new()
        .dep(notes.clone())
        .node("first", runs)
        .node("torn", fails)
        .edge(START, "first")
        .edge("first", "torn");
    StateGraph::new().node("inside", valid(inside.compile())).edge(START, "inside")
}

fn leaving() -> StateGraph<Sheet> {
    async fn leaves() -> Command<Sheet> {
        Command::parent("elsewhere").parent_update(Sheet::update().lines(["left"]))
    }
    let inside = StateGraph::new()
        .node("leaves", leaves)
        .node("never", says)
        .edge(START, "leaves")
        .edge("leaves", "never");
    StateGraph::new()
        .node("inside", valid(inside.compile()).targets(["elsewhere"]))
        .node("elsewhere", says)
        .node("usual", says)
        .edge(START, "inside")
        .edge("inside", "usual")
}

async fn nested(case: &Case<'_>) -> Found {
    let sheet = case.finished("kit_nested", begin()?).await?;
    let expected = ["input", "root 1", "middle 2", "tea work@1, tea more@2", "milk work@1, milk more@2"];
    same("lines of the nodes", sheet.lines, expected)
}

async fn grown(case: &Case<'_>) -> Found {
    let sheet = case.finished("kit_grown", begin()?).await?;
    same("lines of the nodes", sheet.lines, ["input", "plan", "branch", "adds", "leaf"])
}

async fn memory(case: &Case<'_>) -> Found {
    let give = |word: &str| invoke(Sheet::update().word(word));
    case.finished("kit_memory", give("tea")?).await?;
    let sheet = case.finished("kit_memory", give("milk")?).await?;
    same("notes of the subgraph", sheet.lines, ["tea", "tea, milk"])?;
    let other = case.on("other").finished("kit_memory", give("salt")?).await?;
    same("notes of the subgraph in another thread", other.lines, ["salt"])
}

async fn questions_inside(case: &Case<'_>) -> Found {
    let asked = case.interrupted("kit_inner_question", begin()?).await?;
    same("the questions", questions(&asked), [&json!("inside?")])?;
    same("whether it is in a subgraph", asked[0].namespace.is_empty(), false)?;
    let sheet = case.finished("kit_inner_question", resume("yes")?).await?;
    same("the updates", sheet.lines, ["input", "first", "yes", "last"])?;
    same("how often `first` ran", case.count("first", "runs")?, 1)?;
    same("how often `asks` ran", case.count("asks", "runs")?, 2)
}

async fn failure_inside(case: &Case<'_>) -> Found {
    let error = case.failed("kit_inner_failure", begin()?).await?;
    same("the code", error.code(), Code::NodeFailed)?;
    let message = error.to_string();
    if !(message.contains("`torn`") && message.contains("torn inside")) {
        return Err(format!("the error does not have the inner node and its text: {message}"));
    }
    case.say(MENDED)?;
    let sheet = case.finished("kit_inner_failure", proceed()).await?;
    same("the updates", sheet.lines, ["input", "first", "torn"])?;
    same("how often `first` ran", case.count("first", "runs")?, 1)
}

async fn leaves(case: &Case<'_>) -> Found {
    let sheet = case.finished("kit_exit", begin()?).await?;
    same("the updates", sheet.lines, ["input", "left", "elsewhere"])
}
