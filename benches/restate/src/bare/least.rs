//! The least that the work needs: one object, and for each step a run and a set.

use std::sync::Arc;

use agentgraph::SqliteSaver;
use restate_sdk::prelude::*;

use super::{Order, SHARE, State};
use crate::work::{Work, text};

pub(super) struct Least {
    pub(super) history: Arc<SqliteSaver>,
}

#[object]
impl Least {
    #[handler]
    async fn call(&self, ctx: ObjectContext<'_>, order: Json<Order>) -> HandlerResult<Json<State>> {
        let Json(Order { work, kept }) = order;
        let mut state = ctx.get::<Json<State>>("state").await?.unwrap_or_default().into_inner();
        match work {
            Work::Steps(steps) => {
                for _ in 0..SHARE.min(steps - state.count) {
                    let now = &state;
                    state = ctx.run(|| async move { Ok(Json(now.step())) }).name("step").await?.into_inner();
                    ctx.set("state", Json(state.clone()));
                    if kept {
                        self.keep(&ctx, &state).await?;
                    }
                }
            }
            Work::Branches { number, .. } => {
                state.text = text(0);
                let mut calls = DurableFuturesUnordered::new();
                for _ in 0..number {
                    calls.push(ctx.service_client::<LeastTasksClient>().run(Json(state.clone())).call());
                }
                while let Some((_, item)) = calls.next().await? {
                    state.items.push(item?);
                }
                ctx.set("state", Json(state.clone()));
                if kept {
                    self.keep(&ctx, &state).await?;
                }
            }
        }
        Ok(Json(state))
    }
}

impl Least {
    /// Writes the history in a run of its own: it has to be of a result that is in the journal.
    async fn keep(&self, ctx: &ObjectContext<'_>, state: &State) -> HandlerResult<()> {
        let thread = ctx.key();
        Ok(ctx.run(|| async move { Ok(state.put_into(&self.history, thread).await?) }).name("commit").await?)
    }
}

pub(super) struct LeastTasks;

#[service]
impl LeastTasks {
    #[handler]
    async fn run(&self, ctx: Context<'_>, state: Json<State>) -> HandlerResult<String> {
        let Json(state) = state;
        // A handler whose answer may differ the next time has to have it in the journal.
        Ok(ctx.run(|| async move { Ok(state.branch()) }).name("branch").await?)
    }
}
