//! The nodes of a dependency graph run on a host, with their edits, and the pass ends as it does without one.

use agentgraph::CompiledDependencyGraph;
use agentgraph::edit::GraphEdit;
use agentgraph::prelude::*;
use agentgraph::{BoxError, Code, DependencyNode, Outcome};
use serde_json::Value;

use super::far::Far;
use crate::common::clock::Clock;
use crate::common::pass_story::pass;

/// The outputs in order, what did not run, and the edits.
fn shown<S>(outcome: &Outcome<agentgraph::dependency::Outputs<String, S>>) -> String {
    let outputs = outcome.output();
    let asked: Vec<_> = outcome.interrupts().iter().map(|one| one.value.to_string()).collect();
    let done: Vec<_> = outputs.iter().map(|(name, output)| format!("{name}={output}")).collect();
    let edits: Vec<_> = outputs.edits().iter().map(GraphEdit::to_string).collect();
    format!("{done:?} {:?} {edits:?} {:?} {asked:?}", outputs.not_run(), outputs.dropped())
}

async fn two_passes(graph: &CompiledDependencyGraph<String>) -> Vec<String> {
    let mut found = Vec::new();
    let asked = graph.invoke(()).thread("t").await.unwrap();
    found.push(shown(&asked));
    let ids = asked.interrupts().iter().map(|asked| (asked.id.unwrap(), "yes"));
    found.push(shown(&graph.resume_many(ids.collect::<Vec<_>>()).thread("t").await.unwrap()));
    let second = graph.invoke(()).thread("t").for_this_pass(|edits| {
        edits.add_node("y", "say", "y").add_edge("y", "b").skip(["e"]);
    });
    let asked = second.await.unwrap();
    found.push(shown(&asked));
    let ids = asked.interrupts().iter().take(1).map(|asked| (asked.id.unwrap(), 7));
    let refused = graph.resume_many(ids.collect::<Vec<_>>()).thread("t").await.unwrap_err();
    // The id of the interrupt is made of that of the run.
    found.push(
        refused
            .to_string()
            .split("interrupt ")
            .map(|part| part.split_once(" does").map_or(part, |(_, rest)| rest).to_owned())
            .collect(),
    );
    found
}

#[tokio::test]
async fn edits_conflicts_questions_and_skips_are_the_same_on_a_host() {
    let far = Far::of_passes(pass(MemorySaver::new()));
    let hosted = two_passes(&pass(MemorySaver::new()).host(far.clone())).await;
    assert_eq!(two_passes(&pass(MemorySaver::new())).await, hosted);
    let first: Vec<_> = far.calls().iter().take(3).map(|call| call.node.clone()).collect();
    assert_eq!(first, ["a", "b", "c"]);
}

fn say(args: &Value) -> Result<DependencyNode<String>, BoxError> {
    let word = args.as_str().ok_or("a word")?.to_owned();
    Ok(DependencyNode::of(move |deps: Deps<String>| {
        format!("{word}({})", deps.outputs().cloned().collect::<Vec<_>>().join(","))
    }))
}

/// Plans a chain of temporary nodes, and says which of its edits were refused and why.
async fn plan(deps: Deps<'_, String>, edits: PassEdits<String>) -> Result<String> {
    edits.add_node("search", "say", "search")?;
    edits.add_node("read", "say", "read")?;
    edits.add_edge("plan", "search")?;
    edits.add_edge("search", "read")?;
    edits.prepend_edge("read", "answer")?;
    let refused =
        [edits.add_edge("answer", "plan"), edits.remove_edge("ask", "plan"), edits.add_edge("x", "ask")];
    let refused = refused.map(|edit| edit.map_or_else(|error| error.to_string(), |()| "accepted".to_owned()));
    Ok(format!("plan for {} ({})", deps[0], refused.join("; ")))
}

fn agent() -> CompiledDependencyGraph<String> {
    DependencyGraph::<String>::new()
        .template("say", say)
        .node("ask", || "a question".to_owned())
        .node("plan", plan)
        .node("x", |_: Deps<String>, ctx: Ctx| ctx.node().to_owned())
        .node("answer", |deps: Deps<String>| {
            format!("answer from {}", deps.names().collect::<Vec<_>>().join("+"))
        })
        .edge("ask", "plan")
        .edge("plan", "answer")
        .compile()
        .unwrap()
        .services(Clock::default())
}

#[tokio::test]
async fn one_node_after_the_other_plans_runs_and_answers_as_in_this_process() {
    let near = agent().invoke(()).max_concurrency(1).await.unwrap();
    let far = Far::of_passes(agent());
    let hosted = agent().host(far.clone()).invoke(()).max_concurrency(1).await.unwrap();
    assert_eq!(shown(&near), shown(&hosted));
    assert_eq!(
        hosted.output()["read"],
        "read(search(plan for a question (".to_owned() + &refusals(&hosted) + ")))"
    );
    assert!(hosted.output()["plan"].contains("cycle"), "{}", hosted.output()["plan"]);
    assert_eq!(hosted.output()["answer"], "answer from read+plan");
    let nodes: Vec<String> = far.calls().iter().map(|call| call.node.clone()).collect();
    assert_eq!(nodes, ["ask", "x", "plan", "search", "read", "answer"]);
}

fn refusals(outcome: &Outcome<agentgraph::dependency::Outputs<String>>) -> String {
    let plan = &outcome.output()["plan"];
    plan[plan.find('(').unwrap() + 1..plan.len() - 1].to_owned()
}

#[tokio::test]
async fn a_function_cannot_be_a_node_of_a_pass_on_a_host() {
    let build = || {
        let adds = |_: Deps<String>, edits: PassEdits<String>| {
            edits.add_fn("f", || "f".to_owned())?;
            Ok::<_, BoxError>("adds".to_owned())
        };
        DependencyGraph::<String>::new().node("adds", adds).compile().unwrap()
    };
    let error = build().host(Far::of_passes(build())).invoke(()).await.unwrap_err();
    assert_eq!(error.code(), Code::NeedsTemplate, "{error}");
}

#[tokio::test]
async fn nodes_with_the_same_dependencies_share_one_view() {
    let build = || {
        let mut graph = DependencyGraph::<String>::new().node("big", || "b".repeat(100_000));
        for n in 0..20 {
            graph = graph.node(format!("n{n}"), |deps: Deps<String>| deps[0].len().to_string());
            graph = graph.edge("big", format!("n{n}"));
        }
        graph.compile().unwrap()
    };
    let far = Far::of_passes(build());
    let outputs = build().host(far.clone()).invoke(()).await.unwrap().into_finished().unwrap();
    assert_eq!(outputs["n19"], "100000");
    let calls = far.calls();
    let views: std::collections::BTreeSet<_> = calls.iter().skip(1).map(|call| call.state_hash()).collect();
    assert_eq!(views.len(), 1);
    let first = calls[1].state().unwrap();
    assert!(calls.iter().skip(1).all(|call| std::sync::Arc::ptr_eq(call.state().unwrap(), first)));
}
