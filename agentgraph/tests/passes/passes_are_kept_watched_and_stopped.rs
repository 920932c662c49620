//! Passes of dependency graphs with threads, interrupts, kills, streams, limits and sessions.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentgraph::dependency::{NotRunReason, Outputs};
use agentgraph::prelude::*;
use agentgraph::run::TaskEnd;
use agentgraph::{BoxError, Budget, CompiledDependencyGraph, DependencyNode, Durability};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::sync::Notify;

type Text = DependencyGraph<String>;

/// The names of the nodes called so far.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<String>>>);

impl Calls {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// Returns a node whose output is its name and the outputs of its dependencies.
    fn node(&self, name: &str) -> impl Fn(Deps<'_, String>) -> String + Send + Sync + 'static + use<> {
        let calls = self.clone();
        let name = name.to_owned();
        move |deps| {
            calls.0.lock().unwrap().push(name.clone());
            format!("{name}({})", deps.outputs().cloned().collect::<Vec<_>>().join(","))
        }
    }
}

fn order(outputs: &Outputs<String>) -> String {
    outputs.names().collect::<Vec<_>>().join(" ")
}

/// Returns the graph `a -> ask -> b` with `c -> d` beside it; `ask` interrupts.
fn asking(calls: &Calls) -> Text {
    let noted = calls.clone();
    let ask = move |deps: Deps<'static, String>, ctx: Ctx| {
        let noted = noted.clone();
        async move {
            noted.0.lock().unwrap().push("ask".to_owned());
            let answer: String = ctx.interrupt(format!("after {}?", deps[0]))?;
            Ok::<_, BoxError>(answer)
        }
    };
    Text::new()
        .node("a", calls.node("a"))
        .node("ask", ask)
        .node("b", calls.node("b"))
        .node("c", calls.node("c"))
        .node("d", calls.node("d"))
        .edge("a", "ask")
        .edge("ask", "b")
        .edge("c", "d")
}

#[tokio::test]
async fn an_interrupt_delays_only_dependent_nodes_and_finished_nodes_run_once() {
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let calls = Calls::default();
        let saver = Arc::new(MemorySaver::new());
        let graph = || asking(&calls).compile().unwrap().checkpointer(Arc::clone(&saver));
        let outcome = graph().invoke(()).thread("t").durability(durability).await.unwrap();
        assert_eq!(outcome.interrupts()[0].value, "after a()?");
        assert_eq!(order(outcome.output()), "a c d");
        let left: Vec<_> = outcome.output().not_run().iter().map(|missed| &missed.reason).collect();
        assert_eq!(left, [&NotRunReason::Unfinished, &NotRunReason::Unfinished]);

        let open = graph().state("t").await.unwrap().unwrap();
        assert_eq!(order(&open.values), "a c d");
        assert_eq!((&*open.next, &open.interrupts[..]), (&["ask".to_owned()][..], outcome.interrupts()));

        assert_eq!(calls.take(), ["a", "c", "ask", "d"]);
        let error = graph().invoke(()).thread("t").await.unwrap_err();
        assert_eq!(error.code().as_str(), "E_RUN_UNFINISHED");
        let waiting = graph().proceed().thread("t").await.unwrap();
        assert_eq!(waiting.interrupts(), outcome.interrupts());
        assert!(calls.take().is_empty(), "`proceed` without an answer runs nothing");

        let answered = graph().resume("yes").thread("t").durability(durability).await.unwrap();
        let outputs = answered.into_finished().unwrap();
        assert_eq!((order(&outputs), &*outputs["b"]), ("a c d ask b".into(), "b(yes)"));
        assert_eq!(calls.take(), ["ask", "b"]);
        let stored = graph().state("t").await.unwrap().unwrap();
        assert_eq!(order(&stored.values), "a c d ask b");
        assert!(stored.next.is_empty() && stored.interrupts.is_empty());
        let history = graph().history("t").await.unwrap();
        assert_eq!(history.len(), 2, "a pass is one superstep of its thread");
    }
}

#[tokio::test]
async fn several_interrupts_are_answered_by_id_in_any_order() {
    let ask = |ctx: Ctx| async move { Ok::<String, BoxError>(ctx.interrupt(ctx.node().to_owned())?) };
    let calls = Calls::default();
    let graph =
        Text::new().node("x", ask).node("y", ask).node("z", calls.node("z")).edge("x", "z").edge("y", "z");
    let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
    let asked = graph.invoke(()).thread("t").await.unwrap();
    let ids: Vec<_> = asked.interrupts().iter().map(|asked| asked.id.unwrap()).collect();
    assert_eq!(ids.len(), 2);
    let error = graph.resume("both").thread("t").await.unwrap_err();
    assert_eq!(error.code().as_str(), "E_AMBIGUOUS_ANSWER");
    let one = graph.resume_many([(ids[1], "2")]).thread("t").await.unwrap();
    assert_eq!(one.interrupts()[0].id, Some(ids[0]));
    let error = graph.resume_many([(ids[1], "2")]).thread("t").await.unwrap_err();
    assert_eq!(error.code().as_str(), "E_UNKNOWN_INTERRUPT");
    let outputs = graph.resume("1").thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(outputs["z"], "z(1,2)");
}

#[tokio::test]
async fn a_sync_node_may_interrupt_and_an_invalid_answer_is_withdrawn() {
    fn ask(_: Deps<'_, String>, ctx: Ctx) -> Result<String> {
        let number: u32 = ctx.interrupt("how many?")?;
        Ok(number.to_string())
    }
    let graph = Text::new().node("ask", ask).compile().unwrap().checkpointer(MemorySaver::new());
    graph.invoke(()).thread("t").await.unwrap();
    let error = graph.resume("many").thread("t").await.unwrap_err();
    assert_eq!((error.code().as_str(), error.node()), ("E_BAD_ANSWER", Some("ask")));
    let outputs = graph.resume(3).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(outputs["ask"], "3");
}

/// Returns a graph in which `plan` inserts `check#1` between itself and `act`, and removes its edge to
/// `other`. `check#1` waits for `gate`.
fn edited(calls: &Calls, gate: &Arc<Notify>) -> Text {
    let said = calls.clone();
    let gate = Arc::clone(gate);
    let plan = calls.node("plan");
    let plan = move |deps: Deps<'_, String>, ctx: Ctx| -> Result<String, BoxError> {
        let edits = ctx.edits();
        edits.add_node("check#1", "check", json!({ "word": "sure" }))?;
        edits.add_edge("plan", "check#1")?;
        edits.add_edge("check#1", "act")?;
        edits.remove_edge("plan", "other")?;
        Ok(plan(deps))
    };
    Text::new()
        .template("check", move |args: &Value| {
            let said = said.clone();
            let gate = Arc::clone(&gate);
            let word = args["word"].to_string();
            Ok(DependencyNode::of(move |ctx: Ctx| {
                let said = said.clone();
                let gate = Arc::clone(&gate);
                let word = word.clone();
                async move {
                    said.0.lock().unwrap().push(ctx.node().to_owned());
                    gate.notified().await;
                    word
                }
            }))
        })
        .node("plan", plan)
        .node("act", calls.node("act"))
        .node("other", calls.node("other"))
        .edge("plan", "act")
        .edge("plan", "other")
}

#[tokio::test]
async fn another_process_continues_in_the_edited_graph_and_the_next_pass_has_no_edits() {
    let calls = Calls::default();
    let gate = Arc::new(Notify::new());
    let saver = Arc::new(MemorySaver::new());
    let graph = || edited(&calls, &gate).compile().unwrap().checkpointer(Arc::clone(&saver));
    {
        let first = graph();
        let mut killed = std::pin::pin!(async { first.invoke(()).thread("t").await });
        assert!(futures_util::poll!(killed.as_mut()).is_pending());
    }
    assert_eq!(calls.take(), ["plan", "check#1"]);
    let open = graph().state("t").await.unwrap().unwrap();
    assert_eq!((order(&open.values), &*open.next), ("plan".into(), &["check#1".to_owned()][..]));

    let drawn = graph().mermaid_of(&open.values);

    gate.notify_one();
    let outputs = graph().proceed().thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(order(&outputs), "plan check#1 act");
    assert_eq!(outputs["act"], "act(plan(),\"sure\")");
    assert_eq!((outputs.not_run().len(), &*outputs.not_run()[0].node), (1, "other"));
    assert_eq!(calls.take(), ["check#1", "act"]);
    let stored = graph().state("t").await.unwrap().unwrap().values;
    assert_eq!((order(&stored), &stored["check#1"]), ("plan check#1 act".into(), &outputs["check#1"]));

    let expected = "flowchart TD
    n0[\"plan\"]
    n1[\"act\"]
    n2[\"other\"]
    n3[\"check#35;1\"]
    n0 --> n1
    n3 -.->|added| n1
    n0 --x n2
    n0 -.->|added| n3
    classDef temporary stroke-dasharray: 5 5
    class n3 temporary
";
    let gray = "    classDef idle fill:#ddd,color:#888\n    class n2 idle\n";
    assert_eq!(drawn, format!("{expected}{gray}"), "the graph while the pass is unfinished");
    assert_eq!(graph().mermaid_of(&outputs), format!("{expected}{gray}"));
    assert_eq!(
        graph().mermaid_of(&stored),
        format!("{expected}{gray}"),
        "the graph drawn from stored outputs"
    );

    // An abandoned pass leaves no edits either.
    {
        let second = graph();
        let mut killed = std::pin::pin!(async { second.invoke(()).thread("t").await });
        assert!(futures_util::poll!(killed.as_mut()).is_pending());
    }
    calls.take();
    let plain = Text::new()
        .node("plan", calls.node("plan"))
        .node("act", calls.node("act"))
        .node("other", calls.node("other"))
        .edge("plan", "act")
        .edge("plan", "other");
    let plain = plain.compile().unwrap().checkpointer(Arc::clone(&saver));
    let outputs = plain.invoke(()).thread("t").abandon().await.unwrap().into_finished().unwrap();
    assert_eq!((order(&outputs), calls.take().len()), ("plan act other".into(), 3));
}

#[tokio::test]
async fn edits_made_before_a_pass_still_hold_when_it_resumes() {
    let calls = Calls::default();
    let saver = Arc::new(MemorySaver::new());
    let graph = || asking(&calls).compile().unwrap().checkpointer(Arc::clone(&saver));
    let edited = graph().invoke(()).thread("t").for_this_pass(|edits| {
        edits.remove_edge("c", "d").add_edge("b", "d");
    });
    assert_eq!(order(edited.await.unwrap().output()), "a c");
    let outputs = graph().resume("yes").thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!((order(&outputs), &*outputs["d"]), ("a c ask b d".into(), "d(b(yes))"));
}

#[tokio::test]
async fn for_this_run_edits_a_pass_too() {
    let calls = Calls::default();
    let graph = asking(&calls).compile().unwrap();
    let edited = graph.invoke(()).for_this_run(|edits| {
        edits.remove_node("ask")?;
        edits.add_edge("d", "a")
    });
    assert_eq!(order(&edited.await.unwrap().into_finished().unwrap()), "c d a");
    let refused = graph.invoke(()).for_this_run(|edits| edits.add_edge("d", "c"));
    assert_eq!(refused.await.unwrap_err().code().as_str(), "E_EDIT_REJECTED");
    let foreign = graph.invoke(()).for_this_run(|edits| edits.add_fn::<JsonState, _>("x", async || {}));
    assert!(foreign.await.unwrap_err().to_string().contains("PassEdits"));
}

#[tokio::test]
async fn a_function_cannot_be_a_temporary_node_of_a_stored_pass() {
    async fn add(edits: PassEdits<String>) -> Result<String> {
        edits.add_fn("t", String::new)?;
        Ok(String::new())
    }
    let graph = Text::new().node("add", add).compile().unwrap();
    assert!(graph.invoke(()).await.is_ok());
    let kept = graph.checkpointer(MemorySaver::new());
    assert_eq!(kept.invoke(()).thread("t").await.unwrap_err().code().as_str(), "E_NEEDS_TEMPLATE");
    let before = kept.invoke(()).thread("u").for_this_pass(|edits| {
        edits.add_fn("t", String::new);
    });
    assert_eq!(before.await.unwrap_err().code().as_str(), "E_NEEDS_TEMPLATE");
    assert!(kept.state("u").await.unwrap().is_none(), "no checkpoint is stored");
}

#[tokio::test]
async fn errors_name_unknown_templates_and_refused_arguments() {
    async fn add(edits: PassEdits<String>) -> Result<String> {
        let unknown = edits.add_node("t", "chek", json!(1)).unwrap_err();
        let refused = edits.add_node("t", "strict", json!(1)).unwrap_err();
        Ok(format!("{unknown}; {refused}"))
    }
    let calls = Calls::default();
    let graph = edited(&calls, &Arc::default()).template("strict", |_: &Value| Err("never".into()));
    let graph = graph.node("add", add);
    let outputs = graph.compile().unwrap().invoke(()).max_concurrency(1).max_supersteps(2).await.unwrap();
    let reported = &outputs.output()["add"];
    assert!(
        reported.contains("did you mean `check`?") && reported.contains("arguments: never"),
        "{reported}"
    );
}

#[tokio::test]
async fn a_thread_keeps_outputs_between_passes_for_skipped_nodes() {
    let calls = Calls::default();
    let saver = Arc::new(MemorySaver::new());
    let graph = || {
        let graph =
            Text::new().node("plan", calls.node("plan")).node("act", calls.node("act")).edge("plan", "act");
        graph.compile().unwrap().checkpointer(Arc::clone(&saver))
    };
    let skipping = |graph: &CompiledDependencyGraph<String>| {
        graph.invoke(()).thread("t").for_this_pass(|edits| {
            edits.skip(["plan"]);
        })
    };
    let error = skipping(&graph()).await.unwrap_err();
    assert_eq!(error.code().as_str(), "E_NOTHING_TO_REUSE");
    graph().invoke(()).thread("t").await.unwrap();
    calls.take();
    let outputs = skipping(&graph()).await.unwrap().into_finished().unwrap();
    assert_eq!((order(&outputs), &*outputs["act"]), ("plan act".into(), "act(plan())"));
    assert_eq!(calls.take(), ["act"]);
    let history = graph().history("t").await.unwrap();
    assert_eq!(history.len(), 4);
    assert_eq!(order(&history[0].values), "plan act");
}

#[tokio::test]
async fn an_error_names_nodes_missing_from_the_graph() {
    let calls = Calls::default();
    let saver = Arc::new(MemorySaver::new());
    let graph = asking(&calls).compile().unwrap().checkpointer(Arc::clone(&saver));
    graph.invoke(()).thread("t").await.unwrap();
    let other = Text::new().node("a", calls.node("a")).compile().unwrap().checkpointer(saver);
    let error = other.proceed().thread("t").await.unwrap_err();
    assert_eq!(error.code().as_str(), "E_GRAPH_CHANGED");
    assert!(error.to_string().contains("`c`"), "{error}");
}

#[tokio::test]
async fn the_stream_reports_tasks_outputs_and_edits_in_order() {
    let calls = Calls::default();
    let gate = Arc::new(Notify::new());
    gate.notify_one();
    let graph = edited(&calls, &gate).compile().unwrap();
    let views = [View::Tasks, View::Updates, View::Edits];
    let mut events = graph.invoke(()).views(views).stream();
    let mut reported = Vec::new();
    let mut finished = None;
    while let Some(event) = events.next().await {
        let task = event.task.map(|task| task.index);
        reported.push(match event.kind {
            EventKind::TaskStarted { node, .. } => format!("{node} starts as {}", task.unwrap()),
            EventKind::TaskEnded { node, end: TaskEnd::Done } => format!("{node} ends"),
            EventKind::Update { node, update } => {
                format!("{node} gives {}", update.unwrap().outputs().next().unwrap().1)
            }
            EventKind::Edited { by, edits, .. } => format!("{by} edits {}", edits.len()),
            EventKind::Ended(outcome) => {
                finished = Some(outcome.unwrap().into_finished().unwrap());
                continue;
            }
            _ => panic!("an event of a view that was not requested"),
        });
    }
    let expected = "plan starts as 0; plan edits 4; plan gives plan(); plan ends; check#1 starts as 1; \
                    check#1 gives \"sure\"; check#1 ends; act starts as 2; act gives act(plan(),\"sure\"); act ends";
    assert_eq!(reported.join("; "), expected);
    assert_eq!(order(&finished.unwrap()), "plan check#1 act");
}

#[tokio::test]
async fn emitted_events_reach_the_stream_and_a_small_capacity_stops_no_pass() {
    let emit = |ctx: Ctx| async move {
        ctx.emit("working").await;
        "done".to_owned()
    };
    let mut graph = Text::new();
    for n in 0..20 {
        graph = graph.node(format!("n{n}"), emit);
    }
    let graph = graph.compile().unwrap();
    let events: Vec<_> = graph.invoke(()).views([View::Custom]).stream_capacity(1).stream().collect().await;
    assert_eq!(events.len(), 21);
}

#[tokio::test(start_paused = true)]
async fn a_pass_stops_at_deadlines_tokens_and_timeouts_and_proceeds() {
    let calls = Calls::default();
    let slow = |deps: Deps<'static, String>| async move {
        tokio::time::sleep(Duration::from_secs(60)).await;
        deps[0].clone()
    };
    let graph = Text::new().node("a", calls.node("a")).node("slow", slow).node("b", calls.node("b"));
    let graph = graph.edge("a", "slow").edge("slow", "b").compile().unwrap().checkpointer(MemorySaver::new());

    let deadline = graph.invoke(()).thread("t").deadline(Duration::from_secs(5)).await.unwrap();
    assert!(matches!(deadline, Outcome::Stopped { reason: StopReason::Deadline, .. }), "{deadline:?}");
    let token = CancellationToken::new();
    token.cancel();
    let cancelled = graph.proceed().thread("t").cancel(token).await.unwrap();
    assert!(matches!(cancelled, Outcome::Stopped { reason: StopReason::Cancelled, .. }));
    let error = graph.proceed().thread("t").step_timeout(Duration::from_secs(5)).await.unwrap_err();
    assert_eq!(error.code().as_str(), "E_STEP_TIMEOUT");
    assert!(error.to_string().contains("`slow`"), "{error}");
    let outputs = graph.proceed().thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!((order(&outputs), calls.take()), ("a slow b".into(), vec!["a".to_owned(), "b".to_owned()]));
}

#[tokio::test]
async fn drains_limits_and_budgets_end_a_pass_between_two_nodes() {
    let spend = |deps: Deps<'_, String>, ctx: Ctx| {
        ctx.spend("tokens", 10);
        if ctx.node() == "b" {
            ctx.drain();
        }
        deps.names().collect::<String>()
    };
    let graph = Text::new().node("a", spend).node("b", spend).node("c", spend).edge("a", "b").edge("b", "c");
    let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
    let reason = |outcome: &Outcome<Outputs<String>>| match outcome {
        Outcome::Stopped { reason, output, .. } => (*reason, order(output)),
        other => panic!("{other:?}"),
    };
    let budget = graph.invoke(()).thread("t").budget(Budget::new().units("tokens", 10)).await.unwrap();
    assert_eq!(reason(&budget), (StopReason::Budget, "a".into()));
    let drained = graph.proceed().thread("t").await.unwrap();
    assert_eq!(reason(&drained), (StopReason::Drained, "a b".into()));
    let limit = graph.proceed().thread("t").max_supersteps(0).await.unwrap();
    assert_eq!(reason(&limit), (StopReason::Limit, "a b".into()));
    let finished = graph.proceed().thread("t").await.unwrap();
    assert_eq!((order(finished.output()), finished.spent("tokens")), ("a b c".into(), 30));
}

#[tokio::test(start_paused = true)]
async fn nodes_are_retried_and_timed_out_as_their_policies_say() {
    let attempts = Arc::new(Mutex::new(0));
    let count = Arc::clone(&attempts);
    let flaky = move |ctx: Ctx| {
        *count.lock().unwrap() += 1;
        async move {
            match ctx.attempt() {
                1 => tokio::time::sleep(Duration::from_secs(60)).await,
                2 => return Err("no".into()),
                _ => {}
            }
            Ok::<String, BoxError>(format!("attempt {}", ctx.attempt()))
        }
    };
    let flaky = DependencyNode::of(flaky).timeout(Duration::from_secs(1)).retry(RetryPolicy::attempts(3));
    let outputs = Text::new().node("flaky", flaky).compile().unwrap().invoke(()).await.unwrap();
    assert_eq!((&*outputs.output()["flaky"], *attempts.lock().unwrap()), ("attempt 3", 3));
}

#[tokio::test]
async fn nodes_of_a_pass_share_the_session_and_the_thread_keeps_it() {
    let graph = || {
        let note = |_: Deps<'_, String>, notes: Session<Vec<String>>, ctx: Ctx| {
            notes.with(|notes| {
                notes.push(ctx.node().to_owned());
                notes.join(" ")
            })
        };
        let ask = |ctx: Ctx| async move { Ok::<String, BoxError>(ctx.interrupt("?")?) };
        let graph =
            Text::new().session::<Vec<String>>("notes").node("a", note).node("ask", ask).node("b", note);
        graph.edge("a", "ask").edge("ask", "b").compile().unwrap()
    };
    let saver = Arc::new(MemorySaver::new());
    graph().checkpointer(Arc::clone(&saver)).invoke(()).thread("t").await.unwrap();
    let resumed = graph().checkpointer(saver).resume("!").thread("t").await.unwrap();
    assert_eq!(resumed.output()["b"], "a b");
}

#[tokio::test]
async fn a_fork_runs_a_pass_again_from_its_beginning() {
    let calls = Calls::default();
    let graph = asking(&calls).compile().unwrap().checkpointer(MemorySaver::new());
    graph.invoke(()).thread("t").await.unwrap();
    graph.resume("yes").thread("t").await.unwrap();
    let history = graph.history("t").await.unwrap();
    calls.take();
    let forked = graph.proceed().thread("t").from(history[1].id).await.unwrap();
    assert_eq!(order(forked.output()), "a c d");
    assert_eq!(calls.take(), ["a", "c", "ask", "d"]);
    let outputs = graph.resume("no").thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(outputs["b"], "b(no)");
}
