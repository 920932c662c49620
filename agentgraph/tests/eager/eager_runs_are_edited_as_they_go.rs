//! Temporary edits in eager graphs. An edit takes effect when the task that made it is merged, even while
//! other tasks run. A run that was cut off continues with its running, waiting and cancelled tasks.

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use agentgraph::edit::{EditError, Edits, Rejection};
use agentgraph::graph::EdgeKind;
use agentgraph::node::Node;
use agentgraph::policy::Siblings;
use agentgraph::prelude::*;
use agentgraph::{BoxError, EventKind, View};
use futures_util::StreamExt;

use crate::common::poll::{at_most, pending_for};
use crate::common::words::{Words, WordsUpdate, said, text};

async fn name(ctx: Ctx) -> WordsUpdate {
    Words::update().seen([ctx.node()])
}

async fn forever() -> WordsUpdate {
    std::future::pending().await
}

/// Returns a node that edits its graph, is pending for `polls` polls and writes its name.
fn edits_after(
    polls: u32,
    edit: impl Fn(&Edits) -> Result<(), EditError> + Send + Sync + 'static,
) -> Node<Words> {
    let node = move |ctx: Ctx| {
        let edited = edit(&ctx.edits());
        async move {
            pending_for(polls).await;
            edited?;
            Ok::<_, BoxError>(Words::update().seen([ctx.node()]))
        }
    };
    node.into_node()
}

fn edits(edit: impl Fn(&Edits) -> Result<(), EditError> + Send + Sync + 'static) -> Node<Words> {
    edits_after(0, edit)
}

fn say(word: String) -> Node<Words> {
    (move || std::future::ready(Words::update().seen([word.clone()]))).into_node()
}

/// Returns an eager graph whose entries all start at once.
fn eager<const N: usize>(entries: [&'static str; N]) -> StateGraph<Words> {
    let graph = StateGraph::new().eager().template("say", say);
    entries.into_iter().fold(graph, |graph, entry| graph.edge(START, entry))
}

async fn run(graph: StateGraph<Words>) -> Outcome<Words> {
    graph.compile().unwrap().invoke(Words::update()).await.unwrap()
}

#[tokio::test]
async fn identical_edits_of_concurrent_tasks_coincide() {
    let both = |edits: &Edits| {
        edits.add_node("t", "say", "t")?;
        edits.add_edge("t", "end")?;
        edits.remove_edge("a", "end")
    };
    let of = |own: &'static str| {
        edits(move |edits| {
            both(edits)?;
            edits.add_edge(own, "t")
        })
    };
    let graph = eager(["a", "b"]).node("a", of("a")).node("b", of("b")).node("end", name).edge("a", "end");
    let outcome = run(graph).await;
    assert_eq!(outcome.dropped_edits(), &[]);
    assert_eq!(text(outcome.output()), "a b t t end end");
    // A task that begins after the other was merged sees its edits, so its own call returns an error.
    let late = edits(|edits| {
        assert_eq!(edits.add_node("t", "say", "t").unwrap_err().why(), &Rejection::NodeExists);
        Ok(())
    });
    let graph = eager(["a"]).node("a", of("a")).node("b", late).node("end", name);
    let outcome = run(graph.edge("a", "end").edge("a", "b")).await;
    assert_eq!((text(outcome.output()), outcome.dropped_edits()), ("a b t end".to_owned(), &[][..]));
}

#[tokio::test]
async fn of_two_conflicting_tasks_the_edits_of_the_later_merged_are_dropped_and_reported() {
    // `a` begins first, and `b` is merged first.
    let graph = eager(["a", "b"])
        .node(
            "a",
            edits_after(3, |edits| {
                edits.add_node("t", "say", "t")?;
                edits.add_edge("a", "t")?;
                edits.add_edge("t", "c")
            }),
        )
        .node("b", edits(|edits| edits.remove_node("c")))
        .node("c", name)
        .edge("b", "c");
    let graph = graph.compile().unwrap();
    let mut events = graph.invoke(Words::update()).views([View::Edits]).stream();
    let mut reported = Vec::new();
    while let Some(event) = events.next().await {
        match event.kind {
            EventKind::Edited { by, edits } => reported.push(format!("{by}: {}", edits.len())),
            EventKind::EditDropped(dropped) => reported.push(dropped.to_string()),
            EventKind::Ended(outcome) => {
                let outcome = outcome.unwrap();
                assert_eq!(text(outcome.output()), "b a");
                let dropped = &outcome.dropped_edits()[0];
                assert_eq!((&*dropped.by, dropped.edits.len()), ("a", 3));
                assert!(matches!(dropped.why.why(), Rejection::UnknownNode { name, .. } if name == "c"));
            }
            _ => {}
        }
    }
    assert_eq!(reported.len(), 2, "{reported:?}");
    assert_eq!(reported[0], "b: 1");
    assert!(reported[1].starts_with("the edits of node `a` were dropped: "), "{}", reported[1]);
}

#[tokio::test]
async fn the_edits_of_an_attempt_are_checked_against_the_graph_at_its_first_edit() {
    let slow = async |ctx: Ctx| {
        ctx.edits().add_node("mine", "say", "mine")?;
        pending_for(5).await;
        // `quick` was merged meanwhile, with a node and edges of its own.
        ctx.edits().add_edge("mine", "end")?;
        ctx.edits().add_edge("slow", "mine")?;
        Ok::<_, BoxError>(Words::update().seen(["slow"]))
    };
    let quick = edits(|edits| {
        edits.add_node("theirs", "say", "theirs")?;
        edits.add_edge("quick", "theirs")?;
        edits.add_edge("theirs", "end")
    });
    let graph = eager(["slow", "quick"]).node("slow", slow).node("quick", quick).node("end", name);
    let outcome = run(graph.edge("slow", "end")).await;
    assert_eq!(outcome.dropped_edits(), &[]);
    assert_eq!(text(outcome.output()), "quick theirs end slow end mine end");
}

#[tokio::test]
async fn edits_of_failed_attempts_are_discarded_even_if_other_tasks_merge_in_between() {
    let attempts = async |ctx: Ctx| {
        let edits = ctx.edits();
        if ctx.attempt() == 1 {
            edits.add_node("wrong", "say", "wrong")?;
            edits.add_edge("flaky", "wrong")?;
            pending_for(4).await;
            return Err(BoxError::from("not yet"));
        }
        edits.add_edge("flaky", "end")?;
        Ok(Words::update().seen(["flaky"]))
    };
    let retry = RetryPolicy::attempts(2).initial(std::time::Duration::ZERO);
    let graph = eager(["flaky", "other"])
        .node("flaky", attempts.retry(retry))
        .node("other", edits(|edits| edits.add_edge("other", "end")))
        .node("end", name)
        .edge("flaky", "last")
        .node("last", name);
    let outcome = run(graph).await;
    assert_eq!(text(outcome.output()), "other end flaky last end");
    assert_eq!(outcome.dropped_edits(), &[]);
}

/// `r` removes `x` while `x` runs, and in one case adds another node named `x`. Then the process dies and
/// another one proceeds.
#[tokio::test]
async fn a_running_task_of_a_removed_node_is_finished_by_another_process() {
    for again in [false, true] {
        let saver = Arc::new(MemorySaver::new());
        let process = |x: Node<Words>| {
            let removes = edits(move |edits| {
                edits.remove_node("x")?;
                if again {
                    edits.add_node("x", "say", "another")?;
                    edits.add_edge("r", "x")?;
                }
                Ok(())
            });
            let graph = eager(["x", "r"]).node("x", x).node("r", removes).node("y", name).edge("x", "y");
            graph.compile().unwrap().checkpointer(Arc::clone(&saver))
        };
        let first = process(forever.into_node());
        let call = Box::pin(first.invoke(Words::update()).thread("t").into_future());
        assert!(at_most(call, 30).await.is_none());
        let seen = process(name.into_node()).state("t").await.unwrap().unwrap();
        assert_eq!(seen.next, ["x"]);
        let done = process(name.into_node()).proceed().thread("t").await.unwrap().into_finished().unwrap();
        // The edge to `y` was removed with `x`.
        assert_eq!(text(&done), if again { "r another x" } else { "r x" });
    }
}

/// The same with a temporary node, whose name then belongs to another node.
#[tokio::test]
async fn a_running_task_of_a_removed_temporary_node_is_finished_by_another_process() {
    let slow = |polls: u32| if polls == 0 { forever.into_node() } else { name.into_node() };
    let saver = Arc::new(MemorySaver::new());
    let process = |alive: u32| {
        let adds = edits(|edits| {
            edits.add_node("x", "slow", ())?;
            edits.add_edge("a", "x")?;
            edits.add_edge("x", "y")
        });
        let removes = edits_after(2, |edits| {
            edits.remove_node("x")?;
            edits.add_node("x", "say", "another")?;
            edits.add_edge("r", "x")
        });
        let graph = eager(["a"]).node("a", adds).node("r", removes).node("y", name).edge("a", "r");
        let graph = graph.template("slow", move |(): ()| slow(alive));
        graph.compile().unwrap().checkpointer(Arc::clone(&saver))
    };
    let first = process(0);
    assert!(at_most(Box::pin(first.invoke(Words::update()).thread("t").into_future()), 40).await.is_none());
    let done = process(1).proceed().thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(text(&done), "a r another x");
}

#[tokio::test]
async fn an_interrupt_can_be_answered_after_its_node_was_removed() {
    let asks = async |ctx: Ctx| {
        let answer: String = ctx.interrupt("well?")?;
        Ok::<_, BoxError>(Words::update().seen([format!("{} {answer}", ctx.node())]))
    };
    for temporary in [false, true] {
        let saver = Arc::new(MemorySaver::new());
        let process = || {
            let adds = edits(move |edits| {
                if temporary {
                    edits.add_node("t", "asks", ())?;
                    edits.add_edge("a", "t")?;
                }
                Ok(())
            });
            let removes = edits_after(4, move |edits| edits.remove_node(if temporary { "t" } else { "x" }));
            let graph = eager(["a"]).node("a", adds).node("r", removes).node("x", asks).edge("a", "r");
            let graph = if temporary { graph } else { graph.edge("a", "x") };
            let graph = graph.template("asks", move |(): ()| asks.into_node());
            graph.compile().unwrap().checkpointer(Arc::clone(&saver))
        };
        let asked = process().invoke(Words::update()).thread("t").await.unwrap();
        let node = if temporary { "t" } else { "x" };
        assert_eq!((asked.interrupts().len(), &*asked.interrupts()[0].node), (1, node));
        assert_eq!(process().state("t").await.unwrap().unwrap().interrupts[0].node, node);
        let done = process().resume("yes").thread("t").await.unwrap().into_finished().unwrap();
        assert_eq!(text(&done), format!("a r {node} yes"));
    }
}

/// A subgraph and the error handler of `fails` interrupt. `child` and `fails` are removed before the answers.
#[tokio::test]
async fn interrupts_of_removed_subgraphs_and_of_handlers_of_removed_nodes_can_be_answered() {
    let asks = async |ctx: Ctx| {
        let answer: String = ctx.interrupt("well?")?;
        Ok::<_, BoxError>(Words::update().seen([format!("{} {answer}", ctx.node())]))
    };
    let saver = Arc::new(MemorySaver::new());
    let process = || {
        let child = StateGraph::new().node("inner", asks).edge(START, "inner").compile().unwrap();
        let fails = async || Err::<(), _>(BoxError::from("it fails"));
        let graph = eager(["child", "fails", "r"])
            .node("child", child)
            .node("fails", fails.on_error("mends"))
            .node("mends", asks)
            .node(
                "r",
                edits_after(6, |edits| {
                    edits.remove_node("child")?;
                    edits.remove_node("fails")
                }),
            );
        graph.compile().unwrap().checkpointer(Arc::clone(&saver))
    };
    let asked = process().invoke(Words::update()).thread("t").await.unwrap();
    let ids: Vec<_> = asked.interrupts().iter().map(|one| (one.node.clone(), one.id.unwrap())).collect();
    assert_eq!(ids.iter().map(|(node, _)| &**node).collect::<Vec<_>>(), ["inner", "mends"]);
    assert_eq!(process().state("t").await.unwrap().unwrap().interrupts, asked.interrupts());
    assert_eq!(process().waiting().await.unwrap()[0].interrupts.len(), 2);
    let left = process().resume_many([(ids[1].1, "yes")]).thread("t").await.unwrap();
    assert_eq!((text(left.output()), left.interrupts().len()), ("r mends yes".to_owned(), 1));
    let done = process().resume("no").thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(text(&done), "r mends yes inner no");
}

/// `split` goes to `next`, dispatches `part` and arrives at a join before it is removed. All of these still
/// run.
#[tokio::test]
async fn tasks_triggered_by_a_removed_node_run_in_another_process() {
    async fn part(ctx: Ctx, Input(n): Input<u32>) -> WordsUpdate {
        Words::update().seen([format!("{}{n}", ctx.node())])
    }
    let saver = Arc::new(MemorySaver::new());
    let process = || {
        let splits =
            async || said("split").also_goto([1, 2].map(|n| Dispatch::new("part", n))).also_goto("next");
        let graph = eager(["split", "beside"])
            .node("split", splits)
            .node("part", part)
            .node("next", name)
            .node("beside", edits_after(1, |edits| edits.remove_node("split")))
            .node("end", name)
            .edge(["part"], "end")
            .edge(["split", "next"], "joined")
            .node("joined", name);
        graph.compile().unwrap().checkpointer(Arc::clone(&saver))
    };
    // One task per process.
    let mut last = process().invoke(Words::update()).thread("t").max_supersteps(1).await.unwrap();
    for _ in 0..9 {
        if matches!(last, Outcome::Finished { .. }) {
            break;
        }
        last = process().proceed().thread("t").max_supersteps(1).await.unwrap();
    }
    let Outcome::Finished { output, stuck, .. } = last else { panic!("{last:?}") };
    assert_eq!(text(&output), "split beside next part1 part2 joined end");
    assert!(stuck.is_empty(), "{stuck:?}");
}

/// Removing a node cancels its dispatches. Their group is complete when its other dispatches have finished.
#[tokio::test]
async fn a_group_arrives_although_some_of_its_dispatches_were_cancelled() {
    for cut in [false, true] {
        let saver = Arc::new(MemorySaver::new());
        let process = || {
            let splits = async || {
                said("split").goto([
                    Dispatch::new("edits", 0_u32),
                    Dispatch::new("x", 1),
                    Dispatch::new("y", 2),
                    Dispatch::new("x", 3),
                ])
            };
            let graph = eager(["split"])
                .node("split", splits)
                .node("edits", edits(|edits| edits.remove_node("x")))
                .node("x", name)
                .node("y", name)
                .node("end", name)
                .edge(["edits", "y"], "end")
                .edge(["x", "y"], "half");
            let graph = graph.node("half", name).compile().unwrap();
            graph.checkpointer(Arc::clone(&saver))
        };
        let mut last = process().invoke(Words::update()).thread("t").max_concurrency(1);
        if cut {
            last = last.max_supersteps(2);
        }
        let mut last = last.await.unwrap();
        if cut {
            assert_eq!(process().state("t").await.unwrap().unwrap().next, ["y"]);
            last = process().proceed().thread("t").await.unwrap();
        }
        let Outcome::Finished { output, stuck, .. } = last else { panic!("{last:?}") };
        assert_eq!(text(&output), "split edits y end half", "cut {cut}");
        assert!(stuck.is_empty(), "{stuck:?}");
    }
}

#[tokio::test]
async fn a_failure_keeps_merged_edits_and_discards_edits_that_were_not_merged() {
    let saver = Arc::new(MemorySaver::new());
    let fails = Arc::new(AtomicU32::new(1));
    let process = || {
        let fails = Arc::clone(&fails);
        let flaky = move |ctx: Ctx| {
            let fails = fails.swap(0, Ordering::SeqCst) == 1;
            async move {
                ctx.edits().add_edge("flaky", "t")?;
                pending_for(3).await;
                if fails { Err(BoxError::from("it fails")) } else { Ok(Words::update().seen(["flaky"])) }
            }
        };
        let graph = eager(["a", "slow"])
            .node(
                "a",
                edits(|edits| {
                    edits.add_node("t", "say", "t")?;
                    edits.add_edge("flaky", "t")?;
                    edits.remove_edge("flaky", "t")
                }),
            )
            .node("flaky", flaky)
            .node("slow", edits_after(20, |edits| edits.remove_node("end")))
            .node("end", name)
            .edge("a", "flaky")
            .edge("flaky", "end");
        graph.siblings(Siblings::Cancel).compile().unwrap().checkpointer(Arc::clone(&saver))
    };
    let error = process().invoke(Words::update()).thread("t").await.unwrap_err();
    assert_eq!(error.node(), Some("flaky"));
    let seen = process().state("t").await.unwrap().unwrap();
    assert_eq!((seen.next.len(), seen.edits.len()), (2, 3), "{seen:?}");
    let done = process().proceed().thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(text(&done), "a flaky end t slow");
}

#[tokio::test]
async fn the_topology_of_an_eager_run_is_that_of_the_given_checkpoint() {
    let saver = Arc::new(MemorySaver::new());
    let graph = eager(["a", "b"])
        .node(
            "a",
            edits(|edits| {
                edits.add_node("t", "say", "t")?;
                edits.add_edge("a", "t")?;
                edits.add_edge("t", "c")
            }),
        )
        .node("b", edits_after(6, |edits| edits.remove_edge("b", "c")))
        .node("c", name)
        .edge("b", "c")
        .compile()
        .unwrap()
        .checkpointer(saver);
    let outcome = graph.invoke(Words::update()).thread("t").await.unwrap();
    assert_eq!(text(outcome.output()), "a t c b");
    let mut drawn = Vec::new();
    for one in graph.history("t").await.unwrap().iter().rev() {
        let topology = graph.topology_at("t", one.id).await.unwrap().unwrap();
        let nodes: Vec<&str> = topology.nodes.iter().map(|node| &*node.name).collect();
        drawn.push((
            text(&one.values),
            nodes.contains(&"t"),
            topology.edges.iter().any(|edge| edge.from == "b" && edge.kind == EdgeKind::Edge),
        ));
    }
    let expected = [
        ("", false, true),
        ("a", true, true),
        ("a t", true, true),
        ("a t c", true, true),
        ("a t c b", true, false),
    ];
    assert_eq!(drawn, expected.map(|(words, t, edge)| (words.to_owned(), t, edge)));
}

#[tokio::test]
async fn a_replay_applies_edits_in_the_recorded_order() {
    let saver = Arc::new(MemorySaver::new());
    let process = |first: u32, second: u32| {
        let graph = eager(["a", "b"])
            .node("a", edits_after(first, |edits| edits.remove_node("c")))
            .node("b", edits_after(second, |edits| edits.add_edge("b", "c")))
            .node("c", name);
        let graph = graph.edge("a", "c").compile().unwrap();
        graph.checkpointer(Arc::clone(&saver))
    };
    let first = process(5, 0).invoke(Words::update()).thread("t").await.unwrap();
    assert_eq!((text(first.output()), first.dropped_edits().len()), ("b c a".to_owned(), 0));
    let start = process(0, 5).history("t").await.unwrap().pop().unwrap().id;
    let again = process(0, 5).proceed().thread("t").from(start).await.unwrap();
    assert_eq!((text(again.output()), again.dropped_edits().len()), ("b c a".to_owned(), 0));
}

#[tokio::test]
async fn a_static_interrupt_ignores_a_node_that_was_removed_before_its_start() {
    let saver = Arc::new(MemorySaver::new());
    let process = || {
        let graph = eager(["a", "r"])
            .node("a", name)
            .node("x", name)
            .node("r", edits_after(3, |edits| edits.remove_node("x")))
            .edge("a", "x")
            .interrupt_before(["x"]);
        graph.compile().unwrap().checkpointer(Arc::clone(&saver))
    };
    let outcome = process().invoke(Words::update()).thread("t").await.unwrap();
    assert!(matches!(outcome, Outcome::Finished { .. }), "{outcome:?}");
    assert_eq!(text(outcome.output()), "a r");
}
