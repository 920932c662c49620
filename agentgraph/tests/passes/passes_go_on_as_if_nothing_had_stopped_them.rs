//! A pass that was suspended or killed ends like one that was not. It keeps the edits of its nodes, the nodes
//! that have begun, and its reports.

use std::future::pending;
use std::sync::{Arc, Mutex};

use agentgraph::checkpoint::TaskId;
use agentgraph::checkpoint::{Checkpointer, PendingWrite, Place, PutWrites};
use agentgraph::dependency::{Join, Outputs};
use agentgraph::edit::GraphEdit;
use agentgraph::prelude::*;
use agentgraph::{BoxError, CompiledDependencyGraph, DependencyNode};
use serde_json::Value;
use tokio::sync::Notify;

type Text = DependencyGraph<String>;

fn order(outputs: &Outputs<String>) -> String {
    outputs.names().collect::<Vec<_>>().join(" ")
}

/// Interrupts with the names of its inputs. Returns the answer and the names of its inputs at that time.
async fn ask(deps: Deps<'_, String>, ctx: Ctx) -> Result<String> {
    let seen = deps.names().collect::<Vec<_>>().join("+");
    let answer: String = ctx.interrupt(format!("saw {seen}"))?;
    Ok(format!("{answer}, saw {seen}"))
}

/// Interrupts with its own name.
async fn ask_name(ctx: Ctx) -> Result<String> {
    Ok(ctx.interrupt(ctx.node().to_owned())?)
}

#[tokio::test]
async fn an_edge_into_an_interrupted_node_does_not_change_its_inputs() {
    for lost in [false, true] {
        let late = Arc::new(Notify::new());
        let z = {
            let late = Arc::clone(&late);
            move |_: Deps<'static, String>| {
                let late = Arc::clone(&late);
                async move {
                    late.notified().await;
                    "z".to_owned()
                }
            }
        };
        let edit = move |ctx: Ctx| {
            let late = Arc::clone(&late);
            async move {
                tokio::task::yield_now().await;
                if lost {
                    ctx.edits().remove_edge("z", "l")?;
                }
                ctx.edits().add_edge("l", "ask")?;
                late.notify_one();
                Ok::<_, BoxError>("edited".to_owned())
            }
        };
        let graph = Text::new()
            .node("p", || "p".to_owned())
            .node("ask", ask)
            .node("edit", edit)
            .node("z", z)
            .node("l", || "l".to_owned())
            .node("end", |deps: Deps<String>| deps[0].clone())
            .edge("p", "ask")
            .edge("z", "l")
            .edge("ask", "end");
        let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
        let asked = graph.invoke(()).thread("t").await.unwrap();
        assert_eq!(asked.interrupts()[0].value, "saw p");
        assert_eq!(graph.state("t").await.unwrap().unwrap().next, ["ask"]);
        let outputs = graph.resume("yes").thread("t").await.unwrap().into_finished().unwrap();
        assert_eq!(outputs.get("end").map(String::as_str), Some("yes, saw p"), "lost: {lost}");
        assert_eq!(outputs.edits().len(), usize::from(lost), "{:?}", outputs.edits());
    }
}

#[tokio::test]
async fn an_answered_node_has_begun_and_cannot_be_removed_or_skipped() {
    let refused = Arc::new(Mutex::new(Vec::new()));
    let errors = Arc::clone(&refused);
    let first = move |ctx: Ctx| {
        let errors = Arc::clone(&errors);
        async move {
            let answer: String = ctx.interrupt("first")?;
            errors.lock().unwrap().push(ctx.edits().remove_node("second").unwrap_err().to_string());
            errors.lock().unwrap().push(ctx.edits().skip(["second"]).unwrap_err().to_string());
            Ok::<String, BoxError>(answer)
        }
    };
    let graph = Text::new().node("first", first).node("second", ask_name);
    let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
    let asked = graph.invoke(()).thread("t").await.unwrap();
    let answers: Vec<_> = asked.interrupts().iter().map(|asked| (asked.id.unwrap(), "yes")).collect();
    let answered = graph.resume_many(answers).thread("t").max_concurrency(1).await.unwrap();
    let outputs = answered.into_finished().unwrap();
    assert_eq!((order(&outputs), outputs.not_run()), ("first second".into(), &[][..]));
    let refused = refused.lock().unwrap();
    assert!(refused.iter().all(|why| why.ends_with("node `second` runs already")), "{refused:?}");
}

#[tokio::test]
async fn an_answered_node_has_the_inputs_that_it_had_at_its_interrupt() {
    for join in [Join::Any, Join::AllNotPruned] {
        let late = async |_: Deps<'_, String>, ctx: Ctx| {
            tokio::task::yield_now().await;
            if ctx.node() == "late" {
                ctx.edits().add_edge("first", "lost")?;
            }
            Ok::<_, BoxError>(ctx.node().to_owned())
        };
        let graph = Text::new()
            .node("first", || "first".to_owned())
            .node("late", late)
            .node("lost", late)
            .node("ask", DependencyNode::of(ask).join(join))
            .edge("late", "lost")
            .edge("first", "ask")
            .edge("lost", "ask");
        let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
        let asked = graph.invoke(()).thread("t").for_this_pass(|edits| {
            edits.remove_edge("late", "lost");
        });
        let asked = asked.await.unwrap();
        assert_eq!(
            (order(asked.output()), &asked.interrupts()[0].value),
            ("first late lost".into(), &"saw first".into())
        );
        let outputs = graph.resume("yes").thread("t").await.unwrap().into_finished().unwrap();
        assert_eq!(outputs["ask"], "yes, saw first", "{join:?}");
    }
}

#[tokio::test]
async fn an_edge_into_a_node_that_ran_at_a_kill_does_not_change_its_inputs() {
    let saver = Arc::new(MemorySaver::new());
    let graph = |hangs: bool| {
        let slow = move |deps: Deps<'static, String>| async move {
            if hangs {
                pending::<()>().await;
            }
            deps.names().collect::<Vec<_>>().join("+")
        };
        let edit = async |ctx: Ctx| {
            tokio::task::yield_now().await;
            ctx.edits().remove_edge("z", "l")?;
            ctx.edits().add_edge("l", "slow")?;
            Ok::<String, BoxError>("edited".into())
        };
        let graph = Text::new()
            .node("p", || "p".to_owned())
            .node("slow", slow)
            .node("edit", edit)
            .node("z", slow)
            .node("l", || "l".to_owned())
            .edge("p", "slow")
            .edge("z", "l");
        graph.compile().unwrap().checkpointer(Arc::clone(&saver))
    };
    {
        let first = graph(true);
        let mut killed = std::pin::pin!(async { first.invoke(()).thread("t").await });
        for _ in 0..5 {
            assert!(futures_util::poll!(killed.as_mut()).is_pending());
        }
    }
    let outputs = graph(false).proceed().thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!((order(&outputs), &*outputs["slow"]), ("p edit z slow".into(), "p"));
}

/// Makes a node whose output is the argument of its template.
fn say(args: &Value) -> Result<DependencyNode<String>, BoxError> {
    let word = args.as_str().ok_or("a word")?.to_owned();
    Ok(DependencyNode::of(move |_: Deps<String>| word.clone()))
}

#[tokio::test]
async fn a_missing_template_is_an_error_and_a_new_edge_is_no_conflict() {
    fn plan(_: Deps<'_, String>, ctx: Ctx) -> Result<String> {
        ctx.edits().add_node("x", "say", "x")?;
        ctx.edits().add_edge("x", "end")?;
        Ok("plan".into())
    }
    let saver = Arc::new(MemorySaver::new());
    let graph = |template: &str, edges: &[(&str, &str)]| {
        let mut graph = Text::new().template(template, say).node("plan", plan).node("ask", ask_name);
        graph =
            graph.node("late", ask_name).node("end", |deps: Deps<String>| deps.names().collect::<String>());
        graph = graph.edge("plan", "ask").edge("plan", "late");
        for (from, to) in edges {
            graph = graph.edge(*from, *to);
        }
        graph.compile().unwrap().checkpointer(Arc::clone(&saver))
    };
    let old = graph("say", &[("ask", "end")]);
    for thread in ["in", "before"] {
        let edited = old.invoke(()).thread(thread).for_this_pass(|edits| {
            if thread == "before" {
                edits.add_node("y", "say", "y").add_edge("late", "end");
            }
        });
        let asked = edited.await.unwrap();
        let ids: Vec<_> = asked.interrupts().iter().map(|asked| (asked.id.unwrap(), "yes")).collect();

        let renamed = graph("tell", &[("ask", "end")]);
        for error in [
            renamed.resume_many(ids.clone()).thread(thread).await.unwrap_err(),
            renamed.state(thread).await.unwrap_err(),
        ] {
            assert_eq!(error.code().as_str(), "E_GRAPH_CHANGED");
            let text = error.to_string();
            assert!(text.contains("template `say`") && text.contains("`.abandon()`"), "{text}");
        }

        let with_the_edge = graph("say", &[("ask", "end"), ("late", "end")]);
        let outputs = with_the_edge.resume_many(ids).thread(thread).await.unwrap().into_finished().unwrap();
        assert_eq!(outputs["end"], "asklatex", "{thread}");
    }
}

#[tokio::test]
async fn the_state_of_an_open_pass_has_the_outputs_of_skipped_nodes() {
    let graph = Text::new().node("plan", || "planned".to_owned()).node("ask", ask).edge("plan", "ask");
    let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
    graph.invoke(()).thread("t").await.unwrap();
    graph.resume("yes").thread("t").await.unwrap();
    let skipping = graph.invoke(()).thread("t").for_this_pass(|edits| {
        edits.skip(["plan"]);
    });
    let asked = skipping.await.unwrap();
    let state = graph.state("t").await.unwrap().unwrap().values;
    for outputs in [asked.output(), &state] {
        assert_eq!(
            (order(outputs), outputs.get("plan").map(String::as_str)),
            ("plan".into(), Some("planned"))
        );
    }
}

/// Stores copies of the record of a finished node, under ids of tasks that do not exist.
async fn multiply_a_record(saver: &MemorySaver, node: &str) {
    let tail = saver.get(Place::root("t"), None).await.unwrap().unwrap();
    let says = |bytes: &[u8]| bytes.windows(node.len()).any(|part| part == node.as_bytes());
    let record = tail.writes.iter().find(|write| write.slot == 0 && says(&write.bytes)).unwrap();
    let copies: Vec<_> =
        (7..10).map(|task| PendingWrite { task: TaskId::from_u128(task), ..record.clone() }).collect();
    let at = tail.rows.last().unwrap().id;
    saver.put_writes(PutWrites::new(Place::root("t"), at, &copies)).await.unwrap();
}

#[tokio::test]
async fn two_records_of_one_finished_node_are_corrupt() {
    let saver = Arc::new(MemorySaver::new());
    let graph: CompiledDependencyGraph<String> = Text::new()
        .node("first", || "done".to_owned())
        .node("ask", ask_name)
        .node("last", async |_: Deps<'_, String>| "last".to_owned())
        .edge("first", "last")
        .edge("ask", "last")
        .compile()
        .unwrap();
    let graph = graph.checkpointer(Arc::clone(&saver));
    graph.invoke(()).thread("t").await.unwrap();
    multiply_a_record(&saver, "first").await;
    for error in [graph.state("t").await.unwrap_err(), graph.resume("yes").thread("t").await.unwrap_err()] {
        assert_eq!(error.code().as_str(), "E_CORRUPT_CHECKPOINT");
        assert!(error.to_string().contains("`first`"), "{error}");
    }
}

#[tokio::test]
async fn dropped_edits_are_reported_by_every_outcome_and_state_of_the_pass() {
    let gate = Arc::new(Notify::new());
    let edit = move |ctx: Ctx| {
        let gate = Arc::clone(&gate);
        async move {
            ctx.edits().add_node("x", "say", ctx.node())?;
            match ctx.node() {
                "late" => gate.notified().await,
                _ => gate.notify_one(),
            }
            Ok::<String, BoxError>("done".into())
        }
    };
    let graph = Text::new().template("say", say).node("late", edit.clone()).node("early", edit);
    let graph = graph.node("ask", ask_name).compile().unwrap().checkpointer(MemorySaver::new());
    let asked = graph.invoke(()).thread("t").await.unwrap();
    let open = graph.state("t").await.unwrap().unwrap().values;
    let finished = graph.resume("yes").thread("t").await.unwrap().into_finished().unwrap();
    let kept = graph.state("t").await.unwrap().unwrap().values;
    for outputs in [asked.output(), &open, &finished, &kept] {
        let dropped: Vec<_> = outputs.dropped().iter().map(ToString::to_string).collect();
        let why = "cannot add node `x` of template `say`: there is a node of that name";
        assert_eq!(dropped, [format!("the edits of node `late` were dropped: {why}")]);
    }
}

#[tokio::test]
async fn history_and_topology_show_the_edits_of_a_pass() {
    let plan = async |ctx: Ctx| {
        ctx.edits().add_node("x", "say", "x")?;
        Ok::<String, BoxError>("plan".into())
    };
    let graph = Text::new().template("say", say).node("plan", plan).node("other", || "other".to_owned());
    let graph = graph.node("ask", ask_name).compile().unwrap().checkpointer(MemorySaver::new());
    graph.invoke(()).thread("t").await.unwrap();
    graph.resume("yes").thread("t").await.unwrap();
    let edited = graph.invoke(()).thread("t").for_this_pass(|edits| {
        edits.add_node("y", "say", "y").skip(["other"]).add_edge("y", "plan");
    });
    assert!(matches!(edited.max_supersteps(1).await.unwrap(), Outcome::Stopped { .. }));
    let edits = |list: &[GraphEdit]| list.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    let before = "add node `y` of template `say`; add edge `y` -> `plan`";
    let open = graph.state("t").await.unwrap().unwrap();
    assert_eq!((edits(&open.edits), &open.skips[..]), (before.into(), &[][..]));
    assert_eq!(open.next, ["ask", "y"]);

    graph.proceed().thread("t").await.unwrap();
    graph.resume("yes").thread("t").await.unwrap().into_finished().unwrap();
    let history = graph.history("t").await.unwrap();
    let shown: Vec<_> = history.iter().map(|at| (edits(&at.edits), at.skips.clone())).collect();
    let all = format!("{before}; add node `x` of template `say`");
    let first = "add node `x` of template `say`";
    let expected = [
        (all, vec![]),
        (before.into(), vec!["other".to_owned()]),
        (first.into(), vec![]),
        (String::new(), vec![]),
    ];
    assert_eq!(shown, expected);
    let began = &history[1];
    assert!(graph.mermaid_of(&began.values).contains("[\"y\"]"));
    let topology = graph.topology_at("t", began.id).await.unwrap().unwrap();
    let nodes: Vec<_> =
        topology.nodes.iter().map(|node| (&*node.name, node.is_temporary, node.is_skipped)).collect();
    let expected =
        [("plan", false, false), ("other", false, true), ("ask", false, false), ("y", true, false)];
    assert_eq!(nodes, expected);
    assert!(topology.mermaid().starts_with("flowchart TD\n    n0"));
    assert_eq!(graph.topology_at("t", history[0].id).await.unwrap().unwrap().nodes.len(), 5);
}
