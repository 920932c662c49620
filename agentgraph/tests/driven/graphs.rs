//! Graphs for driven runs, all with hash maps in the state.

use std::collections::HashMap;

use agentgraph::node::IntoGoto;
use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Work {
    #[reduce(append)]
    pub lines: Vec<String>,
    #[reduce(merge)]
    pub marks: HashMap<String, u32>,
    #[reduce(with = add_nested)]
    pub nested: HashMap<String, HashMap<String, u64>>,
    #[reduce(last)]
    pub count: u64,
    #[reduce(last)]
    pub labels: HashMap<u64, String>,
}

fn add_nested(
    value: &mut HashMap<String, HashMap<String, u64>>,
    write: HashMap<String, HashMap<String, u64>>,
) {
    for (name, inner) in write {
        value.entry(name).or_default().extend(inner);
    }
}

/// An update with an entry in every map, and a few more, so that their order counts.
pub fn step(name: &str, count: u64) -> WorkUpdate {
    let inner = |salt: u64| (0..5).map(|n| (format!("{name}{n}"), salt + n)).collect::<HashMap<_, _>>();
    Work::update()
        .lines([format!("{name}@{count}")])
        .marks((0..4).map(|n| (format!("{name}-{n}"), n)))
        .nested((0..3).map(|n| (format!("{name}{n}"), inner(n))).collect())
        .count(count)
        .labels((0..6).map(|n| (n * 37 % 11, format!("{name}{n}"))).collect())
}

fn node(name: &'static str) -> impl Fn(Snapshot<Work>) -> std::future::Ready<WorkUpdate> + Clone {
    move |work: Snapshot<Work>| std::future::ready(step(name, work.count + 1))
}

/// A node of each kind: parallel nodes, a join, dispatches, a branch back, and a node after all.
pub fn busy(eager: bool) -> CompiledGraph<Work> {
    async fn spread(work: Snapshot<Work>) -> Command<Work> {
        let inner: HashMap<String, u64> = (0..7).map(|n| (format!("page {n}"), n)).collect();
        let pages = [3_u32, 1, 2].map(|page| Dispatch::new("page", (page, inner.clone())).into_goto());
        Command::update(step("spread", work.count + 1)).also_goto(pages.to_vec())
    }
    async fn page(Input((page, inner)): Input<(u32, HashMap<String, u64>)>) -> WorkUpdate {
        Work::update().lines([format!("page {page} of {}", inner.len())]).marks([(format!("p{page}"), page)])
    }
    let graph = StateGraph::new()
        .node("left", node("left"))
        .node("right", node("right"))
        .node("both", node("both"))
        .node("spread", spread.targets(["page"]))
        .node("page", page)
        .node("last", node("last"))
        .edge(START, "left")
        .edge(START, "right")
        .edge(["left", "right"], "both")
        .branch(
            "both",
            |work: &Work| if work.lines.len() < 12 { "spread" } else { "last" },
            ["spread", "last"],
        )
        .edge("spread", "left")
        .edge("spread", "right");
    if eager { graph.eager().compile().unwrap() } else { graph.compile().unwrap() }
}

/// Two busy graphs of both disciplines side by side.
pub fn two_busy() -> CompiledGraph<Work> {
    let graph =
        StateGraph::new().node("one", busy(false)).node("two", busy(true)).node("three", node("three"));
    graph.edge(START, "one").edge(START, "two").edge(START, "three").compile().unwrap()
}

/// Two parallel questions beside a node that is done at once, then a node after all of them.
pub fn asking(eager: bool) -> CompiledGraph<Work> {
    async fn ask(ctx: Ctx, work: Snapshot<Work>) -> Result<WorkUpdate> {
        let question: HashMap<String, u64> = (0..6).map(|n| (format!("{}{n}", ctx.node()), n)).collect();
        let answer: String = ctx.interrupt(question)?;
        Ok(step(ctx.node(), work.count).lines([answer]))
    }
    let graph = StateGraph::new()
        .node("one", ask)
        .node("two", ask)
        .node("done", node("done"))
        .node("last", node("last"))
        .edge(START, "one")
        .edge(START, "two")
        .edge(START, "done")
        .edge(["one", "two", "done"], "last");
    if eager { graph.eager().compile().unwrap() } else { graph.compile().unwrap() }
}

/// A loop of that many supersteps.
pub fn looping(steps: u64) -> CompiledGraph<Work> {
    StateGraph::new()
        .node("step", |work: Snapshot<Work>| {
            let name = ["a", "b", "c"][work.count as usize % 3];
            std::future::ready(
                Work::update().count(work.count + 1).marks([(name.to_owned(), work.count as u32)]),
            )
        })
        .edge(START, "step")
        .branch("step", move |work: &Work| if work.count < steps { "step" } else { END }, ["step", END])
        .compile()
        .unwrap()
}

/// A graph whose second node fails while `broken` holds for the count of lines.
pub fn failing() -> CompiledGraph<Work> {
    async fn fail(work: Snapshot<Work>) -> Result<WorkUpdate> {
        if work.lines.len() < 4 { Err("the page is torn".into()) } else { Ok(step("mended", work.count)) }
    }
    StateGraph::new()
        .node("first", node("first"))
        .node("fail", fail)
        .node("beside", node("beside"))
        .edge(START, "first")
        .edge("first", "fail")
        .edge("first", "beside")
        .compile()
        .unwrap()
}
