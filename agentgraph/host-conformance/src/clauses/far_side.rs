//! The far side: durable steps, sleeps and contexts, which the process of a task provides.

use std::time::{Duration, SystemTime};

use agentgraph::Code;
use agentgraph::prelude::*;
use futures_util::FutureExt;
use futures_util::future::join_all;

use crate::case::{Case, Found, begin, proceed, resume, same};
use crate::clause::Clause;
use crate::graph::KitGraph;
use crate::host::Ability;
use crate::notes::Notes;
use crate::sheet::{Sheet, SheetUpdate};

pub(super) const CLAUSES: &[Clause] = &[
    Clause::new(
        "a durable step is done once, however often its task runs",
        "Its result is stored by the id of the task, in a store that all processes reach which may run the task.",
        |case| once(case).boxed(),
    )
    .needing(&[Ability::DurableSteps]),
    Clause::new(
        "a sleep ends when its time has come, and not before",
        "Its end is a durable step and a part of the question. Time passes between two calls of a thread. A host may wake a \
         thread by itself.",
        |case| sleep(case).boxed(),
    )
    .needing(&[Ability::DurableSteps]),
    Clause::new(
        "a node's context is made where the node runs, for its thread",
        "The context of a caller is not sent. The worker makes one for each task, here by `conformance::context_of`.",
        |case| contexts(case).boxed(),
    )
    .needing(&[Ability::Contexts]),
];

pub(super) fn graphs(notes: &Notes) -> Vec<KitGraph> {
    vec![
        KitGraph::of("kit_once", paying(notes)),
        KitGraph::of("kit_sleep", sleeping(notes)),
        KitGraph::of("kit_context", with_context()),
    ]
}

/// The context that nodes of the kit take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskContext(String);

/// The context for a task of this thread: a worker gives it to the task, by
/// [`FarSide::context`](agentgraph::host::FarSide::context).
pub fn context_of(thread: Option<&str>) -> TaskContext {
    TaskContext(format!("made for {}", thread.unwrap_or("no thread")))
}

fn paying(notes: &Notes) -> StateGraph<Sheet> {
    async fn pays(ctx: Ctx, notes: Dep<Notes>) -> Result<SheetUpdate> {
        let mut receipts = Vec::new();
        for _ in 0..2 {
            let receipt = ctx.once("pay", async {
                notes.note(&ctx, "pays")?;
                Ok(notes.of_thread(ctx.thread().unwrap_or_default())?.len())
            });
            receipts.push(receipt.await?);
        }
        if ctx.attempt() == 1 {
            return Err("the line broke after the payment".into());
        }
        let sent: bool = ctx.interrupt("send?")?;
        Ok(Sheet::update().lines([format!("{receipts:?} {sent}")]))
    }
    let again = RetryPolicy::attempts(2).initial(Duration::from_millis(1));
    StateGraph::new().dep(notes.clone()).node("pays", pays.retry(again)).edge(START, "pays")
}

/// How long the kit's node sleeps.
const NAP: Duration = Duration::from_millis(600);

fn sleeping(notes: &Notes) -> StateGraph<Sheet> {
    async fn naps(ctx: Ctx, notes: Dep<Notes>) -> Result<SheetUpdate> {
        ctx.sleep("nap", NAP).await?;
        notes.note(&ctx, "awake")?;
        Ok(Sheet::update().lines(["awake"]))
    }
    StateGraph::new().dep(notes.clone()).node("naps", naps).edge(START, "naps")
}

fn with_context() -> StateGraph<Sheet> {
    async fn reads(context: CallContext<TaskContext>) -> SheetUpdate {
        Sheet::update().lines([context.0.clone()])
    }
    StateGraph::new().node("reads", reads).edge(START, "reads")
}

async fn once(case: &Case<'_>) -> Found {
    case.interrupted("kit_once", begin()?).await?;
    let sheet = case.finished("kit_once", resume(true)?).await?;
    same("the results of the durable steps", &sheet.lines[1..], ["[1, 2] true"])?;
    same("how often they were done", case.count("pays", "pays")?, 2)
}

async fn sleep(case: &Case<'_>) -> Found {
    let begun = SystemTime::now();
    let asleep = case.interrupted("kit_sleep", begin()?).await?;
    let until = asleep[0].until.ok_or("the interrupt does not say when the sleep ends")?;
    // A clock that is set meanwhile may move a little.
    if until < begun + NAP / 4 || until > SystemTime::now() + NAP * 4 {
        return Err(format!("the sleep of {NAP:?} that began at {begun:?} ends at {until:?}"));
    }
    let sheet = loop {
        let now = SystemTime::now();
        match case.result("kit_sleep", proceed()).await? {
            Ok(Outcome::Finished { output, .. }) => break output,
            // At once once more, to see that it still sleeps; then when it ends.
            Ok(Outcome::Interrupted { .. }) if now < until + NAP * 3 => {
                tokio::time::sleep(until.duration_since(now).unwrap_or(NAP / 8)).await;
            }
            Err(error) if error.code() == Code::NothingToResume => {
                break case.state("kit_sleep").await?.values;
            }
            other => return Err(format!("after the end of its sleep the run ended so: {other:?}")),
        }
    };
    same("the update", &sheet.lines[1..], ["awake"])?;
    let awake = case.notes()?.first().map_or(0, |note| note.at);
    let awake = SystemTime::UNIX_EPOCH + Duration::from_micros(awake);
    match awake + NAP / 4 < until {
        true => Err(format!("the node went on at {awake:?}, before the end of its sleep at {until:?}")),
        false => Ok(()),
    }
}

async fn contexts(case: &Case<'_>) -> Found {
    let threads = ["a", "b"].map(|thread| async move {
        let case = case.on(thread);
        let sheet = case.finished("kit_context", begin()?).await?;
        let expected = context_of(Some(case.thread())).0;
        same("the context of a node", &sheet.lines[1..], [expected])
    });
    join_all(threads).await.into_iter().collect()
}
