//! Threads: each has its own state, and keeps it from run to run.

use std::collections::BTreeSet;

use agentgraph::Code;
use agentgraph::host::RunCall;
use agentgraph::prelude::*;
use futures_util::FutureExt;
use futures_util::future::join_all;

use crate::case::{Case, Found, begin, invoke, no_call, proceed, same};
use crate::clause::Clause;
use crate::graph::KitGraph;
use crate::notes::Notes;
use crate::sheet::{Sheet, SheetUpdate};

pub(super) const CLAUSES: &[Clause] = &[
    Clause::new(
        "threads that are called at the same time do not mix",
        "Rows, replies and clocks belong to one thread.",
        |case| side_by_side(case).boxed(),
    ),
    Clause::new(
        "any text can name a thread, and different texts name different threads",
        "A host escapes names in addresses and keys.",
        |case| names(case).boxed(),
    ),
    Clause::new(
        "a thread keeps its state from run to run, and each run has an id of its own",
        "A driver gives each call a seed of its own.",
        |case| runs(case).boxed(),
    ),
    Clause::new(
        "the end of a call names the newest checkpoint of its thread",
        "Rows are stored before the call returns.",
        |case| newest(case).boxed(),
    ),
    Clause::new(
        "a thread that does not exist has no state, and cannot be continued",
        "A look does not create it, and `proceed()` fails with E_NOTHING_TO_RESUME.",
        |case| unknown(case).boxed(),
    ),
    Clause::new(
        "the state of a thread can be changed between two calls",
        "An edit is a call without tasks. An edit as a node continues behind that node.",
        |case| edited(case).boxed(),
    ),
];

pub(super) fn graphs(_: &Notes) -> Vec<KitGraph> {
    vec![KitGraph::of("kit_relay", relay())]
}

/// Three nodes that say in which thread they are.
fn relay() -> StateGraph<Sheet> {
    async fn says(ctx: Ctx, sheet: Snapshot<Sheet>) -> SheetUpdate {
        let line = format!("{} in {}", ctx.node(), ctx.thread().unwrap_or_default());
        Sheet::update().lines([line.clone()]).run_lines([line]).number(sheet.number + 1)
    }
    StateGraph::new()
        .node("one", says)
        .node("two", says)
        .node("three", says)
        .edge(START, "one")
        .edge("one", "two")
        .edge("two", "three")
}

fn lines_in(thread: &str) -> Vec<String> {
    ["one", "two", "three"].iter().map(|node| format!("{node} in {thread}")).collect()
}

async fn check_alone(case: Case<'_>) -> Found {
    let sheet = case.finished("kit_relay", invoke(Sheet::update().word(case.thread()))?).await?;
    same("the lines of a thread", sheet.lines, lines_in(case.thread()))?;
    same("its word", &*sheet.word, case.thread())
}

async fn side_by_side(case: &Case<'_>) -> Found {
    let threads = (0..8).map(|thread| check_alone(case.on(thread)));
    join_all(threads).await.into_iter().collect()
}

async fn names(case: &Case<'_>) -> Found {
    let names = [
        "a/b",
        "a b",
        "a%2Fb",
        "a%20b",
        "a+b",
        "a?b=c&d#e",
        "A",
        "a",
        "../..",
        "'\"\\",
        "na\u{ef}ve",
        "\u{65e5}\u{672c}",
        "\u{1f469}\u{200d}\u{1f467}",
        "a:b",
        "a|b",
        "{a}",
        "$a",
    ];
    for name in names {
        check_alone(case.on(name)).await.map_err(|problem| format!("thread {name:?}: {problem}"))?;
    }
    for name in names {
        let case = case.on(name);
        same("the word of a thread later", &*case.state("kit_relay").await?.values.word, case.thread())?;
    }
    Ok(())
}

async fn runs(case: &Case<'_>) -> Found {
    let mut ids = BTreeSet::new();
    for run in 1..=3_usize {
        let outcome = case.outcome("kit_relay", invoke(Sheet::update())?).await?;
        same("the lines of all runs", outcome.output().lines.len(), 3 * run)?;
        same("the lines of the last run", &outcome.output().run_lines, &lines_in(case.thread()))?;
        ids.insert(outcome.run().to_string());
        same("the ids of the runs so far", ids.len(), run)?;
    }
    Ok(())
}

async fn newest(case: &Case<'_>) -> Found {
    for steps in [1, 2] {
        let call = if steps == 1 { begin()? } else { proceed() };
        let outcome = case.outcome("kit_relay", call.max_supersteps(1)).await?;
        let state = case.state("kit_relay").await?;
        same("the newest checkpoint", outcome.checkpoint(), Some(state.id))?;
        same("its state", outcome.output(), &state.values)?;
        same("its run", outcome.run(), state.run)?;
        same("its next node", state.next, [["two", "three"][steps - 1]])?;
    }
    Ok(())
}

async fn unknown(case: &Case<'_>) -> Found {
    same("whether the thread has a state", case.found_state("kit_relay").await?.is_some(), false)?;
    let error = case.failed("kit_relay", proceed()).await?;
    same("the error of `proceed()`", error.code(), Code::NothingToResume)
}

async fn edited(case: &Case<'_>) -> Found {
    case.stopped("kit_relay", begin()?.max_supersteps(1), StopReason::Limit).await?;
    let edit = Sheet::update().word("edited");
    case.end("kit_relay", RunCall::update_state::<Sheet>(&(), &edit).map_err(no_call)?).await?;
    let state = case.state("kit_relay").await?;
    same("the state after an edit", (&*state.values.word, state.next), ("edited", vec!["two".to_owned()]))?;
    let as_two = Sheet::update().lines(["in place of two"]);
    let call = RunCall::update_state_as::<Sheet>(&(), [("two", &as_two)]).map_err(no_call)?;
    case.end("kit_relay", call).await?;
    let sheet = case.finished("kit_relay", proceed()).await?;
    let all = lines_in(case.thread());
    same("the lines at the end", sheet.lines, ["input", &*all[0], "in place of two", &*all[2]])
}
