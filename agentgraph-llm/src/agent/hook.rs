//! A hook of a middleware as a node.

use std::sync::Arc;

use agentgraph::{Command, Ctx, Snapshot};

use super::plan::{Next, Plan};
use super::state::{AgentChange, AgentChannels, RecordChange, conversation_of};
use crate::error::Result;
use crate::middleware::{Hooks, Jump, Middleware, Turn, TurnStart};
use crate::model::listening;
use crate::tool_loop::LoopEnd;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HookKind {
    BeforeAgent,
    BeforeModel,
    AfterModel,
    AfterAgent,
}

impl HookKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            HookKind::BeforeAgent => "before_agent",
            HookKind::BeforeModel => "before_model",
            HookKind::AfterModel => "after_model",
            HookKind::AfterAgent => "after_agent",
        }
    }

    pub(super) fn is_in(self, hooks: Hooks) -> bool {
        match self {
            HookKind::BeforeAgent => hooks.has_before_agent(),
            HookKind::BeforeModel => hooks.has_before_model(),
            HookKind::AfterModel => hooks.has_after_model(),
            HookKind::AfterAgent => hooks.has_after_agent(),
        }
    }

    /// The last middleware is the first to see what comes back.
    pub(super) fn is_reversed(self) -> bool {
        matches!(self, HookKind::AfterModel | HookKind::AfterAgent)
    }
}

/// One hook of one middleware.
pub(super) struct HookNode {
    pub(super) plan: Arc<Plan>,
    pub(super) middleware: Arc<dyn Middleware>,
    pub(super) kind: HookKind,
    /// The next node; `None` if the conversation decides.
    pub(super) next: Option<String>,
}

impl HookNode {
    pub(super) async fn run<S: AgentChannels>(&self, ctx: Ctx, state: Snapshot<S>) -> Result<Command<S>> {
        let mut turn = Turn::new(self.middleware.name().to_owned(), turn_start(ctx, &state));
        // Models that a hook asks are not the agent's voice.
        let jump = listening::silently(Box::pin(self.call(&mut turn))).await?;
        Ok(self.go(turn, jump, &state))
    }

    async fn call(&self, turn: &mut Turn) -> Result<Jump> {
        match self.kind {
            HookKind::BeforeAgent => self.middleware.before_agent(turn).await,
            HookKind::BeforeModel => self.middleware.before_model(turn).await,
            HookKind::AfterModel => self.middleware.after_model(turn).await,
            HookKind::AfterAgent => self.middleware.after_agent(turn).await.map(|_| Jump::Next),
        }
    }

    fn go<S: AgentChannels>(&self, turn: Turn, jump: Jump, state: &S) -> Command<S> {
        let next = match (jump, &self.next) {
            (Jump::Next, Some(next)) => Next::Hook(next.clone()),
            (Jump::Next, None) => {
                let run = state.run_record();
                self.plan.next(turn.messages(), run.end.is_some(), run.goes_on)
            }
            (Jump::Tools, _) => self.plan.tools_or(Next::Model, turn.messages()),
            (Jump::Model, _) => Next::Model,
            (Jump::End, _) => Next::End,
        };
        let bill = turn.own_bill();
        let (edits, slots) = turn.into_changes();
        let mut change = AgentChange::of_messages(edits);
        if let Some((thread, run)) = slots {
            change.thread = Some(RecordChange::slots(thread));
            change.run = Some(RecordChange::slots(run));
        }
        if !bill.is_empty() {
            change.bill(bill);
        }
        if jump == Jump::End {
            change.run_mut().end = Some(LoopEnd::Jumped);
        }
        self.plan.go(change, next)
    }
}

fn turn_start<S: AgentChannels>(ctx: Ctx, state: &Snapshot<S>) -> TurnStart {
    let (thread, run) = (state.thread_record(), state.run_record());
    TurnStart {
        messages: conversation_of(&**state),
        slots: thread.slots().clone(),
        run_slots: run.slots().clone(),
        stop: run.stop.clone(),
        last_usage: run.last_usage,
        bill: thread.bill.clone(),
        run_bill: run.bill.clone(),
        rounds: thread.rounds,
        run_rounds: run.rounds,
        ctx: Some(ctx),
    }
}
