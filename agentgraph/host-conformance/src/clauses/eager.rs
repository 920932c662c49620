//! Eager graphs: branches that do not wait for each other.

use std::time::Duration;

use agentgraph::all;
use agentgraph::prelude::*;
use futures_util::FutureExt;
use serde_json::json;

use crate::case::{Case, Found, begin, questions, resume, same};
use crate::clause::Clause;
use crate::graph::KitGraph;
use crate::notes::Notes;
use crate::sheet::{Sheet, SheetUpdate};

pub(super) const CLAUSES: &[Clause] = &[
    Clause::new(
        "a branch of an eager graph does not wait for a slower one",
        "The run gets each reply as soon as it is there. A host that collects all replies first is a barrier.",
        |case| no_barrier(case).boxed(),
    ),
    Clause::new(
        "a task of an eager graph reads the state of the commit that made it",
        "It does so however late it starts, whatever was merged meanwhile.",
        |case| own_state(case).boxed(),
    ),
    Clause::new(
        "a question in an eager graph holds its own branch only",
        "The run waits when nothing else can run; finished activations do not run again.",
        |case| own_branch(case).boxed(),
    ),
    Clause::new(
        "a join of an eager graph fires after its timeout",
        "It does so while a source is still running. The wait is a timer that the run asks for.",
        |case| join_timeout(case).boxed(),
    ),
    Clause::new(
        "a node behind a group of dispatches runs once, after all of them",
        "The dispatches of one command are a group, also in an eager graph.",
        |case| group(case).boxed(),
    ),
];

pub(super) fn graphs(notes: &Notes) -> Vec<KitGraph> {
    vec![
        KitGraph::of("kit_branches", branches(notes)),
        KitGraph::of("kit_eager_question", asking(notes)),
        KitGraph::of("kit_group", grouped(notes)),
        KitGraph::of("kit_late_source", late_source(notes)),
    ]
}

async fn says(ctx: Ctx, sheet: Snapshot<Sheet>, notes: Dep<Notes>) -> Result<SheetUpdate> {
    notes.note(&ctx, "runs")?;
    Ok(Sheet::update().lines([format!("{} reads {}", ctx.node(), sheet.lines.len())]))
}

/// A slow node that waits for the second node of the other branch, and a join of both.
fn branches(notes: &Notes) -> StateGraph<Sheet> {
    async fn slow(ctx: Ctx, sheet: Snapshot<Sheet>, notes: Dep<Notes>) -> Result<SheetUpdate> {
        let in_time = notes.wait_in(&ctx, "third", "runs").await?;
        let waited = if in_time { "" } else { ", and was waited for" };
        Ok(Sheet::update().lines([format!("slow reads {}{waited}", sheet.lines.len())]))
    }
    StateGraph::new()
        .eager()
        .dep(notes.clone())
        .node("slow", slow)
        .node("first", says)
        .node("second", says)
        .node("third", says)
        .node("last", says)
        .edge(START, "slow")
        .edge(START, "first")
        .edge("first", "second")
        .edge("second", "third")
        .edge(["slow", "third"], "last")
}

fn asking(notes: &Notes) -> StateGraph<Sheet> {
    async fn asks(ctx: Ctx, notes: Dep<Notes>) -> Result<SheetUpdate> {
        notes.note(&ctx, "runs")?;
        let answer: String = ctx.interrupt("which?")?;
        Ok(Sheet::update().lines([answer]))
    }
    StateGraph::new()
        .eager()
        .dep(notes.clone())
        .node("asks", asks)
        .node("first", says)
        .node("second", says)
        .node("after", says)
        .edge(START, "asks")
        .edge(START, "first")
        .edge("first", "second")
        .edge("asks", "after")
}

fn grouped(notes: &Notes) -> StateGraph<Sheet> {
    async fn split() -> Command<Sheet> {
        Command::to((0..5_u64).map(|n| Dispatch::new("page", n)).collect::<Vec<_>>())
    }
    async fn page(ctx: Ctx, Input(n): Input<u64>, notes: Dep<Notes>) -> Result<SheetUpdate> {
        // The first one ends last.
        if n == 0 {
            notes.wait_in(&ctx, "page", "did 4").await?;
        }
        notes.note(&ctx, &format!("did {n}"))?;
        Ok(Sheet::update().lines([format!("page {n}")]))
    }
    StateGraph::new()
        .eager()
        .dep(notes.clone())
        .node("split", split.targets(["page"]))
        .node("page", page)
        .node("after", says)
        .edge(START, "split")
        .edge(["page"], "after")
}

/// A join that waits for a source no longer than it may, and a source that waits for the node behind it.
fn late_source(notes: &Notes) -> StateGraph<Sheet> {
    async fn late(ctx: Ctx, notes: Dep<Notes>) -> Result<SheetUpdate> {
        let in_time = notes.wait_in(&ctx, "behind", "runs").await?;
        Ok(Sheet::update().lines([if in_time { "late" } else { "waited for" }]))
    }
    StateGraph::new()
        .eager()
        .dep(notes.clone())
        .node("late", late.remote())
        .node("early", says)
        .node("behind", says)
        .edge(START, "late")
        .edge(START, "early")
        .edge(all(["early", "late"]).timeout(Duration::from_millis(60)), "behind")
}

async fn join_timeout(case: &Case<'_>) -> Found {
    let mut sheet = case.finished("kit_late_source", begin()?).await?;
    // The late source ends while the node behind the join does, so either comes first.
    sheet.lines.sort();
    same("the updates", sheet.lines, ["behind reads 2", "early reads 1", "input", "late"])
}

async fn no_barrier(case: &Case<'_>) -> Found {
    let sheet = case.finished("kit_branches", begin()?).await?;
    let slow = sheet.lines.iter().find(|line| line.starts_with("slow"));
    same("line of the slow node", slow.map(String::as_str), Some("slow reads 1"))?;
    same("the last line", sheet.lines.last().map(String::as_str), Some("last reads 5"))
}

async fn own_state(case: &Case<'_>) -> Found {
    let sheet = case.finished("kit_branches", begin()?).await?;
    let reads =
        |node: &str| sheet.lines.iter().find(|line| line.starts_with(node)).cloned().unwrap_or_default();
    same(
        "lines of the first nodes",
        (&*reads("first"), &reads("slow")[..12]),
        ("first reads 1", "slow reads 1"),
    )?;
    same("line of the second node", &*reads("second"), "second reads 2")?;
    same("line of the third node", &*reads("third"), "third reads 3")
}

async fn own_branch(case: &Case<'_>) -> Found {
    let asked = case.interrupted("kit_eager_question", begin()?).await?;
    same("the questions", questions(&asked), [&json!("which?")])?;
    let state = case.state("kit_eager_question").await?;
    same("the state while it waits", state.values.lines, ["input", "first reads 1", "second reads 2"])?;
    let sheet = case.finished("kit_eager_question", resume("this")?).await?;
    same("the updates", &sheet.lines[3..], ["this", "after reads 4"])?;
    for (node, times) in [("asks", 2), ("first", 1), ("second", 1), ("after", 1)] {
        same(&format!("how often `{node}` ran"), case.count(node, "runs")?, times)?;
    }
    Ok(())
}

async fn group(case: &Case<'_>) -> Found {
    let sheet = case.finished("kit_group", begin()?).await?;
    same("the last line", sheet.lines.last().map(String::as_str), Some("after reads 6"))?;
    let mut pages = sheet.lines[1..sheet.lines.len() - 1].to_vec();
    pages.sort();
    same("the pages", pages, (0..5).map(|n| format!("page {n}")).collect::<Vec<_>>())
}
