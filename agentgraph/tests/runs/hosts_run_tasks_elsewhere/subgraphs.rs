//! The tasks of a subgraph run on the host of the graph around it, and the run ends as it does without one.

use agentgraph::prelude::*;
use agentgraph::{Code, Failure, Memory, Outcome};
use serde::{Deserialize, Serialize};

use super::far::Far;
use crate::common::clock::Clock;
use crate::common::words::{Words, said, says, text};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Inner {
    topic: String,
    #[reduce(append)]
    notes: Vec<String>,
}

fn compiled(graph: StateGraph<Words>) -> CompiledGraph<Words> {
    graph.compile().unwrap().services(Clock::default())
}

/// The graph in this process and on a host, both with threads.
fn both(build: impl Fn() -> StateGraph<Words>) -> (CompiledGraph<Words>, CompiledGraph<Words>, Far) {
    let far = Far::of(compiled(build()));
    let near = compiled(build()).checkpointer(MemorySaver::new());
    (near, compiled(build()).host(far.clone()).checkpointer(MemorySaver::new()), far)
}

/// Runs both to their ends, answers each question with its number, and compares the outcomes.
async fn same_end(build: impl Fn() -> StateGraph<Words>) -> (String, Far) {
    let (near, hosted, far) = both(build);
    let near = driven(&near).await;
    let hosted = driven(&hosted).await;
    assert_eq!(near, hosted);
    (near, far)
}

async fn driven(graph: &CompiledGraph<Words>) -> String {
    let mut outcome = graph.invoke(Words::update().seen(["i"])).thread("t").await;
    let mut asked = Vec::new();
    loop {
        match outcome {
            Ok(Outcome::Interrupted { interrupts, .. }) => {
                asked.extend(interrupts.iter().map(|one| one.value.to_string()));
                let answers = interrupts.iter().map(|one| (one.id.unwrap(), asked.len() as u64));
                outcome = graph.resume_many(answers.collect::<Vec<_>>()).thread("t").await;
            }
            Ok(outcome) => {
                let values: Vec<String> =
                    graph.history("t").await.unwrap().iter().map(|one| text(&one.values)).collect();
                return format!("{} | asked {asked:?} | history {values:?}", text(outcome.output()));
            }
            Err(error) => return format!("failed: {error}"),
        }
    }
}

async fn note(ctx: Ctx, inner: Snapshot<Inner>) -> InnerUpdate {
    Inner::update().notes([format!("{}@{} on {}", ctx.node(), ctx.step(), inner.topic)])
}

/// A graph over another state: two parallel notes and one after both.
fn inner() -> StateGraph<Inner> {
    StateGraph::new()
        .node("a", note)
        .node("b", note)
        .node("c", note)
        .edge(START, "a")
        .edge(START, "b")
        .edge(["a", "b"], "c")
}

fn embedded(graph: CompiledGraph<Inner>) -> agentgraph::subgraph::Subgraph<Words, Inner> {
    graph.embed(
        |words: Snapshot<Words>| Inner::update().topic(format!("t{}", words.seen.len())),
        |inner: Inner| Words::update().seen(inner.notes),
    )
}

#[tokio::test]
async fn a_subgraph_over_the_same_state_sends_its_tasks_by_path() {
    let build = || {
        let child = compiled(
            StateGraph::new().node("x", says("x")).node("y", says("y")).edge(START, "x").edge("x", "y"),
        );
        StateGraph::new().node("child", child).node("z", says("z")).edge(START, "child").edge("child", "z")
    };
    let (end, far) = same_end(build).await;
    assert!(end.starts_with("i x y z |"), "{end}");
    assert_eq!(far.nodes(), ["child/x", "child/y", "z"]);
    let namespaces: Vec<bool> = far.calls().iter().map(|call| call.namespace.is_empty()).collect();
    assert_eq!(namespaces, [false, false, true]);
}

#[tokio::test]
async fn an_embedded_graph_with_each_memory_sends_its_tasks() {
    for memory in [Memory::PerCall, Memory::PerThread, Memory::None] {
        let build = || {
            let child = embedded(inner().compile().unwrap().services(Clock::default())).memory(memory);
            // Called twice, so that a memory per thread is met again.
            StateGraph::new().node("child", child).edge(START, "child").branch(
                "child",
                |words: &Words| if words.seen.len() < 6 { "child" } else { END },
                ["child", END],
            )
        };
        let (_, far) = same_end(build).await;
        let nodes = far.nodes();
        assert_eq!(nodes.iter().filter(|node| *node == "child/c").count(), 2, "{memory:?}: {nodes:?}");
        assert!(nodes.iter().all(|node| node.starts_with("child/")), "{nodes:?}");
        let mut tasks: Vec<_> = far.calls().iter().map(|call| call.task).collect();
        tasks.sort();
        tasks.dedup();
        assert_eq!(tasks.len(), nodes.len(), "{memory:?}: two tasks have one id");
    }
}

#[tokio::test]
async fn dispatched_graphs_run_side_by_side() {
    let build = || {
        let child = inner().compile().unwrap().services(Clock::default()).embed_dispatched(
            |topic: &String| Inner::update().topic(topic),
            |topic: String, inner: Inner| {
                Words::update().seen([format!("{topic}: {}", inner.notes.join(","))])
            },
        );
        let split = || async {
            said("split").also_goto(["p", "q"].map(|topic| Dispatch::new("child", topic.to_owned())))
        };
        StateGraph::new().node("split", split).node("child", child).edge(START, "split")
    };
    let (end, far) = same_end(build).await;
    assert!(end.contains("p: a@1 on p,b@1 on p,c@2 on p q: a@1 on q"), "{end}");
    assert_eq!(far.calls().len(), 7);
}

#[tokio::test]
async fn graphs_in_graphs_eager_ones_too_are_found_by_their_path() {
    for eager in [false, true] {
        let build = move || {
            let deep = if eager { inner().eager() } else { inner() };
            let deep = embedded(deep.compile().unwrap().services(Clock::default()));
            let middle = compiled(
                StateGraph::new()
                    .node("deep", deep)
                    .node("m", says("m"))
                    .edge(START, "deep")
                    .edge("deep", "m"),
            );
            StateGraph::new().node("middle", middle).edge(START, "middle")
        };
        let (end, far) = same_end(build).await;
        assert!(end.contains(" m |"), "{end}");
        assert_eq!(far.nodes(), ["middle/deep/a", "middle/deep/b", "middle/deep/c", "middle/m"]);
    }
}

#[tokio::test]
async fn questions_inside_are_asked_and_answered() {
    async fn asks(ctx: Ctx, inner: Snapshot<Inner>) -> Result<InnerUpdate> {
        let answer: u64 = ctx.interrupt(format!("{} on {}?", ctx.node(), inner.topic))?;
        Ok(Inner::update().notes([format!("{} says {answer}", ctx.node())]))
    }
    for eager in [false, true] {
        let build = move || {
            let child = StateGraph::new().node("one", asks).node("two", asks).node("c", note);
            let child = child.edge(START, "one").edge(START, "two").edge(["one", "two"], "c");
            let child = if eager { child.eager() } else { child };
            let child = embedded(child.compile().unwrap().services(Clock::default()));
            StateGraph::new().node("child", child).edge(START, "child")
        };
        let (end, _) = same_end(build).await;
        assert!(end.contains("one says 2 two says 2"), "{end}");
    }
}

#[tokio::test]
async fn failures_handlers_and_kept_errors_inside_are_the_same() {
    #[derive(Debug, Serialize, Deserialize, thiserror::Error)]
    #[error("refused for {cents}")]
    struct Refused {
        cents: u32,
    }
    #[derive(Debug, thiserror::Error)]
    #[error("paying failed")]
    struct Paying(#[source] Refused);
    let pay = || async { Err::<(), _>(Paying(Refused { cents: 7 })) };
    let mends = |failure: Failure| async move {
        let cents = failure.get::<Refused>().map(|refused| refused.cents);
        Words::update().seen([format!("{} {cents:?} {:?}", failure.message(), failure.causes())])
    };
    let handled = || {
        let child = StateGraph::new().node("pay", pay.keeps_error::<Refused>().on_error("mends"));
        let child = compiled(child.node("mends", mends).edge(START, "pay"));
        StateGraph::new().node("child", child).edge(START, "child")
    };
    let (end, far) = same_end(handled).await;
    assert!(end.contains("paying failed Some(7) [\"refused for 7\"]"), "{end}");
    assert_eq!(far.nodes(), ["child/mends", "child/pay"]);
    let unhandled = || {
        let child = compiled(StateGraph::new().node("pay", pay).edge(START, "pay"));
        StateGraph::new().node("child", child).edge(START, "child")
    };
    let (end, _) = same_end(unhandled).await;
    assert!(end.contains("paying failed"), "{end}");
}

#[tokio::test]
async fn edits_inside_and_graphs_that_an_edit_adds_run_on_the_host() {
    let build = || {
        let say = |word: String| {
            (move || {
                let word = word.clone();
                async move { Words::update().seen([word]) }
            })
            .into_node()
        };
        let adds_node = |ctx: Ctx| async move {
            ctx.edits().add_node("t", "say", "added")?;
            ctx.edits().add_edge("x", "t")?;
            Ok::<_, agentgraph::BoxError>(Words::update().seen(["x"]))
        };
        let child = move || StateGraph::new().node("x", adds_node).edge(START, "x").template("say", say);
        let grown = move |_: ()| compiled(child()).into_node();
        let adds_graph = |ctx: Ctx| async move {
            ctx.edits().add_node("grown", "grown", ())?;
            ctx.edits().add_edge("plan", "grown")?;
            Ok::<_, agentgraph::BoxError>(Words::update().seen(["plan"]))
        };
        StateGraph::new().node("plan", adds_graph).edge(START, "plan").template("grown", grown)
    };
    let (end, far) = same_end(build).await;
    assert!(end.starts_with("i plan x added |"), "{end}");
    assert_eq!(far.nodes(), ["grown/t", "grown/x", "plan"]);
}

/// Leaves its graph for a page of the graph around it.
fn leaving<U: Clone + Send + Sync + 'static>(update: U) -> agentgraph::node::Node<Inner> {
    let leaves = move || {
        let page = Dispatch::new("page", 7_u64);
        std::future::ready(Command::<Inner>::parent(page).parent_update(update.clone()))
    };
    leaves.into_node()
}

fn around(leaves: agentgraph::node::Node<Inner>) -> StateGraph<Words> {
    let inside = StateGraph::new().node("leaves", leaves).node("c", note).edge(START, "leaves");
    let inside = embedded(inside.edge("leaves", "c").compile().unwrap().services(Clock::default()));
    let page = |Input(page): Input<u64>| async move { Words::update().seen([format!("page {page}")]) };
    let graph = StateGraph::new().node("inside", inside.targets(["page"])).node("page", page);
    graph.node("usual", says("usual")).edge(START, "inside").edge("inside", "usual")
}

#[tokio::test]
async fn a_task_leaves_its_subgraph_with_an_update_of_the_graph_around_it() {
    let (end, far) = same_end(|| around(leaving(Words::update().seen(["left"])))).await;
    assert!(end.starts_with("i left page 7 |"), "{end}");
    assert_eq!(far.nodes(), ["inside/leaves", "page"]);
    // One graph further out, which is left from the middle.
    let build = || {
        let middle = compiled(around(leaving(Words::update().seen(["left"]))));
        StateGraph::new()
            .node("middle", middle)
            .node("z", says("z"))
            .edge(START, "middle")
            .edge("middle", "z")
    };
    let (end, _) = same_end(build).await;
    assert!(end.starts_with("i left page 7 z |"), "{end}");
}

#[tokio::test]
async fn a_graph_that_cannot_be_left_says_why() {
    let code = |build: fn() -> StateGraph<Words>| async move {
        let (near, hosted, _) = both(build);
        let [near, hosted] = [near.invoke(Words::update()), hosted.invoke(Words::update())];
        let (near, hosted) = (near.thread("t").await.unwrap_err(), hosted.thread("t").await.unwrap_err());
        assert_eq!((near.code(), hosted.code()), (Code::ParentCommand, Code::ParentCommand));
        (near.to_string(), hosted.to_string())
    };
    let root = || {
        let leaves = || async { Command::<Words>::parent("x") };
        StateGraph::new().node("leaves", leaves).edge(START, "leaves")
    };
    let (near, hosted) = code(root).await;
    assert_eq!(near, hosted);
    let (near, hosted) = code(|| around(leaving(Inner::update().topic("mine")))).await;
    assert_eq!(near, hosted);
    assert!(near.contains("the parent's state takes a `"), "{near}");

    let own = StateGraph::new().node("leaves", leaving(())).edge(START, "leaves").compile().unwrap();
    let inside = embedded(own.clone().host(Far::of(own)));
    let graph = StateGraph::new().node("inside", inside.targets(["x"])).node("x", says("x"));
    let error = compiled(graph.edge(START, "inside")).invoke(Words::update()).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("E_PARENT_COMMAND") && text.contains("give the host to the graph around it"),
        "{text}"
    );
}

#[tokio::test]
async fn a_subgraph_keeps_a_host_of_its_own() {
    let build = |word| StateGraph::new().node("x", says(word)).edge(START, "x");
    let own = Far::of(compiled(build("own")));
    let child = compiled(build("near")).host(own.clone());
    let around = StateGraph::new().node("child", child).edge(START, "child");
    let outer =
        Far::of(compiled(StateGraph::new().node("child", compiled(build("outer"))).edge(START, "child")));
    let graph = compiled(around).host(outer.clone());
    assert_eq!(text(graph.invoke(Words::update()).await.unwrap().output()), "own");
    assert_eq!((own.calls().len(), outer.calls().len()), (1, 0));
}
