//! Supersteps: their order, their state, and loops of them.

use agentgraph::prelude::*;
use futures_util::FutureExt;

use crate::case::{Case, Found, begin, invoke, same};
use crate::clause::Clause;
use crate::graph::KitGraph;
use crate::host::Ability;
use crate::notes::Notes;
use crate::sheet::{Sheet, SheetUpdate};

pub(super) const CLAUSES: &[Clause] = &[
    Clause::new(
        "updates of a superstep are merged in task order",
        "The order is that of declaration, whichever task ends first. Each task needs its own reply.",
        |case| task_order(case).boxed(),
    ),
    Clause::new(
        "all tasks of a superstep read the same state",
        "It is the state at the start of the superstep. A host that keeps states finds them by their hash, not by run or thread.",
        |case| one_state(case).boxed(),
    ),
    Clause::new(
        "tasks of a superstep run side by side",
        "A task may wait for an effect of another task of its superstep.",
        |case| side_by_side(case).boxed(),
    ),
    Clause::new(
        "a loop of 600 supersteps runs to its end",
        "A host that divides a long call continues it until the run has ended.",
        |case| long_loop(case).boxed(),
    ),
    Clause::new(
        "the history has a checkpoint for each superstep",
        "A driver writes each commit to the store of the history.",
        |case| history(case).boxed(),
    )
    .needing(&[Ability::History]),
];

pub(super) fn graphs(notes: &Notes) -> Vec<KitGraph> {
    vec![
        KitGraph::of("kit_supersteps", rounds(notes)),
        KitGraph::of("kit_meeting", meeting(notes)),
        KitGraph::of("kit_loop", counting()),
    ]
}

/// Two rounds of three parallel nodes and a join.
fn rounds(notes: &Notes) -> StateGraph<Sheet> {
    async fn reads(ctx: Ctx, sheet: Snapshot<Sheet>, notes: Dep<Notes>) -> Result<SheetUpdate> {
        let done = format!("done in round {}", sheet.number);
        // The first one ends last.
        if ctx.node() == "left" {
            notes.wait_in(&ctx, "right", &done).await?;
        }
        notes.note(&ctx, &done)?;
        let read = (sheet.lines.len(), sheet.marks.len());
        Ok(Sheet::update()
            .lines([format!("{} reads {read:?}", ctx.node())])
            .marks([(ctx.node().to_owned(), sheet.number)]))
    }
    async fn both(sheet: Snapshot<Sheet>) -> SheetUpdate {
        Sheet::update().lines([format!("both reads {}", sheet.lines.len())]).number(sheet.number + 1)
    }
    let next = |sheet: &Sheet| match sheet.number {
        0 | 1 => vec!["left", "middle", "right"],
        _ => vec![END],
    };
    StateGraph::new()
        .dep(notes.clone())
        .node("left", reads)
        .node("middle", reads)
        .node("right", reads)
        .node("both", both)
        .edge(START, "left")
        .edge(START, "middle")
        .edge(START, "right")
        .edge(["left", "middle", "right"], "both")
        .branch("both", next, ["left", "middle", "right", END])
}

/// Two nodes that wait for each other.
fn meeting(notes: &Notes) -> StateGraph<Sheet> {
    async fn meets(ctx: Ctx, notes: Dep<Notes>) -> Result<SheetUpdate> {
        let other = if ctx.node() == "here" { "there" } else { "here" };
        notes.note(&ctx, "begins")?;
        let met = notes.wait_in(&ctx, other, "begins").await?;
        Ok(Sheet::update().lines([format!("{} {}", ctx.node(), if met { "met" } else { "was alone" })]))
    }
    let graph = StateGraph::new().dep(notes.clone()).node("here", meets).node("there", meets);
    graph.edge(START, "here").edge(START, "there")
}

/// Counts up to the number in its input.
fn counting() -> StateGraph<Sheet> {
    async fn count(sheet: Snapshot<Sheet>) -> SheetUpdate {
        Sheet::update().number(sheet.number + 1)
    }
    let next = |sheet: &Sheet| match sheet.marks.get("last") {
        Some(last) if sheet.number < *last => "count",
        _ => END,
    };
    StateGraph::new().node("count", count).edge(START, "count").branch("count", next, ["count", END])
}

async fn task_order(case: &Case<'_>) -> Found {
    let sheet = case.finished("kit_supersteps", begin()?).await?;
    let nodes = sheet.lines.iter().map(|line| line.split(' ').next().unwrap_or_default().to_owned());
    let round = ["left", "middle", "right", "both"];
    same("the order of the updates", nodes.skip(1).collect::<Vec<_>>(), [round, round].concat())
}

async fn one_state(case: &Case<'_>) -> Found {
    let sheet = case.finished("kit_supersteps", begin()?).await?;
    let first = ["left reads (1, 0)", "middle reads (1, 0)", "right reads (1, 0)", "both reads 4"];
    let second = ["left reads (5, 3)", "middle reads (5, 3)", "right reads (5, 3)", "both reads 8"];
    let mut found = sheet.lines;
    // Their order is another clause.
    found[1..].sort();
    let mut expected = [&first[..], &second[..]].concat();
    expected.sort_unstable();
    same("lines and marks that tasks have read", &found[1..], &expected[..])
}

async fn side_by_side(case: &Case<'_>) -> Found {
    let sheet = case.finished("kit_meeting", begin()?).await?;
    same("the tasks of a superstep", &sheet.lines[1..], &["here met", "there met"][..])
}

async fn long_loop(case: &Case<'_>) -> Found {
    let last = Sheet::update().marks([("last".to_owned(), 600)]);
    let sheet = case.finished("kit_loop", invoke(last)?).await?;
    same("the supersteps that were counted", sheet.number, 600)
}

async fn history(case: &Case<'_>) -> Found {
    let sheet = case.finished("kit_supersteps", begin()?).await?;
    let history = case.history("kit_supersteps").await?;
    let lines: Vec<usize> = history.iter().map(|checkpoint| checkpoint.values.lines.len()).collect();
    same("lines in each checkpoint", lines, [9, 8, 5, 4, 1])?;
    same("the newest checkpoint", &history[0].values, &sheet)?;
    let state = case.state("kit_supersteps").await?;
    same("the thread as it is looked at", (&state.values, state.id), (&sheet, history[0].id))
}
