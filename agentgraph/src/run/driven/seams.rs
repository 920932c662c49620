//! The seams of a driven run: a host and services that note what the run asks for.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;

use super::desk::Desk;
use super::need::{NeedKind, Reply};
use crate::context::host::{Host, TaskCall, TaskReply};
use crate::error::BoxError;
use agentgraph_checkpoint::RunId;
use agentgraph_checkpoint::services::Services;

/// Asks for each task. Calls hold their states if the driver says that it runs tasks here.
pub(super) struct DrivenHost {
    pub(super) desk: Arc<Desk>,
    pub(super) runs_here: bool,
}

#[async_trait]
impl Host for DrivenHost {
    async fn run(&self, call: TaskCall) -> Result<TaskReply, BoxError> {
        match self.desk.ask(NeedKind::Task(Box::new(call))).await {
            Reply::Task(reply) => Ok(reply),
            Reply::HostFailed(problem) => Err(problem.into()),
            Reply::Stored(_) | Reply::Fired => Err("the reply is not one to a task".into()),
        }
    }

    fn takes_held_states(&self) -> bool {
        self.runs_here
    }
}

/// A clock that moves with replies, timers that are asked for, and numbers that follow from a seed.
pub(super) struct DrivenServices(pub(super) Arc<Desk>);

#[async_trait]
impl Services for DrivenServices {
    fn now(&self) -> SystemTime {
        self.0.now()
    }

    async fn sleep(&self, duration: Duration) {
        self.0.ask(NeedKind::Timer(duration)).await;
    }

    fn random(&self) -> u64 {
        self.0.random()
    }

    fn run_id(&self) -> RunId {
        RunId::from_u128((u128::from(self.0.random()) << 64) | u128::from(self.0.random()))
    }
}
