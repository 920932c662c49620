//! The same entries as a graph: an object for the queue and the first share of a call, one for the further
//! shares, and a service for the branches.

use std::sync::Arc;

use agentgraph::SqliteSaver;
use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};

use super::{Order, SHARE, State};
use crate::work::{Work, text};

/// The queue of a thread, and the first share of each call.
pub(super) struct Same {
    pub(super) history: Arc<SqliteSaver>,
}

#[object]
impl Same {
    #[handler]
    async fn call(&self, ctx: ObjectContext<'_>, order: Json<Order>) -> HandlerResult<Json<State>> {
        let Json(order) = order;
        let state = read(&ctx).await?;
        ctx.set("status", format!(r#"{{"invocation":"{}","state":"running"}}"#, ctx.invocation_id()));
        let mut driven = make_share(&ctx, order, state, &self.history).await?;
        if !driven.is_done {
            ctx.object_client::<SameStepsClient>(ctx.key()).take(Json(driven.state.clone())).call().await?;
            ctx.set("moved", String::new());
            ctx.clear("state");
        }
        while !driven.is_done {
            let steps = ctx.object_client::<SameStepsClient>(ctx.key());
            driven = steps.drive(Json(order)).call().await?.into_inner();
        }
        ctx.set("status", r#"{"state":"finished"}"#.to_owned());
        Ok(Json(driven.state))
    }
}

/// The end of an invocation.
#[derive(Serialize, Deserialize)]
struct Driven {
    state: State,
    is_done: bool,
}

/// The further shares of a call.
pub(super) struct SameSteps {
    pub(super) history: Arc<SqliteSaver>,
}

#[object]
impl SameSteps {
    #[handler]
    async fn take(&self, ctx: ObjectContext<'_>, state: Json<State>) -> HandlerResult<()> {
        ctx.clear_all();
        ctx.set("state", state);
        Ok(())
    }

    #[handler]
    async fn drive(&self, ctx: ObjectContext<'_>, order: Json<Order>) -> HandlerResult<Json<Driven>> {
        let state = read(&ctx).await?;
        Ok(Json(make_share(&ctx, order.into_inner(), state, &self.history).await?))
    }
}

async fn read(ctx: &ObjectContext<'_>) -> HandlerResult<State> {
    let mut state = State::default();
    for key in ctx.get_keys().await?.into_iter().filter(|key| key == "state") {
        state = ctx.get::<Json<State>>(&key).await?.unwrap_or_default().into_inner();
    }
    Ok(state)
}

async fn make_share(
    ctx: &ObjectContext<'_>,
    Order { work, kept }: Order,
    mut state: State,
    history: &SqliteSaver,
) -> HandlerResult<Driven> {
    if state.count == 0 {
        if let Work::Branches { .. } = work {
            state.text = text(0);
        }
        commit(ctx, &state, history, kept).await?;
    }
    match work {
        Work::Steps(steps) => {
            for _ in 0..SHARE.min(steps - state.count) {
                let now = &state;
                state = ctx.run(|| async move { Ok(Json(now.step())) }).name("step").await?.into_inner();
                commit(ctx, &state, history, kept).await?;
            }
        }
        Work::Branches { number, .. } => {
            let mut calls = DurableFuturesUnordered::new();
            for _ in 0..number {
                calls.push(ctx.service_client::<SameTasksClient>().run(Json(state.clone())).call());
            }
            while let Some((_, item)) = calls.next().await? {
                state.items.push(item?);
            }
            state.count += 1;
            commit(ctx, &state, history, kept).await?;
        }
    }
    let is_done = !matches!(work, Work::Steps(steps) if state.count < steps);
    Ok(Driven { state, is_done })
}

async fn commit(
    ctx: &ObjectContext<'_>,
    state: &State,
    history: &SqliteSaver,
    kept: bool,
) -> HandlerResult<()> {
    ctx.set("state", Json(state.clone()));
    if kept {
        let thread = ctx.key();
        let put = || async move { Ok(state.put_into(history, thread).await?) };
        ctx.run(put).name("commit").await?;
    }
    Ok(())
}

pub(super) struct SameTasks;

#[service]
impl SameTasks {
    #[handler]
    async fn run(&self, ctx: Context<'_>, state: Json<State>) -> HandlerResult<String> {
        let Json(state) = state;
        Ok(ctx.run(|| async move { Ok(state.branch()) }).name("branch").await?)
    }
}
