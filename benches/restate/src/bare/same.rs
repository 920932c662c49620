//! The same entries as a graph: an object for the queue, one for the steps, and a service for the branches.

use std::sync::Arc;

use agentgraph::SqliteSaver;
use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};

use super::{Order, SHARE, State};
use crate::work::{Work, text};

/// The queue of a thread.
pub(super) struct Same;

#[object]
impl Same {
    #[handler]
    async fn call(&self, ctx: ObjectContext<'_>, order: Json<Order>) -> HandlerResult<Json<State>> {
        let Json(order) = order;
        ctx.set("status", format!(r#"{{"invocation":"{}","state":"running"}}"#, ctx.invocation_id()));
        let state = loop {
            let Json(driven) =
                ctx.object_client::<SameStepsClient>(ctx.key()).drive(Json(order)).call().await?;
            if driven.is_done {
                break driven.state;
            }
        };
        ctx.set("status", r#"{"state":"finished"}"#.to_owned());
        Ok(Json(state))
    }
}

/// The end of an invocation of the steps.
#[derive(Serialize, Deserialize)]
struct Driven {
    state: State,
    is_done: bool,
}

/// The state of a thread.
pub(super) struct SameSteps {
    pub(super) history: Arc<SqliteSaver>,
}

#[object]
impl SameSteps {
    #[handler]
    async fn drive(&self, ctx: ObjectContext<'_>, order: Json<Order>) -> HandlerResult<Json<Driven>> {
        let Json(Order { work, kept }) = order;
        let mut state = State::default();
        for key in ctx.get_keys().await? {
            state = ctx.get::<Json<State>>(&key).await?.unwrap_or_default().into_inner();
        }
        if state.count == 0 {
            if let Work::Branches { .. } = work {
                state.text = text(0);
            }
            self.commit(&ctx, &state, kept).await?;
        }
        match work {
            Work::Steps(steps) => {
                for _ in 0..SHARE.min(steps - state.count) {
                    let now = &state;
                    state = ctx.run(|| async move { Ok(Json(now.step())) }).name("step").await?.into_inner();
                    self.commit(&ctx, &state, kept).await?;
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
                self.commit(&ctx, &state, kept).await?;
            }
        }
        let is_done = !matches!(work, Work::Steps(steps) if state.count < steps);
        Ok(Json(Driven { state, is_done }))
    }
}

impl SameSteps {
    async fn commit(&self, ctx: &ObjectContext<'_>, state: &State, kept: bool) -> HandlerResult<()> {
        ctx.set("state", Json(state.clone()));
        if kept {
            let thread = ctx.key();
            let put = || async move { Ok(state.put_into(&self.history, thread).await?) };
            ctx.run(put).name("commit").await?;
        }
        Ok(())
    }
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
