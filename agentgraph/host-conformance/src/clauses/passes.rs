//! Passes of dependency graphs.

use agentgraph::dependency::{OutputTable, Outputs};
use agentgraph::host::RunCall;
use agentgraph::prelude::*;
use agentgraph::{BoxError, Code, Error};
use futures_util::FutureExt;
use serde_json::{Value, json};

use crate::case::{Case, Found, no_call, proceed, questions, resume, same};
use crate::clause::Clause;
use crate::graph::{KitGraph, valid};
use crate::notes::Notes;

pub(super) const CLAUSES: &[Clause] = &[
    Clause::new(
        "the nodes of a pass run in the order of the queue, with inputs in the order of their edges",
        "One at a time, a node takes its place in the queue when its first dependency ends.",
        |case| order(case).boxed(),
    ),
    Clause::new(
        "a node of a pass can add nodes and edges for it",
        "Edits come back with the reply, and other nodes of the pass depend on the added nodes.",
        |case| edits(case).boxed(),
    ),
    Clause::new(
        "a node of a pass can skip nodes, which then have their last outputs",
        "Outputs are stored with the thread, and the call says which nodes have one.",
        |case| skips(case).boxed(),
    ),
    Clause::new(
        "a question in a pass does not make finished nodes run again",
        "Finished nodes are pending writes until the pass ends. A driver stores all rows that a run hands out when it pauses.",
        |case| question(case).boxed(),
    ),
    Clause::new(
        "a failed pass goes on with the node that failed",
        "Finished nodes are pending writes until the pass ends, and do not run again.",
        |case| failure(case).boxed(),
    ),
];

pub(super) fn graphs(notes: &Notes) -> Vec<KitGraph> {
    vec![
        KitGraph::of_passes("kit_order", valid(ordered(notes).compile())),
        KitGraph::of_passes("kit_plans", valid(planning(notes).compile())),
        KitGraph::of_passes("kit_pass_question", valid(asking(notes).compile())),
    ]
}

type Texts = DependencyGraph<String, String>;
type Pass = Outputs<String, String>;

/// Says its name and the outputs that it got.
fn says(deps: Deps<String>, ctx: Ctx, notes: Dep<Notes>) -> Result<String> {
    notes.note(&ctx, "runs")?;
    let got: Vec<&str> = deps.outputs().map(|output| output.split('(').next().unwrap_or(output)).collect();
    Ok(format!("{}({})", ctx.node(), got.join("+")))
}

fn ordered(notes: &Notes) -> Texts {
    let graph =
        ["a", "b", "c", "d", "e"].iter().fold(Texts::with_input(), |graph, name| graph.node(name, says));
    let graph =
        graph.dep(notes.clone()).edge("a", "d").edge("a", "c").edge("b", "c").edge("c", "e").edge("d", "e");
    graph.prepend_edge("b", "e")
}

fn worded(args: &Value) -> Result<DependencyNode<String, String>, BoxError> {
    let word = args.as_str().ok_or("a word")?.to_owned();
    Ok(DependencyNode::of(move |deps: Deps<String>| {
        format!("{word}({})", deps.names().collect::<Vec<_>>().join("+"))
    }))
}

/// In a first pass `plan` adds two nodes before `answer`; with the input `again` it skips `answer`.
fn planning(notes: &Notes) -> Texts {
    fn plan(
        _: Deps<String>,
        input: Given<String>,
        edits: PassEdits<String, String>,
        ctx: Ctx,
        notes: Dep<Notes>,
    ) -> Result<String> {
        notes.note(&ctx, "runs")?;
        if *input == "again" {
            edits.skip(["answer"])?;
            return Ok("no plan".to_owned());
        }
        edits.add_node("search", "worded", "suche")?;
        edits.add_node("read", "worded", "lies \u{fc}ber")?;
        edits.add_edge("plan", "search")?;
        edits.add_edge("search", "read")?;
        edits.prepend_edge("read", "answer")?;
        let refused = edits.add_edge("answer", "plan").is_err();
        Ok(format!("plan for {} ({refused})", *input))
    }
    Texts::with_input()
        .dep(notes.clone())
        .template("worded", worded)
        .node("ask", says)
        .node("plan", plan)
        .node("x", says)
        .node("answer", |deps: Deps<String>| format!("from {}", deps.names().collect::<Vec<_>>().join("+")))
        .edge("ask", "plan")
        .edge("plan", "answer")
}

/// The note of the kit after which the node fails no more.
const MENDED: &str = "mended";

/// A node asks, another one fails, and a third one depends on both and on one that is done.
fn asking(notes: &Notes) -> Texts {
    fn asks(_: Deps<String>, ctx: Ctx, notes: Dep<Notes>) -> Result<String> {
        notes.note(&ctx, "runs")?;
        Ok(ctx.interrupt::<String>("which?")?)
    }
    fn fails(_: Deps<String>, input: Given<String>, ctx: Ctx, notes: Dep<Notes>) -> Result<String> {
        notes.note(&ctx, "runs")?;
        let thread = ctx.thread().unwrap_or_default();
        let mended = notes.of_thread(thread)?.iter().any(|note| note.what == MENDED);
        if *input == "fail" && !mended { Err("torn".into()) } else { Ok("whole".to_owned()) }
    }
    Texts::with_input()
        .dep(notes.clone())
        .node("done", says)
        .node("asks", asks)
        .node("fails", fails)
        .node("all", |deps: Deps<String>| deps.outputs().cloned().collect::<Vec<_>>().join("+"))
        .edge("done", "all")
        .edge("asks", "all")
        .edge("fails", "all")
}

async fn pass(
    case: &Case<'_>,
    graph: &str,
    texts: Texts,
    call: RunCall,
) -> Found<Result<Outcome<Pass>, Error>> {
    let schema: OutputTable = valid(texts.compile()).schema().clone();
    Ok(case.end(graph, call).await?.into_result::<Pass>(&schema))
}

async fn finished(case: &Case<'_>, graph: &str, texts: Texts, call: RunCall) -> Found<Pass> {
    match pass(case, graph, texts, call).await? {
        Ok(Outcome::Finished { output, .. }) => Ok(output),
        other => Err(format!("a pass of `{graph}` ended so, and not as finished: {other:?}")),
    }
}

fn start(input: &str) -> Found<RunCall> {
    RunCall::pass(&input.to_owned()).map_err(no_call)
}

fn outputs(pass: &Pass) -> Vec<(&str, &str)> {
    pass.iter().map(|(name, output)| (name, &**output)).collect()
}

async fn order(case: &Case<'_>) -> Found {
    let notes = case.own_notes();
    let pass = finished(case, "kit_order", ordered(notes), start("x")?.max_concurrency(1)).await?;
    let ran: Vec<String> = case.notes()?.into_iter().map(|note| note.node).collect();
    same("the nodes in the order in which they ran", ran, ["a", "b", "d", "c", "e"])?;
    let expected = [("a", "a()"), ("b", "b()"), ("d", "d(a)"), ("c", "c(a+b)"), ("e", "e(b+c+d)")];
    same("the outputs", outputs(&pass), expected)
}

async fn edits(case: &Case<'_>) -> Found {
    let notes = case.own_notes();
    let pass = finished(case, "kit_plans", planning(notes), start("tea")?.max_concurrency(1)).await?;
    let expected = [
        ("ask", "ask()"),
        ("x", "x()"),
        ("plan", "plan for tea (true)"),
        ("search", "suche(plan)"),
        ("read", "lies \u{fc}ber(search)"),
        ("answer", "from read+plan"),
    ];
    same("the outputs", outputs(&pass), expected)?;
    same("the edits of the pass", pass.edits().len(), 5)
}

async fn skips(case: &Case<'_>) -> Found {
    let notes = case.own_notes();
    finished(case, "kit_plans", planning(notes), start("tea")?.max_concurrency(1)).await?;
    let pass = finished(case, "kit_plans", planning(notes), start("again")?.max_concurrency(1)).await?;
    let expected = [("ask", "ask()"), ("x", "x()"), ("plan", "no plan"), ("answer", "from read+plan")];
    same("the outputs of the second pass", outputs(&pass), expected)
}

async fn question(case: &Case<'_>) -> Found {
    let (graph, notes) = ("kit_pass_question", case.own_notes());
    let asked = match pass(case, graph, asking(notes), start("ask")?).await? {
        Ok(outcome) => outcome.interrupts().to_vec(),
        Err(error) => return Err(format!("the pass failed: {error}")),
    };
    same("the questions", questions(&asked), [&json!("which?")])?;
    let pass = finished(case, graph, asking(notes), resume("this")?).await?;
    same("the output of all", pass.get("all").map(String::as_str), Some("done()+this+whole"))?;
    for (node, times) in [("done", 1), ("asks", 2), ("fails", 1)] {
        same(&format!("how often `{node}` ran"), case.count(node, "runs")?, times)?;
    }
    Ok(())
}

async fn failure(case: &Case<'_>) -> Found {
    let (graph, notes) = ("kit_pass_question", case.own_notes());
    let error = match pass(case, graph, asking(notes), start("fail")?).await? {
        Ok(outcome) => return Err(format!("the pass has not failed: {outcome:?}")),
        Err(error) => error,
    };
    same("the error", (error.code(), error.node()), (Code::NodeFailed, Some("fails")))?;
    case.say(MENDED)?;
    match pass(case, graph, asking(notes), proceed()).await? {
        Ok(outcome) => same("the questions", questions(outcome.interrupts()), [&json!("which?")])?,
        Err(error) => return Err(format!("the pass failed again: {error}")),
    }
    let pass = finished(case, graph, asking(notes), resume("this")?).await?;
    same("the output of all", pass.get("all").map(String::as_str), Some("done()+this+whole"))?;
    same("how often `done` ran", case.count("done", "runs")?, 1)
}
