//! Attempts: their numbers, the waits between them, and the last failure.

use std::time::Duration;

use agentgraph::Code;
use agentgraph::prelude::*;
use futures_util::FutureExt;

use crate::case::{Case, Found, begin, same};
use crate::clause::Clause;
use crate::graph::KitGraph;
use crate::notes::Notes;
use crate::sheet::{Sheet, SheetUpdate};

pub(super) const CLAUSES: &[Clause] = &[
    Clause::new(
        "each attempt has its number",
        "A call is one attempt: the run counts them, and sends the next one. A host must not retry a failing node by itself.",
        |case| numbers(case).boxed(),
    ),
    Clause::new(
        "the run waits between two attempts",
        "The back-off is a wait of the run. A driver answers a timer when its time has passed, not before.",
        |case| waits(case).boxed(),
    ),
    Clause::new(
        "after the last attempt the run fails with the error of the node",
        "A node that fails is a reply. An error of the host means that the task could not run.",
        |case| last_failure(case).boxed(),
    ),
];

pub(super) fn graphs(notes: &Notes) -> Vec<KitGraph> {
    vec![KitGraph::of("kit_attempts", flaky(notes)), KitGraph::of("kit_hopeless", hopeless(notes))]
}

/// The first wait of the policy. The run waits for at least half of it.
const WAIT: Duration = Duration::from_millis(160);

fn flaky(notes: &Notes) -> StateGraph<Sheet> {
    async fn flaky(ctx: Ctx, notes: Dep<Notes>) -> Result<SheetUpdate> {
        notes.note(&ctx, "tries")?;
        match ctx.attempt() {
            attempt @ 1..3 => Err(format!("attempt {attempt} fails").into()),
            attempt => Ok(Sheet::update().lines([format!("done in attempt {attempt}")])),
        }
    }
    let policy = RetryPolicy::attempts(4).initial(WAIT).factor(1.0);
    StateGraph::new().dep(notes.clone()).node("flaky", flaky.retry(policy)).edge(START, "flaky")
}

fn hopeless(notes: &Notes) -> StateGraph<Sheet> {
    async fn hopeless(ctx: Ctx, notes: Dep<Notes>) -> Result<()> {
        notes.note(&ctx, "tries")?;
        Err(format!("attempt {} is in vain", ctx.attempt()).into())
    }
    let policy = RetryPolicy::attempts(2).initial(Duration::from_millis(1));
    StateGraph::new().dep(notes.clone()).node("hopeless", hopeless.retry(policy)).edge(START, "hopeless")
}

async fn numbers(case: &Case<'_>) -> Found {
    let sheet = case.finished("kit_attempts", begin()?).await?;
    let attempts: Vec<u32> = case.notes()?.iter().map(|note| note.attempt).collect();
    same("the attempts that were made", attempts, [1, 2, 3])?;
    same("the update", &sheet.lines[1..], ["done in attempt 3"])
}

async fn waits(case: &Case<'_>) -> Found {
    case.finished("kit_attempts", begin()?).await?;
    let notes = case.notes()?;
    for pair in notes.windows(2) {
        let passed = Duration::from_micros(pair[1].at.saturating_sub(pair[0].at));
        // A clock that is set meanwhile may move a little.
        if passed < WAIT / 4 {
            return Err(format!("{passed:?} between attempts {} and {}", pair[0].attempt, pair[1].attempt));
        }
    }
    same("the attempts that were made", notes.len(), 3)
}

async fn last_failure(case: &Case<'_>) -> Found {
    let error = case.failed("kit_hopeless", begin()?).await?;
    same("the code", error.code(), Code::NodeFailed)?;
    same("the node", error.node(), Some("hopeless"))?;
    let message = error.to_string();
    if !message.contains("attempt 2 is in vain") {
        return Err(format!("the error does not have the node's text: {message}"));
    }
    same("the attempts that were made", case.count("hopeless", "tries")?, 2)
}
