//! Temporary edits in eager graphs: each holds from the merge of its editor on, whatever runs meanwhile, and
//! a run that is cut off goes on with what ran, what waited and what was cancelled as it stood.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use agentgraph::edit::{EditError, Edits, Rejection};
use agentgraph::graph::EdgeKind;
use agentgraph::node::Node;
use agentgraph::policy::Siblings;
use agentgraph::prelude::*;
use agentgraph::{BoxError, EventKind, View};
use common::poll::{at_most, pending_for};
use common::words::{Words, WordsUpdate, said, text};
use futures_util::StreamExt;

async fn name(ctx: Ctx) -> WordsUpdate {
    Words::update().seen([ctx.node()])
}

async fn forever() -> WordsUpdate {
    std::future::pending().await
}

/// Edits its graph, says its name so many polls later.
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

/// An eager graph whose named nodes all start at once.
fn eager<const N: usize>(entries: [&'static str; N]) -> StateGraph<Words> {
    let graph = StateGraph::new().eager().template("say", say);
    entries.into_iter().fold(graph, |graph, entry| graph.edge(START, entry))
}

async fn run(graph: StateGraph<Words>) -> Outcome<Words> {
    graph.compile().unwrap().invoke(Words::update()).await.unwrap()
}

#[tokio::test]
async fn identical_edits_of_tasks_that_did_not_know_of_each_other_coincide() {
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
    // Who begins after the other was merged has seen it, and is told at the call.
    let late = edits(|edits| {
        assert_eq!(edits.add_node("t", "say", "t").unwrap_err().why(), &Rejection::NodeExists);
        Ok(())
    });
    let graph = eager(["a"]).node("a", of("a")).node("b", late).node("end", name);
    let outcome = run(graph.edge("a", "end").edge("a", "b")).await;
    assert_eq!((text(outcome.output()), outcome.dropped_edits()), ("a b t end".to_owned(), &[][..]));
}

#[tokio::test]
async fn of_two_that_conflict_the_later_merged_one_is_dropped_whole_and_told() {
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
    let mut told = Vec::new();
    while let Some(event) = events.next().await {
        match event.kind {
            EventKind::Edited { by, edits } => told.push(format!("{by}: {}", edits.len())),
            EventKind::EditDropped(dropped) => told.push(dropped.to_string()),
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
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[0], "b: 1");
    assert!(told[1].starts_with("the edits of node `a` were dropped: "), "{}", told[1]);
}

#[tokio::test]
async fn the_edits_of_an_attempt_are_checked_on_the_graph_as_it_was_at_the_first_of_them() {
    let slow = async |ctx: Ctx| {
        ctx.edits().add_node("mine", "say", "mine")?;
        pending_for(5).await;
        // Others were merged meanwhile, with a node and edges of their own.
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
async fn edits_of_attempts_that_failed_are_gone_also_when_others_merge_in_between() {
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

/// `x` runs when `r`, or a node of its name, takes it out. The process dies, and another one goes on.
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
        // Its edges are gone with it.
        assert_eq!(text(&done), if again { "r another x" } else { "r x" });
    }
}

/// The same with a temporary node, which no name finds any more.
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
async fn whoever_asks_is_answered_although_its_node_was_removed_meanwhile() {
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

/// A graph that is a node, and a handler, ask; their nodes are gone when they are answered.
#[tokio::test]
async fn graphs_and_handlers_in_removed_nodes_are_answered_too() {
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

/// What a node that is gone has led to goes on: by an edge, by dispatches, and by a join of which it was a
/// source.
#[tokio::test]
async fn what_a_removed_node_has_led_to_goes_on_in_another_process() {
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
    // One task a process.
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

/// A dispatch is cancelled with its node, and its group is done once the others are.
#[tokio::test]
async fn a_group_whose_dispatches_are_cancelled_in_part_arrives() {
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
async fn a_failed_sibling_leaves_the_edits_that_were_merged_and_none_of_those_that_were_not() {
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
async fn the_graph_of_an_eager_run_is_drawn_as_it_was_at_each_checkpoint() {
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
async fn a_replay_edits_in_the_recorded_order_whoever_finishes_first_now() {
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
async fn a_node_that_is_removed_before_it_starts_is_not_waited_for_by_a_static_interrupt() {
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
