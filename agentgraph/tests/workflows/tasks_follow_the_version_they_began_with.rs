//! A task that was past a change of its code before the change keeps the old code; every other task takes the
//! new one, and keeps it.

use agentgraph::node::OnceError;
use agentgraph::prelude::*;
use agentgraph::run::StepKind;
use agentgraph::workflow::WorkflowState;
use agentgraph::{BoxError, Code};

use crate::common::saver::NotingSaver;

type Prices = CompiledGraph<WorkflowState<u32, String>>;

/// The first program: it asks, takes the net price, and asks again.
fn first(saver: &NotingSaver) -> Prices {
    let program = Workflow::new("price", async |ctx: Ctx, net: u32| {
        let _: bool = ctx.interrupt("begin?")?;
        let price = ctx.once("net", async { Ok(net) }).await?;
        let _: bool = ctx.interrupt("send?")?;
        Ok::<_, BoxError>(format!("net {price}"))
    });
    program.compile().unwrap().checkpointer(saver.clone())
}

/// A later program, with the changes up to `newest`.
fn later(saver: &NotingSaver, newest: u32) -> Prices {
    let program = Workflow::new("price", move |ctx: Ctx, net: u32| async move {
        let _: bool = ctx.interrupt("begin?")?;
        let price = match ctx.version("tax", newest).await? {
            0 => format!("net {}", ctx.once("net", async { Ok(net) }).await?),
            1 => format!("gross {}", ctx.once("gross", async { Ok(net * 2) }).await?),
            version => format!("v{version} {}", ctx.once("newer", async { Ok(net * 3) }).await?),
        };
        let _: bool = ctx.interrupt("send?")?;
        Ok::<_, BoxError>(price)
    });
    program.compile().unwrap().checkpointer(saver.clone())
}

#[tokio::test]
async fn a_task_that_was_past_the_change_keeps_the_old_code() {
    let saver = NotingSaver::memory();
    first(&saver).invoke(5).thread("t").await.unwrap();
    first(&saver).resume(true).thread("t").await.unwrap();
    let end = later(&saver, 1).resume(true).thread("t").await.unwrap();
    assert_eq!(end.into_returned().unwrap(), "net 5");
}

#[tokio::test]
async fn a_task_that_was_not_there_yet_takes_the_new_code() {
    let saver = NotingSaver::memory();
    first(&saver).invoke(5).thread("t").await.unwrap();
    later(&saver, 1).resume(true).thread("t").await.unwrap();
    let end = later(&saver, 1).resume(true).thread("t").await.unwrap();
    assert_eq!(end.into_returned().unwrap(), "gross 10");
}

#[tokio::test]
async fn a_task_keeps_its_version_when_the_program_changes_again() {
    let saver = NotingSaver::memory();
    for (thread, began_with, ends) in [("a", 1, "gross 10"), ("b", 2, "v2 15")] {
        let begins = later(&saver, began_with);
        begins.invoke(5).thread(thread).await.unwrap();
        begins.resume(true).thread(thread).await.unwrap();
        let end = later(&saver, 3).resume(true).thread(thread).await.unwrap();
        assert_eq!(end.into_returned().unwrap(), ends);
    }
}

/// A program whose version call moves: stage 1 has none, stage 2 has it before the old step, stage 3 after
/// everything that earlier attempts have stored, where only the stored decision tells that a task is old.
fn moving(saver: &NotingSaver, stage: u32) -> Prices {
    let program = Workflow::new("price", move |ctx: Ctx, net: u32| async move {
        let mut version = 0;
        if stage == 2 {
            version = ctx.version("tax", 1).await?;
        }
        let price = ctx.once("net", async { Ok(net) }).await?;
        let _: bool = ctx.interrupt("send?")?;
        if stage >= 2 {
            let _: bool = ctx.interrupt("sure?")?;
        }
        if stage == 3 {
            version = ctx.version("tax", 1).await?;
        }
        Ok::<_, BoxError>(format!("version {version}, net {price}"))
    });
    program.compile().unwrap().checkpointer(saver.clone())
}

#[tokio::test]
async fn the_decision_for_the_old_code_is_kept() {
    let saver = NotingSaver::memory();
    moving(&saver, 1).invoke(5).thread("decided").await.unwrap();
    moving(&saver, 2).resume(true).thread("decided").await.unwrap();
    let end = moving(&saver, 3).resume(true).thread("decided").await.unwrap();
    assert_eq!(end.into_returned().unwrap(), "version 0, net 5");

    // Without the decision the task has called everything, and takes the new code.
    moving(&saver, 1).invoke(5).thread("undecided").await.unwrap();
    moving(&saver, 3).resume(true).thread("undecided").await.unwrap();
    let end = moving(&saver, 3).resume(true).thread("undecided").await.unwrap();
    assert_eq!(end.into_returned().unwrap(), "version 1, net 5");
}

#[tokio::test]
async fn an_older_program_refuses_a_task_that_a_newer_one_began() {
    let saver = NotingSaver::memory();
    let newer = later(&saver, 2);
    newer.invoke(5).thread("t").await.unwrap();
    newer.resume(true).thread("t").await.unwrap();
    let shown = newer.state("t").await.unwrap().unwrap().steps;
    assert_eq!(shown[0].kind, StepKind::Version(2));
    let error = later(&saver, 1).resume(true).thread("t").await.unwrap_err();
    assert_eq!(error.code(), Code::Once);
    let expected = OnceError::NewerVersion { name: "tax".to_owned(), version: 2, newest: 1 };
    assert!(error.to_string().contains(&expected.to_string()), "{error}");
    // Nothing is lost: the newer program goes on.
    assert_eq!(newer.proceed().thread("t").await.unwrap().into_returned().unwrap(), "v2 15");
}

/// Steps that run side by side count as called when they are called, not when they are done.
#[tokio::test]
async fn steps_side_by_side_do_not_make_a_task_old() {
    async fn both(ctx: Ctx, asks: bool) -> Result<(u32, u32, u32)> {
        let a = ctx.once("a", async { Ok(1) });
        let b = ctx.once("b", async { Ok(2) });
        let (b, a) = futures_util::future::try_join(b, a).await?;
        if asks {
            let _: bool = ctx.interrupt("go on?")?;
        }
        Ok((a, b, ctx.version("change", 4).await?))
    }
    fn program(saver: &NotingSaver, asks: bool) -> CompiledGraph<WorkflowState<(), (u32, u32, u32)>> {
        let program = Workflow::new("both", move |ctx: Ctx, (): ()| both(ctx, asks));
        program.compile().unwrap().checkpointer(saver.clone())
    }
    let saver = NotingSaver::memory();
    let program = |asks: bool| program(&saver, asks);
    program(true).invoke(()).thread("t").await.unwrap();
    let end = program(true).resume(true).thread("t").await.unwrap();
    assert_eq!(end.into_returned().unwrap(), (1, 2, 4));
    // The new program does not ask: the answer that it has not used makes the task an old one.
    program(true).invoke(()).thread("u").await.unwrap();
    let removed = program(false).resume(true).thread("u").await.unwrap();
    assert_eq!(removed.into_returned().unwrap(), (1, 2, 0));
}

/// A node that fails and is retried in the same call decides as in its first attempt.
#[tokio::test]
async fn a_retry_decides_as_the_first_attempt_did() {
    let saver = NotingSaver::memory();
    let program = Workflow::new("retried", async |ctx: Ctx, (): ()| {
        let before = ctx.version("change", 1).await?;
        ctx.once("work", async { Ok(()) }).await?;
        let again = ctx.version("change", 1).await?;
        match ctx.attempt() {
            1 => Err(BoxError::from("not yet")),
            _ => Ok((before, again)),
        }
    });
    let again = RetryPolicy::attempts(2).initial(std::time::Duration::ZERO);
    let program = program.retry(again).compile().unwrap().checkpointer(saver);
    assert_eq!(program.invoke(()).thread("t").await.unwrap().into_returned().unwrap(), (1, 1));
}
