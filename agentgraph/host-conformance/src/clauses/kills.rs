//! Runs that are cancelled, and workers that die.

use std::time::Duration;

use agentgraph::prelude::*;
use agentgraph::{Code, Error};
use futures_util::FutureExt;
use futures_util::future::join;

use crate::case::{Case, Found, begin, proceed, same};
use crate::clause::Clause;
use crate::graph::KitGraph;
use crate::host::Ability;
use crate::notes::{Notes, count};
use crate::sheet::{Sheet, SheetUpdate};

pub(super) const CLAUSES: &[Clause] = &[
    Clause::new(
        "a cancelled call stops, and `proceed()` continues its run",
        "Nothing new starts. A task under way may run to its end, and its result may be dropped. Finished tasks do not run again.",
        |case| cancelled(case).boxed(),
    )
    .needing(&[Ability::Cancel]),
    Clause::new(
        "a run whose worker dies ends as usual, and no finished task runs again",
        "A task under way runs again. The call goes on by itself, or fails with E_HOST and is continued by `proceed()`.",
        |case| killed(case).boxed(),
    )
    .needing(&[Ability::Kill]),
];

pub(super) fn graphs(notes: &Notes) -> Vec<KitGraph> {
    vec![KitGraph::of("kit_cancelled", turning(notes)), KitGraph::of("kit_killed", holding(notes))]
}

/// A note of the kit: the nodes that wait for it go on.
const GO: &str = "go";

/// The most rounds of a run that nothing stops.
const ROUNDS: u64 = 1_000;

async fn works(ctx: Ctx, notes: Dep<Notes>) -> Result<SheetUpdate> {
    notes.note(&ctx, "runs")?;
    Ok(Sheet::update().lines([ctx.node()]))
}

/// A node, and then rounds of another one until the kit says that it is enough.
fn turning(notes: &Notes) -> StateGraph<Sheet> {
    async fn turns(ctx: Ctx, sheet: Snapshot<Sheet>, notes: Dep<Notes>) -> Result<SheetUpdate> {
        if sheet.number == 0 {
            notes.note(&ctx, "turns")?;
        }
        tokio::time::sleep(Duration::from_millis(3)).await;
        let all = notes.of_thread(ctx.thread().unwrap_or_default())?;
        let is_enough = all.iter().any(|note| note.what == GO);
        Ok(Sheet::update().number(sheet.number + 1).word(if is_enough { GO } else { "" }))
    }
    let next = |sheet: &Sheet| if sheet.word == GO || sheet.number >= ROUNDS { END } else { "turns" };
    StateGraph::new()
        .dep(notes.clone())
        .node("before", works)
        .node("turns", turns)
        .edge(START, "before")
        .edge("before", "turns")
        .branch("turns", next, ["turns", END])
}

/// Two nodes in a row; then two side by side, one of them until the kit says so; then a last one.
fn holding(notes: &Notes) -> StateGraph<Sheet> {
    async fn holds(ctx: Ctx, notes: Dep<Notes>) -> Result<SheetUpdate> {
        notes.note(&ctx, "runs")?;
        if !notes.wait_in(&ctx, "the kit", GO).await? {
            notes.note(&ctx, "waited in vain")?;
        }
        Ok(Sheet::update().lines([ctx.node()]))
    }
    StateGraph::new()
        .dep(notes.clone())
        .node("one", works)
        .node("two", works)
        .node("holds", holds)
        .node("beside", works)
        .node("last", works)
        .edge(START, "one")
        .edge("one", "two")
        .edge("two", "holds")
        .edge("two", "beside")
        .edge(["holds", "beside"], "last")
}

async fn cancelled(case: &Case<'_>) -> Found {
    let graph = "kit_cancelled";
    let begun = case.end(graph, begin()?.max_supersteps(ROUNDS + 10));
    let stop = async {
        case.wait("the first round of the run", |notes| count(notes, "turns", "turns") > 0).await?;
        case.cancel(graph).await
    };
    let (end, stopped) = join(begun, stop).await;
    stopped?;
    let end = end?;
    if end.stop_reason() != Some(StopReason::Cancelled) {
        return Err(format!("the cancelled call ended so: {end:?}"));
    }
    case.say(GO)?;
    let sheet = case.finished(graph, proceed()).await?;
    same("the updates", sheet.lines, ["input", "before"])?;
    same("whether the loop was cut off", sheet.number < ROUNDS, true)?;
    same("how often the finished node ran", case.count("before", "runs")?, 1)
}

async fn killed(case: &Case<'_>) -> Found {
    let graph = "kit_killed";
    let begun = case.end(graph, begin()?);
    let kill = async {
        let both = |notes: &[_]| count(notes, "holds", "runs") > 0 && count(notes, "beside", "runs") > 0;
        case.wait("the node that waits", both).await?;
        case.kill_workers().await?;
        case.say(GO)
    };
    let (end, killed) = join(begun, kill).await;
    killed?;
    if case.count("holds", "waited in vain")? > 0 {
        return Err(
            "the workers died so late that nothing was under way: give the notes more patience".to_owned()
        );
    }
    let sheet = match end?.into_result::<Sheet>(&()) {
        Err(error) if is_of_the_host(&error) => case.finished(graph, proceed()).await?,
        Err(error) => return Err(format!("the run whose worker died failed so: {error}")),
        Ok(Outcome::Finished { output, .. }) => output,
        Ok(other) => return Err(format!("the run whose worker died ended so: {other:?}")),
    };
    same("the updates", sheet.lines, ["input", "one", "two", "holds", "beside", "last"])?;
    for node in ["one", "two", "last"] {
        same(&format!("how often `{node}` ran"), case.count(node, "runs")?, 1)?;
    }
    Ok(())
}

fn is_of_the_host(error: &Error) -> bool {
    error.code() == Code::Host
}
