use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use agentgraph::dependency::Deps;
use agentgraph::prelude::*;
use agentgraph::testing::TestGraph;
use agentgraph::{CompiledDependencyGraph, DependencyGraph, Workflow};
use proptest::prelude::*;

use crate::{Words, WordsUpdate, note, say};

/// The supersteps of a graph of plain edges, by the rules of the design: the nodes that an edge of the last
/// superstep leads to, each once, in the order of their declaration.
fn model(edges: &BTreeMap<usize, BTreeSet<usize>>, first: &BTreeSet<usize>) -> Vec<Vec<usize>> {
    let mut steps = Vec::new();
    let mut frontier = first.clone();
    while !frontier.is_empty() {
        steps.push(frontier.iter().copied().collect());
        frontier = frontier.iter().flat_map(|node| edges.get(node).cloned().unwrap_or_default()).collect();
    }
    steps
}

fn build(
    nodes: usize,
    edges: &BTreeMap<usize, BTreeSet<usize>>,
    first: &BTreeSet<usize>,
) -> CompiledGraph<Words> {
    let mut graph = StateGraph::new();
    for node in 0..nodes {
        graph = graph.node(format!("n{node}"), note);
    }
    for node in first {
        graph = graph.edge(START, format!("n{node}"));
    }
    for (from, to) in edges.iter().flat_map(|(from, to)| to.iter().map(move |to| (from, to))) {
        graph = graph.edge(format!("n{from}"), format!("n{to}"));
    }
    graph.compile().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn supersteps_of_random_graphs_are_those_of_the_design(
        pairs in proptest::collection::btree_set((0_usize..7, 0_usize..7), 0..14),
        first in proptest::collection::btree_set(0_usize..7, 1..3),
    ) {
        let mut edges: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (from, to) in pairs.into_iter().filter(|(from, to)| from < to) {
            edges.entry(from).or_default().insert(to);
        }
        let expected: Vec<Vec<String>> =
            model(&edges, &first).iter().map(|step| step.iter().map(|node| format!("n{node}")).collect()).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let trace = runtime.block_on(TestGraph::of(build(7, &edges, &first)).trace(Words::update()));
        prop_assert_eq!(trace.steps(), expected.clone());
        prop_assert_eq!(&trace.state().said, &expected.concat());
        prop_assert!(trace.report().findings().is_empty());
    }
}

#[tokio::test]
async fn a_failed_node_is_not_among_those_that_ran() {
    async fn fails() -> Result<WordsUpdate> {
        Err("no".into())
    }
    let graph = StateGraph::new()
        .node("first", note)
        .node("fails", fails.retry(RetryPolicy::attempts(3).initial(Duration::from_secs(3600))))
        .edge(START, "first")
        .edge("first", "fails")
        .compile()
        .unwrap();
    let trace = TestGraph::of(graph).trace(Words::update()).await;
    assert_eq!(trace.ran(), ["first"]);
    assert_eq!(trace.attempts("fails"), 3);
    assert_eq!(trace.outcome().unwrap_err().node(), Some("fails"));
    assert_eq!(trace.state().said, ["first"]);
    assert_eq!(trace.waits(), [Duration::from_secs(30); 2], "the longest wait");
}

#[tokio::test]
async fn an_eager_graph_is_traced_in_the_order_of_starts() {
    let graph = StateGraph::new()
        .eager()
        .node("slow", note)
        .node("quick", note)
        .node("after", note)
        .edge(START, "slow")
        .edge(START, "quick")
        .edge("quick", "after")
        .compile()
        .unwrap();
    let trace = TestGraph::of(graph).delay("slow", Duration::from_secs(60)).trace(Words::update()).await;
    assert_eq!(trace.ran(), ["slow", "quick", "after"]);
    assert_eq!(trace.state().said, ["quick", "after", "slow"]);
    assert_eq!(trace.elapsed(), Duration::from_secs(60));
}

fn sums() -> CompiledDependencyGraph<u64> {
    DependencyGraph::<u64>::new()
        .node("two", || 2)
        .node("three", |_: Deps<'_, u64>| 3)
        .node("sum", |deps: Deps<'_, u64>| deps.outputs().sum::<u64>())
        .edge("two", "sum")
        .edge("three", "sum")
        .compile()
        .unwrap()
}

#[tokio::test]
async fn a_dependency_graph_is_traced_and_its_nodes_are_replaced() {
    let trace = TestGraph::of(sums()).trace(()).await;
    assert_eq!(trace.ran(), ["two", "three", "sum"]);
    assert_eq!(trace.state()["sum"], 5);
    let trace = TestGraph::of(sums()).replace("two", || async { 20 }).trace(()).await;
    assert_eq!(trace.state()["sum"], 23);
    let report = TestGraph::of(sums()).every_kill(()).await;
    report.assert_none();
    assert!(report.runs() > 2, "{report}");
    TestGraph::of(sums()).every_order(()).seeds(8).await.assert_none();
}

#[tokio::test]
async fn a_workflow_is_traced_with_its_questions_and_sleeps() {
    async fn order(ctx: Ctx, sum: u32) -> Result<String> {
        let yes: bool = ctx.interrupt(format!("pay {sum}?"))?;
        ctx.sleep("a week", Duration::from_secs(7 * 86_400)).await?;
        Ok(if yes { "paid" } else { "cancelled" }.to_owned())
    }
    let orders = Workflow::new("order", order).compile().unwrap();
    let test = TestGraph::of(orders).answer_to("order", true);
    let trace = test.trace(7_u32).await;
    assert_eq!(trace.ran(), ["order"]);
    assert_eq!(trace.asked(), ["pay 7?"]);
    assert_eq!(trace.state().returned(), Some(&"paid".to_owned()));
    assert!(trace.elapsed() >= Duration::from_secs(7 * 86_400));
    test.every_kill(7_u32).await.assert_none();
}

#[tokio::test]
async fn a_run_without_an_answer_ends_at_its_question() {
    async fn ask(ctx: Ctx) -> Result<WordsUpdate> {
        Ok(say(ctx.interrupt::<String>("which word?")?))
    }
    let graph = StateGraph::new().node("ask", ask).edge(START, "ask").edge("ask", "then").node("then", note);
    let test = TestGraph::of(graph.compile().unwrap());
    let trace = test.trace(Words::update()).await;
    assert!(trace.ran().is_empty());
    assert_eq!(trace.outcome().unwrap().interrupts().len(), 1);
    test.every_kill(Words::update()).await.assert_none();

    let trace = test.clone().answer("tea").trace(Words::update()).await;
    assert_eq!(trace.ran(), ["ask", "then"]);
    assert_eq!(trace.state().said, ["tea", "then"]);
    test.answer("tea").every_kill(Words::update()).await.assert_none();
}

#[tokio::test]
async fn temporary_nodes_are_shown_and_their_runs_are_killed() {
    async fn plan(ctx: Ctx) -> Result<WordsUpdate> {
        ctx.edits().add_node("check#1", "check", ())?;
        ctx.edits().add_edge("plan", "check#1")?;
        Ok(say("plan"))
    }
    let graph = StateGraph::new().node("plan", plan).edge(START, "plan").template("check", |(): ()| note);
    let test = TestGraph::of(graph.compile().unwrap());
    let trace = test.trace(Words::update()).await;
    assert_eq!((trace.ran(), trace.attempts("check#1")), (vec!["plan", "check#1"], 1));
    test.every_kill(Words::update()).await.assert_none();
}

#[tokio::test]
async fn temporary_nodes_of_a_pass_are_shown() {
    let graph = DependencyGraph::<u64>::new()
        .template("fixed", |value: &serde_json::Value| {
            let value = value.as_u64().unwrap_or_default();
            Ok(DependencyNode::of(move |_: Deps<'_, u64>| value))
        })
        .node("begin", |_: Deps<'_, u64>, edits: PassEdits<u64>| -> Result<u64> {
            edits.add_node("fixed#1", "fixed", serde_json::json!(7))?;
            Ok(1)
        });
    let test = TestGraph::of(graph.compile().unwrap());
    let trace = test.trace(()).await;
    assert_eq!((trace.ran(), trace.state()["fixed#1"]), (vec!["begin", "fixed#1"], 7));
    test.every_kill(()).await.assert_none();
}

#[tokio::test]
async fn static_interrupts_are_passed() {
    let graph = StateGraph::new().node("one", note).node("two", note).edge(START, "one").edge("one", "two");
    let test = TestGraph::of(graph.interrupt_before(["two"]).compile().unwrap());
    let trace = test.trace(Words::update()).await;
    assert_eq!((trace.ran(), trace.interrupts().len()), (vec!["one", "two"], 1));
    test.every_kill(Words::update()).await.assert_none();
}
