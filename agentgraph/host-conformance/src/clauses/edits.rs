//! Temporary edits: they travel with the tasks, and hold for one run.

use agentgraph::node::Node;
use agentgraph::prelude::*;
use futures_util::FutureExt;

use crate::case::{Case, Found, begin, invoke, resume, same};
use crate::clause::Clause;
use crate::graph::KitGraph;
use crate::notes::Notes;
use crate::sheet::{Sheet, SheetUpdate};

pub(super) const CLAUSES: &[Clause] = &[
    Clause::new(
        "a node can add nodes and edges for its run",
        "Edits come back with the reply, and go with later calls, since a temporary node is made from its template where it runs. The next run begins with the graph as it was built.",
        |case| for_one_run(case).boxed(),
    ),
    Clause::new("edits outlive a question", "Edits are stored with the thread.", |case| {
        across_a_question(case).boxed()
    }),
    Clause::new(
        "an edit that does not fit is refused where it is made",
        "The call has all edits so far, so the edit is checked where the node runs, and the node goes on with the error.",
        |case| refused(case).boxed(),
    ),
    Clause::new(
        "a node that keeps its output can be skipped",
        "The call says which nodes have an output to use again.",
        |case| skips(case).boxed(),
    ),
    Clause::new(
        "edits of a superstep that conflict are dropped whole, and reported",
        "Edits are merged in task order, whichever task ends first. The end of the call lists the dropped ones.",
        |case| conflicts(case).boxed(),
    ),
];

pub(super) fn graphs(_: &Notes) -> Vec<KitGraph> {
    vec![
        KitGraph::of("kit_edits", editing()),
        KitGraph::of("kit_refused_edits", refusing()),
        KitGraph::of("kit_skips", skipping()),
        KitGraph::of("kit_conflicts", conflicting()),
    ]
}

fn says(word: String) -> Node<Sheet> {
    (move || {
        let word = word.clone();
        async move { Sheet::update().lines([word]) }
    })
    .into_node()
}

async fn last() -> SheetUpdate {
    Sheet::update().lines(["last"])
}

/// Plans two temporary nodes if its input says so, asks if it says so, and has one of them plan a third.
fn editing() -> StateGraph<Sheet> {
    async fn plan(ctx: Ctx, sheet: Snapshot<Sheet>) -> Result<SheetUpdate> {
        if sheet.word == "plain" {
            return Ok(Sheet::update().lines(["no plan"]));
        }
        let edits = ctx.edits();
        edits.add_node("read#1", "says", "read \u{e9}")?;
        edits.add_edge("plan", "read#1")?;
        edits.add_node("more", "more", ())?;
        edits.add_edge("read#1", "more")?;
        edits.add_edge("more", "asks")?;
        edits.remove_edge("plan", "asks")?;
        Ok(Sheet::update().lines(["plan"]))
    }
    async fn more(ctx: Ctx) -> Result<SheetUpdate> {
        ctx.edits().add_node("read#2", "says", "read twice")?;
        ctx.edits().add_edge("asks", "read#2")?;
        Ok(Sheet::update().lines([ctx.node()]))
    }
    async fn asks(ctx: Ctx, sheet: Snapshot<Sheet>) -> Result<SheetUpdate> {
        let answer =
            if sheet.word == "ask" { ctx.interrupt::<String>("go on?")? } else { "unasked".to_owned() };
        Ok(Sheet::update().lines([answer]))
    }
    StateGraph::new()
        .template("says", says)
        .template("more", |(): ()| more)
        .node("plan", plan)
        .node("asks", asks)
        .node("last", last)
        .edge(START, "plan")
        .edge("plan", "asks")
        .edge("asks", "last")
}

/// Tries edits that do not fit, before and after it has made one.
fn refusing() -> StateGraph<Sheet> {
    async fn adds(ctx: Ctx) -> Result<()> {
        ctx.edits().add_node("extra", "says", "extra")?;
        Ok(())
    }
    async fn tries(ctx: Ctx) -> Result<SheetUpdate> {
        let edits = ctx.edits();
        let tried = [
            edits.add_node("extra", "says", "again"),
            edits.add_edge("tries", "nowhere"),
            edits.add_node("other", "no template", ()),
            edits.skip(["last"]),
            edits.add_edge("extra", "last"),
        ];
        let found =
            tried.map(|tried| tried.map_or_else(|error| error.code().to_string(), |()| "made".to_owned()));
        Ok(Sheet::update().lines(found))
    }
    StateGraph::new()
        .template("says", says)
        .node("adds", adds)
        .node("tries", tries)
        .node("last", last)
        .edge(START, "adds")
        .edge("adds", "tries")
        .edge("tries", "last")
}

/// Searches in its first round, and skips that in the second.
fn skipping() -> StateGraph<Sheet> {
    async fn plan(ctx: Ctx, sheet: Snapshot<Sheet>) -> Result<SheetUpdate> {
        if sheet.number == 1 {
            ctx.edits().skip(["search"])?;
        }
        Ok(Sheet::update().number(sheet.number + 1))
    }
    async fn search(sheet: Snapshot<Sheet>) -> SheetUpdate {
        Sheet::update().lines([format!("found in round {}", sheet.number)])
    }
    let next = |sheet: &Sheet| if sheet.number < 2 { "plan" } else { END };
    StateGraph::new()
        .node("plan", plan)
        .node("search", search.keep_output())
        .edge(START, "plan")
        .edge("plan", "search")
        .branch("search", next, ["plan", END])
}

/// Two parallel nodes add a node of the same name.
fn conflicting() -> StateGraph<Sheet> {
    async fn adds(ctx: Ctx) -> Result<SheetUpdate> {
        let edits = ctx.edits();
        edits.add_node("extra", "says", format!("extra of {}", ctx.node()))?;
        edits.add_edge(ctx.node(), "extra")?;
        Ok(Sheet::update().lines([ctx.node()]))
    }
    StateGraph::new()
        .template("says", says)
        .node("left", adds)
        .node("right", adds)
        .edge(START, "left")
        .edge(START, "right")
}

async fn for_one_run(case: &Case<'_>) -> Found {
    let sheet = case.finished("kit_edits", begin()?).await?;
    let edited = ["input", "plan", "read \u{e9}", "more", "unasked", "last", "read twice"];
    same("the updates of the edited run", &sheet.lines[..], edited)?;
    let plain = Sheet::update().word("plain");
    let sheet = case.finished("kit_edits", invoke(plain)?).await?;
    same("the updates of the next run", &sheet.lines[edited.len()..], ["no plan", "unasked", "last"])
}

async fn across_a_question(case: &Case<'_>) -> Found {
    let call = invoke(Sheet::update().lines(["input"]).word("ask"))?;
    case.interrupted("kit_edits", call).await?;
    let state = case.state("kit_edits").await?;
    same("the edits that the thread has", state.edits.is_empty(), false)?;
    let sheet = case.finished("kit_edits", resume("yes")?).await?;
    let expected = ["input", "plan", "read \u{e9}", "more", "yes", "last", "read twice"];
    same("the updates", &sheet.lines[..], expected)
}

async fn refused(case: &Case<'_>) -> Found {
    let sheet = case.finished("kit_refused_edits", begin()?).await?;
    let rejected = "E_EDIT_REJECTED";
    let expected = [rejected, rejected, rejected, "E_NOTHING_TO_REUSE", "made", "last"];
    same("the ends of the edits", &sheet.lines[1..], expected)
}

async fn skips(case: &Case<'_>) -> Found {
    let sheet = case.finished("kit_skips", begin()?).await?;
    same("the updates", &sheet.lines[1..], ["found in round 1", "found in round 1"])
}

async fn conflicts(case: &Case<'_>) -> Found {
    let outcome = case.outcome("kit_conflicts", begin()?).await?;
    same("the updates", &outcome.output().lines[1..], ["left", "right", "extra of left"])?;
    let dropped: Vec<&str> = outcome.dropped_edits().iter().map(|dropped| &*dropped.by).collect();
    same("whose edits were dropped", dropped, ["right"])
}
