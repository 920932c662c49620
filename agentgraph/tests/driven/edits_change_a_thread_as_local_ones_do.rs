//! An edit of a driven thread leaves the checkpoint that the same edit leaves on the local engine.

use agentgraph::CompiledGraph;
use agentgraph::host::RunCall;
use agentgraph::prelude::*;

use crate::driver::Driver;
use crate::graphs::{Work, asking, looping, step};
use crate::local::{SameIds, assert_same_checkpoint};

/// The same thread, local and driven.
struct Both {
    local: CompiledGraph<Work>,
    driver: Driver,
}

impl Both {
    async fn invoked(build: impl Fn() -> CompiledGraph<Work>) -> Self {
        let local = build().services(SameIds::new()).checkpointer(MemorySaver::new());
        let mut both = Both { local, driver: Driver::new(build(), build()) };
        both.local.invoke(step("input", 0)).thread("t").await.unwrap();
        both.drive(RunCall::invoke::<Work>(&(), &step("input", 0)).unwrap()).await;
        both
    }

    async fn drive(&mut self, call: RunCall) {
        let done = self.driver.call(call).await;
        assert_eq!(done.end.error_code(), None, "{:?}", done.end);
        self.agree().await;
    }

    async fn agree(&self) {
        let rows = self.driver.rows.clone().into_iter().collect();
        let driven = self.driver.near.thread_state("t", rows).await.unwrap().unwrap();
        let local = self.local.state("t").await.unwrap().unwrap();
        assert_same_checkpoint(&driven.into_checkpoint::<Work>(&()).unwrap(), &local);
    }
}

#[tokio::test]
async fn of_the_state_alone() {
    let mut both = Both::invoked(|| looping(3)).await;
    let update = step("edit", 7);
    both.local.update_state("t").update(update.clone()).await.unwrap();
    both.drive(RunCall::update_state::<Work>(&(), &update).unwrap()).await;
}

#[tokio::test]
async fn of_a_thread_that_waits() {
    let mut both = Both::invoked(|| asking(false)).await;
    let update = step("edit", 7);
    both.local.update_state("t").update(update.clone()).await.unwrap();
    both.drive(RunCall::update_state::<Work>(&(), &update).unwrap()).await;
}

#[tokio::test]
async fn in_the_name_of_nodes() {
    let mut both = Both::invoked(|| asking(false)).await;
    let (one, two) = (step("one", 1), step("two", 2));
    both.local.update_state("t").as_node("one", one.clone()).as_node("two", two.clone()).await.unwrap();
    let call = RunCall::update_state_as::<Work>(&(), [("one", &one), ("two", &two)]).unwrap();
    both.drive(call).await;
    both.local.proceed().thread("t").await.unwrap();
    both.drive(RunCall::proceed()).await;
}

#[tokio::test]
async fn of_the_start_and_the_end() {
    let mut both = Both::invoked(|| looping(3)).await;
    let input = step("again", 0);
    both.local.update_state("t").as_start(input.clone()).await.unwrap();
    both.drive(RunCall::update_state_as_start::<Work>(&(), &input).unwrap()).await;
    let last = step("over", 9);
    both.local.update_state("t").as_end(last.clone()).await.unwrap();
    both.drive(RunCall::update_state_as_end::<Work>(&(), &last).unwrap()).await;
}
