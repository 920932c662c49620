//! Sessions: they travel with the tasks.

use std::collections::HashMap;

use agentgraph::Code;
use agentgraph::prelude::*;
use futures_util::FutureExt;
use serde::{Deserialize, Serialize};

use crate::case::{Case, Found, begin, resume, same};
use crate::clause::Clause;
use crate::graph::KitGraph;
use crate::host::Ability;
use crate::notes::Notes;
use crate::sheet::{Sheet, SheetUpdate};

pub(super) const CLAUSES: &[Clause] = &[
    Clause::new(
        "a session has the changes of all earlier tasks",
        "Sessions go with the call. Changes come back with the reply, also of failed attempts, and are stored with the thread.",
        |case| travels(case).boxed(),
    ),
    Clause::new(
        "two tasks of a superstep that change one session are an error",
        "Each task has a copy, so one of the changes would be lost: E_CONCURRENT_SESSION.",
        |case| parallel(case).boxed(),
    )
    .needing(&[Ability::Elsewhere]),
];

pub(super) fn graphs(_: &Notes) -> Vec<KitGraph> {
    vec![KitGraph::of("kit_session", baskets()), KitGraph::of("kit_shared_session", shared())]
}

#[derive(Default, Serialize, Deserialize)]
struct Basket {
    items: Vec<String>,
    prices: HashMap<String, u64>,
}

async fn puts(ctx: Ctx, basket: Session<Basket>) -> Result<()> {
    basket.with(|basket| {
        let item = format!("{}{}", ctx.node(), ctx.attempt());
        basket.prices.insert(item.clone(), basket.items.len() as u64);
        basket.items.push(item);
    });
    if ctx.attempt() == 1 { Err("the first attempt fails".into()) } else { Ok(()) }
}

/// Two nodes change the session in two attempts each; between them a question, after them a look.
fn baskets() -> StateGraph<Sheet> {
    async fn asks(ctx: Ctx) -> Result<()> {
        let _: bool = ctx.interrupt("go on?")?;
        Ok(())
    }
    async fn looks(basket: Session<Basket>) -> SheetUpdate {
        let (items, sum) =
            basket.with(|basket| (basket.items.join(" "), basket.prices.values().sum::<u64>()));
        Sheet::update().lines([format!("{items}: {sum}")])
    }
    let again = || RetryPolicy::attempts(2).initial(std::time::Duration::from_millis(1));
    StateGraph::new()
        .session::<Basket>("basket")
        .node("tea", puts.retry(again()))
        .node("asks", asks)
        .node("milk", puts.retry(again()))
        .node("looks", looks)
        .edge(START, "tea")
        .edge("tea", "asks")
        .edge("asks", "milk")
        .edge("milk", "looks")
}

fn shared() -> StateGraph<Sheet> {
    async fn puts(ctx: Ctx, basket: Session<Basket>) {
        basket.with(|basket| basket.items.push(ctx.node().to_owned()));
    }
    let graph = StateGraph::new().session::<Basket>("basket").node("left", puts).node("right", puts);
    graph.edge(START, "left").edge(START, "right")
}

async fn travels(case: &Case<'_>) -> Found {
    case.interrupted("kit_session", begin()?).await?;
    let sheet = case.finished("kit_session", resume(true)?).await?;
    same("items in the session at the end", &sheet.lines[1..], ["tea1 tea2 milk1 milk2: 6"])
}

async fn parallel(case: &Case<'_>) -> Found {
    let error = case.failed("kit_shared_session", begin()?).await?;
    same("the error", error.code(), Code::ConcurrentSession)?;
    let message = error.to_string();
    match message.contains("`left`") && message.contains("`right`") {
        true => Ok(()),
        false => Err(format!("the error does not name both nodes: {message}")),
    }
}
