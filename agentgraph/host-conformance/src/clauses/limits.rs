//! Limits: of supersteps, of tasks at a time, of units, of time.

use std::time::Duration;

use agentgraph::prelude::*;
use agentgraph::{Budget, Code};
use futures_util::FutureExt;

use crate::case::{Case, Found, begin, invoke, proceed, same};
use crate::clause::Clause;
use crate::graph::KitGraph;
use crate::host::Ability;
use crate::notes::{Note, Notes};
use crate::sheet::{Sheet, SheetUpdate};

pub(super) const CLAUSES: &[Clause] = &[
    Clause::new(
        "a call makes as many supersteps as it may, and `proceed()` goes on",
        "The settings go with the call. A thread with an unfinished run refuses a new one, unless the caller abandons the old one.",
        |case| supersteps(case).boxed(),
    ),
    Clause::new(
        "no more tasks run at a time than the call allows",
        "The settings go with the call, and a host runs each task once.",
        |case| concurrency(case).boxed(),
    ),
    Clause::new(
        "units that tasks spend count for the run's budget",
        "Units of an attempt come back with its reply, and the sum so far goes with each call.",
        |case| units(case).boxed(),
    ),
    Clause::new(
        "a node can stop its run at the next boundary",
        "The request of `Ctx::drain` comes back with the reply.",
        |case| drain(case).boxed(),
    ),
    Clause::new(
        "time goes on while a call runs",
        "The clock of a driven run moves with the times in replies. Checkpoints have its time.",
        |case| clock(case).boxed(),
    )
    .needing(&[Ability::History]),
    Clause::new(
        "a superstep that takes too long is cut off",
        "A driver answers a timer while a task is still running. The node of this clause is marked as one that asks for another process.",
        |case| cut_off(case).boxed(),
    ),
    Clause::new(
        "a deadline stops a run",
        "A driver answers timers when their time has passed. The thread can be continued.",
        |case| deadline(case).boxed(),
    ),
];

pub(super) fn graphs(notes: &Notes) -> Vec<KitGraph> {
    vec![
        KitGraph::of("kit_stuck", stuck(notes)),
        KitGraph::of("kit_crowd", crowd(notes)),
        KitGraph::of("kit_spending", spending()),
        KitGraph::of("kit_drain", draining()),
        KitGraph::of("kit_endless", endless()),
    ]
}

/// How long a task of the crowd looks for too many others.
const LOOK_OUT: Duration = Duration::from_millis(60);

/// The most tasks at a time.
const AT_A_TIME: usize = 2;

fn crowd(notes: &Notes) -> StateGraph<Sheet> {
    async fn split() -> Command<Sheet> {
        Command::to((0..8_u64).map(|n| Dispatch::new("one", n)).collect::<Vec<_>>())
    }
    async fn one(ctx: Ctx, Input(_): Input<u64>, notes: Dep<Notes>) -> Result<()> {
        notes.note(&ctx, "begins")?;
        let short = Notes::clone(&notes).patience(LOOK_OUT);
        let thread = ctx.thread().unwrap_or_default().to_owned();
        short.wait(&thread, |notes| at_a_time(notes) > AT_A_TIME).await?;
        notes.note(&ctx, "ends")?;
        Ok(())
    }
    let graph = StateGraph::new().dep(notes.clone()).node("split", split.targets(["one"]));
    graph.node("one", one).edge(START, "split")
}

/// The most tasks that have begun and not ended.
fn at_a_time(notes: &[Note]) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    for note in notes {
        match &*note.what {
            "begins" => now += 1,
            _ => now = now.saturating_sub(1),
        }
        most = most.max(now);
    }
    most
}

/// Spends 400 tokens in each round; the second round has an attempt that fails.
fn spending() -> StateGraph<Sheet> {
    async fn speaks(ctx: Ctx, sheet: Snapshot<Sheet>) -> Result<SheetUpdate> {
        ctx.spend("tokens", 400);
        if sheet.lines.len() == 2 && ctx.attempt() == 1 {
            return Err("lost the thread".into());
        }
        let line = format!("{} spent, {:?} left", ctx.spent("tokens"), ctx.remaining("tokens"));
        Ok(Sheet::update().lines([line]))
    }
    let again = RetryPolicy::attempts(2).initial(Duration::from_millis(1));
    let next = |sheet: &Sheet| if sheet.lines.len() < 6 { "speaks" } else { END };
    let graph = StateGraph::new().node("speaks", speaks.retry(again)).edge(START, "speaks");
    graph.branch("speaks", next, ["speaks", END])
}

fn draining() -> StateGraph<Sheet> {
    async fn stops(ctx: Ctx) -> SheetUpdate {
        ctx.drain();
        Sheet::update().lines([ctx.node()])
    }
    async fn works(ctx: Ctx) -> SheetUpdate {
        Sheet::update().lines([ctx.node()])
    }
    StateGraph::new().node("stops", stops).node("works", works).edge(START, "stops").edge("stops", "works")
}

/// Goes round until a limit ends it.
fn endless() -> StateGraph<Sheet> {
    async fn turns(sheet: Snapshot<Sheet>) -> SheetUpdate {
        tokio::time::sleep(Duration::from_millis(3)).await;
        Sheet::update().number(sheet.number + 1)
    }
    StateGraph::new().node("turns", turns).edge(START, "turns").edge("turns", "turns")
}

/// A node that waits for what never happens.
fn stuck(notes: &Notes) -> StateGraph<Sheet> {
    async fn waits(ctx: Ctx, notes: Dep<Notes>) -> Result<SheetUpdate> {
        notes.wait_in(&ctx, "waits", "something that nothing does").await?;
        Ok(Sheet::update().lines(["it was not cut off"]))
    }
    StateGraph::new().dep(notes.clone()).node("waits", waits.remote()).edge(START, "waits")
}

async fn clock(case: &Case<'_>) -> Found {
    case.stopped("kit_endless", begin()?.max_supersteps(30), StopReason::Limit).await?;
    let history = case.history("kit_endless").await?;
    let (Some(last), Some(first)) = (history.first(), history.last()) else {
        return Err("the history has no checkpoints".to_owned());
    };
    let passed = last.created.duration_since(first.created).unwrap_or_default();
    // 30 waits of 3 milliseconds, by a clock that may be set meanwhile.
    match passed < Duration::from_millis(25) {
        true => Err(format!("{passed:?} between the first checkpoint and the last of 30 supersteps")),
        false => Ok(()),
    }
}

async fn cut_off(case: &Case<'_>) -> Found {
    let call = begin()?.step_timeout(Duration::from_millis(60));
    let error = case.failed("kit_stuck", call).await?;
    same("the error", error.code(), Code::StepTimeout)
}

async fn supersteps(case: &Case<'_>) -> Found {
    let graph = "kit_loop";
    let call = invoke(Sheet::update().marks([("last".to_owned(), 12)]))?.max_supersteps(3);
    let sheet = case.stopped(graph, call, StopReason::Limit).await?;
    same("the supersteps of the first call", sheet.number, 3)?;
    let refused = case.failed(graph, begin()?).await?;
    same("the error of a new run", refused.code(), Code::RunUnfinished)?;
    let sheet = case.stopped(graph, proceed().max_supersteps(4), StopReason::Limit).await?;
    same("the supersteps of two calls", sheet.number, 7)?;
    let sheet = case.finished(graph, proceed()).await?;
    same("the supersteps of all calls", sheet.number, 12)?;
    case.stopped(graph, invoke(Sheet::update().number(0))?.max_supersteps(2), StopReason::Limit).await?;
    let sheet = case.finished(graph, invoke(Sheet::update().number(10))?.abandon()).await?;
    same("the supersteps of a run in place of another one", sheet.number, 12)
}

async fn concurrency(case: &Case<'_>) -> Found {
    case.finished("kit_crowd", begin()?.max_concurrency(AT_A_TIME)).await?;
    let notes = case.notes()?;
    same("the notes of the tasks", notes.len(), 16)?;
    match at_a_time(&notes) {
        most if most <= AT_A_TIME => Ok(()),
        most => Err(format!("{most} tasks ran at a time, and {AT_A_TIME} may")),
    }
}

async fn units(case: &Case<'_>) -> Found {
    let graph = "kit_spending";
    let budget = |tokens| Budget::new().units("tokens", tokens);
    let sheet = case.stopped(graph, begin()?.budget(budget(1_000)), StopReason::Budget).await?;
    let expected = ["input", "400 spent, Some(600) left", "1200 spent, Some(0) left"];
    same("lines of the tasks", sheet.lines, expected)?;
    let outcome = case.outcome(graph, proceed().budget(budget(10_000))).await?;
    same("units of the whole run", outcome.spent("tokens"), 2_400)?;
    same("the lines at the end", outcome.output().lines.len(), 6)
}

async fn drain(case: &Case<'_>) -> Found {
    let sheet = case.stopped("kit_drain", begin()?, StopReason::Drained).await?;
    same("the updates before the boundary", sheet.lines, ["input", "stops"])?;
    let sheet = case.finished("kit_drain", proceed()).await?;
    same("the updates", sheet.lines, ["input", "stops", "works"])
}

async fn deadline(case: &Case<'_>) -> Found {
    let call = begin()?.deadline(Duration::from_millis(250)).max_supersteps(5_000);
    let sheet = case.stopped("kit_endless", call, StopReason::Deadline).await?;
    same("whether a superstep was done before", sheet.number > 0, true)?;
    let next = case.stopped("kit_endless", proceed().max_supersteps(2), StopReason::Limit).await?;
    same("the supersteps after the deadline", next.number - sheet.number, 2)
}
