//! Tasks: cancelled here and by another process over the same store, ended once, forgotten, gone on with.

use std::sync::Arc;
use std::time::Duration;

use agentgraph::{Checkpointer, MemorySaver, SqliteSaver};
use agentgraph_llm::ModelInfo;
use agentgraph_llm::prelude::*;
use async_trait::async_trait;
use futures_util::StreamExt;
use serde_json::json;
use shopify_agent::ShopAgent;
use shopify_agent::agent::{CancelAnswer, Item, Limits, RunningTask, TaskStatus};
use shopify_agent::embedded::EmbeddedShop;
use shopify_agent::offline::OfflineModel;
use shopify_agent::session::ShopSession;
use shopify_agent::shop::Shop;
use shopify_agent::wire::RunRequest;
use tokio::sync::Notify;

use crate::support::World;

/// The offline model, which says when it is asked for the answer, and then waits for its leave.
#[derive(Clone, Default)]
struct Held {
    asked: Arc<Notify>,
    leave: Arc<Notify>,
}

#[async_trait]
impl ChatModel for Held {
    fn info(&self) -> ModelInfo {
        OfflineModel.info()
    }

    async fn stream(&self, request: ChatRequest) -> agentgraph_llm::Result<ChatStream> {
        if request.system.as_deref().unwrap_or_default().contains("# Task: CustomerResponse") {
            self.asked.notify_one();
            self.leave.notified().await;
        }
        OfflineModel.stream(request).await
    }
}

fn agent(model: impl ChatModel + 'static, shop: &EmbeddedShop, saver: &Arc<dyn Checkpointer>) -> ShopAgent {
    let client = Shop::new(shop.settings()).unwrap();
    ShopAgent::new(Arc::new(model), client, Arc::clone(saver), Limits::default()).unwrap()
}

fn question() -> RunRequest {
    RunRequest::message(ShopSession::read(&json!({"guid": "g"})), "show my cart")
}

/// Reads frames until the model is asked for the answer.
async fn read_until_held(task: &mut RunningTask, model: &Held) {
    loop {
        tokio::select! {
            Some(_) = task.frames.next() => {}
            () = model.asked.notified() => return,
        }
    }
}

#[tokio::test]
async fn after_a_cancel_no_frame_follows_and_the_status_stays() {
    let model = Held::default();
    let world = World::with(Arc::new(model.clone()), Limits::default()).await;
    let mut task = world.agent.start(question()).await;
    read_until_held(&mut task, &model).await;
    assert_eq!(world.agent.status(&task.id).await.unwrap(), Some(TaskStatus::Running));
    assert_eq!(world.agent.cancel(&task.id).await.unwrap(), CancelAnswer::Cancelled);
    model.leave.notify_one();
    assert_eq!(task.frames.next().await, None);
    for _ in 0..2 {
        let again = world.agent.cancel(&task.id).await.unwrap();
        assert_eq!(again, CancelAnswer::Ended(TaskStatus::Cancelled));
    }
    assert_eq!(world.agent.status(&task.id).await.unwrap(), Some(TaskStatus::Cancelled));
}

#[tokio::test]
async fn frames_that_were_made_before_a_cancel_and_not_read_do_not_follow_it() {
    let model = Held::default();
    let world = World::with(Arc::new(model.clone()), Limits::default()).await;
    let mut task = world.agent.start(question()).await;
    model.asked.notified().await;
    world.agent.cancel(&task.id).await.unwrap();
    assert_eq!(task.frames.next().await, None);
}

#[tokio::test]
async fn a_task_that_has_answered_cannot_be_cancelled_and_an_unknown_one_is_unknown() {
    let world = World::new().await;
    let turn = world.client().says("hello").await;
    let answer = world.agent.cancel(&turn.id).await.unwrap();
    assert_eq!(answer, CancelAnswer::Ended(TaskStatus::FinishedWithSuccess));
    assert_eq!(world.agent.status(&turn.id).await.unwrap(), Some(TaskStatus::FinishedWithSuccess));
    assert_eq!(world.agent.cancel("task-none").await.unwrap(), CancelAnswer::Unknown);
    assert_eq!(world.agent.status("task-none").await.unwrap(), None);
}

#[tokio::test]
async fn a_reader_that_leaves_ends_its_task() {
    let model = Held::default();
    let world = World::with(Arc::new(model.clone()), Limits::default()).await;
    let mut task = world.agent.start(question()).await;
    read_until_held(&mut task, &model).await;
    drop(task.frames);
    for _ in 0..200 {
        if world.agent.status(&task.id).await.unwrap() == Some(TaskStatus::Cancelled) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the task runs on");
}

#[tokio::test]
async fn another_agent_over_the_same_store_cancels_within_seconds() {
    let folder = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("shop-{}.db", uuid::Uuid::new_v4()));
    // Two savers of one file, as two processes have them.
    let here: Arc<dyn Checkpointer> = Arc::new(SqliteSaver::open(&file).await.unwrap());
    let there: Arc<dyn Checkpointer> = Arc::new(SqliteSaver::open(&file).await.unwrap());
    let shop = EmbeddedShop::start().await.unwrap();
    let model = Held::default();
    let mut task = agent(model.clone(), &shop, &here).start(question()).await;
    read_until_held(&mut task, &model).await;
    let other = agent(OfflineModel, &shop, &there);
    let cancelled = tokio::time::timeout(Duration::from_secs(10), other.cancel(&task.id)).await.unwrap();
    assert_eq!(cancelled.unwrap(), CancelAnswer::Cancelled);
    model.leave.notify_one();
    let rest: Vec<Item> = task.frames.collect().await;
    let is_answer = |item: &Item| matches!(item, Item::Frame(frame) if frame.node == "CustomerResponse");
    assert!(!rest.iter().any(is_answer), "{rest:?}");
    assert_eq!(other.status(&task.id).await.unwrap(), Some(TaskStatus::Cancelled));
    let _ = std::fs::remove_file(file);
}

#[tokio::test]
async fn old_tasks_are_forgotten_and_running_ones_are_not() {
    let model = Held::default();
    let world = World::with(Arc::new(model.clone()), Limits::default()).await;
    let mut client = world.client();
    let done = client.clicks("hack", json!({}));
    model.leave.notify_one();
    let done = done.await;
    let mut task = world.agent.start(question()).await;
    model.asked.notified().await;
    read_until_held(&mut task, &model).await;
    assert_eq!(world.agent.forget(Duration::from_secs(60)).await.unwrap(), 0);
    assert_eq!(world.agent.forget(Duration::ZERO).await.unwrap(), 1);
    assert_eq!(world.agent.status(&done.id).await.unwrap(), None);
    assert_eq!(world.agent.status(&task.id).await.unwrap(), Some(TaskStatus::Running));
}

#[tokio::test]
async fn a_report_has_the_frames_of_the_stream_with_the_answer_last() {
    let saver: Arc<dyn Checkpointer> = Arc::new(MemorySaver::new());
    let shop = EmbeddedShop::start().await.unwrap();
    let agent = agent(OfflineModel, &shop, &saver);
    let task = agent.start(question()).await;
    let sent: Vec<Item> = task.frames.collect().await;
    let report = agent.report(&task.id).await.unwrap().unwrap();
    let kept: Vec<Item> = report.frames.into_iter().map(|frame| Item::Frame(Box::new(frame))).collect();
    assert_eq!((report.status, kept), (TaskStatus::FinishedWithSuccess, sent));
}

/// Every future that crosses threads may do so.
#[test]
fn agents_and_their_frames_may_be_sent_to_other_threads() {
    fn is_send<T: Send + 'static>() {}
    is_send::<ShopAgent>();
    is_send::<RunningTask>();
    is_send::<EmbeddedShop>();
}
