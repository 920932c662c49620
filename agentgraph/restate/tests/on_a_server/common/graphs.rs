//! Graphs of every kind, the same in the workers and in the tests. Each has hash maps in its state, and marks
//! what its nodes do.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use agentgraph::dependency::{Deps, Given, PassEdits};
use agentgraph::node::IntoGoto;
use agentgraph::prelude::*;
use agentgraph::{CompiledDependencyGraph, Memory, SqliteSaver};
use serde::{Deserialize, Serialize};

use super::marks::{Marks, What};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Work {
    pub topic: String,
    #[reduce(append)]
    pub lines: Vec<String>,
    #[reduce(merge)]
    pub marks: HashMap<String, u32>,
    #[reduce(last)]
    pub count: u64,
    #[reduce(last)]
    pub labels: HashMap<u64, String>,
}

/// The outputs of a pass.
pub type Table = HashMap<String, u64>;

/// The tools of the nodes.
#[derive(Clone)]
pub struct Tools {
    pub marks: Marks,
    /// How long a node takes, so that there is time to kill something.
    pub pause: Duration,
}

impl Tools {
    pub fn none() -> Self {
        Tools { marks: Marks::none(), pause: Duration::ZERO }
    }

    async fn during<T>(&self, ctx: &Ctx, work: impl Future<Output = T>) -> T {
        self.marks.mark(ctx, What::Began);
        if !self.pause.is_zero() {
            tokio::time::sleep(self.pause).await;
        }
        let done = work.await;
        self.marks.mark(ctx, What::Ended);
        done
    }
}

/// The kinds of graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Single tasks, one after the other.
    Chain,
    /// Parallel nodes, a join, remote dispatches, and a branch back.
    Fan,
    /// The same without a barrier.
    Eager,
    /// A dependency graph whose nodes edit their own pass.
    Pass,
    /// Graphs in graphs: over the same state, over another one with a memory, and dispatched.
    Nested,
    /// Temporary nodes, edges and skips.
    Edited,
    /// Questions, in parallel and in a subgraph.
    Asking,
    /// Nodes that fail and are tried again after a wait, and one whose failure is handled.
    Retried,
    /// A session that nodes change.
    Session,
    /// Durable steps.
    Durable,
    /// A message in pieces. Not one of `ALL`.
    Chatty,
}

impl Kind {
    pub const ALL: [Kind; 10] = [
        Kind::Chain,
        Kind::Fan,
        Kind::Eager,
        Kind::Pass,
        Kind::Nested,
        Kind::Edited,
        Kind::Asking,
        Kind::Retried,
        Kind::Session,
        Kind::Durable,
    ];

    /// The kinds that merge in an order that only the clock decides.
    pub fn is_eager(self) -> bool {
        self == Kind::Eager
    }
}

/// A graph of a kind.
pub enum Built {
    State(CompiledGraph<Work>),
    Pass(CompiledDependencyGraph<Table, u64>),
}

impl Built {
    pub fn kept_in(self, saver: Arc<SqliteSaver>) -> Self {
        match self {
            Built::State(graph) => Built::State(graph.checkpointer(saver)),
            Built::Pass(graph) => Built::Pass(graph.checkpointer(saver)),
        }
    }
}

pub fn build(kind: Kind, tools: &Tools) -> Built {
    let graph = match kind {
        Kind::Chain => chain(),
        Kind::Fan => fan(),
        Kind::Eager => fan().eager(),
        Kind::Pass => return Built::Pass(pass(tools)),
        Kind::Nested => nested(tools),
        Kind::Edited => edited(),
        Kind::Asking => asking(tools),
        Kind::Retried => retried(),
        Kind::Session => session(),
        Kind::Durable => durable(),
        Kind::Chatty => chatty(),
    };
    Built::State(graph.dep(tools.clone()).compile().unwrap())
}

/// The input of every run.
pub fn input() -> WorkUpdate {
    line("input", 0).topic("tea")
}

/// An update with an entry in every map, and a few more, so that their order counts.
fn line(name: &str, count: u64) -> WorkUpdate {
    Work::update()
        .lines([format!("{name}@{count}")])
        .marks((0..4).map(|n| (format!("{name}-{n}"), n)))
        .count(count)
        .labels((0..6).map(|n| (n * 37 % 11, format!("{name}{n}"))).collect())
}

/// A node that adds its name.
async fn note(ctx: Ctx, tools: Dep<Tools>, work: Snapshot<Work>) -> WorkUpdate {
    tools.during(&ctx, async { line(ctx.node(), work.count + 1) }).await
}

fn chain() -> StateGraph<Work> {
    StateGraph::new()
        .node("a", note)
        .node("b", note)
        .node("c", note)
        .edge(START, "a")
        .edge("a", "b")
        .edge("b", "c")
        .branch("c", |work: &Work| if work.count < 4 { "a" } else { END }, ["a", END])
}

fn fan() -> StateGraph<Work> {
    async fn spread(ctx: Ctx, tools: Dep<Tools>, work: Snapshot<Work>) -> Command<Work> {
        let inner: HashMap<String, u64> = (0..7).map(|n| (format!("page {n}"), n)).collect();
        let pages = [3_u32, 1, 2].map(|page| Dispatch::new("page", (page, inner.clone())).into_goto());
        let update = tools.during(&ctx, async { line("spread", work.count + 1) }).await;
        Command::update(update).also_goto(pages.to_vec())
    }
    async fn page(
        ctx: Ctx,
        tools: Dep<Tools>,
        Input((page, inner)): Input<(u32, HashMap<String, u64>)>,
    ) -> WorkUpdate {
        let text = format!("page {page} of {}", inner.len());
        tools.during(&ctx, async { Work::update().lines([text]).marks([(format!("p{page}"), page)]) }).await
    }
    StateGraph::new()
        .node("left", note)
        .node("right", note.remote())
        .node("both", note)
        .node("spread", spread.targets(["page"]))
        .node("page", page.remote())
        .node("last", note)
        .edge(START, "left")
        .edge(START, "right")
        .edge(["left", "right"], "both")
        .branch(
            "both",
            // Not by the number of lines: eager pages may come after the second "both".
            |work: &Work| if work.marks.contains_key("spread-0") { "last" } else { "spread" },
            ["spread", "last"],
        )
        .edge("spread", "left")
        .edge("spread", "right")
}

fn pass(tools: &Tools) -> CompiledDependencyGraph<Table, u64> {
    async fn observe(
        ctx: Ctx,
        tools: Dep<Tools>,
        number: Given<u64>,
        edits: PassEdits<Table, u64>,
    ) -> Result<Table> {
        let number = *number;
        tools
            .during(&ctx, async {
                edits.remove_edge("observe", "flee")?;
                edits.add_node("axe", "mend", number)?;
                edits.add_edge("observe", "axe")?;
                edits.add_edge("axe", "report")?;
                Ok((0..9).map(|n| (format!("wolf {n}"), number + n)).collect())
            })
            .await
    }
    async fn sum(ctx: Ctx, tools: Dep<Tools>, deps: Deps<'_, Table>) -> Table {
        let read: Table = deps
            .iter()
            .map(|(name, table)| (format!("{}<{name}", ctx.node()), table.values().sum()))
            .collect();
        tools.during(&ctx, async { read }).await
    }
    DependencyGraph::<Table, u64>::with_input()
        .dep(tools.clone())
        .node("observe", observe)
        .node("plan", sum)
        .node("look", sum)
        .node("flee", sum)
        .node("report", DependencyNode::of(sum).join(agentgraph::dependency::Join::AllNotPruned))
        .edge("observe", "plan")
        .edge("observe", "look")
        .edge("observe", "flee")
        .edge("plan", "report")
        .edge("look", "report")
        .edge("flee", "report")
        .template("mend", |number| {
            let number = u64::deserialize(number)?;
            Ok(DependencyNode::of(move |_: Deps<'_, Table>| Table::from([("axe".to_owned(), number)])))
        })
        .compile()
        .unwrap()
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Inner {
    topic: String,
    #[reduce(append)]
    notes: Vec<String>,
    #[reduce(merge)]
    seen: HashMap<String, u32>,
}

async fn inside(ctx: Ctx, tools: Dep<Tools>, inner: Snapshot<Inner>) -> InnerUpdate {
    let text = format!("{} on {} after {}", ctx.node(), inner.topic, inner.notes.len());
    tools
        .during(&ctx, async {
            Inner::update().notes([text]).seen((0..5).map(|n| (format!("{}{n}", ctx.node()), n)))
        })
        .await
}

/// Two parallel notes, and one after both.
fn inner(tools: &Tools) -> CompiledGraph<Inner> {
    StateGraph::new()
        .dep(tools.clone())
        .node("a", inside)
        .node("b", inside)
        .node("c", inside)
        .edge(START, "a")
        .edge(START, "b")
        .edge(["a", "b"], "c")
        .compile()
        .unwrap()
}

fn nested(tools: &Tools) -> StateGraph<Work> {
    let same = StateGraph::new()
        .dep(tools.clone())
        .node("x", note)
        .node("y", note)
        .edge(START, "x")
        .edge("x", "y")
        .compile()
        .unwrap();
    let remembers = inner(tools)
        .embed(
            |work: Snapshot<Work>| Inner::update().topic(work.topic.clone()),
            |inner: Inner| Work::update().lines(inner.notes),
        )
        .memory(Memory::PerThread);
    let dispatched = inner(tools).embed_dispatched(
        |topic: &String| Inner::update().topic(topic),
        |topic: String, inner: Inner| Work::update().lines([format!("{topic}: {}", inner.notes.join(","))]),
    );
    async fn split(ctx: Ctx, tools: Dep<Tools>, work: Snapshot<Work>) -> Command<Work> {
        let topics = ["p", "q"].map(|topic| Dispatch::new("dispatched", topic.to_owned()).into_goto());
        let update = tools.during(&ctx, async { line("split", work.count + 1) }).await;
        Command::update(update).also_goto(topics.to_vec())
    }
    StateGraph::new()
        .node("same", same)
        .node("remembers", remembers)
        .node("split", split.targets(["dispatched"]))
        .node("dispatched", dispatched)
        .edge(START, "same")
        .edge("same", "remembers")
        .branch("remembers", |work: &Work| if work.count < 4 { "same" } else { "split" }, ["same", "split"])
}

fn edited() -> StateGraph<Work> {
    async fn plan(ctx: Ctx, tools: Dep<Tools>, work: Snapshot<Work>) -> Result<WorkUpdate> {
        tools
            .during(&ctx, async {
                let edits = ctx.edits();
                if work.count > 1 {
                    edits.skip(["search"])?;
                    return Ok(line("plan", work.count + 1));
                }
                for n in 0..2_u32 {
                    let node = format!("read#{n}");
                    edits.add_node(&node, "read", n)?;
                    edits.add_edge("search", &node)?;
                    edits.add_edge(&node, "write")?;
                }
                edits.remove_edge("search", "write")?;
                Ok(line("plan", work.count + 1))
            })
            .await
    }
    StateGraph::new()
        .node("plan", plan)
        .node("search", note.keep_output())
        .node("write", note)
        .edge(START, "plan")
        .edge("plan", "search")
        .edge("search", "write")
        .branch("write", |work: &Work| if work.lines.len() < 8 { "plan" } else { END }, ["plan", END])
        .template("read", |n: u32| {
            move |ctx: Ctx, tools: Dep<Tools>| async move {
                tools.during(&ctx, async { Work::update().lines([format!("read {n}")]) }).await
            }
        })
}

fn asking(tools: &Tools) -> StateGraph<Work> {
    async fn ask(ctx: Ctx, tools: Dep<Tools>, work: Snapshot<Work>) -> Result<WorkUpdate> {
        tools
            .during(&ctx, async {
                let question: HashMap<String, u64> =
                    (0..6).map(|n| (format!("{}{n}", ctx.node()), n)).collect();
                let answer: String = ctx.interrupt(question)?;
                Ok(line(ctx.node(), work.count).lines([answer]))
            })
            .await
    }
    let inner = StateGraph::new()
        .dep(tools.clone())
        .node("deep", ask)
        .node("after", note)
        .edge(START, "deep")
        .edge("deep", "after")
        .compile()
        .unwrap();
    StateGraph::new()
        .node("one", ask)
        .node("two", ask)
        .node("done", note)
        .node("inner", inner)
        .node("last", note)
        .edge(START, "one")
        .edge(START, "two")
        .edge(START, "done")
        .edge(["one", "two", "done"], "inner")
        .edge("inner", "last")
}

fn retried() -> StateGraph<Work> {
    async fn third_time(ctx: Ctx, tools: Dep<Tools>, work: Snapshot<Work>) -> Result<WorkUpdate> {
        tools
            .during(&ctx, async {
                if ctx.attempt() < 3 {
                    return Err("the page is torn".into());
                }
                Ok(line(ctx.node(), work.count + 1))
            })
            .await
    }
    async fn never(ctx: Ctx, tools: Dep<Tools>) -> Result<WorkUpdate> {
        tools.during(&ctx, async { Err(std::io::Error::other("no paper").into()) }).await
    }
    async fn mend(ctx: Ctx, tools: Dep<Tools>, failure: agentgraph::Failure) -> WorkUpdate {
        tools.during(&ctx, async { Work::update().lines([format!("mends {}", failure.message())]) }).await
    }
    let again = RetryPolicy::attempts(3).initial(Duration::from_millis(20));
    StateGraph::new()
        .node("torn", third_time.retry(again.clone()))
        .node("beside", third_time.retry(again))
        .node("never", never.on_error("mend"))
        .node("mend", mend)
        .node("last", note)
        .edge(START, "torn")
        .edge("torn", "beside")
        .edge("torn", "never")
        .edge(["beside", "mend"], "last")
}

#[derive(Default, Serialize, Deserialize)]
struct Cart {
    items: Vec<String>,
    prices: HashMap<String, u32>,
}

fn session() -> StateGraph<Work> {
    async fn pick(ctx: Ctx, tools: Dep<Tools>, cart: agentgraph::Session<Cart>) -> WorkUpdate {
        let seen = cart.with(|cart| {
            cart.items.push(ctx.node().to_owned());
            cart.prices.extend((0..20).map(|n| (format!("{}{n}", ctx.node()), n)));
            format!("{} of {}", cart.items.join("+"), cart.prices.len())
        });
        tools.during(&ctx, async { Work::update().lines([seen]) }).await
    }
    StateGraph::new()
        .session::<Cart>("cart")
        .node("apple", pick)
        .node("bread", pick)
        .node("note", note)
        .node("tea", pick)
        .edge(START, "apple")
        .edge("apple", "bread")
        .edge("apple", "note")
        .edge(["bread", "note"], "tea")
}

fn chatty() -> StateGraph<Work> {
    async fn speak(ctx: Ctx, tools: Dep<Tools>) -> WorkUpdate {
        ctx.message("one ");
        tools.during(&ctx, async { ctx.message("two ") }).await;
        Work::update().lines(["spoken"])
    }
    StateGraph::new().node("speak", speak).edge(START, "speak")
}

fn durable() -> StateGraph<Work> {
    async fn pay(ctx: Ctx, tools: Dep<Tools>, work: Snapshot<Work>) -> Result<WorkUpdate> {
        let marks = tools.marks.clone();
        let step = |name: &'static str| {
            let (marks, ctx) = (marks.clone(), ctx.clone());
            async move {
                marks.mark(&ctx, What::Step);
                Ok::<_, agentgraph::BoxError>(format!("{name} done"))
            }
        };
        tools
            .during(&ctx, async {
                let first = ctx.once("first", step("first")).await?;
                let second = ctx.once("second", step("second")).await?;
                Ok(line(ctx.node(), work.count + 1).lines([first, second]))
            })
            .await
    }
    StateGraph::new()
        .node("pay", pay.durable_steps())
        .node("ship", pay.durable_steps())
        .node("last", note)
        .edge(START, "pay")
        .edge(START, "ship")
        .edge(["pay", "ship"], "last")
}

/// Nodes that end their process, here and elsewhere.
pub fn deadly(tools: &Tools) -> CompiledGraph<Work> {
    async fn crash(ctx: Ctx, tools: Dep<Tools>) -> WorkUpdate {
        tools.marks.mark(&ctx, What::Began);
        std::process::abort()
    }
    async fn mend(failure: agentgraph::Failure) -> WorkUpdate {
        line(failure.code().as_str(), 1)
    }
    StateGraph::new()
        .node("here", crash.on_error("mended"))
        .node("mended", mend)
        .node("far", crash.remote().on_error("mended far"))
        .node("mended far", mend)
        .edge(START, "here")
        .edge("mended", "far")
        .dep(tools.clone())
        .compile()
        .unwrap()
}
