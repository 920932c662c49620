//! Questions: asked, answered and refused, one or several at a time.

use agentgraph::Code;
use agentgraph::host::RunCall;
use agentgraph::prelude::*;
use futures_util::FutureExt;
use serde_json::{Value, json};

use crate::case::{Case, Found, begin, id_of, no_call, proceed, questions, resume, resume_many, same};
use crate::clause::Clause;
use crate::graph::KitGraph;
use crate::notes::Notes;
use crate::sheet::{Sheet, SheetUpdate};

pub(super) const CLAUSES: &[Clause] = &[
    Clause::new(
        "the n-th question gets the n-th answer",
        "The node runs again from its top with each answer, and the call has all questions and answers so far.",
        |case| by_position(case).boxed(),
    ),
    Clause::new(
        "questions with keys are open together, and answered by their ids",
        "Each id gets its own answer, in whatever order the answers are listed.",
        |case| by_key(case).boxed(),
    ),
    Clause::new(
        "a node that waits does not run its finished siblings again",
        "Results of finished siblings are stored when the run pauses, and shown in the state of the thread. Ids of questions hold until they are answered.",
        |case| beside_siblings(case).boxed(),
    ),
    Clause::new(
        "an answer that does not fit is refused and changes nothing",
        "The question stays open under its id. The error is E_BAD_ANSWER, found where the node runs. Unknown ids and superfluous answers have errors of their own.",
        |case| bad_answers(case).boxed(),
    ),
    Clause::new(
        "an answer to a question that has changed is not delivered",
        "The node asks again, from the state as it is now, and its new question has a new id.",
        |case| changed_question(case).boxed(),
    ),
    Clause::new(
        "an answer that its node refuses is void, and its question is asked again with the reason",
        "The new question has a new id, and the answers to later questions are void too. The node does not run again before it is answered.",
        |case| refused_by_the_node(case).boxed(),
    ),
    Clause::new(
        "a node may refuse the answer to one key and keep the others",
        "Only the refused question is open.",
        |case| refused_by_key(case).boxed(),
    ),
    Clause::new(
        "static interrupts stop a run before and after nodes",
        "`proceed()` passes them, and the node runs once.",
        |case| static_interrupts(case).boxed(),
    ),
];

pub(super) fn graphs(notes: &Notes) -> Vec<KitGraph> {
    vec![
        KitGraph::of("kit_positions", positions(notes)),
        KitGraph::of("kit_keys", keys(notes)),
        KitGraph::of("kit_waiting", waiting(notes)),
        KitGraph::of("kit_price", price()),
        KitGraph::of("kit_refusing", refusing(notes)),
        KitGraph::of("kit_refusing_a_key", refusing_a_key()),
        KitGraph::of("kit_stops", stops(notes)),
    ]
}

fn positions(notes: &Notes) -> StateGraph<Sheet> {
    async fn asks(ctx: Ctx, notes: Dep<Notes>) -> Result<SheetUpdate> {
        notes.note(&ctx, "runs")?;
        let name: String = ctx.interrupt("name?")?;
        let age: u8 = ctx.interrupt_with_schema("age?")?;
        let rest: Value = ctx.interrupt(json!({"anything": null, "of": name}))?;
        Ok(Sheet::update().lines([format!("{name} is {age}, {rest}")]))
    }
    StateGraph::new().dep(notes.clone()).node("asks", asks).edge(START, "asks")
}

fn keys(notes: &Notes) -> StateGraph<Sheet> {
    async fn asks(ctx: Ctx, notes: Dep<Notes>) -> Result<SheetUpdate> {
        notes.note(&ctx, "runs")?;
        let answers = ["a", "b", "c"].map(|key| ctx.interrupt_as::<u64>(key, format!("{key}?")));
        let [a, b, c] = answers;
        Ok(Sheet::update().lines([format!("{} {} {}", a?, b?, c?)]))
    }
    StateGraph::new().dep(notes.clone()).node("asks", asks).edge(START, "asks")
}

/// Two questions beside a node that finishes, and a node after all of them.
fn waiting(notes: &Notes) -> StateGraph<Sheet> {
    async fn asks(ctx: Ctx, notes: Dep<Notes>) -> Result<SheetUpdate> {
        notes.note(&ctx, "runs")?;
        let answer: String = ctx.interrupt(format!("{}?", ctx.node()))?;
        Ok(Sheet::update().lines([format!("{}: {answer}", ctx.node())]))
    }
    async fn works(ctx: Ctx, notes: Dep<Notes>) -> Result<SheetUpdate> {
        notes.note(&ctx, "runs")?;
        Ok(Sheet::update().lines([ctx.node()]))
    }
    StateGraph::new()
        .dep(notes.clone())
        .node("one", asks)
        .node("beside", works)
        .node("two", asks)
        .node("after", works)
        .edge(START, "one")
        .edge(START, "beside")
        .edge(START, "two")
        .edge(["one", "beside", "two"], "after")
}

/// A question about the state.
fn price() -> StateGraph<Sheet> {
    async fn asks(ctx: Ctx, sheet: Snapshot<Sheet>) -> Result<SheetUpdate> {
        let yes: bool = ctx.interrupt(format!("pay {}?", sheet.number))?;
        Ok(Sheet::update().lines([format!("{} for {}", if yes { "paid" } else { "kept" }, sheet.number)]))
    }
    StateGraph::new().node("asks", asks).edge(START, "asks")
}

/// Refuses answers, whatever becomes of the error.
fn refusing(notes: &Notes) -> StateGraph<Sheet> {
    async fn asks(ctx: Ctx, notes: Dep<Notes>) -> Result<SheetUpdate> {
        notes.note(&ctx, "runs")?;
        let by: String = ctx.interrupt("who?")?;
        let amount: u64 = ctx.interrupt("how much?")?;
        if amount > 10 {
            let _ = ctx.refuse(format!("{by} may not spend {amount}"));
        }
        Ok(Sheet::update().lines([format!("{by} spent {amount}")]))
    }
    StateGraph::new().dep(notes.clone()).node("asks", asks).edge(START, "asks")
}

fn refusing_a_key() -> StateGraph<Sheet> {
    async fn asks(ctx: Ctx) -> Result<SheetUpdate> {
        let answers = ["a", "b"].map(|key| ctx.interrupt_as::<u64>(key, format!("{key}?")));
        let [a, b] = answers;
        let (a, b) = (a?, b?);
        if a > 10 {
            return Err(ctx.refuse_as("a", "a is too large").into());
        }
        Ok(Sheet::update().lines([format!("{a} {b}")]))
    }
    StateGraph::new().node("asks", asks).edge(START, "asks")
}

fn stops(notes: &Notes) -> StateGraph<Sheet> {
    async fn works(ctx: Ctx, notes: Dep<Notes>) -> Result<SheetUpdate> {
        notes.note(&ctx, "runs")?;
        Ok(Sheet::update().lines([ctx.node()]))
    }
    StateGraph::new()
        .dep(notes.clone())
        .node("one", works)
        .node("two", works)
        .edge(START, "one")
        .edge("one", "two")
        .interrupt_before(["one"])
        .interrupt_after(["one"])
}

async fn by_position(case: &Case<'_>) -> Found {
    let graph = "kit_positions";
    let first = case.interrupted(graph, begin()?).await?;
    same("the first question", questions(&first), [&json!("name?")])?;
    let second = case.interrupted(graph, resume("Ada")?).await?;
    same("the second question", questions(&second), [&json!("age?")])?;
    same("whether it has a schema", second[0].schema.is_some(), true)?;
    let third = case.interrupted(graph, resume(36)?).await?;
    same("the third question", questions(&third), [&json!({"anything": null, "of": "Ada"})])?;
    let sheet = case.finished(graph, resume(json!([null, {"x": 1}]))?).await?;
    same("the answers", &sheet.lines[1..], ["Ada is 36, [null,{\"x\":1}]"])?;
    same("how often the node ran", case.count("asks", "runs")?, 4)
}

async fn by_key(case: &Case<'_>) -> Found {
    let graph = "kit_keys";
    let asked = case.interrupted(graph, begin()?).await?;
    same("the questions", questions(&asked), [&json!("a?"), &json!("b?"), &json!("c?")])?;
    let keys: Vec<_> = asked.iter().filter_map(|asked| asked.key.clone()).collect();
    same("their keys", keys, ["a", "b", "c"])?;
    let (a, b, c) = (id_of(&asked, 0)?, id_of(&asked, 1)?, id_of(&asked, 2)?);
    let left = case.interrupted(graph, resume_many([(c, 3), (a, 1)])?).await?;
    same("the question that is left", questions(&left), [&json!("b?")])?;
    same("its id", id_of(&left, 0)?, b)?;
    let sheet = case.finished(graph, resume_many([(b, 2)])?).await?;
    same("the answers", &sheet.lines[1..], ["1 2 3"])
}

async fn beside_siblings(case: &Case<'_>) -> Found {
    let graph = "kit_waiting";
    let asked = case.interrupted(graph, begin()?).await?;
    same("the questions", questions(&asked), [&json!("one?"), &json!("two?")])?;
    let state = case.state(graph).await?;
    same("the state while it waits", &state.values.lines[..], ["input", "beside"])?;
    same("the open questions of the thread", &state.interrupts, &asked)?;
    let left = case.interrupted(graph, resume_many([(id_of(&asked, 1)?, "yes")])?).await?;
    same(
        "the question that is left",
        (questions(&left), id_of(&left, 0)?),
        (vec![&json!("one?")], id_of(&asked, 0)?),
    )?;
    let sheet = case.finished(graph, resume("no")?).await?;
    same("the updates", sheet.lines, ["input", "one: no", "beside", "two: yes", "after"])?;
    for (node, times) in [("one", 2), ("beside", 1), ("two", 2), ("after", 1)] {
        same(&format!("how often `{node}` ran"), case.count(node, "runs")?, times)?;
    }
    Ok(())
}

async fn bad_answers(case: &Case<'_>) -> Found {
    let graph = "kit_positions";
    case.interrupted(graph, begin()?).await?;
    let asked = case.interrupted(graph, resume("Ada")?).await?;
    // The first one does not fit the schema of the answer, which the loop may check; the second one fits it.
    for bad in [json!("old"), json!(7.0)] {
        let refused = case.failed(graph, resume(bad)?).await?;
        same("the error of a bad answer", (refused.code(), refused.node()), (Code::BadAnswer, Some("asks")))?;
    }
    let other = case.on("other");
    let others = other.interrupted("kit_waiting", begin()?).await?;
    let unknown = case.failed(graph, resume_many([(id_of(&others, 0)?, 36)])?).await?;
    same("the error of an id of another thread", unknown.code(), Code::UnknownInterrupt)?;
    let ambiguous = other.failed("kit_waiting", resume("yes")?).await?;
    same("the error of one answer to two questions", ambiguous.code(), Code::AmbiguousAnswer)?;
    let state = case.state(graph).await?;
    same("the open question after all that", id_of(&state.interrupts, 0)?, id_of(&asked, 0)?)?;
    case.interrupted(graph, resume_many([(id_of(&asked, 0)?, 36)])?).await?;
    let sheet = case.finished(graph, resume("x")?).await?;
    same("the answers", &sheet.lines[1..], ["Ada is 36, \"x\""])?;
    let late = case.failed(graph, resume("again")?).await?;
    same("the error of an answer to a finished run", late.code(), Code::NothingToResume)
}

async fn changed_question(case: &Case<'_>) -> Found {
    let graph = "kit_price";
    let first = case.interrupted(graph, begin()?).await?;
    same("the question", questions(&first), [&json!("pay 0?")])?;
    let edit = RunCall::update_state::<Sheet>(&(), &Sheet::update().number(9)).map_err(no_call)?;
    case.end(graph, edit).await?;
    let second = case.interrupted(graph, resume(true)?).await?;
    same("the question after the edit", questions(&second), [&json!("pay 9?")])?;
    let replaced = second[0].replaces.as_ref().map(|replaced| replaced.value.clone());
    same("the question that it replaces", replaced, Some(json!("pay 0?")))?;
    if id_of(&first, 0)? == id_of(&second, 0)? {
        return Err("the new question has the id of the old one".to_owned());
    }
    let sheet = case.finished(graph, resume(true)?).await?;
    same("the answer", &sheet.lines[1..], ["paid for 9"])
}

async fn refused_by_the_node(case: &Case<'_>) -> Found {
    let graph = "kit_refusing";
    case.interrupted(graph, begin()?).await?;
    let first = case.interrupted(graph, resume("Ada")?).await?;
    let second = case.interrupted(graph, resume(11)?).await?;
    same("the question after the refusal", questions(&second), [&json!("how much?")])?;
    same("its reason", reason_of(&second), Some("Ada may not spend 11"))?;
    if id_of(&first, 0)? == id_of(&second, 0)? {
        return Err("the question has the id of the refused answer".to_owned());
    }
    let state = case.state(graph).await?;
    same("the open questions of the thread", &state.interrupts, &second)?;
    let sheet = case.finished(graph, resume(7)?).await?;
    same("the answers", &sheet.lines[1..], ["Ada spent 7"])?;
    same("how often the node ran", case.count("asks", "runs")?, 4)
}

async fn refused_by_key(case: &Case<'_>) -> Found {
    let graph = "kit_refusing_a_key";
    let asked = case.interrupted(graph, begin()?).await?;
    let answers = resume_many([(id_of(&asked, 0)?, 11), (id_of(&asked, 1)?, 2)])?;
    let again = case.interrupted(graph, answers).await?;
    same("the questions after the refusal", questions(&again), [&json!("a?")])?;
    same("its reason", reason_of(&again), Some("a is too large"))?;
    let sheet = case.finished(graph, resume(1)?).await?;
    same("the answers", &sheet.lines[1..], ["1 2"])
}

/// Why the last answer to the first question was refused.
fn reason_of(asked: &[Interrupt]) -> Option<&str> {
    asked.first()?.replaces.as_ref()?.reason.as_deref()
}

async fn static_interrupts(case: &Case<'_>) -> Found {
    let graph = "kit_stops";
    let before = case.interrupted(graph, begin()?).await?;
    same("static interrupts", (before.len(), before[0].id, &*before[0].node), (1, None, "one"))?;
    same("how often the node ran", case.count("one", "runs")?, 0)?;
    let after = case.interrupted(graph, proceed()).await?;
    same("static interrupts", (after.len(), after[0].id, &*after[0].node), (1, None, "one"))?;
    let sheet = case.finished(graph, proceed()).await?;
    same("the updates", sheet.lines, ["input", "one", "two"])?;
    same("how often the node ran", case.count("one", "runs")?, 1)
}
