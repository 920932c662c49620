//! Dependency graphs: the order of a pass, what its nodes get, which edits it accepts meanwhile, and
//! what the next pass keeps of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use agentgraph::dependency::{BeforePass, Join, NotRunReason, Outputs};
use agentgraph::edit::{EditError, GraphEdit, Rejection};
use agentgraph::graph::ProblemKind;
use agentgraph::prelude::*;
use agentgraph::{CompiledDependencyGraph, Error};

/// The log of calls, such as `C(A=A1 B=B1)`.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Calls>>);

/// The calls in order, and the number of calls of each node.
type Calls = (Vec<String>, HashMap<String, u32>);

impl Log {
    /// Logs a call of a node, and returns the name of the node with the number of its calls.
    fn call(&self, node: &str, deps: &Deps<'_, String>) -> String {
        let mut log = self.0.lock().unwrap();
        let prompt: Vec<String> = deps.iter().map(|(name, output)| format!("{name}={output}")).collect();
        log.0.push(format!("{node}({})", prompt.join(" ")));
        let count = log.1.entry(node.to_owned()).or_default();
        *count += 1;
        format!("{node}{count}")
    }

    fn note(&self, text: impl Into<String>) {
        self.0.lock().unwrap().0.push(text.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().0)
    }
}

/// The edits of a node, made after its call was logged. They get the number of the call.
type After = Arc<dyn Fn(&PassEdits<String>, u32) -> Result<(), BoxError> + Send + Sync>;
type BoxError = agentgraph::BoxError;

/// A graph of nodes that log their calls.
struct Kit {
    graph: DependencyGraph<String>,
    log: Log,
}

impl Kit {
    /// Nodes, in order of declaration, and edges: `"A B C"`, `"A>B B>C"`; an order-only edge is `A~B`.
    fn of(nodes: &str, edges: &str) -> Self {
        Self::with(nodes, edges, [])
    }

    fn with<const N: usize>(nodes: &str, edges: &str, afters: [(&str, After); N]) -> Self {
        let mut graph = DependencyGraph::<String>::new();
        let log = Log::default();
        let afters: HashMap<&str, After> = afters.into_iter().collect();
        for name in nodes.split_whitespace() {
            graph = match afters.get(name) {
                None => graph.node(name, plain(&log, name)),
                Some(after) => graph.node(name, editing(&log, name, after)),
            };
        }
        for edge in edges.split_whitespace() {
            graph = match edge.split_once('~') {
                Some((from, to)) => graph.order(from, to),
                None => graph.edge(edge.split_once('>').unwrap().0, edge.split_once('>').unwrap().1),
            };
        }
        Kit { graph, log }
    }

    fn compile(self) -> (CompiledDependencyGraph<String>, Log) {
        (self.graph.compile().unwrap(), self.log)
    }
}

fn plain(log: &Log, name: &str) -> impl Fn(Deps<'_, String>) -> String + Send + Sync + 'static + use<> {
    let log = log.clone();
    let name = name.to_owned();
    move |deps| log.call(&name, &deps)
}

fn editing(
    log: &Log,
    name: &str,
    after: &After,
) -> impl Fn(Deps<'_, String>, PassEdits<String>) -> Result<String, BoxError> + Send + Sync + 'static + use<>
{
    let log = log.clone();
    let name = name.to_owned();
    let after = Arc::clone(after);
    move |deps, edits| {
        let answer = log.call(&name, &deps);
        let count = log.0.lock().unwrap().1[&name];
        after(&edits, count)?;
        Ok(answer)
    }
}

/// Returns edits that are made in every call.
fn after(edit: impl Fn(&PassEdits<String>) -> Result<(), EditError> + Send + Sync + 'static) -> After {
    Arc::new(move |edits, _| Ok(edit(edits)?))
}

/// Returns edits that are made in the first call only.
fn first(edit: impl Fn(&PassEdits<String>) -> Result<(), EditError> + Send + Sync + 'static) -> After {
    Arc::new(move |edits, count| if count == 1 { Ok(edit(edits)?) } else { Ok(()) })
}

/// Adds a temporary node that returns its name and the names of its dependencies.
fn add(edits: &PassEdits<String>, name: &'static str) -> Result<(), EditError> {
    edits.add_fn(name, move |deps: Deps<String>| {
        format!("{name}<{}", deps.names().collect::<Vec<_>>().join(","))
    })
}

async fn pass(graph: &CompiledDependencyGraph<String>) -> Outputs<String> {
    graph.invoke(()).max_concurrency(1).await.unwrap().into_finished().unwrap()
}

fn order(outputs: &Outputs<String>) -> String {
    outputs.names().collect::<Vec<_>>().join(" ")
}

/// Runs a pass of the graph and returns the order of its nodes.
async fn order_of(nodes: &str, edges: &str) -> String {
    order(&pass(&Kit::of(nodes, edges).compile().0).await)
}

fn not_run(outputs: &Outputs<String>) -> String {
    outputs.not_run().iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn refused(result: Result<(), EditError>) -> Rejection {
    result.unwrap_err().why().clone()
}

// The order of a pass.

#[tokio::test]
async fn nodes_run_when_their_dependencies_are_done_and_get_them_in_the_order_of_the_edges() {
    let (graph, log) = Kit::of("D C B A", "A>B A>C B>D C>D").compile();
    assert_eq!(order(&pass(&graph).await), "A B C D");
    assert_eq!(log.take(), ["A()", "B(A=A1)", "C(A=A1)", "D(B=B1 C=C1)"]);

    let (graph, log) = Kit::of("A B C", "B>C A>C").compile();
    assert_eq!(order(&pass(&graph).await), "A B C");
    assert_eq!(log.take()[2], "C(B=B1 A=A1)");
}

#[tokio::test]
async fn order_only_edges_delay_the_target_and_carry_no_output() {
    let (graph, log) = Kit::of("A B C", "A>C C~B").compile();
    assert_eq!(order(&pass(&graph).await), "A C B");
    assert_eq!(log.take()[2], "B()");
    let twice = Kit::of("A B", "A~B A~B").graph.compile().unwrap_err();
    assert!(matches!(twice.problems()[0].kind, ProblemKind::DuplicateEdge { .. }), "{twice}");
}

#[tokio::test]
async fn a_blocked_node_keeps_its_place_in_the_queue() {
    // B queues up behind A, before C and D; when D is done it comes before E, which queued up later.
    assert_eq!(order_of("A B C D E F", "A>B A>C A>D D>B C>E D>F").await, "A C D B E F");
}

#[tokio::test]
async fn an_empty_graph_gives_nothing() {
    let (graph, _) = Kit::of("", "").compile();
    let outputs = pass(&graph).await;
    assert!(outputs.is_empty() && outputs.not_run().is_empty());
}

#[tokio::test]
async fn sync_and_async_nodes_with_and_without_extractors_can_be_mixed() {
    struct Suffix(&'static str);
    async fn late(deps: Deps<'_, String>, suffix: Dep<Suffix>) -> Result<String> {
        tokio::task::yield_now().await;
        Ok(format!("{}{}", deps[0], suffix.0))
    }
    let graph = DependencyGraph::<String, u32>::with_input()
        .dep(Suffix("!"))
        .node("a", || "a".to_owned())
        .node("b", |deps: Deps<String>, n: Given<u32>| format!("{}{}", deps["a"], *n))
        .node("c", late)
        .node(
            "d",
            |ctx: Ctx, deps: Deps<'static, String>| async move { format!("{}:{}", ctx.node(), deps["c"]) },
        )
        .edge("a", "b")
        .edge("b", "c")
        .edge("c", "d")
        .compile()
        .unwrap();
    let outputs = graph.invoke(7).await.unwrap().into_finished().unwrap();
    assert_eq!(outputs["d"], "d:a7!");
    assert_eq!(outputs.input(), Some(&7));
}

// Building.

#[test]
fn compile_names_every_problem_at_once() {
    let node = |_: Deps<String>| String::new();
    let error = DependencyGraph::<String>::new()
        .node("plan", node)
        .node("plan", node)
        .node("__own", node)
        .node("act", node)
        .edge("plan", "act")
        .edge("plan", "act")
        .edge("plam", "act")
        .order("plan", "act")
        .order("act", "nowhere_at_all")
        .node("late", |_: Deps<String>, _: Dep<u8>| String::new())
        .node("cell", |_: Deps<String>, _: Session<u8>| String::new())
        .compile()
        .unwrap_err();
    let kinds: Vec<String> = error.problems().iter().map(|problem| problem.kind.to_string()).collect();
    assert_eq!(kinds.len(), 8, "{kinds:#?}");
    assert!(kinds[0].contains("two nodes named `plan`"));
    assert!(kinds[1].contains("`__own`"));
    assert!(kinds[2].contains("`plan` -> `act` exists already"));
    assert!(kinds[3].contains("an `edge` names `plam`") && kinds[3].contains("did you mean `plan`?"));
    assert!(kinds[4].contains("`plan` -> `act` exists already"));
    assert!(kinds[5].contains("an `order` names `nowhere_at_all`"));
    assert!(kinds[6].contains("Dep<u8>") && kinds[7].contains("Session<u8>"));
    assert!(error.problems().iter().all(|problem| problem.place.is_some()));
}

#[test]
fn compile_finds_and_names_a_cycle() {
    let cycle = |nodes, edges| {
        let error = Kit::of(nodes, edges).graph.compile().unwrap_err();
        match &error.problems()[0].kind {
            ProblemKind::Cycle { nodes } => nodes.join(" "),
            other => panic!("{other}"),
        }
    };
    assert_eq!(cycle("R A B", "R>A A>B B>A"), "A B");
    assert_eq!(cycle("A", "A>A"), "A");
    assert_eq!(cycle("A B", "A>B B~A"), "A B");
    assert_eq!(cycle("X A B C Y", "X>A A>B B>C C>A C>Y"), "A B C");
}

#[tokio::test]
async fn an_edge_may_name_nodes_that_are_declared_later() {
    let node = |deps: Deps<String>| deps.names().collect::<Vec<_>>().join("+");
    let graph = DependencyGraph::<String>::new()
        .edge("b", "c")
        .edge("a", "c")
        .node("a", node)
        .node("b", node)
        .node("c", node)
        .compile()
        .unwrap();
    let outputs = graph.invoke(()).max_concurrency(1).await.unwrap().into_finished().unwrap();
    assert_eq!(order(&outputs), "a b c");
    assert_eq!(outputs["c"], "b+a");
}

#[tokio::test]
async fn a_data_edge_may_be_added_to_an_order_only_edge() {
    assert_eq!(order_of("A B", "B~A B>A").await, "B A");
}

// Temporary nodes and edges.

#[tokio::test]
async fn a_temporary_node_runs_between_two_others_in_this_pass_only() {
    let between = after(|edits| {
        add(edits, "T")?;
        edits.add_edge("A", "T")?;
        edits.add_edge("T", "B")
    });
    let (graph, log) = Kit::with("A B", "A>B", [("A", between)]).compile();
    for n in 1..=2 {
        assert_eq!(order(&pass(&graph).await), "A T B");
        assert_eq!(log.take()[1], format!("B(A=A{n} T=T<A)"));
    }
}

#[tokio::test]
async fn a_temporary_node_without_dependencies_joins_the_end_of_the_queue_at_once() {
    let beside = first(|edits| {
        add(edits, "T")?;
        edits.add_edge("T", "B")
    });
    let (graph, _) = Kit::with("A B C", "A>B B>C", [("A", beside)]).compile();
    assert_eq!(order(&pass(&graph).await), "A T B C");
    assert_eq!(order(&pass(&graph).await), "A B C");

    let (graph, _) = Kit::with("A X B", "A>B", [("A", after(|edits| add(edits, "T")))]).compile();
    assert_eq!(order(&pass(&graph).await), "A X T B");
}

#[tokio::test]
async fn an_edge_into_a_finished_node_is_rejected_and_leaves_no_trace() {
    let back = first(|edits| edits.add_edge("B", "A"));
    let (graph, log) = Kit::with("A B C", "A>B B>C", [("B", back)]).compile();
    let error = graph.invoke(()).await.unwrap_err();
    assert_eq!((error.code().as_str(), error.node()), ("E_EDIT_REJECTED", Some("B")));
    assert!(error.to_string().contains("node `A` is done"), "{error}");
    log.take();
    assert_eq!(order(&pass(&graph).await), "A B C");
    assert_eq!(log.take(), ["A()", "B(A=A2)", "C(B=B2)"]);
}

#[tokio::test]
async fn a_rejected_edit_returns_an_error_and_the_node_may_continue() {
    let log = Log::default();
    let seen = log.clone();
    let edit = after(move |edits| {
        let say = |result: Result<(), EditError>| seen.note(format!("{}", result.unwrap_err().why()));
        say(edits.add_edge("A", "A"));
        say(edits.add_edge("A", "B"));
        say(edits.add_edge("A", "X"));
        say(edits.remove_edge("B", "A"));
        say(edits.skip(["B"]));
        add(edits, "T")?;
        say(add(edits, "T"));
        say(add(edits, "B"));
        say(add(edits, "__t"));
        say(edits.remove_node("A"));
        edits.add_edge("A", "T")?;
        edits.add_edge("T", "U").unwrap_err();
        Ok(())
    });
    let (graph, _) = Kit::with("A B", "A>B", [("A", edit)]).compile();
    assert_eq!(order(&pass(&graph).await), "A B T");
    assert_eq!(
        log.take(),
        [
            "a node cannot depend on itself",
            "there is such an edge",
            "there is no node `X`",
            "there is no such edge; routes, branches and commands are not edges",
            "node `B` has not finished before, so it has no output to reuse",
            "there is a node of that name",
            "there is a node of that name",
            "a name is not empty and does not begin with `__`, which is reserved",
            "node `A` runs already",
        ]
    );
}

#[tokio::test]
async fn removing_an_edge_prunes_the_nodes_behind_it() {
    let cut = first(|edits| edits.remove_edge("A", "N"));
    let (graph, _) = Kit::with("A Y N M", "A>Y A>N N>M", [("A", cut)]).compile();
    let outputs = pass(&graph).await;
    assert_eq!(order(&outputs), "A Y");
    assert_eq!(not_run(&outputs), "`N` was pruned; `M` was pruned");
    assert_eq!(order(&pass(&graph).await), "A Y N M");
}

#[tokio::test]
async fn the_pass_reports_a_node_that_waits_for_a_pruned_one() {
    let cut = || after(|edits| edits.remove_edge("A", "N"));
    let (graph, _) = Kit::with("A Y N J K", "A>Y A>N Y>J N>J J>K", [("A", cut())]).compile();
    let outputs = pass(&graph).await;
    assert_eq!(order(&outputs), "A Y");
    assert_eq!(not_run(&outputs), "`N` was pruned; `J` waits for `N`; `K` waits for `J`");
    assert_eq!(outputs.not_run()[1].reason, NotRunReason::WaitsFor(vec!["N".into()]));

    let both = after(|edits| {
        edits.remove_edge("A", "N")?;
        edits.remove_edge("N", "J")
    });
    let (graph, _) = Kit::with("A Y N J", "A>Y A>N Y>J N>J", [("A", both)]).compile();
    assert_eq!(order(&pass(&graph).await), "A Y J");

    // An output of an earlier pass does not satisfy the dependency.
    let second: After =
        Arc::new(|edits, count| if count == 2 { Ok(edits.remove_edge("A", "N")?) } else { Ok(()) });
    let (graph, _) = Kit::with("A Y N J", "A>Y A>N Y>J N>J", [("A", second)]).compile();
    let mut passes = graph.passes();
    assert_eq!(order(passes.invoke(()).await.unwrap().output()), "A Y N J");
    assert_eq!(order(passes.invoke(()).await.unwrap().output()), "A Y");

    let kit = Kit::with("A Y N J", "A>Y A>N Y>J N>J", [("A", cut())]);
    let graph = kit.graph.fail_on_waiting_nodes().compile().unwrap();
    let error = graph.invoke(()).await.unwrap_err();
    assert_eq!(error.code().as_str(), "E_NOT_RUN");
    assert!(error.to_string().contains("`J` waits for `N`"), "{error}");
}

#[tokio::test]
async fn a_join_may_ignore_pruned_sources_or_take_the_first() {
    let graph = |join| {
        let cut = after(|edits| edits.remove_edge("A", "N"));
        let Kit { graph, log } = Kit::with("A Y N M", "A>Y A>N N>M", [("A", cut)]);
        let node = DependencyNode::of(plain(&log, "J")).join(join);
        (graph.node("J", node).edge("M", "J").edge("Y", "J").compile().unwrap(), log)
    };
    let (lenient, log) = graph(Join::AllNotPruned);
    assert_eq!(order(&pass(&lenient).await), "A Y J");
    assert_eq!(log.take()[2], "J(Y=Y1)");
    let (any, _) = graph(Join::Any);
    assert_eq!(order(&pass(&any).await), "A Y J");
    let (all, _) = graph(Join::All);
    assert_eq!(order(&pass(&all).await), "A Y");

    // Without pruning, `J` is ready after the first source. It queues up behind B, so it gets both
    // outputs.
    let Kit { graph, log } = Kit::of("A B", "");
    let node = DependencyNode::of(plain(&log, "J")).join(Join::Any);
    let graph = graph.node("J", node).edge("B", "J").edge("A", "J").compile().unwrap();
    assert_eq!(order(&pass(&graph).await), "A B J");
    assert_eq!(log.take()[2], "J(B=B1 A=A1)");
}

#[tokio::test]
async fn a_removed_edge_is_back_in_its_place_in_the_next_pass() {
    // X -> D is removed and D runs with Y alone; in the next pass X is first again.
    let cut = first(|edits| edits.remove_edge("X", "D"));
    let (graph, log) = Kit::with("A X Y D", "A>X A>Y X>D Y>D", [("A", cut)]).compile();
    pass(&graph).await;
    assert_eq!(log.take()[3], "D(Y=Y1)");
    pass(&graph).await;
    assert_eq!(log.take()[3], "D(X=X2 Y=Y2)");

    // Removed and added again: X is last in this pass, and first again in the next.
    let again = first(|edits| {
        edits.remove_edge("X", "D")?;
        edits.add_edge("X", "D")
    });
    let (graph, log) = Kit::with("A X Y D", "A>X A>Y X>D Y>D", [("A", again)]).compile();
    pass(&graph).await;
    assert_eq!(log.take()[3], "D(Y=Y1 X=X1)");
    pass(&graph).await;
    assert_eq!(log.take()[3], "D(X=X2 Y=Y2)");
}

#[tokio::test]
async fn an_edge_from_a_finished_node_cannot_be_removed() {
    let log = Log::default();
    let edges = "A>B A>C";
    let seen = log.clone();
    let swallows = after(move |edits| {
        seen.note(refused(edits.remove_edge("A", "C")).to_string());
        Ok(())
    });
    let (graph, calls) = Kit::with("A B C", edges, [("B", swallows)]).compile();
    assert_eq!(order(&pass(&graph).await), "A B C");
    assert_eq!((&log.take()[..], &*calls.take()[2]), (&["node `A` is done".to_owned()][..], "C(A=A1)"));

    let fails = first(|edits| edits.remove_edge("A", "C"));
    let (graph, calls) = Kit::with("A B C", edges, [("B", fails)]).compile();
    let error = graph.invoke(()).max_concurrency(1).await.unwrap_err();
    assert_eq!((error.code().as_str(), error.node()), ("E_EDIT_REJECTED", Some("B")));
    calls.take();
    assert_eq!(order(&pass(&graph).await), "A B C");
    assert_eq!(calls.take()[2], "C(A=A2)");
}

#[tokio::test]
async fn adding_and_removing_an_edge_does_not_prune_a_root() {
    let edit = after(|edits| {
        edits.add_edge("A", "D")?;
        edits.remove_edge("A", "D")
    });
    let (graph, log) = Kit::with("A D", "", [("A", edit)]).compile();
    assert_eq!(order(&pass(&graph).await), "A D");
    assert_eq!(log.take()[1], "D()");
}

#[tokio::test]
async fn a_temporary_node_that_loses_its_last_edge_is_pruned_like_any_other() {
    let edit = after(|edits| {
        add(edits, "T")?;
        edits.add_edge("A", "T")?;
        edits.remove_edge("A", "T")
    });
    let (graph, _) = Kit::with("A B", "A>B", [("A", edit)]).compile();
    let outputs = pass(&graph).await;
    assert_eq!((order(&outputs), not_run(&outputs)), ("A B".into(), "`T` was pruned".into()));
}

#[tokio::test]
async fn an_edge_into_a_pruned_node_brings_it_and_its_dependents_back() {
    let cut = after(|edits| edits.remove_edge("A", "N"));
    let back = after(|edits| edits.add_edge("Y", "N"));
    let (graph, log) = Kit::with("A Y N M", "A>Y A>N N>M Y>M", [("A", cut), ("Y", back)]).compile();
    assert_eq!(order(&pass(&graph).await), "A Y N M");
    assert_eq!(log.take()[2..], ["N(Y=Y1)", "M(N=N1 Y=Y1)"]);
}

#[tokio::test]
async fn an_edge_between_two_queued_nodes_changes_their_order() {
    let edit = first(|edits| edits.add_edge("C", "B"));
    let (graph, log) = Kit::with("A B C", "A>B A>C", [("A", edit)]).compile();
    assert_eq!(order(&pass(&graph).await), "A C B");
    assert_eq!(log.take()[2], "B(A=A1 C=C1)");
    assert_eq!(order(&pass(&graph).await), "A B C");
}

#[tokio::test]
async fn an_edge_may_be_prepended() {
    let edit = after(|edits| edits.prepend_edge("C", "B"));
    let (graph, log) = Kit::with("A B C", "A>B A>C", [("A", edit)]).compile();
    pass(&graph).await;
    assert_eq!(log.take()[2], "B(C=C1 A=A1)");

    let (graph, log) = Kit::of("A B C", "B>C").compile();
    let before = graph.invoke(()).max_concurrency(1).for_this_pass(|edits| {
        edits.prepend_edge("A", "C");
    });
    assert_eq!(order(&before.await.unwrap().into_finished().unwrap()), "A B C");
    assert_eq!(log.take()[2], "C(A=A1 B=B1)");
}

#[tokio::test]
async fn an_edge_from_a_finished_node_gives_its_output_to_the_target() {
    let edit = after(|edits| edits.add_edge("A", "D"));
    let (graph, log) = Kit::with("A B C D", "A>B B>C C>D", [("B", edit)]).compile();
    assert_eq!(order(&pass(&graph).await), "A B C D");
    assert_eq!(log.take()[3], "D(C=C1 A=A1)");
}

#[tokio::test]
async fn an_edge_that_would_close_a_cycle_is_rejected() {
    let log = Log::default();
    let seen = log.clone();
    let edit = after(move |edits| {
        add(edits, "T1")?;
        add(edits, "T2")?;
        edits.add_edge("A", "T1")?;
        edits.add_edge("T1", "T2")?;
        edits.add_edge("T2", "B")?;
        for (from, to) in [("T2", "T1"), ("B", "T1"), ("C", "A")] {
            seen.note(refused(edits.add_edge(from, to)).to_string());
        }
        Ok(())
    });
    let (graph, _) = Kit::with("A B C", "A>B B>C", [("A", edit)]).compile();
    assert_eq!(order(&pass(&graph).await), "A T1 T2 B C");
    assert_eq!(
        log.take(),
        [
            "it closes the cycle `T2` -> `T1` -> `T2`",
            "it closes the cycle `B` -> `T1` -> `T2` -> `B`",
            "it closes the cycle `C` -> `A` -> `B` -> `C`",
        ]
    );
}

#[tokio::test]
async fn an_edge_into_the_running_node_changes_nothing_in_this_pass() {
    let edit = after(|edits| edits.add_edge("X", "A"));
    let (graph, log) = Kit::with("X A B", "A>B", [("A", edit)]).compile();
    assert_eq!(order(&pass(&graph).await), "X A B");
    assert_eq!(log.take()[1], "A()");
}

#[tokio::test]
async fn a_node_may_be_removed_and_its_name_reused() {
    let edit = first(|edits| {
        edits.remove_node("B")?;
        add(edits, "B")?;
        edits.add_edge("A", "B")?;
        edits.add_edge("B", "C")
    });
    let (graph, log) = Kit::with("A B C", "A>B B>C", [("A", edit)]).compile();
    let outputs = pass(&graph).await;
    assert_eq!(order(&outputs), "A B C");
    assert_eq!(outputs["B"], "B<A");
    assert_eq!(outputs.not_run(), [], "`B` means the temporary node, which ran");
    let drawn = graph.mermaid_of(&outputs);
    assert!(drawn.contains("class n3 temporary\n") && drawn.contains("class n1 idle\n"), "{drawn}");
    assert_eq!(log.take(), ["A()", "C(B=B<A)"]);
    assert_eq!(pass(&graph).await["B"], "B1");

    let edit = after(|edits| edits.remove_node("B"));
    let (graph, _) = Kit::with("A B C D", "A>B B>C A>D B>D", [("A", edit)]).compile();
    let outputs = pass(&graph).await;
    assert_eq!((order(&outputs), not_run(&outputs)), ("A D".into(), "`B` was pruned; `C` was pruned".into()));
}

#[tokio::test]
async fn a_temporary_node_may_be_replaced_by_an_identical_one() {
    let made = |_: &serde_json::Value| Ok(DependencyNode::of(|_: Deps<'_, String>| "made".to_owned()));
    let adds = |edits: PassEdits<String>, anew: bool| -> Result<String> {
        if anew {
            edits.remove_node("T")?;
        }
        edits.add_node("T", "made", ())?;
        Ok(String::new())
    };
    let graph = DependencyGraph::<String>::new()
        .template("made", made)
        .node("A", |_: Deps<'_, String>| String::new())
        .node("C", move |_: Deps<'_, String>, edits: PassEdits<String>| adds(edits, true))
        .node("B", move |_: Deps<'_, String>, edits: PassEdits<String>| adds(edits, false))
        .edge("A", "C");
    let outputs = pass(&graph.compile().unwrap()).await;
    assert_eq!((order(&outputs), outputs.edits().len(), outputs.dropped()), ("A B C T".into(), 3, &[][..]));
}

#[tokio::test]
async fn an_order_only_edge_from_a_node_that_will_not_run_counts_as_satisfied() {
    let cut = || after(|edits| edits.remove_edge("A", "N"));
    let (graph, _) = Kit::with("A B N M", "A>N N>M A>B M~B", [("A", cut())]).compile();
    assert_eq!(order(&pass(&graph).await), "A B");
    // J will not run either: it waits for N.
    let (graph, _) = Kit::with("A B N J", "A>N A>J N>J A>B J~B", [("A", cut())]).compile();
    assert_eq!(order(&pass(&graph).await), "A B");
}

// Before the pass.

#[tokio::test]
async fn a_pass_can_be_edited_before_it_begins() {
    let (graph, log) = Kit::of("A B", "").compile();
    let edited = |edit: fn(&mut BeforePass<String>)| graph.invoke(()).max_concurrency(1).for_this_pass(edit);
    let outputs = edited(|edits| {
        edits.add_edge("B", "A");
    })
    .await
    .unwrap()
    .into_finished()
    .unwrap();
    assert_eq!(order(&outputs), "B A");
    log.take();
    let outputs = edited(|edits| {
        edits.add_fn("T", |_: Deps<String>| "T".to_owned()).add_edge("T", "A");
    });
    let outputs = outputs.await.unwrap().into_finished().unwrap();
    assert_eq!(order(&outputs), "B T A");
    assert_eq!(order(&pass(&graph).await), "A B");

    let error = edited(|edits| {
        edits.add_edge("A", "Z");
    })
    .await
    .unwrap_err();
    assert_eq!(error.code().as_str(), "E_EDIT_REJECTED");

    // Cutting the last edge prunes, as it does while the pass runs.
    let (graph, _) = Kit::of("B N", "B>N").compile();
    let cut = graph.invoke(()).for_this_pass(|edits| {
        edits.remove_edge("B", "N");
    });
    let outputs = cut.await.unwrap().into_finished().unwrap();
    assert_eq!((order(&outputs), not_run(&outputs)), ("B".into(), "`N` was pruned".into()));
}

// Skipping.

#[tokio::test]
async fn a_skipped_node_gives_its_last_output_and_runs_again_in_the_next_pass() {
    let edit: After = Arc::new(|edits, count| if count == 2 { Ok(edits.skip(["B"])?) } else { Ok(()) });
    let (graph, log) = Kit::with("A B C", "A>B B>C", [("A", edit)]).compile();
    let mut passes = graph.passes();
    passes.invoke(()).await.unwrap();
    log.take();
    let second = passes.invoke(()).await.unwrap();
    assert_eq!(order(second.output()), "A B C");
    assert_eq!((&*second.output()["B"], &*second.output()["C"]), ("B1", "C2"));
    assert_eq!(log.take(), ["A()", "C(B=B1)"]);
    let third = passes.invoke(()).await.unwrap();
    assert_eq!((&*third.output()["B"], &*third.output()["C"]), ("B2", "C3"));
    let seen: Vec<&str> = passes.history().map(|outputs| &*outputs["A"]).collect();
    assert_eq!(seen, ["A1", "A2", "A3"]);
}

#[tokio::test]
async fn a_node_further_on_may_be_skipped_and_keeps_its_place() {
    let edit: After = Arc::new(|edits, count| if count == 2 { Ok(edits.skip(["C"])?) } else { Ok(()) });
    let (graph, log) = Kit::with("A B C", "A>B B>C", [("A", edit)]).compile();
    let mut passes = graph.passes();
    passes.invoke(()).await.unwrap();
    log.take();
    let second = passes.invoke(()).await.unwrap();
    assert_eq!(order(second.output()), "A B C");
    assert_eq!((log.take(), &*second.output()["C"]), (vec!["A()".into(), "B(A=A2)".into()], "C1"));
}

#[tokio::test]
async fn everything_may_be_skipped_and_the_order_stays() {
    let (graph, log) = Kit::of("A B C", "A>B B>C").compile();
    let mut passes = graph.passes();
    passes.invoke(()).await.unwrap();
    log.take();
    let all = passes.invoke_with((), |pass| {
        pass.for_this_pass(|edits| {
            edits.skip(["C"]).skip(["A", "B"]);
        })
    });
    let outputs = all.await.unwrap().into_finished().unwrap();
    assert_eq!((order(&outputs), &*outputs["C"]), ("A B C".into(), "C1"));
    assert!(log.take().is_empty());
}

#[tokio::test]
async fn a_skip_list_with_an_unskippable_node_is_rejected_as_a_whole() {
    let log = Log::default();
    let seen = log.clone();
    let edit = after(move |edits| {
        for list in [vec!["B", "ZZ", "C"], vec!["B", "A"], vec!["B", "R"]] {
            seen.note(refused(edits.skip(list)).to_string());
        }
        add(edits, "T")?;
        seen.note(refused(edits.skip(["B", "T"])).to_string());
        Ok(())
    });
    let (graph, calls) = Kit::with("R A B C", "R>A A>B B>C", [("A", edit)]).compile();
    let mut passes = graph.passes();
    passes.invoke(()).await.unwrap();
    log.take();
    calls.take();
    passes.invoke(()).await.unwrap();
    let nothing = "node `T` has not finished before, so it has no output to reuse";
    assert_eq!(log.take(), ["there is no node `ZZ`", "node `A` runs already", "node `R` is done", nothing]);
    assert_eq!(calls.take().len(), 4, "nothing was skipped");
}

#[tokio::test]
async fn a_skip_ends_with_its_pass_whether_it_was_used_or_not() {
    let edit: After = Arc::new(|edits, count| {
        if count == 2 {
            edits.skip(["B"])?;
            edits.remove_edge("A", "B")?;
        }
        Ok(())
    });
    let (graph, _) = Kit::with("A B", "A>B", [("A", edit)]).compile();
    let mut passes = graph.passes();
    passes.invoke(()).await.unwrap();
    assert_eq!(order(passes.invoke(()).await.unwrap().output()), "A");
    let third = passes.invoke(()).await.unwrap();
    assert_eq!((&*third.output()["A"], &*third.output()["B"]), ("A3", "B2"));
}

#[tokio::test]
async fn outputs_of_any_text_may_be_reused() {
    for text in ["", "N/A"] {
        let called = Log::default();
        let calling = called.clone();
        let node = move || {
            calling.note("A");
            text.to_owned()
        };
        let graph = DependencyGraph::<String>::new().node("A", node).compile().unwrap();
        let mut passes = graph.passes();
        passes.invoke(()).await.unwrap();
        let skip = passes.invoke_with((), |pass| {
            pass.for_this_pass(|edits| {
                edits.skip(["A"]);
            })
        });
        assert_eq!(skip.await.unwrap().output()["A"], text);
        assert_eq!(called.take(), ["A"], "the second pass does not call the node");
    }
}

// Failures.

/// Returns edits that fail in every call before call number `count`.
fn fails_before(count: u32) -> After {
    Arc::new(move |_, now| if now < count { Err("not yet".into()) } else { Ok(()) })
}

#[tokio::test]
async fn a_failed_pass_leaves_nothing_behind_for_the_next_pass() {
    let fails: After = Arc::new(|edits, count| {
        add(edits, "T")?;
        edits.add_edge("C", "T")?;
        if count == 1 { Err("broken".into()) } else { Ok(()) }
    });
    let (graph, log) = Kit::with("A B C", "A>B B>C", [("C", fails)]).compile();
    let mut passes = graph.passes();
    let error = passes.invoke(()).await.unwrap_err();
    assert_eq!((error.code().as_str(), error.node()), ("E_NODE_FAILED", Some("C")));
    let left = error.state::<Outputs<String>>().unwrap();
    assert_eq!(order(left), "A B");
    assert_eq!(left.get("C"), None);
    log.take();
    let outputs = passes.invoke(()).await.unwrap().into_finished().unwrap();
    assert_eq!(order(&outputs), "A B C T");
    assert_eq!(log.take(), ["A()", "B(A=A2)", "C(B=B2)"]);
    assert_eq!(passes.history().count(), 1);
}

#[tokio::test]
async fn edits_before_a_failure_do_not_reach_the_next_pass() {
    let adds = after(|edits| {
        add(edits, "T")?;
        edits.add_edge("A", "T")?;
        edits.add_edge("T", "B")
    });
    let (graph, log) = Kit::with("A B C", "A>B B>C", [("A", adds), ("B", fails_before(2))]).compile();
    let mut passes = graph.passes();
    let error = passes.invoke(()).await.unwrap_err();
    assert_eq!(order(error.state::<Outputs<String>>().unwrap()), "A T");
    log.take();
    assert_eq!(order(passes.invoke(()).await.unwrap().output()), "A T B C");
    assert_eq!(log.take(), ["A()", "B(A=A2 T=T<A)", "C(B=B2)"]);
}

#[tokio::test]
async fn a_node_may_run_a_pass_of_another_graph() {
    let (inner, log) = Kit::of("A B", "A>B").compile();
    let runs = move |deps: Deps<'static, String>| {
        let inner = inner.clone();
        async move {
            let outputs = inner.invoke(()).await?.into_finished()?;
            Ok::<_, BoxError>(format!("{}+{}", deps["A"], outputs["B"]))
        }
    };
    let graph = DependencyGraph::<String>::new()
        .node("A", || "outer".to_owned())
        .node("sub", runs)
        .edge("A", "sub")
        .compile()
        .unwrap();
    for n in 1..=2 {
        let outputs = pass(&graph).await;
        assert_eq!((order(&outputs), &*outputs["sub"]), ("A sub".into(), &*format!("outer+B{n}")));
        assert_eq!(log.take(), ["A()".to_owned(), format!("B(A=A{n})")]);
    }
}

#[tokio::test]
async fn the_edits_of_a_failed_attempt_are_dropped() {
    let edit: After = Arc::new(|edits, count| {
        add(edits, "T")?;
        edits.add_edge("A", "T")?;
        edits.add_edge("T", "B")?;
        if count == 1 { Err("please fix".into()) } else { Ok(()) }
    });
    let log = Log::default();
    let retried = DependencyNode::of(editing(&log, "A", &edit))
        .retry(RetryPolicy::attempts(3).initial(std::time::Duration::ZERO));
    let graph = DependencyGraph::new().node("A", retried).node("B", plain(&log, "B")).edge("A", "B");
    let outputs = pass(&graph.compile().unwrap()).await;
    assert_eq!(order(&outputs), "A T B");
    assert_eq!(log.take(), ["A()", "A()", "B(A=A2 T=T<A)"]);
}

#[tokio::test]
async fn edits_by_a_spawned_task_of_a_failed_attempt_are_too_late() {
    let results = Arc::new(Mutex::new(Vec::new()));
    let gates: [Arc<tokio::sync::Notify>; 2] = Default::default();
    let notes = Arc::clone(&results);
    let node = move |edits: PassEdits<String>, ctx: Ctx| {
        let (notes, [go, done]) = (Arc::clone(&notes), gates.clone());
        async move {
            if ctx.attempt() == 1 {
                tokio::spawn(async move {
                    go.notified().await;
                    notes
                        .lock()
                        .unwrap()
                        .push(edits.add_fn("stray", String::new).map_err(|why| why.why().clone()));
                    done.notify_one();
                });
                return Err("not yet".into());
            }
            go.notify_one();
            done.notified().await;
            edits.add_fn("own", String::new)?;
            Ok::<_, BoxError>(String::new())
        }
    };
    let graph = DependencyGraph::<String>::new();
    let graph = graph.node("n", DependencyNode::of(node).retry(agentgraph::RetryPolicy::attempts(2)));
    let outputs = graph.compile().unwrap().invoke(()).await.unwrap().into_finished().unwrap();
    assert_eq!(
        (order(&outputs), &results.lock().unwrap()[..]),
        ("n own".into(), &[Err(Rejection::TooLate)][..])
    );
}

#[tokio::test]
async fn a_node_that_fails_for_good_fails_the_pass() {
    let log = Log::default();
    let node = DependencyNode::of(editing(&log, "A", &fails_before(9)))
        .retry(RetryPolicy::attempts(3).initial(std::time::Duration::ZERO));
    let graph = DependencyGraph::new().node("A", node).node("B", plain(&log, "B")).edge("A", "B");
    let error: Error = graph.compile().unwrap().invoke(()).await.unwrap_err();
    assert_eq!(error.node(), Some("A"));
    assert_eq!(log.take().len(), 3);
}

#[tokio::test]
async fn a_panic_is_an_error_of_its_node() {
    fn panics(_: Deps<'_, String>) -> String {
        panic!("no way")
    }
    let graph =
        DependencyGraph::<String>::new().node("A", || "a".to_owned()).node("B", panics).edge("A", "B");
    let graph = graph.compile().unwrap();
    for pass in [graph.invoke(()), graph.invoke(()).max_supersteps(9)] {
        let error = pass.await.unwrap_err();
        assert_eq!((error.code().as_str(), error.node()), ("E_NODE_PANICKED", Some("B")));
    }
}

// In parallel.

#[tokio::test]
async fn independent_nodes_run_in_parallel_and_a_slow_one_delays_no_other() {
    let barrier = Arc::new(tokio::sync::Notify::new());
    let wait = Arc::clone(&barrier);
    let graph = DependencyGraph::<String>::new()
        .node("slow", move || {
            let wait = Arc::clone(&wait);
            async move {
                wait.notified().await;
                "slow".to_owned()
            }
        })
        .node("fast", || async { "fast".to_owned() })
        .node("then", |deps: Deps<String>| format!("{}+", deps[0]))
        .node("last", move |deps: Deps<'static, String>| {
            let barrier = Arc::clone(&barrier);
            async move {
                barrier.notify_one();
                format!("{}+", deps[0])
            }
        })
        .node("all", |deps: Deps<String>| deps.outputs().cloned().collect::<Vec<_>>().join(" "))
        .edge("fast", "then")
        .edge("then", "last")
        .edge("slow", "all")
        .edge("last", "all")
        .compile()
        .unwrap();
    let outputs = graph.invoke(()).await.unwrap().into_finished().unwrap();
    assert_eq!(outputs["all"], "slow fast++");
    assert_eq!(order(&outputs), "fast then last slow all");
}

#[tokio::test]
async fn conflicting_edits_of_parallel_nodes_are_dropped_as_a_whole_and_identical_ones_coincide() {
    // X and Y run in parallel, and X ends first. Both remove S -> N, which counts as one edit. In the
    // second graph, the other edit of Y conflicts with the one of X.
    let edits_of =
        |name: &'static str, edge: (&'static str, &'static str), wait: Arc<tokio::sync::Barrier>| {
            move |edits: PassEdits<String>| {
                let wait = Arc::clone(&wait);
                async move {
                    edits.remove_edge("S", "N")?;
                    edits.add_edge(edge.0, edge.1)?;
                    wait.wait().await;
                    if name == "Y" {
                        tokio::task::yield_now().await;
                    }
                    Ok::<_, EditError>(name.to_owned())
                }
            }
        };
    let build = |second: (&'static str, &'static str)| {
        let wait = Arc::new(tokio::sync::Barrier::new(2));
        let quiet = |_: Deps<String>| String::new();
        let graph = DependencyGraph::<String>::new()
            .node("X", edits_of("X", ("P", "Q"), Arc::clone(&wait)))
            .node("Y", edits_of("Y", second, wait))
            .node("S", quiet)
            .node("N", quiet)
            .node("P", quiet)
            .node("Q", quiet);
        let graph =
            graph.edge("X", "S").edge("S", "N").edge("Y", "P").edge("X", "P").edge("X", "Q").edge("Y", "Q");
        graph.compile().unwrap()
    };
    let outputs = build(("P", "Q")).invoke(()).await.unwrap().into_finished().unwrap();
    assert!(outputs.dropped().is_empty());
    assert_eq!(not_run(&outputs), "`N` was pruned");

    let outputs = build(("Q", "P")).invoke(()).await.unwrap().into_finished().unwrap();
    let [dropped] = outputs.dropped() else { panic!("{:?}", outputs.dropped()) };
    assert_eq!((&*dropped.by, dropped.edits.len()), ("Y", 2));
    assert_eq!(*dropped.why.edit(), GraphEdit::AddEdge { from: "Q".into(), to: "P".into() });
    assert!(order(&outputs).ends_with("P Q"));
}

/// Runs a pass in which `B` adds `x` from the template, waits until `A` has added its own `x`, and then
/// adds an edge. Returns the result of the last edit and the outputs of the pass.
async fn edit_after_a_parallel_edit(others: &'static str) -> (String, Outputs<String>) {
    let gate = Arc::new(tokio::sync::Notify::new());
    let result = Arc::new(Mutex::new(String::new()));
    let opens = Arc::clone(&gate);
    let waits = Arc::clone(&gate);
    let notes = Arc::clone(&result);
    let b = move |edits: PassEdits<String>| {
        let waits = Arc::clone(&waits);
        let notes = Arc::clone(&notes);
        async move {
            edits.add_node("x", "say", "x")?;
            waits.notified().await;
            *notes.lock().unwrap() = format!("{:?}", edits.add_edge("A", "C"));
            Ok::<_, BoxError>("b".to_owned())
        }
    };
    let a = move |edits: PassEdits<String>| async move {
        edits.add_node("x", "say", others)?;
        Ok::<_, BoxError>("a".to_owned())
    };
    let graph = DependencyGraph::<String>::new()
        .template("say", |word: &serde_json::Value| {
            let word = word.to_string();
            Ok(DependencyNode::of(move |_: Deps<String>| word.clone()))
        })
        .node("B", b)
        .node("A", a)
        .node("C", |deps: Deps<String>| deps.names().collect::<Vec<_>>().join("+"))
        .node("open", move |_: Deps<String>| {
            opens.notify_one();
            String::new()
        })
        .edge("A", "open")
        .edge("B", "C");
    let outputs = graph.compile().unwrap().invoke(()).await.unwrap().into_finished().unwrap();
    let result = result.lock().unwrap().clone();
    (result, outputs)
}

#[tokio::test]
async fn a_conflict_with_a_parallel_edit_does_not_reject_the_next_edit() {
    let (result, outputs) = edit_after_a_parallel_edit("x").await;
    assert_eq!((&*result, outputs.dropped()), ("Ok(())", &[][..]));

    let (result, outputs) = edit_after_a_parallel_edit("another").await;
    assert_eq!(result, "Ok(())");
    let [dropped] = outputs.dropped() else { panic!("{:?}", outputs.dropped()) };
    assert_eq!((&*dropped.by, dropped.edits.len(), dropped.why.why()), ("B", 2, &Rejection::NodeExists));
}

#[tokio::test]
async fn a_limit_stops_the_pass_and_reports_the_nodes_after_it() {
    let (graph, _) = Kit::of("A B C", "A>B B>C").compile();
    let outcome = graph.invoke(()).max_supersteps(2).await.unwrap();
    let Outcome::Stopped { output, reason: StopReason::Limit, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!((order(&output), not_run(&output)), ("A B".into(), "`C` came after the limit".into()));
}

#[tokio::test]
async fn edits_since_a_mark_can_be_undone_while_other_nodes_edit() {
    async fn tries(edits: PassEdits<String>) -> Result<String> {
        let constant = || "t".to_owned();
        edits.add_fn("kept", constant)?;
        let mark = edits.mark();
        edits.add_fn("try", constant)?;
        edits.add_edge("kept", "try")?;
        edits.remove_edge("A", "C")?;
        for _ in 0..8 {
            tokio::task::yield_now().await; // `B` is done meanwhile, and its node is in the graph
        }
        edits.undo_to(mark);
        edits.undo_to(mark);
        assert!(edits.add_edge("A", "try").is_err(), "`try` was removed by the undo");
        assert!(edits.add_edge("A", "C").is_err(), "the undo restored the edge");
        edits.add_fn("try", constant)?;
        edits.add_edge("A", "try")?;
        let late = edits.mark();
        edits.add_edge("B", "try")?;
        edits.undo_to(late);
        Ok("a".to_owned())
    }
    async fn edits_beside(edits: PassEdits<String>) -> Result<String> {
        edits.add_fn("beside", || "b".to_owned())?;
        Ok("b".to_owned())
    }
    let graph = DependencyGraph::<String>::new()
        .node("A", tries)
        .node("B", edits_beside)
        .node("C", |deps: Deps<String>| deps.names().collect::<String>())
        .edge("A", "C")
        .compile()
        .unwrap();
    let outputs = pass(&graph).await;
    let mut names: Vec<_> = outputs.names().collect();
    names.sort_unstable();
    assert_eq!(names, ["A", "B", "C", "beside", "kept", "try"]);
    assert!(outputs.dropped().is_empty());
    assert_eq!(pass(&graph).await.names().count(), 6, "the next pass starts from the compiled graph");
}
