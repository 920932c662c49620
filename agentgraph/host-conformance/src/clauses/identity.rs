//! Identity: a task knows the same about itself in any process.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use agentgraph::node::IntoGoto;
use agentgraph::prelude::*;
use futures_util::FutureExt;

use crate::case::{Case, Found, begin, resume, same};
use crate::clause::Clause;
use crate::graph::KitGraph;
use crate::notes::Notes;
use crate::sheet::{Sheet, SheetUpdate};

pub(super) const CLAUSES: &[Clause] = &[
    Clause::new(
        "a task has one id in all its attempts and with each answer",
        "`Ctx::task_id` is the idempotency key for effects on other systems.",
        |case| one_id(case).boxed(),
    ),
    Clause::new(
        "no two tasks have the same id",
        "This includes dispatches of one node, rounds of a loop, calls of a subgraph, runs of a thread, and threads.",
        |case| own_ids(case).boxed(),
    ),
    Clause::new(
        "a task knows its run, its thread, its node, its superstep and its attempt",
        "The call has them, and the limit of supersteps.",
        |case| names(case).boxed(),
    ),
];

pub(super) fn graphs(notes: &Notes) -> Vec<KitGraph> {
    vec![
        KitGraph::of("kit_one_task", one_task(notes)),
        KitGraph::of("kit_many_tasks", many_tasks(notes)),
        KitGraph::of("kit_names", named()),
    ]
}

fn one_task(notes: &Notes) -> StateGraph<Sheet> {
    async fn works(ctx: Ctx, notes: Dep<Notes>) -> Result<SheetUpdate> {
        notes.note(&ctx, "runs")?;
        if ctx.attempt() == 1 {
            return Err("the first attempt fails".into());
        }
        let answer: String = ctx.interrupt("go on?")?;
        Ok(Sheet::update().lines([format!("{answer} {}", ctx.task_id())]))
    }
    let again = RetryPolicy::attempts(2).initial(Duration::from_millis(1));
    StateGraph::new().dep(notes.clone()).node("works", works.retry(again)).edge(START, "works")
}

/// Two rounds, each with three dispatches of one node and a call of a subgraph.
fn many_tasks(notes: &Notes) -> StateGraph<Sheet> {
    async fn notes_itself(ctx: Ctx, notes: Dep<Notes>) -> Result<()> {
        notes.note(&ctx, "runs")?;
        Ok(())
    }
    async fn split(ctx: Ctx, sheet: Snapshot<Sheet>, notes: Dep<Notes>) -> Result<Command<Sheet>> {
        notes.note(&ctx, "runs")?;
        let jobs = (0..3_u64).map(|n| Dispatch::new("job", n).into_goto());
        Ok(Command::update(Sheet::update().number(sheet.number + 1)).also_goto(jobs.collect::<Vec<_>>()))
    }
    async fn job(ctx: Ctx, Input(_): Input<u64>, notes: Dep<Notes>) -> Result<()> {
        notes.note(&ctx, "runs")?;
        Ok(())
    }
    let inside = StateGraph::new().dep(notes.clone()).node("inside", notes_itself).edge(START, "inside");
    let next = |sheet: &Sheet| if sheet.number % 2 == 1 { "split" } else { END };
    StateGraph::new()
        .dep(notes.clone())
        .node("split", split.targets(["job"]))
        .node("job", job)
        .node("graph", crate::graph::valid(inside.compile()))
        .edge(START, "split")
        .edge("split", "graph")
        .branch("graph", next, ["split", END])
}

fn named() -> StateGraph<Sheet> {
    async fn says(ctx: Ctx) -> Result<SheetUpdate> {
        if ctx.attempt() == 1 {
            return Err("the first attempt fails".into());
        }
        let (node, thread, run) = (ctx.node(), ctx.thread(), ctx.run());
        let (step, left, attempt) = (ctx.step(), ctx.remaining_steps(), ctx.attempt());
        Ok(Sheet::update().lines([format!("{node} {thread:?} {run} {step} {left} {attempt}")]))
    }
    let again = || RetryPolicy::attempts(2).initial(Duration::from_millis(1));
    let graph = StateGraph::new().node("one", says.retry(again())).node("two", says.retry(again()));
    graph.edge(START, "one").edge("one", "two")
}

async fn one_id(case: &Case<'_>) -> Found {
    case.interrupted("kit_one_task", begin()?).await?;
    let sheet = case.finished("kit_one_task", resume("yes")?).await?;
    let notes = case.notes()?;
    let ids: BTreeSet<&str> = notes.iter().map(|note| &*note.task).collect();
    same("the ids of one task that ran several times", (ids.len(), notes.len() > 2), (1, true))?;
    let own = sheet.lines.last().is_some_and(|line| ids.iter().all(|id| line.ends_with(id)));
    same("whether the update has that id", own, true)
}

async fn own_ids(case: &Case<'_>) -> Found {
    let mut tasks: BTreeMap<String, String> = BTreeMap::new();
    for (thread, runs) in [("a", 2), ("b", 1)] {
        let case = case.on(thread);
        for _ in 0..runs {
            case.finished("kit_many_tasks", begin()?).await?;
        }
        let notes = case.notes()?;
        same("the tasks that ran", notes.len(), runs * 10)?;
        for note in notes {
            let this = format!("`{}` of {}", note.node, note.thread);
            if let Some(other) = tasks.insert(note.task.clone(), this.clone()) {
                return Err(format!("{other} and {this} have the id {}", note.task));
            }
        }
    }
    Ok(())
}

async fn names(case: &Case<'_>) -> Found {
    let call = begin()?.max_supersteps(7);
    let outcome = case.outcome("kit_names", call).await?;
    let (thread, run) = (Some(case.thread()), outcome.run());
    let expected = [format!("one {thread:?} {run} 1 6 2"), format!("two {thread:?} {run} 2 5 2")];
    same("lines of the tasks", &outcome.output().lines[1..], expected)
}
