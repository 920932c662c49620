//! Failures: of nodes, with their codes; handled ones; panics.

use agentgraph::prelude::*;
use agentgraph::{Code, Failure};
use futures_util::FutureExt;
use serde::{Deserialize, Serialize};

use crate::case::{Case, Found, begin, same};
use crate::clause::Clause;
use crate::graph::KitGraph;
use crate::notes::Notes;
use crate::sheet::{Sheet, SheetUpdate};

pub(super) const CLAUSES: &[Clause] = &[
    Clause::new(
        "a failing node fails the run with its code, and results of its siblings are kept",
        "Then `proceed()` runs the failed node again, and no finished one. A driver stores all rows that a run hands out when it pauses, not only those of commits.",
        |case| siblings(case).boxed(),
    ),
    Clause::new(
        "a panic of a node is a failure of the node",
        "The process that runs the node survives, and the run fails with E_NODE_PANICKED.",
        |case| panics(case).boxed(),
    ),
    Clause::new(
        "errors of the engine keep their codes",
        "A node that cannot read its input fails with E_BAD_INPUT in any process.",
        |case| codes(case).boxed(),
    ),
    Clause::new(
        "an error handler gets the failure of its node",
        "The failure goes with the call of the handler: its node, text, causes, and the error that the node keeps.",
        |case| handler(case).boxed(),
    ),
];

pub(super) fn graphs(notes: &Notes) -> Vec<KitGraph> {
    vec![
        KitGraph::of("kit_failures", mendable(notes)),
        KitGraph::of("kit_panics", panicking(notes)),
        KitGraph::of("kit_inputs", without_input()),
        KitGraph::of("kit_handler", handled()),
    ]
}

/// The note of the kit after which failing nodes fail no more.
const MENDED: &str = "mended";

async fn works(ctx: Ctx, notes: Dep<Notes>) -> Result<SheetUpdate> {
    notes.note(&ctx, "runs")?;
    Ok(Sheet::update().lines([ctx.node()]))
}

async fn is_mended(ctx: &Ctx, notes: &Notes) -> Result<bool> {
    let thread = ctx.thread().unwrap_or_default();
    Ok(notes.of_thread(thread)?.iter().any(|note| note.what == MENDED))
}

/// A node between two others fails until it is mended.
fn mendable(notes: &Notes) -> StateGraph<Sheet> {
    async fn fails(ctx: Ctx, notes: Dep<Notes>) -> Result<SheetUpdate> {
        notes.note(&ctx, "runs")?;
        if is_mended(&ctx, &notes).await? {
            return Ok(Sheet::update().lines([ctx.node()]));
        }
        Err("the page is torn".into())
    }
    StateGraph::new()
        .dep(notes.clone())
        .node("before", works)
        .node("left", works)
        .node("torn", fails)
        .node("right", works)
        .node("after", works)
        .edge(START, "before")
        .edge("before", "left")
        .edge("before", "torn")
        .edge("before", "right")
        .edge(["left", "torn", "right"], "after")
}

fn panicking(notes: &Notes) -> StateGraph<Sheet> {
    #[allow(clippy::panic)]
    async fn panics(ctx: Ctx, notes: Dep<Notes>) -> Result<SheetUpdate> {
        if !is_mended(&ctx, &notes).await? {
            panic!("a node of the kit panics on purpose");
        }
        Ok(Sheet::update().lines([ctx.node()]))
    }
    StateGraph::new().dep(notes.clone()).node("panics", panics).edge(START, "panics")
}

/// A node with an input is reached without one.
fn without_input() -> StateGraph<Sheet> {
    async fn starts() -> Command<Sheet> {
        Command::new().goto("reads")
    }
    async fn reads(Input(_): Input<u64>) {}
    StateGraph::new().node("starts", starts.targets(["reads"])).node("reads", reads).edge(START, "starts")
}

#[derive(Debug, Serialize, Deserialize, thiserror::Error)]
#[error("refused for {cents} cents")]
struct Refused {
    cents: u64,
}

#[derive(Debug, thiserror::Error)]
#[error("the payment failed")]
struct PaymentFailed(#[source] Refused);

fn handled() -> StateGraph<Sheet> {
    async fn pay() -> Result<()> {
        Err(PaymentFailed(Refused { cents: 7 }).into())
    }
    async fn handle(failure: Failure) -> SheetUpdate {
        let cents = failure.get::<Refused>().map(|refused| refused.cents);
        Sheet::update().lines([
            format!("{} {}", failure.node(), failure.code()),
            failure.message().to_owned(),
            format!("{:?} {cents:?}", failure.causes()),
        ])
    }
    async fn never() -> SheetUpdate {
        Sheet::update().lines(["went on from the failed node"])
    }
    StateGraph::new()
        .node("pay", pay.keeps_error::<Refused>().on_error("handle"))
        .node("handle", handle)
        .node("never", never)
        .edge(START, "pay")
        .edge("pay", "never")
}

async fn siblings(case: &Case<'_>) -> Found {
    let error = case.failed("kit_failures", begin()?).await?;
    same("the error", (error.code(), error.node()), (Code::NodeFailed, Some("torn")))?;
    if !error.to_string().contains("the page is torn") {
        return Err(format!("the error does not have the node's text: {error}"));
    }
    same("the checkpoint's next nodes", case.state("kit_failures").await?.next, ["torn"])?;
    case.say(MENDED)?;
    let sheet = case.finished("kit_failures", crate::case::proceed()).await?;
    same("the updates", sheet.lines, ["input", "before", "left", "torn", "right", "after"])?;
    for (node, times) in [("before", 1), ("left", 1), ("torn", 2), ("right", 1), ("after", 1)] {
        same(&format!("how often `{node}` ran"), case.count(node, "runs")?, times)?;
    }
    Ok(())
}

async fn panics(case: &Case<'_>) -> Found {
    let error = case.failed("kit_panics", begin()?).await?;
    same("the error", (error.code(), error.node()), (Code::NodePanicked, Some("panics")))?;
    case.say(MENDED)?;
    let sheet = case.finished("kit_panics", crate::case::proceed()).await?;
    same("the updates", sheet.lines, ["input", "panics"])
}

async fn codes(case: &Case<'_>) -> Found {
    let error = case.failed("kit_inputs", begin()?).await?;
    same("the error", (error.code(), error.node()), (Code::BadInput, Some("reads")))
}

async fn handler(case: &Case<'_>) -> Found {
    let sheet = case.finished("kit_handler", begin()?).await?;
    let expected = ["pay E_NODE_FAILED", "the payment failed", "[\"refused for 7 cents\"] Some(7)"];
    same("lines of the handler", &sheet.lines[1..], expected)
}
