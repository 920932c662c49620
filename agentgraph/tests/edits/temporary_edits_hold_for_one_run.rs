//! Temporary edits of state graphs: what each does, when it is rejected, and that none outlives its run.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentgraph::edit::{DroppedEdits, EditError, Edits, GraphEdit, Rejection};
use agentgraph::node::Node;
use agentgraph::prelude::*;
use agentgraph::run::TaskEnd;
use agentgraph::{BoxError, Code, EventKind, View, any};
use futures_util::StreamExt;

use crate::common::words::{Words, WordsUpdate, said, says, text};

async fn name(ctx: Ctx) -> WordsUpdate {
    Words::update().seen([ctx.node()])
}

/// Builds a node that edits its graph and says its name.
fn edits(edit: impl Fn(&Edits) -> Result<(), EditError> + Send + Sync + 'static) -> Node<Words> {
    let node = move |ctx: Ctx| {
        let edited = edit(&ctx.edits());
        async move {
            edited?;
            Ok::<_, BoxError>(Words::update().seen([ctx.node()]))
        }
    };
    node.into_node()
}

fn chain(first: Node<Words>) -> StateGraph<Words> {
    StateGraph::new()
        .node("a", first)
        .node("b", name)
        .node("c", name)
        .edge(START, "a")
        .edge("a", "b")
        .edge("b", "c")
}

async fn run(graph: StateGraph<Words>) -> String {
    text(graph.compile().unwrap().invoke(Words::update()).await.unwrap().output())
}

/// Returns why an edit by the first node of a chain is rejected. Asserts that the chain runs as if the
/// node had not edited.
async fn refused(edit: impl Fn(&Edits) -> Result<(), EditError> + Send + Sync + 'static) -> Rejection {
    let why = Arc::new(Mutex::new(None));
    let noted = Arc::clone(&why);
    let graph = chain(edits(move |edits| {
        *noted.lock().unwrap() = edit(edits).err();
        Ok(())
    }));
    assert_eq!(run(graph).await, "a b c");
    why.lock().unwrap().take().expect("the edit was accepted").why().clone()
}

#[tokio::test]
async fn a_temporary_node_runs_between_two_others_in_this_run_only() {
    let asked = Arc::new(AtomicUsize::new(0));
    let first = move |edits: &Edits| {
        if asked.fetch_add(1, Ordering::SeqCst) > 0 {
            return Ok(());
        }
        edits.add_fn("t", name)?;
        edits.remove_edge("a", "b")?;
        edits.add_edge("a", "t")?;
        edits.add_edge("t", "b")
    };
    let graph = chain(edits(first)).compile().unwrap();
    let mermaid = graph.mermaid();
    assert_eq!(text(graph.invoke(Words::update()).await.unwrap().output()), "a t b c");
    assert_eq!(text(graph.invoke(Words::update()).await.unwrap().output()), "a b c");
    assert_eq!(graph.mermaid(), mermaid);
}

#[tokio::test]
async fn edge_edits_affect_the_targets_of_the_editing_node() {
    assert_eq!(run(chain(edits(|edits| edits.remove_edge("a", "b")))).await, "a");
    assert_eq!(run(chain(edits(|edits| edits.add_edge("a", "c")))).await, "a b c c");
    assert_eq!(run(chain(edits(|edits| edits.prepend_edge("a", "c")))).await, "a b c c");
    assert_eq!(run(chain(edits(|edits| edits.add_edge("a", END)))).await, "a b c");
    let again = |edits: &Edits| {
        edits.remove_edge("a", "b")?;
        edits.add_edge("a", "b")
    };
    assert_eq!(run(chain(edits(again))).await, "a b c");
    let there_and_back = |edits: &Edits| {
        edits.add_edge("a", "c")?;
        edits.remove_edge("a", "c")
    };
    assert_eq!(run(chain(edits(there_and_back))).await, "a b c");
}

#[tokio::test]
async fn edges_to_end_and_from_start_can_be_edited() {
    let graph = |first| StateGraph::new().node("a", first).node("b", name).edge(START, "a").edge("a", END);
    let on = |edits: &Edits| {
        edits.remove_edge("a", END)?;
        edits.add_edge("a", "b")?;
        edits.add_edge("b", END)?;
        edits.remove_edge(START, "a")?;
        edits.add_edge(START, "b")
    };
    assert_eq!(run(graph(edits(on))).await, "a b");
    let twice = |edits: &Edits| {
        edits.remove_edge("a", END)?;
        assert_eq!(edits.remove_edge("a", END).unwrap_err().why().clone(), Rejection::NoSuchEdge);
        assert_eq!(edits.add_edge("b", START).unwrap_err().why().clone(), Rejection::IntoStart);
        assert_eq!(edits.add_edge(END, "b").unwrap_err().why().clone(), Rejection::OutOfEnd);
        Ok(())
    };
    assert_eq!(run(graph(edits(twice))).await, "a");
}

#[tokio::test]
async fn an_invalid_edit_is_rejected_at_the_call_and_leaves_no_trace() {
    let unknown = |name: &str, nearest: Option<&str>| Rejection::UnknownNode {
        name: name.into(),
        nearest: nearest.map(str::to_owned),
    };
    assert_eq!(refused(|edits| edits.add_edge("a", "zebra")).await, unknown("zebra", None));
    assert_eq!(refused(|edits| edits.remove_edge("zebra", "a")).await, unknown("zebra", None));
    assert_eq!(refused(|edits| edits.remove_node(START)).await, unknown(START, None));
    assert_eq!(refused(|edits| edits.remove_node(END)).await, unknown(END, None));
    assert_eq!(refused(|edits| edits.add_edge("a", "b")).await, Rejection::EdgeExists);
    assert_eq!(refused(|edits| edits.prepend_edge("a", "b")).await, Rejection::EdgeExists);
    assert_eq!(refused(|edits| edits.remove_edge("a", "c")).await, Rejection::NoSuchEdge);
    assert_eq!(refused(|edits| edits.add_fn("b", name)).await, Rejection::NodeExists);
    assert_eq!(refused(|edits| edits.add_fn("", name)).await, Rejection::ReservedName);
    assert_eq!(refused(|edits| edits.add_fn("__x", name)).await, Rejection::ReservedName);
    let none = Rejection::UnknownTemplate { name: "ask".into(), nearest: None };
    assert_eq!(refused(|edits| edits.add_node("t", "ask", ())).await, none);
    let keeps_nothing = Rejection::KeepsNothing { node: "b".into() };
    assert_eq!(refused(|edits| edits.skip(["b"])).await, keeps_nothing);
}

#[tokio::test]
async fn a_task_sees_its_own_edits() {
    let edit = |edits: &Edits| {
        edits.add_fn("check", name)?;
        assert_eq!(edits.add_fn("check", name).unwrap_err().why().clone(), Rejection::NodeExists);
        let refused = edits.add_edge("a", "chek").unwrap_err();
        assert_eq!(
            refused.to_string(),
            "cannot add edge `a` -> `chek`: there is no node `chek`; did you mean `check`?"
        );
        edits.remove_node("b")?;
        assert!(matches!(edits.add_edge("a", "b").unwrap_err().why(), Rejection::UnknownNode { .. }));
        // The name is free, and the new node has none of the old edges.
        edits.add_fn("b", name)?;
        assert_eq!(edits.remove_edge("a", "b").unwrap_err().why().clone(), Rejection::NoSuchEdge);
        edits.add_edge("a", "check")?;
        edits.add_edge("check", "b")
    };
    assert_eq!(run(chain(edits(edit))).await, "a check b");
}

#[tokio::test]
async fn a_rejection_that_a_node_returns_fails_it_with_that_code() {
    let graph = chain(edits(|edits| edits.remove_edge("a", "c"))).compile().unwrap();
    let error = graph.invoke(Words::update()).await.unwrap_err();
    assert_eq!((error.code(), error.node()), (Code::EditRejected, Some("a")));
    let skips = chain(edits(|edits| edits.skip(["b"]))).compile().unwrap();
    assert_eq!(skips.invoke(Words::update()).await.unwrap_err().code(), Code::NothingToReuse);
}

#[tokio::test]
async fn a_command_may_go_to_a_node_that_it_adds() {
    let commands = async || {
        said("a").goto("t").for_this_run(|edits| {
            edits.add_fn("t", name)?;
            edits.add_edge("t", "c")
        })
    };
    assert_eq!(run(chain(commands.into_node())).await, "a t c");
    let dispatches = async || {
        let jobs: Vec<Dispatch> = (0..2).map(|job: u32| Dispatch::new("job", job)).collect();
        let says = async |Input(job): Input<u32>| Words::update().seen([format!("job {job}")]);
        said("a").also_goto(jobs).for_this_run(move |edits| edits.add_fn("job", says))
    };
    assert_eq!(run(chain(dispatches.into_node())).await, "a b job 0 job 1 c");
    let fails = async || said("a").for_this_run(|edits| edits.remove_edge("a", "c"));
    let error = chain(fails.into_node()).compile().unwrap().invoke(Words::update()).await.unwrap_err();
    assert_eq!((error.code(), error.node()), (Code::EditRejected, Some("a")));
    let nowhere = async || said("a").goto("b").for_this_run(|edits| edits.remove_node("b"));
    let error = chain(nowhere.into_node()).compile().unwrap().invoke(Words::update()).await.unwrap_err();
    assert_eq!((error.code(), error.node()), (Code::UnknownTarget, Some("a")));
}

#[tokio::test]
async fn a_failed_attempt_makes_no_edits() {
    let attempts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&attempts);
    let node = move |ctx: Ctx| {
        let attempt = counted.fetch_add(1, Ordering::SeqCst);
        let edits = ctx.edits();
        async move {
            edits.add_fn("t", name)?;
            edits.add_edge("a", "t")?;
            if attempt == 0 {
                edits.remove_edge("a", "b")?;
                return Err("once more".into());
            }
            Ok::<_, BoxError>(said("a").for_this_run(|edits| edits.add_edge("t", "c")))
        }
    };
    assert_eq!(run(chain(node.retry(RetryPolicy::attempts(2).initial(Duration::ZERO)))).await, "a b t c");
    assert_eq!(attempts.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_context_that_outlives_its_task_cannot_edit() {
    let kept = Arc::new(Mutex::new(None));
    let keeps = Arc::clone(&kept);
    let uses = Arc::clone(&kept);
    let first = edits(move |edits| {
        *keeps.lock().unwrap() = Some(edits.clone());
        Ok(())
    });
    let second = edits(move |_| {
        let late = uses.lock().unwrap().take().unwrap();
        assert_eq!(late.remove_node("c").unwrap_err().why().clone(), Rejection::TooLate);
        Ok(())
    });
    let graph = StateGraph::new().node("a", first).node("b", second).node("c", name);
    assert_eq!(run(graph.edge(START, "a").edge("a", "b").edge("b", "c")).await, "a b c");
}

/// Builds two parallel editors that both lead to `x`.
fn two(first: Node<Words>, second: Node<Words>) -> StateGraph<Words> {
    StateGraph::new()
        .node("one", first)
        .node("two", second)
        .node("x", name)
        .edge(START, "one")
        .edge(START, "two")
        .edge("one", "x")
        .edge("two", "x")
}

async fn dropped(graph: StateGraph<Words>) -> (String, Vec<DroppedEdits>) {
    let outcome = graph.compile().unwrap().invoke(Words::update()).await.unwrap();
    (text(outcome.output()), outcome.dropped_edits().to_vec())
}

#[tokio::test]
async fn parallel_editors_do_not_see_each_other_and_identical_edits_coincide() {
    let same = |edits: &Edits| {
        edits.remove_edge("one", "x")?;
        edits.add_edge("two", END)?;
        edits.add_node("t", "say", "hello")?;
        edits.add_edge("two", "t")
    };
    let graph = two(edits(same), edits(same)).template("say", |_: String| name);
    assert_eq!(dropped(graph).await, ("one two x t".to_owned(), vec![]));
}

#[tokio::test]
async fn in_a_conflict_all_edits_of_the_later_editor_are_dropped_and_reported() {
    let first = |edits: &Edits| edits.remove_node("x");
    let second = |edits: &Edits| {
        edits.add_fn("t", name)?;
        edits.add_edge("two", "t")?;
        edits.add_edge("t", "x")
    };
    let (seen, drops) = dropped(two(edits(first), edits(second))).await;
    assert_eq!(seen, "one two");
    let [DroppedEdits { by, edits: all, why, lost, .. }] = &drops[..] else { panic!("{drops:?}") };
    assert_eq!((&**by, all.len(), lost.len()), ("two", 3, 0));
    assert_eq!(*why.edit(), GraphEdit::AddEdge { from: "t".into(), to: "x".into() });
    assert!(matches!(why.why(), Rejection::UnknownNode { name, .. } if name == "x"));
    // Two functions are never the same node.
    let function = |edits: &Edits| edits.add_fn("t", name);
    let (_, drops) = dropped(two(edits(function), edits(function))).await;
    assert_eq!(*drops[0].why.why(), Rejection::NodeExists);
}

#[tokio::test]
async fn a_goto_to_a_node_of_dropped_edits_is_lost_with_them() {
    let taken = edits(|edits| edits.add_fn("t", name));
    let goes = async || {
        said("two").goto(["t", "x"]).for_this_run(|edits| {
            edits.add_fn("t2", name)?;
            edits.add_fn("t", name)
        })
    };
    let (seen, drops) = dropped(two(taken, goes.into_node())).await;
    // The goto reaches the node of the other editor, which has the same name.
    assert_eq!((&*seen, drops.len()), ("one two x t", 1));
    let removes = edits(|edits| edits.remove_node("x"));
    let goes = async || {
        said("two").goto("t").for_this_run(|edits| {
            edits.add_fn("t", name)?;
            edits.add_edge("t", "x")
        })
    };
    let (seen, drops) = dropped(two(removes, goes.into_node())).await;
    assert_eq!((&*seen, &drops[0].lost[..]), ("one two", &["t".to_owned()][..]));
}

/// One task replaces a node and goes to the replacement. The other removes the node that it saw, which
/// is the old one.
#[tokio::test]
async fn a_parallel_task_that_removes_a_node_does_not_remove_its_replacement() {
    let replaces = || {
        let goes = async || {
            said("replaces").goto("n").for_this_run(|edits| {
                edits.remove_node("n")?;
                edits.add_node("n", "new", "")
            })
        };
        goes.into_node()
    };
    let removes = || edits(|edits| edits.remove_node("n"));
    for (first, second) in [(replaces(), removes()), (removes(), replaces())] {
        let graph = two(first, second).template("new", |_: String| says("new")).node("n", says("old"));
        let (seen, drops) = dropped(graph).await;
        assert!(seen.ends_with("x new"), "{seen}");
        assert_eq!(drops, []);
    }
}

#[tokio::test]
async fn a_removed_node_does_not_start_and_a_running_one_finishes() {
    // `late` waits for everything else and is removed meanwhile; `two` is removed while it runs.
    let graph = StateGraph::new()
        .node("one", edits(|edits| edits.remove_node("two")))
        .node("two", name)
        .node("late", name.defer())
        .node("three", edits(|edits| edits.remove_node("late")))
        .edge(START, "one")
        .edge(START, "two")
        .edge("one", "late")
        .edge("two", "late")
        .edge("one", "three");
    assert_eq!(run(graph).await, "one two three");
    // A goto or dispatch of a sibling to the removed node is cancelled. A goto of the removed node itself
    // is not.
    let goes = async || said("two").goto(["x", "y"]).also_goto(Dispatch::new("x", 1_u32));
    let graph = two(edits(|edits| edits.remove_node("x")), goes.into_node()).node("y", name);
    assert_eq!(run(graph).await, "one two y");
    let itself = async || said("a").goto("c").for_this_run(|edits| edits.remove_node("a"));
    assert_eq!(run(chain(itself.into_node())).await, "a c");
}

#[tokio::test]
async fn a_join_does_not_wait_for_removed_sources() {
    let join = |node, into: agentgraph::graph::Sources| {
        StateGraph::new()
            .node("a", node)
            .node("b", name)
            .node("c", name)
            .node("j", name)
            .edge(START, "a")
            .edge("a", "b")
            .edge(into, "j")
    };
    // Nothing leads to `c`, so the join would wait forever.
    let all = || agentgraph::all(["b", "c"]);
    assert_eq!(run(join(name.into_node(), all())).await, "a b");
    assert_eq!(run(join(edits(|edits| edits.remove_edge("c", "j")), all())).await, "a b j");
    assert_eq!(run(join(edits(|edits| edits.remove_node("c")), all())).await, "a b j");
    // The removed source was the only missing one.
    let last = || agentgraph::all(["a", "c"]);
    let later = StateGraph::new()
        .node("a", name)
        .node("b", edits(|edits| edits.remove_node("c")))
        .node("c", name)
        .node("j", name)
        .edge(START, "a")
        .edge("a", "b")
        .edge(last(), "j");
    assert_eq!(run(later).await, "a b j");
    // A join without sources does not fire.
    let no_sources = |edits: &Edits| {
        edits.remove_edge("b", "j")?;
        edits.remove_edge("c", "j")
    };
    assert_eq!(run(join(edits(no_sources), all())).await, "a b");
    // A join that has fired stays fired.
    let fired = StateGraph::new()
        .node("a", name)
        .node("b", edits(|edits| edits.remove_edge("c", "j")))
        .node("c", name)
        .node("j", name)
        .edge(START, "a")
        .edge("a", "b")
        .edge(any(["a", "c"]), "j");
    assert_eq!(run(fired).await, "a b j");
}

#[tokio::test]
async fn a_join_into_a_removed_node_is_not_stuck() {
    let graph = StateGraph::new()
        .node("a", name)
        .node("b", edits(|edits| edits.remove_node("j")))
        .node("c", name)
        .node("j", name)
        .edge(START, "a")
        .edge("a", "b")
        .edge("b", "a2")
        .node("a2", name)
        .edge(["a", "c"], "j")
        .edge(["a2", "c"], "j");
    match graph.compile().unwrap().invoke(Words::update()).await.unwrap() {
        Outcome::Finished { stuck, output, .. } => {
            assert_eq!((stuck, text(&output)), (vec![], "a b a2".into()))
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn routes_use_the_edited_graph() {
    #[derive(Route)]
    enum Next {
        B,
    }
    // A branch can reach a temporary node. A route can reach a temporary node that replaces a removed
    // one.
    let graph = |node: Node<Words>| {
        chain(node).branch("a", |words: &Words| if words.seen.is_empty() { "c" } else { "t" }, ["c"])
    };
    assert_eq!(run(graph(edits(|edits| edits.add_fn("t", name)))).await, "a b t c");
    let error = graph(name.into_node()).compile().unwrap().invoke(Words::update()).await.unwrap_err();
    assert_eq!(error.code(), Code::UnknownTarget);
    let routed = |node: Node<Words>| {
        StateGraph::new().node("a", node).node("b", name).edge(START, "a").route("a", |_: &Words| Next::B)
    };
    let removed = routed(edits(|edits| edits.remove_node("b"))).compile().unwrap();
    let error = removed.invoke(Words::update()).await.unwrap_err();
    assert_eq!((error.code(), error.node()), (Code::UnknownTarget, Some("a")));
    assert!(error.to_string().contains("removed by a temporary edit"), "{error}");
    assert_eq!(text(error.state::<Words>().unwrap()), "");
    let replaced = |edits: &Edits| {
        edits.remove_node("b")?;
        edits.add_fn("b", async || Words::update().seen(["another b"]))
    };
    assert_eq!(run(routed(edits(replaced))).await, "a another b");
    // Removing a node removes its routes.
    assert_eq!(run(routed(edits(|edits| edits.remove_node("a")))).await, "a");
}

#[tokio::test]
async fn edits_before_a_run_apply_from_its_start() {
    let graph = chain(name.into_node()).compile().unwrap();
    let from_start = graph.invoke(Words::update()).for_this_run(|edits| {
        edits.remove_edge(START, "a")?;
        edits.add_fn("t", name)?;
        edits.add_edge(START, "t")?;
        edits.add_edge("t", "c")
    });
    assert_eq!(text(from_start.await.unwrap().output()), "t c");
    assert_eq!(text(graph.invoke(Words::update()).await.unwrap().output()), "a b c");
    let refused =
        graph.invoke(Words::update()).for_this_run(|edits| edits.remove_node("x")).await.unwrap_err();
    assert_eq!(refused.code(), Code::EditRejected);
}

#[tokio::test]
async fn temporary_nodes_take_the_settings_of_nodes() {
    let edit = |edits: &Edits| {
        edits.add_fn("last", name.defer())?;
        edits.add_fn("flaky", (async || Err::<WordsUpdate, BoxError>("no".into())).on_error("c"))?;
        edits.add_edge("a", "last")?;
        edits.add_edge("a", "flaky")
    };
    assert_eq!(run(chain(edits(edit))).await, "a b c c last");
    let wants = |edits: &Edits| edits.add_fn("t", async |_: Dep<String>| Words::update());
    assert!(matches!(refused(wants).await, Rejection::Unfit(_)));
    let handler = |edits: &Edits| edits.add_fn("t", name.on_error("nobody"));
    assert!(matches!(refused(handler).await, Rejection::Unfit(_)));
    #[derive(State, serde::Serialize, serde::Deserialize, Clone, Default)]
    struct Other {
        x: u8,
    }
    let other = |edits: &Edits| edits.add_fn("t", async || Other::update().x(1));
    assert!(matches!(refused(other).await, Rejection::Unfit(_)));
}

#[tokio::test]
async fn a_removed_handler_handles_nothing() {
    let fails = async || Err::<(), BoxError>("no".into());
    let graph = StateGraph::new()
        .node("a", edits(|edits| edits.remove_node("handler")))
        .node("b", fails.on_error("handler"))
        .node("handler", name)
        .edge(START, "a")
        .edge("a", "b");
    let error = graph.compile().unwrap().invoke(Words::update()).await.unwrap_err();
    assert_eq!((error.code(), error.node()), (Code::NodeFailed, Some("b")));
}

/// Builds a loop of three rounds through `a`, `b` and `c`. In the second round, `a` skips the nodes of
/// `skips`. Returns the graph and the number of calls of `b`.
fn skips_b(skips: &'static [&'static str]) -> (StateGraph<Words>, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let b = move || {
        let call = counted.fetch_add(1, Ordering::SeqCst);
        async move { said(&format!("b{call}")).also_goto("x") }
    };
    let a = move |ctx: Ctx, words: Snapshot<Words>| {
        let edits = ctx.edits();
        async move {
            let round = words.seen.iter().filter(|seen| *seen == "a").count();
            if round == 1 {
                edits.skip(skips.iter().copied())?;
            }
            Ok::<_, BoxError>(Words::update().seen(["a"]))
        }
    };
    let again = |words: &Words| match words.seen.iter().filter(|seen| *seen == "a").count() {
        0..3 => "a",
        _ => END,
    };
    let graph = StateGraph::new()
        .node("a", a)
        .node("b", b.keep_output())
        .node("c", name)
        .node("x", name)
        .edge(START, "a")
        .edge("a", "b")
        .edge("b", "c")
        .branch("c", again, ["a", END]);
    (graph, calls)
}

#[tokio::test]
async fn a_skipped_node_repeats_its_last_result_once() {
    let (graph, calls) = skips_b(&["b"]);
    assert_eq!(run(graph).await, "a b0 c x a b0 c x a b1 c x");
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn skipping_is_all_or_none() {
    let (graph, calls) = skips_b(&["b", "zebra"]);
    let error = graph.compile().unwrap().invoke(Words::update()).await.unwrap_err();
    assert_eq!((error.code(), calls.load(Ordering::SeqCst)), (Code::EditRejected, 1));
    let graph = StateGraph::new()
        .node("a", edits(|edits| edits.skip(["b"])))
        .node("b", name.keep_output())
        .edge(START, "a")
        .edge("a", "b");
    let error = graph.compile().unwrap().invoke(Words::update()).await.unwrap_err();
    assert_eq!(error.code(), Code::NothingToReuse);
    assert!(error.to_string().contains("has not finished before"), "{error}");
}

#[tokio::test]
async fn every_edit_is_an_event_of_the_stream() {
    let refuses = |edits: &Edits| {
        let _ = edits.add_edge("one", "zebra");
        edits.add_edge("one", "two")
    };
    let graph = two(edits(refuses), edits(|edits| edits.add_edge("one", "two"))).compile().unwrap();
    let dropped = two(edits(|edits| edits.remove_node("x")), edits(|edits| edits.add_edge("x", "x")));
    let mut seen_events = Vec::new();
    for graph in [graph, dropped.compile().unwrap()] {
        let mut events = graph.invoke(Words::update()).max_supersteps(1).views([View::Edits]).stream();
        while let Some(event) = events.next().await {
            seen_events.push(match event.kind {
                EventKind::Edited { by, edits } => format!("{by}: {}", edits[0]),
                EventKind::EditRejected { by, why } => format!("{by}: {why}"),
                EventKind::EditDropped(dropped) => dropped.to_string(),
                EventKind::Ended(outcome) => {
                    format!("end after {} drops", outcome.unwrap().dropped_edits().len())
                }
                other => panic!("{other:?}"),
            });
        }
    }
    let expected = [
        "one: cannot add edge `one` -> `zebra`: there is no node `zebra`",
        "one: add edge `one` -> `two`",
        "two: add edge `one` -> `two`",
        "end after 0 drops",
        "one: remove node `x`",
        "the edits of node `two` were dropped: cannot add edge `x` -> `x`: there is no node `x`",
        "end after 1 drops",
    ];
    assert_eq!(seen_events, expected);
}

#[tokio::test]
async fn a_skipped_task_ends_as_skipped() {
    let (graph, _) = skips_b(&["b"]);
    let graph = graph.compile().unwrap();
    let mut events = graph.invoke(Words::update()).views([View::Tasks]).stream();
    let mut ends = Vec::new();
    while let Some(event) = events.next().await {
        if let EventKind::TaskEnded { node, end } = event.kind
            && node == "b"
        {
            ends.push(end);
        }
    }
    assert_eq!(ends, [TaskEnd::Done, TaskEnd::Skipped, TaskEnd::Done]);
}

#[tokio::test]
async fn static_interrupts_and_limits_work_with_temporary_nodes() {
    let edit = |edits: &Edits| {
        edits.add_fn("t", name)?;
        edits.add_edge("a", "t")?;
        edits.remove_node("c")
    };
    let graph = chain(edits(edit)).interrupt_after(["b"]).on_limit("c").compile().unwrap();
    let outcome = graph.invoke(Words::update()).await.unwrap();
    // Nothing runs after `b` and `t`, so there is no stop after `b`.
    assert_eq!(text(&outcome.into_finished().unwrap()), "a b t");
    // The node for the limit was removed.
    let outcome = graph.invoke(Words::update()).max_supersteps(1).await.unwrap();
    assert_eq!(text(outcome.output()), "a");
    assert!(matches!(outcome, Outcome::Stopped { .. }));
}

#[tokio::test]
async fn a_graph_can_be_a_temporary_node_and_edits_inside_it_stay_inside() {
    let child = || {
        let plan = edits(|edits| {
            edits.add_fn("inner", name)?;
            edits.add_edge("plan", "inner")
        });
        StateGraph::new().node("plan", plan).edge(START, "plan").compile().unwrap()
    };
    let edit = |edits: &Edits| {
        edits.add_node("sub", "child", ())?;
        edits.add_edge("a", "sub")?;
        assert!(matches!(
            edits.add_edge("sub", "inner").unwrap_err().why().clone(),
            Rejection::UnknownNode { .. }
        ));
        Ok(())
    };
    let graph = chain(edits(edit)).template("child", move |(): ()| child());
    assert_eq!(run(graph).await, "a b plan inner c");
    let plain = chain(edits(move |edits| edits.add_fn("sub", chain(name.into_node()).compile().unwrap())));
    let error = plain.compile().unwrap().invoke(Words::update()).await.unwrap_err();
    assert_eq!(error.code(), Code::EditRejected);
}

#[tokio::test]
async fn edits_before_a_run_may_remove_sources_of_joins() {
    let graph = StateGraph::new().node("a", name).node("b", name).node("j", name);
    let graph = graph.edge(START, "a").edge(["a", "b"], "j").compile().unwrap();
    let without = graph.invoke(Words::update()).for_this_run(|edits| edits.remove_edge("b", "j"));
    assert_eq!(text(without.await.unwrap().output()), "a j");
    let outcome = graph.invoke(Words::update()).await.unwrap();
    assert!(matches!(&outcome, Outcome::Finished { stuck, .. } if stuck.len() == 1), "{outcome:?}");
}

#[tokio::test]
async fn an_eager_run_applies_edits_when_the_editor_is_merged() {
    let between = |edits: &Edits| {
        edits.add_fn("t", name)?;
        edits.remove_edge("a", "b")?;
        edits.add_edge("a", "t")?;
        edits.add_edge("t", "b")
    };
    assert_eq!(run(chain(edits(between)).eager()).await, "a t b c");
    assert_eq!(run(chain(edits(|edits| edits.prepend_edge("a", "c"))).eager()).await, "a c b c");
    assert_eq!(run(chain(edits(|edits| edits.remove_node("c"))).eager()).await, "a b");
    let goes = async || said("a").goto("t").for_this_run(|edits| edits.add_fn("t", name.defer()));
    assert_eq!(run(chain(goes.into_node()).eager()).await, "a t");
    let join = StateGraph::new()
        .node("a", edits(|edits| edits.remove_edge("b", "j")))
        .node("b", name)
        .node("j", name)
        .edge(START, "a")
        .edge(["a", "b"], "j")
        .eager();
    assert_eq!(run(join).await, "a j");
    let before = chain(name.into_node()).eager().compile().unwrap();
    let before = before.invoke(Words::update()).for_this_run(|edits| edits.add_edge(START, "c"));
    assert_eq!(text(before.await.unwrap().output()), "a c b c");
}

#[tokio::test]
async fn an_eager_run_cancels_unstarted_tasks_of_a_removed_node() {
    // One at a time: `one` is merged before the dispatches to `x` begin.
    let splits = async || {
        said("split").goto([Dispatch::new("one", 0_u32), Dispatch::new("x", 1), Dispatch::new("x", 2)])
    };
    let graph = StateGraph::new()
        .node("split", splits)
        .node("one", edits(|edits| edits.remove_node("x")))
        .node("x", name)
        .node("end", name)
        .edge(START, "split")
        .edge(["one"], "end")
        .eager();
    let graph = graph.compile().unwrap();
    let outcome = graph.invoke(Words::update()).max_concurrency(1).await.unwrap();
    assert_eq!(text(outcome.output()), "split one end");
    // Without the limit, all of them have started before `one` is merged.
    let outcome = graph.invoke(Words::update()).await.unwrap();
    assert_eq!(text(outcome.output()), "split one x x end");
}

#[tokio::test]
async fn an_eager_run_skips_once_as_well() {
    let (graph, calls) = skips_b(&["b"]);
    assert_eq!(run(graph.eager()).await, "a b0 c x a b0 c x a b1 c x");
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_detached_temporary_node_does_not_delay_the_end() {
    let edit = |edits: &Edits| {
        let forever = async || std::future::pending::<WordsUpdate>().await;
        edits.add_fn("side", forever.detached())?;
        edits.add_edge("a", "side")
    };
    let graph = chain(edits(edit)).eager().compile().unwrap();
    match graph.invoke(Words::update()).await.unwrap() {
        Outcome::Finished { output, cancelled, .. } => {
            assert_eq!((&*text(&output), &cancelled[..]), ("a b c", &["side".to_owned()][..]));
        }
        other => panic!("{other:?}"),
    }
    let detached = |edits: &Edits| edits.add_fn("t", name.detached());
    assert!(matches!(refused(detached).await, Rejection::Unfit(_)));
}
