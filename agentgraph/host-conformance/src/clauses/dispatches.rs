//! Dispatches: their inputs, their order, their limits.

use std::collections::HashMap;
use std::time::Duration;

use agentgraph::Code;
use agentgraph::node::IntoGoto;
use agentgraph::prelude::*;
use futures_util::FutureExt;
use serde::{Deserialize, Serialize};

use crate::case::{Case, Found, begin, same};
use crate::clause::Clause;
use crate::graph::KitGraph;
use crate::notes::Notes;
use crate::sheet::{Sheet, SheetUpdate};

pub(super) const CLAUSES: &[Clause] = &[
    Clause::new(
        "each dispatch gets its own input, and updates are merged in the order of the dispatches",
        "Dispatches of one node differ in their inputs alone, so a host must not match replies to calls by node.",
        |case| inputs(case).boxed(),
    ),
    Clause::new(
        "the time limit of a dispatch holds where its task runs",
        "The limit is a part of the call. The process that runs the task enforces it.",
        |case| limit(case).boxed(),
    ),
];

pub(super) fn graphs(notes: &Notes) -> Vec<KitGraph> {
    vec![KitGraph::of("kit_dispatches", jobs(notes)), KitGraph::of("kit_time_limit", slow(notes))]
}

/// The number of dispatches.
const JOBS: u64 = 30;

#[derive(Serialize, Deserialize, Clone)]
struct Job {
    number: u64,
    name: Option<String>,
    parts: HashMap<String, u64>,
}

fn jobs(notes: &Notes) -> StateGraph<Sheet> {
    async fn split(sheet: Snapshot<Sheet>) -> Command<Sheet> {
        let job = |number| Job {
            number,
            name: (number % 2 == 0).then(|| format!("für {}", sheet.lines[0])),
            parts: (0..number).map(|part| (format!("part {part}"), part)).collect(),
        };
        let jobs = (0..JOBS).map(|number| Dispatch::new("work", job(number)).into_goto());
        Command::new().also_goto(jobs.collect::<Vec<_>>())
    }
    async fn work(ctx: Ctx, Input(job): Input<Job>, notes: Dep<Notes>) -> Result<SheetUpdate> {
        let Job { number, name, parts } = job;
        // The first one ends last.
        if number == 0 {
            notes.wait_in(&ctx, "work", &format!("did {}", JOBS - 1)).await?;
        }
        notes.note(&ctx, &format!("did {number}"))?;
        let sum: u64 = parts.values().sum();
        Ok(Sheet::update().lines([format!("{number} {name:?} {sum}")]))
    }
    let graph = StateGraph::new().dep(notes.clone()).node("split", split.targets(["work"]));
    graph.node("work", work).edge(START, "split")
}

/// A dispatch to a node that takes longer than it may.
fn slow(notes: &Notes) -> StateGraph<Sheet> {
    async fn split() -> Command<Sheet> {
        Command::to(Dispatch::new("work", 1_u64).timeout(Duration::from_millis(50)))
    }
    async fn work(ctx: Ctx, Input(_): Input<u64>, notes: Dep<Notes>) -> Result<SheetUpdate> {
        notes.wait_in(&ctx, "work", "something that nothing does").await?;
        Ok(Sheet::update().lines(["it was not ended"]))
    }
    let graph = StateGraph::new().dep(notes.clone()).node("split", split.targets(["work"]));
    graph.node("work", work).edge(START, "split")
}

async fn inputs(case: &Case<'_>) -> Found {
    let sheet = case.finished("kit_dispatches", begin()?).await?;
    let expected = (0..JOBS).map(|number| {
        let name = (number % 2 == 0).then_some("für input");
        format!("{number} {name:?} {}", (0..number).sum::<u64>())
    });
    same("lines of the dispatched tasks", &sheet.lines[1..], expected.collect::<Vec<_>>())
}

async fn limit(case: &Case<'_>) -> Found {
    let error = case.failed("kit_time_limit", begin()?).await?;
    same("the error of a task that took too long", error.code(), Code::NodeTimeout)
}
